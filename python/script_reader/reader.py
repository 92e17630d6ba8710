"""Training scripts for Ascend, read and never executed: what they set becomes options of `hcclsim run`.

Read are calls with literal arguments and assignments of literals:

- TensorFlow: parameter_map["hcom_parallel"].b, ["profiling_mode"].b, ["profiling_options"].s of the NpuOptimizer, and
  what else its parameter_map sets; NPURunConfig(hcom_parallel=…, profiling_config=ProfilingConfig(…)); rewrite options
  (remapping, memory_optimization);
- HCCL: create_group, set_split_strategy_by_idx, set_split_strategy_by_size;
- MindSpore: set_auto_parallel_context, set_context, set_ps_context (contexts.py);
- PyTorch: DistributedDataParallel(…, bucket_cap_mb=…), PowerSGDState and register_comm_hook.

What stands under a condition is taken as if it held, and named. Two settings of one thing that differ, in branches
(branches.py, held.py) or in several configurations, are an error, unless an option of the command line says which counts;
so is a value that the script changes on its way.
"""

from __future__ import annotations

import ast
import difflib
import json
from typing import Any, Callable, Collection, Dict, List, NamedTuple, Optional, Sequence, Set, Tuple, Union

from branches import Branches, Fork, Way, fork_of_if, hint
from contexts import AS_THE_RUN, OF_CONTEXT, OF_SERVERS, Contexts, OfTheRun
from held import Conflict, Held, Things, conflict, counting, merged, sets_anything
from tables import (
    BUCKET_MB,
    FIELDS,
    HOOKS,
    IN_PLACE_OF,
    NO_EFFECT,
    ONCE,
    PARAMETERS,
    PROFILING_KEYS,
    REWRITING_OFF,
    SPLIT_CALLS,
    SPLITS,
    STATE_KEYS,
    WORLD,
)
from values import CHANGING, Meaning, NoLiteral, ScriptError, Values, line_of


class Setting(NamedTuple):
    """Something that the script sets, and what became of it."""

    line: int
    what: str
    became: str
    #: The script does not say it, or under a condition.
    is_assumed: bool = False


class Split(NamedTuple):
    """A split of HCCL's, and the group that has it."""

    values: List[Any]
    group: Any

    def __repr__(self) -> str:
        return f"{self.values}{'' if self.group == WORLD else f' of {self.group!r}'}"


