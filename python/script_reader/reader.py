"""Training scripts for Ascend, read and never executed: what they set becomes options of `hcclsim run`.

Read are calls with literal arguments and assignments of literals:

- TensorFlow: parameter_map["hcom_parallel"].b, ["profiling_mode"].b, ["profiling_options"].s of the NpuOptimizer, and
  what else its parameter_map sets; NPURunConfig(hcom_parallel=…, profiling_config=ProfilingConfig(…)); rewrite options
  (remapping, memory_optimization);
- HCCL: create_group, set_split_strategy_by_idx, set_split_strategy_by_size;
- MindSpore: set_auto_parallel_context, set_context, set_ps_context (contexts.py);
- PyTorch: PowerSGDState and register_comm_hook.

What stands under a condition is taken as if it held, and named. Two settings of one thing that differ, in branches or in
several configurations, are an error, unless an option of the command line says which counts; so is a value that the
script changes on its way.
"""

from __future__ import annotations

import ast
import difflib
import json
from typing import Any, Callable, Collection, Dict, List, NamedTuple, Optional, Sequence, Set, Tuple, Union

from contexts import Contexts
from tables import FIELDS, HOOKS, IN_PLACE_OF, NO_EFFECT, PARAMETERS, PROFILING_KEYS, SPLIT_CALLS, SPLITS, STATE_KEYS, WORLD
from values import CHANGING, Meaning, NoLiteral, ScriptError, Values, line_of


class Setting(NamedTuple):
    """Something that the script sets, and what became of it."""

    line: int
    what: str
    became: str


class Place(NamedTuple):
    """Where a thing was set: line, target of the assignment, and the branches around it by the line of their condition."""

    line: int
    target: str
    branches: Dict[int, str]