class Reader(ast.NodeVisitor):
    """Walks a script in its order and collects options of `hcclsim run`. `given` are the options of the command line,
    which count first; `branches` those that say which branches are taken."""

    def __init__(self, path: str, text: str, given: Collection[str] = (), branches: Sequence[str] = ()) -> None:
        self.path = path
        self.options: List[str] = []
        #: Those of MindSpore's contexts.
        self.context_options: List[str] = []
        self.settings: List[Setting] = []
        #: Where training_trace is to be written; None: it is not wanted.
        self.output: Optional[str] = None
        #: The last index of a split, its line, and whether it is the last gradient's.
        self.last_index: Optional[Tuple[int, int, bool]] = None
        self._text = text
        #: Functions that the script defines.
        self._own: Set[str] = set()
        self._given = given
        self._values = Values(path)
        self._chosen = branches
        self._branches = Branches(self._values, (), ast.Module([], []))
        #: Forks whose way is not known, with that which is being read; how deep in ways that the command line names.
        self._ways: List[Tuple[Fork, int]] = []
        self._depth_of_chosen = 0
        self._things: Things = {}
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
        for outside in (*node.decorator_list, node.args):
            self.visit(outside)
        self._visit_fork(Fork(node.lineno, [Way("", node.body)]), may_pass=True)
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
        self.visit(node.test)
        self._visit_fork(fork_of_if(node))

    def visit_Match(self, node: Any) -> None:
        """`match`, which Python has from 3.10 on."""
        self.visit(node.subject)
        ways = [Way(f"if line {line_of(case.pattern)} matches", case.body) for case in node.cases]
        self._visit_fork(Fork(node.lineno, ways), may_pass=True)

    def visit_Try(self, node: ast.Try) -> None:
        ways = [Way("", [*node.body, *node.orelse])]
        ways += [Way(f"if line {handler.lineno} is reached", handler.body) for handler in node.handlers]
        self._visit_fork(Fork(node.lineno, ways), fails=True)
        self._visit_all(node.finalbody)

    visit_TryStar = visit_Try

    def visit_For(self, node: Union[ast.For, ast.AsyncFor]) -> None:
        self.visit(node.iter)
        self._values.change(node.target)
        before = dict(self._values.names)
        self._visit_all([*node.body, *node.orelse])
        self._values.merge(before, [before, self._values.names])

    visit_AsyncFor = visit_For

    def visit_While(self, node: ast.While) -> None:
        self.visit(node.test)
        before = dict(self._values.names)
        if self._branches.holds(node.test) is not False:
            self._visit_all(node.body)
        self._visit_all(node.orelse)
        self._values.merge(before, [before, self._values.names])

    def _visit_fork(self, fork: Fork, may_pass: bool = False, fails: bool = False) -> None:
        """Reads the way that is taken, or all of them, each from what holds before. `may_pass`: there may be no way that
        is taken; `fails`: the first one is, unless something fails, and then another one."""
        way, is_chosen = self._branches.taken(fork)
        if way is not None:
            self._depth_of_chosen += is_chosen
            self._visit_all(way.statements)
            self._depth_of_chosen -= is_chosen
            return
        names, things = self._values.names, self._things
        after_names: List[Dict[str, Meaning]] = []
        after: List[Things] = []
        for number, one in enumerate(fork.ways):
            self._values.names, self._things = dict(names), dict(things)
            self._ways.append((fork, number))
            self._visit_all(one.statements)
            self._ways.pop()
            after_names.append(self._values.names)
            after.append(self._things)
        if fails and sets_anything(things, after[0]):
            after = [after[0], *(one for one in after[1:] if sets_anything(things, one))]
        self._things = merged(things, after, fork, may_pass)
        self._values.merge(names, after_names, hint(fork))

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
            "set_context": self._mode,
            "set_ps_context": self._ps_context,
            "NPURunConfig": self._run_config,
            "DistributedDataParallel": self._buckets,
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
            places = IN_PLACE_OF.get(thing, ())
            given = [option for option in places if option in self._given]
            if not given:
                raise error.or_option(places[0]) from None
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
        elif target.attr in REWRITING_OFF and self._values.last_name(owner) == "rewrite_options":
            name = self._values.last_name(node)
            accepted = REWRITING_OFF[target.attr]
            if name not in accepted:
                told = " or ".join(f"RewriterConfig.{one}" for one in accepted)
                raise self._error(target, f"rewrite_options.{target.attr} must be {told} on Ascend, it is {name or ast.unparse(node)}")
            self._tell(target, f"rewrite_options.{target.attr} = {name}", "as Ascend needs it")

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
            self._set_once(target, key, on, name)
            self._tell(target, f'parameter_map["{key}"] = {value!r}', "" if on else "no trace is written")
        else:
            self._profiling(target, value, name)
        field = FIELDS.get(type(value), target.attr)
        if field != target.attr:
            raise self._error(target, f'parameter_map["{key}"]: {value!r} is set by .{field}, not by .{target.attr}')

    def _hcom_parallel(self, node: ast.AST, value: Any, target: str = "") -> None:
        on = self._bool(node, "hcom_parallel", value)
        self._use_once(node, f"hcom_parallel = {value}", "hcom_parallel", "on" if on else "off", target)

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
        self._set_once(node, "profiling_options", told, target)
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
        self._set_once(call, "profiling_mode", on)
        self._tell(call, f"enable_profiling = {enabled}", "" if on else "no trace is written")
        if told is not None:
            self._profiling(call, told)

    # HCCL. ------------------------------------------------------------------------------------------------------------

    def _create_group(self, node: ast.Call) -> None:
        name, size, ranks = self._literals(node, ("group", "rank_num", "rank_ids"))
        thing = f"group {name!r}"
        before = self._things.get(thing)
        if isinstance(before, Held) and self._is_certain(before):
            raise self._error(node, f"the group {name!r} exists")
        if not isinstance(ranks, list) or len(ranks) != size:
            raise self._error(node, f"rank_num is {size!r}, but rank_ids is {ranks!r}")
        self._set_first(node, thing, ranks)
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
        if group != WORLD and f"group {group!r}" not in self._things:
            raise self._error(node, f"the group {group!r} does not exist; create_group makes it")
        is_first = self._set_first(node, f"split: {kind}", Split(values, group))
        self._tell(node, what, f"--split-{kind}={','.join(map(str, values))}" if is_first else "no effect: the first setting stays")

    def _split_options(self) -> List[str]:
        """The options for splits, and for the group that has them."""
        if self._is_given(*SPLITS):
            return []
        options: List[str] = []
        groups: Set[str] = set()
        for kind in ("by-idx", "by-size"):
            thing = f"split: {kind}"
            if thing not in self._things:
                continue
            values, group = counting(self._things, thing, self._values, (f"--split-{kind}",))
            options.append(f"--split-{kind}={','.join(map(str, values))}")
            groups.add(group)
            if len(groups) > 1:
                raise self._values.error_in(self._things[thing].line, "splits are set for several groups; a run has those of one")
            if kind == "by-idx":
                self.last_index = (values[-1], self._things[thing].line, True)
        for group in groups - {WORLD}:
            ranks = counting(self._things, f"group {group!r}", self._values, ("--group",))
            options += [f"--group={group}={','.join(map(str, ranks))}", f"--split-group={group}"]
        return options

    # MindSpore. -------------------------------------------------------------------------------------------------------

    def _context(self, node: ast.Call) -> None:
        options = self._contexts.options(node, self._has_conditions())
        for key, value in options.items():
            if value == OfTheRun():
                self._things.pop(OF_CONTEXT + key, None)
            else:
                self._things[OF_CONTEXT + key] = self._held(node, value)
        self._tell(node, f"set_auto_parallel_context({self._contexts.told(node)})", self._contexts.became(options))

    def _reset_context(self, node: ast.Call) -> None:
        self._things = {thing: value for thing, value in self._things.items() if not thing.startswith(OF_CONTEXT)}
        self._tell(node, "reset_auto_parallel_context()", "")

    def _mode(self, node: ast.Call) -> None:
        for thing, value in self._contexts.mode(node, self._has_conditions()).items():
            self._things[thing] = self._held(node, value)

    def _ps_context(self, node: ast.Call) -> None:
        keys = {keyword.arg or "**": self._values.literal(keyword.value, keyword.arg or "**") for keyword in node.keywords}
        for key, value in keys.items():
            self._things[OF_SERVERS + key] = self._held(node, value)
        told = ", ".join(f"{key}={value}" for key, value in keys.items())
        enabled = self._things.get(f"{OF_SERVERS}enable_ps")
        is_off = enabled is None or (isinstance(enabled, Held) and not enabled.value)
        self._tell(node, f"set_ps_context({told})", "no effect: enable_ps is False" if is_off else "")

    # PyTorch. ---------------------------------------------------------------------------------------------------------

    def _buckets(self, node: ast.Call) -> None:
        sizes = [keyword.value for keyword in node.keywords if keyword.arg == "bucket_cap_mb"]
        size = self._values.literal(sizes[0], "bucket_cap_mb") if sizes else None
        if size is not None and (isinstance(size, bool) or not isinstance(size, (int, float)) or size < 1):
            raise self._error(node, f"bucket_cap_mb must be 1 or more, not {size!r}")
        self._set_buckets(node, BUCKET_MB if size is None else int(size))

    def _set_buckets(self, node: ast.Call, size: int) -> None:
        """The buckets of DistributedDataParallel, whose collectives overlap the backward pass."""
        called = self._values.last_name(node.func)
        self._use_once(node, f"{called}(…)", "bucket_cap_mb", size)

    def _comm_hook(self, node: ast.Call) -> None:
        given = dict(zip(("state", "hook"), node.args))
        given.update({keyword.arg: keyword.value for keyword in node.keywords if keyword.arg is not None})
        if set(given) != {"state", "hook"} or len(node.args) > 2:
            raise self._error(node, "register_comm_hook takes a state and a hook")
        hook = self._values.last_name(given["hook"])
        if hook not in HOOKS:
            raise self._values.no_literal(node, f"the hook {hook!r} is not known; known are {', '.join(HOOKS)}")
        keys = self._state(given["state"]) if "SGD" in hook else ""
        self._use_once(node, f"register_comm_hook(…, {hook})", "compress", f"{HOOKS[hook]}{':' if keys else ''}{keys}")
        if "bucket_cap_mb" not in self._things:
            self._set_buckets(node, BUCKET_MB)

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

    def _has_conditions(self) -> bool:
        """Whether what is being read stands in one of several branches."""
        return bool(self._chosen) or any(len(fork.ways) > 1 for fork, _ in self._ways)

    def _held(self, node: ast.AST, value: Any, target: str = "") -> Held:
        ways = tuple((fork.line, number) for fork, number in self._ways)
        return Held(value, line_of(node), target, ways, self._depth_of_chosen > 0)

    def _is_certain(self, held: Held) -> bool:
        """Whether what was set has been set wherever the script is now."""
        return set(held.ways) <= {(fork.line, number) for fork, number in self._ways}

    def _decides(self, held: Union[Held, Conflict]) -> str:
        """Options of the command line that decide between a setting and the one that is being read."""
        lines = [f"--branch {held.line}"] if isinstance(held, Held) and held.ways else []
        return " or ".join([*lines, *([hint(self._ways[-1][0])] if self._ways else [])])

    def _set_first(self, node: ast.AST, thing: str, value: Any) -> bool:
        """Notes a setting of which the first one counts; whether this one does."""
        before = self._things.get(thing)
        held = self._held(node, value)
        if before is None:
            self._things[thing] = held
        elif isinstance(before, Held) and before.value != value and not self._is_certain(before):
            self._things[thing] = conflict(before, held, self._decides(before))
        return self._things[thing] is held

    def _set_once(self, node: ast.AST, thing: str, value: Any, target: str = "") -> bool:
        """Notes a setting of which a run has one; whether it is new. The same target may be assigned anew."""
        before = self._things.get(thing)
        held = self._held(node, value, target)
        again = isinstance(before, Held) and bool(target) and before.target == target
        if before is None or again or (isinstance(before, Held) and before.value == value):
            self._things[thing] = held
        else:
            self._things[thing] = conflict(before, held, self._decides(before))
        return not isinstance(before, Held) or before.value != value

    def _use_once(self, node: ast.AST, what: str, thing: str, value: Any, target: str = "") -> None:
        is_new = self._set_once(node, thing, value, target)
        self._tell(node, what, ONCE[thing][0].format(value) if is_new else "as before")

    def _tell(self, node: ast.AST, what: str, became: str) -> None:
        conditions = [fork.ways[number].when for fork, number in self._ways if fork.ways[number].when]
        is_assumed = bool(conditions) or AS_THE_RUN in became
        self.settings.append(Setting(line_of(node), what, ", ".join([became, *conditions] if became else conditions), is_assumed))

    def _error(self, node: ast.AST, message: str) -> ScriptError:
        return self._values.error(node, message)

    def read(self) -> None:
        """Reads all of the script. Raises ScriptError."""
        try:
            tree = ast.parse(self._text, self.path)
            self._branches = Branches(self._values, self._chosen, tree)
            self._values.holds = self._branches.holds
            self.visit(tree)
        except (SyntaxError, ValueError) as error:
            raise ScriptError(f"{self.path}:{getattr(error, 'lineno', 0) or 1}: this is no Python: {error.args[0]}") from None
        except (RecursionError, MemoryError):
            raise ScriptError(f"{self.path}: is nested too deeply to be read") from None
        self._branches.require_used()
        if not self.settings:
            raise ScriptError(f"{self.path}: sets nothing that is known here; docs/python.md lists what is read")
        self._count()

    def _count(self) -> None:
        """What of all that was set counts, as options. Raises ScriptError for settings that contradict each other."""
        for thing, (options, places) in ONCE.items():
            if thing in self._things and not self._is_given(*places):
                self.options += options.format(counting(self._things, thing, self._values, places[:1])).split(" ")
        self.options += self._split_options()
        self.context_options = self._contexts.command_line(self._things)
        fused = self._things.get(f"{OF_CONTEXT}all_reduce_fusion_config")
        if isinstance(fused, Held) and fused.value and not self._is_given("--all-reduce-fusion-config", *SPLITS):
            self.last_index = (fused.value[-1], fused.line, False)
        if not self._is_given("--step-trace"):
            self._count_profiling()

    def _count_profiling(self) -> None:
        on, told = (
            counting(self._things, thing, self._values, ("--step-trace",)) if thing in self._things else None
            for thing in ("profiling_mode", "profiling_options")
        )
        if not on or told is None:
            return
        if told.get("training_trace") == "on":
            if not told.get("output"):
                raise ScriptError(f"{self.path}: training_trace is on, but profiling_options has no output")
            self.output = told["output"]
        for key, option in (("fp_point", "--fp-point"), ("bp_point", "--bp-point")):
            if told.get(key):
                self.options.append(f"{option}={told[key]}")


def read_script(path: str, given: Collection[str], branches: Sequence[str] = ()) -> Reader:
    """Reads a script; `branches` are the values of --branch. Raises ScriptError, with file and line, for what cannot be
    read."""
    try:
        with open(path, encoding="utf-8") as file:
            text = file.read()
    except (OSError, UnicodeDecodeError) as error:
        raise ScriptError(f"{path}: cannot be read: {error}") from None
    reader = Reader(path, text, given, branches)
    reader.read()
    return reader