class Reader(ast.NodeVisitor):
    """Walks a script in its order and collects options of `hcclsim run`. `given` are the options of the command line,
    which count first."""

    def __init__(self, path: str, text: str, given: Collection[str] = ()) -> None:
        self.path = path
        self.options: List[str] = []
        #: Those of MindSpore's contexts.
        self.context_options: List[str] = []
        self.settings: List[Setting] = []
        #: Where training_trace is to be written; None: it is not wanted.
        self.output: Optional[str] = None
        self._text = text
        #: Functions that the script defines.
        self._own: Set[str] = set()
        self._given = given
        self._values = Values(path)
        self._branches: Dict[int, str] = {}
        #: What was set of each thing that there is once, and where.
        self._once: Dict[str, Tuple[Any, Place]] = {}
        self._groups: Dict[str, List[int]] = {}
        self._splits: Dict[str, Tuple[str, List[Any], Place]] = {}
        self._contexts = Contexts(self._values, given)

    # What names stand for. --------------------------------------------------------------------------------------------

    def visit_Assign(self, node: ast.Assign) -> None:
        self.generic_visit(node)  # the value first, as Python does
        for target in node.targets:
            self._assigned(target, node.value)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        self.generic_visit(node)
        if node.value is not None:
            self._assigned(node.target, node.value)

    def visit_NamedExpr(self, node: ast.NamedExpr) -> None:
        self.generic_visit(node)
        self._assigned(node.target, node.value)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        self.generic_visit(node)
        self._values.change(node.target)

    def visit_withitem(self, node: ast.withitem) -> None:
        self.generic_visit(node)
        if node.optional_vars is not None:
            self._values.change(node.optional_vars)

    def visit_Delete(self, node: ast.Delete) -> None:
        for target in node.targets:
            self._values.change(target)

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        for name in node.names:
            self._values.import_as(name.asname or name.name, name.name)

    def visit_FunctionDef(self, node: Union[ast.FunctionDef, ast.AsyncFunctionDef]) -> None:
        self._own.add(node.name)
        before = dict(self._values.names)
        names = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs, node.args.vararg, node.args.kwarg]
        for name in names:
            if name is not None:
                self._values.names[name.arg] = None
        self.generic_visit(node)
        # Names of its own end here; parts of objects stay.
        of_objects = {name: value for name, value in self._values.names.items() if "." in name}
        self._values.names = {**before, **of_objects}

    visit_AsyncFunctionDef = visit_FunctionDef

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        before = dict(self._values.names)
        self.generic_visit(node)
        own = {name: value for name, value in self._values.names.items() if before.get(name) is not value}
        self._values.names = {**before, **{name if "." in name else f"{node.name}.{name}": own[name] for name in own}}

    def visit_If(self, node: ast.If) -> None:
        if isinstance(node.test, ast.Constant):
            self._visit_all(node.body if node.test.value else node.orelse)
            return
        self.visit(node.test)
        self._visit_ways(node.lineno, {"holds": node.body, "does not hold": node.orelse})

    def visit_For(self, node: Union[ast.For, ast.AsyncFor]) -> None:
        self.visit(node.iter)
        self._values.change(node.target)
        before = dict(self._values.names)
        self._visit_all([*node.body, *node.orelse])
        self._values.merge(before, [before, self._values.names])

    visit_AsyncFor = visit_For

    def visit_While(self, node: ast.While) -> None:
        before = dict(self._values.names)
        self.generic_visit(node)
        self._values.merge(before, [before, self._values.names])

    def _visit_ways(self, line: int, ways: Dict[str, List[ast.stmt]]) -> None:
        before = self._values.names
        after: List[Dict[str, Meaning]] = []
        for branch, statements in ways.items():
            self._values.names = dict(before)
            self._branches[line] = branch
            self._visit_all(statements)
            after.append(self._values.names)
        del self._branches[line]
        self._values.merge(before, after)

    def _visit_all(self, statements: Sequence[ast.stmt]) -> None:
        for statement in statements:
            self.visit(statement)

    def _assigned(self, target: ast.expr, value: ast.expr) -> None:
        self._values.assign(target, value)
        if isinstance(target, ast.Attribute):
            self._assigned_attribute(target, value)

    # Calls. -----------------------------------------------------------------------------------------------------------

    def visit_Call(self, node: ast.Call) -> None:
        self.generic_visit(node)  # arguments first, as Python does
        name = self._values.last_name(node.func)
        if name in CHANGING and isinstance(node.func, ast.Attribute):
            self._values.change(node.func.value)
        take = {
            "set_split_strategy_by_idx": self._split_by_idx,
            "set_split_strategy_by_size": self._split_by_size,
            "create_group": self._create_group,
            "set_auto_parallel_context": self._context,
            "reset_auto_parallel_context": self._reset_context,
            "set_context": self._contexts.set_mode,
            "set_ps_context": self._ps_context,
            "NPURunConfig": self._run_config,
            "register_comm_hook": self._comm_hook,
        }.get(name)
        if take is not None:
            self._or_given(node, name, ast.unparse(node), lambda: take(node))
        elif name not in self._own:
            near = difflib.get_close_matches(str(name), SPLIT_CALLS, 1, 0.85)
            if near:
                self._tell(node, ast.unparse(node), f"no effect: there is no {name}; did you mean {near[0]}?")

    def _or_given(self, node: ast.AST, thing: str, what: str, read: Callable[[], None]) -> None:
        """Reads a setting; what is no literal may stand beside an option of the command line that is in its place."""
        try:
            read()
        except NoLiteral as error:
            given = [option for option in IN_PLACE_OF.get(thing, ()) if option in self._given]
            if not given:
                raise error
            self._tell(node, what, f"not read: {given[0]} is given")

    # TensorFlow. ------------------------------------------------------------------------------------------------------

    def _assigned_attribute(self, target: ast.Attribute, node: ast.expr) -> None:
        owner = self._values.resolved(target.value)
        if isinstance(owner, ast.Subscript) and self._values.last_name(owner.value) == "parameter_map":
            key = self._values.literal(owner.slice, "the key of parameter_map")
            what = f'parameter_map["{key}"] = {ast.unparse(node)}'
            if key in NO_EFFECT:
                self._tell(target, what, f"no effect: {NO_EFFECT[key]}")
            else:
                self._or_given(target, str(key), what, lambda: self._parameter(target, key, node))
        elif target.attr in ("remapping", "memory_optimization") and self._values.last_name(owner) == "rewrite_options":
            name = self._values.last_name(node)
            if name != "OFF":
                raise self._error(target, f"rewrite_options.{target.attr} must be RewriterConfig.OFF on Ascend, it is {name}")
            self._tell(target, f"rewrite_options.{target.attr} = OFF", "as Ascend needs it")

    def _parameter(self, target: ast.Attribute, key: Any, node: ast.expr) -> None:
        if key not in PARAMETERS:
            near = difflib.get_close_matches(str(key), [*PARAMETERS, *NO_EFFECT], 1, 0.8)
            if near:
                raise self._error(target, f"the NpuOptimizer has no {key!r} that is known here; did you mean {near[0]}?")
            self._tell(target, f'parameter_map["{key}"] = {ast.unparse(node)}', "no effect: not known here")
            return
        value = self._values.literal(node, f'parameter_map["{key}"]')
        name = ast.unparse(target)
        if key == "hcom_parallel":
            self._hcom_parallel(target, value, name)
        elif key == "profiling_mode":
            on = self._bool(target, key, value)
            self._set_once(target, key, on, "--step-trace", name)
            self._tell(target, f'parameter_map["{key}"] = {value!r}', "" if on else "no trace is written")
        else:
            self._profiling(target, value, name)
        field = FIELDS.get(type(value), target.attr)
        if field != target.attr:
            raise self._error(target, f'parameter_map["{key}"]: {value!r} is set by .{field}, not by .{target.attr}')

    def _hcom_parallel(self, node: ast.AST, value: Any, target: str = "") -> None:
        on = self._bool(node, "hcom_parallel", value)
        self._use_once(node, f"hcom_parallel = {value}", "--hcom-parallel", "on" if on else "off", target)

    def _profiling(self, node: ast.AST, value: Any, target: str = "") -> None:
        try:
            text = value.decode() if isinstance(value, bytes) else value
            told = json.loads(text)
        except (TypeError, ValueError) as error:
            raise self._error(node, f"profiling_options is no JSON: {error}") from None
        if not isinstance(told, dict):
            raise self._error(node, "profiling_options must be a JSON object")
        for key, item in told.items():
            if key not in PROFILING_KEYS:
                raise self._error(node, f"profiling_options has no {key!r} that is known here")
            if not isinstance(item, str):
                raise self._error(node, f"profiling_options: {key} must be a text, not {item!r}")
            if key == "training_trace" and item not in ("on", "off"):
                raise self._error(node, f'profiling_options: {key} must be "on" or "off", not {item!r}')
        self._set_once(node, "profiling_options", told, "--step-trace", target)
        self._tell(node, f"profiling_options = {text}", "")

    def _run_config(self, node: ast.Call) -> None:
        for keyword in node.keywords:
            if keyword.arg == "hcom_parallel":
                self._hcom_parallel(node, self._values.literal(keyword.value, "hcom_parallel"))
            elif keyword.arg == "profiling_config":
                self._profiling_config(keyword.value)
            else:
                name = keyword.arg or "**"
                self._tell(node, f"NPURunConfig({name}=…)", f"no effect: {NO_EFFECT.get(name, 'not read')}")

    def _profiling_config(self, node: ast.expr) -> None:
        call = self._values.resolved(node)
        if not isinstance(call, ast.Call) or self._values.last_name(call.func) != "ProfilingConfig":
            raise self._values.no_literal(node, "profiling_config must be a ProfilingConfig(…) of this script")
        enabled, told = self._literals(call, ("enable_profiling", "profiling_options"), {"profiling_options": None})
        on = self._bool(call, "enable_profiling", enabled)
        self._set_once(call, "profiling_mode", on, "--step-trace")
        self._tell(call, f"enable_profiling = {enabled}", "" if on else "no trace is written")
        if told is not None:
            self._profiling(call, told)

    # HCCL. ------------------------------------------------------------------------------------------------------------

    def _create_group(self, node: ast.Call) -> None:
        name, size, ranks = self._literals(node, ("group", "rank_num", "rank_ids"))
        if name in self._groups:
            raise self._error(node, f"the group {name!r} exists")
        if not isinstance(ranks, list) or len(ranks) != size:
            raise self._error(node, f"rank_num is {size!r}, but rank_ids is {ranks!r}")
        self._groups[name] = ranks
        self._tell(node, f"create_group({name!r}, {size}, {ranks})", "counts where a split is set for it")

    def _split_by_idx(self, node: ast.Call) -> None:
        values, group = self._list_and_group(node, "idxList")
        if not all(type(value) is int and value >= 0 for value in values):
            raise self._error(node, f"idxList must hold ints from 0 on, not {values}")
        if any(later <= earlier for earlier, later in zip(values, values[1:])):
            raise self._error(node, f"indices must ascend: {values}")
        self._split(node, "by-idx", values, group)

    def _split_by_size(self, node: ast.Call) -> None:
        values, group = self._list_and_group(node, "dataSizeList")
        if not all(type(value) in (int, float) and value >= 0 for value in values):
            raise self._error(node, f"dataSizeList must hold ints or floats from 0 on, not {values}")
        if not abs(sum(values) - 100) <= 1e-6:
            raise self._error(node, f"percentages must sum to 100, not to {sum(values)}: {values}")
        self._split(node, "by-size", values, group)

    def _list_and_group(self, node: ast.Call, parameter: str) -> Tuple[List[Any], Any]:
        values, group = self._literals(node, (parameter, "group"), {"group": WORLD})
        if not isinstance(values, list) or not values:
            raise self._error(node, f"{parameter} must be a list with values, not {values!r}")
        return values, group

    def _split(self, node: ast.Call, kind: str, values: List[Any], group: Any) -> None:
        what = f"set_split_strategy_{kind.replace('-', '_')}({values}, {group!r})"
        place = self._place(node)
        if kind in self._splits:
            _, first, before = self._splits[kind]
            if first != values and _exclude_each_other(before, place) and not self._is_given(*SPLITS):
                raise self._error(node, f"{kind} is set otherwise in another branch: {first}; give --split-{kind}")
            self._tell(node, what, "no effect: the first setting stays")
            return
        if any(other != group for other, _, _ in self._splits.values()):
            raise self._error(node, "splits are set for several groups; a run has those of one")
        options = [f"--split-{kind}={','.join(map(str, values))}"]
        if group != WORLD and not self._splits:
            if group not in self._groups:
                raise self._error(node, f"the group {group!r} does not exist; create_group makes it")
            options += [f"--group={group}={','.join(map(str, self._groups[group]))}", f"--split-group={group}"]
        self._splits[kind] = (group, values, place)
        self._use(node, what, *options)

    # MindSpore. -------------------------------------------------------------------------------------------------------

    def _context(self, node: ast.Call) -> None:
        for key, value in self._contexts.arguments(node).items():
            self._set_in_order(node, f"set_auto_parallel_context: {key}", value, f"--{key.replace('_', '-')}")
        self._contexts.set_options(node)
        self._tell(node, f"set_auto_parallel_context({self._contexts.told(node)})", self._contexts.of_the_run(node))

    def _reset_context(self, node: ast.Call) -> None:
        self._contexts.reset()
        self._tell(node, "reset_auto_parallel_context()", "")

    def _ps_context(self, node: ast.Call) -> None:
        keys = {keyword.arg or "**": self._values.literal(keyword.value, keyword.arg or "**") for keyword in node.keywords}
        for key, value in keys.items():
            self._set_in_order(node, f"set_ps_context: {key}", value, "--ps-context")
        self._contexts.ps_keys.update(keys)
        told = ", ".join(f"{key}={value}" for key, value in keys.items())
        self._tell(node, f"set_ps_context({told})", "" if self._contexts.ps_keys.get("enable_ps") else "no effect: enable_ps is False")

    # PyTorch. ---------------------------------------------------------------------------------------------------------

    def _comm_hook(self, node: ast.Call) -> None:
        given = dict(zip(("state", "hook"), node.args))
        given.update({keyword.arg: keyword.value for keyword in node.keywords if keyword.arg is not None})
        if set(given) != {"state", "hook"} or len(node.args) > 2:
            raise self._error(node, "register_comm_hook takes a state and a hook")
        hook = self._values.last_name(given["hook"])
        if hook not in HOOKS:
            raise self._values.no_literal(node, f"the hook {hook!r} is not known; known are {', '.join(HOOKS)}")
        keys = self._state(given["state"]) if "SGD" in hook else ""
        self._use_once(node, f"register_comm_hook(…, {hook})", "--compress", f"{HOOKS[hook]}{':' if keys else ''}{keys}")

    def _state(self, node: ast.expr) -> str:
        call = self._values.resolved(node)
        if not isinstance(call, ast.Call) or self._values.last_name(call.func) != "PowerSGDState":
            raise self._values.no_literal(node, "the state of the hook must be a PowerSGDState(…) of this script")
        given: Dict[str, ast.expr] = dict(zip(("process_group", *STATE_KEYS), call.args))
        given.update({keyword.arg: keyword.value for keyword in call.keywords if keyword.arg is not None})
        given.pop("process_group", None)
        keys = []
        for name, value in given.items():
            if name not in STATE_KEYS:
                raise self._error(call, f"PowerSGDState has no {name!r}")
            literal = self._values.literal(value, name)
            if not isinstance(literal, (bool, int, float)):
                raise self._error(call, f"PowerSGDState: {name} must be a number or a bool, not {literal!r}")
            text = ("on" if literal else "off") if isinstance(literal, bool) else literal
            keys.append(f"{STATE_KEYS[name]}={text}")
        return ",".join(keys)

    # All. -------------------------------------------------------------------------------------------------------------

    def _literals(self, node: ast.Call, names: Tuple[str, ...], defaults: Optional[Dict[str, Any]] = None) -> List[Any]:
        """Arguments of a call, which are literals."""
        values = dict(defaults or {})
        called = self._values.last_name(node.func)
        if len(node.args) > len(names):
            raise self._error(node, f"{called} takes {len(names)} arguments")
        values.update({name: self._values.literal(value, name) for name, value in zip(names, node.args)})
        for keyword in node.keywords:
            if keyword.arg is None:
                raise self._values.no_literal(node, f"**{ast.unparse(keyword.value)} is no literal; the script is read, not executed")
            if keyword.arg not in names:
                raise self._error(node, f"{called} has no argument {keyword.arg!r}")
            values[keyword.arg] = self._values.literal(keyword.value, keyword.arg)
        missing = [name for name in names if name not in values]
        if missing:
            raise self._error(node, f"{called} needs {missing[0]}")
        return [values[name] for name in names]

    def _bool(self, node: ast.AST, key: str, value: Any) -> bool:
        if not isinstance(value, bool):
            raise self._error(node, f"{key} must be True or False, not {value!r}")
        return value

    def _is_given(self, *options: str) -> bool:
        return any(option in self._given for option in options)

    def _place(self, node: ast.AST, target: str = "") -> Place:
        return Place(line_of(node), target, dict(self._branches))

    def _set_once(self, node: ast.AST, thing: str, value: Any, option: str, target: str = "") -> bool:
        """Notes a setting of which a run has one; whether it is new. The same target may be assigned anew."""
        place = self._place(node, target)
        before = self._once.get(thing)
        self._once[thing] = (value, place)
        if before is None or before[0] == value:
            return before is None
        again = bool(target) and before[1].target == target and not _exclude_each_other(before[1], place)
        if not again and not self._is_given(option):
            raise self._error(node, f"{thing} is set otherwise in line {before[1].line}; give {option}")
        return True

    def _set_in_order(self, node: ast.AST, thing: str, value: Any, option: str) -> None:
        """Notes a setting of which the last one counts, unless they exclude each other."""
        place = self._place(node)
        before = self._once.get(thing)
        if before is not None and before[0] != value and _exclude_each_other(before[1], place) and not self._is_given(option):
            raise self._error(node, f"{thing} is set otherwise in another branch, line {before[1].line}; give {option}")
        self._once[thing] = (value, place)

    def _use_once(self, node: ast.AST, what: str, option: str, value: str, target: str = "") -> None:
        if self._set_once(node, option[2:].replace("-", "_"), value, option, target):
            self.options = [one for one in self.options if not one.startswith(f"{option}=")]
            self._use(node, what, f"{option}={value}")
        else:
            self._tell(node, what, "as before")

    def _use(self, node: ast.AST, what: str, *options: str) -> None:
        self.options += options
        self._tell(node, what, " ".join(options))

    def _tell(self, node: ast.AST, what: str, became: str) -> None:
        conditions = [f"if line {line} {branch}" for line, branch in self._branches.items()]
        self.settings.append(Setting(line_of(node), what, ", ".join([became, *conditions] if became else conditions)))

    def _error(self, node: ast.AST, message: str) -> ScriptError:
        return self._values.error(node, message)

    def read(self) -> None:
        """Reads all of the script. Raises ScriptError."""
        try:
            self.visit(ast.parse(self._text, self.path))
        except (SyntaxError, ValueError) as error:
            raise ScriptError(f"{self.path}:{getattr(error, 'lineno', 0) or 1}: this is no Python: {error.args[0]}") from None
        except (RecursionError, MemoryError):
            raise ScriptError(f"{self.path}: is nested too deeply to be read") from None
        if not self.settings:
            raise ScriptError(f"{self.path}: sets nothing that is known here; docs/python.md lists what is read")
        self.context_options = self._contexts.options()
        self.options += self._contexts.ps_options()
        if not self._once.get("profiling_mode", (False,))[0]:
            return
        told = self._once.get("profiling_options", ({},))[0]
        if told.get("training_trace") == "on":
            if not told.get("output"):
                raise ScriptError(f"{self.path}: training_trace is on, but profiling_options has no output")
            self.output = told["output"]
        for key, option in (("fp_point", "--fp-point"), ("bp_point", "--bp-point")):
            if told.get(key):
                self.options.append(f"{option}={told[key]}")


def _exclude_each_other(first: Place, second: Place) -> bool:
    """Whether two places are in different branches of one condition."""
    return any(first.branches.get(line, branch) != branch for line, branch in second.branches.items())


def read_script(path: str, given: Collection[str]) -> Reader:
    """Reads a script. Raises ScriptError, with file and line, for what cannot be read."""
    try:
        with open(path, encoding="utf-8") as file:
            text = file.read()
    except (OSError, UnicodeDecodeError) as error:
        raise ScriptError(f"{path}: cannot be read: {error}") from None
    reader = Reader(path, text, given)
    reader.read()
    return reader
