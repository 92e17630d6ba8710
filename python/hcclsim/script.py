"""Training scripts for Ascend, read and never executed: what they set becomes options of `hcclsim run`.

Read are calls with literal arguments and assignments of literals:

- TensorFlow: parameter_map["hcom_parallel"].b, ["profiling_mode"].b, ["profiling_options"].s of the NpuOptimizer, and
  what else its parameter_map sets; NPURunConfig(hcom_parallel=…, profiling_config=ProfilingConfig(…)); rewrite options
  (remapping, memory_optimization);
- HCCL: create_group, set_split_strategy_by_idx, set_split_strategy_by_size;
- MindSpore: set_auto_parallel_context (`--context` reads it, and set_context, from the same file), set_ps_context;
- PyTorch: PowerSGDState and register_comm_hook.

What stands under a condition is taken as if it held, and named; two settings of one thing in different branches are an
error, as is a value that the script changes on its way.

Stands alone: only Python's own library is needed. `hcclsim script FILE.py` runs it as a program.
"""

from __future__ import annotations

import ast
import json
import os
import shlex
import sys
from typing import Any, Dict, List, NamedTuple, Optional, Tuple, Union

#: Keys of the NpuOptimizer that are known and change nothing of what is simulated, with what they do.
NO_EFFECT = {
    "use_off_line": "the network runs on the NPU, as simulated",
    "enable_data_pre_proc": "preprocessing of data on the device is not simulated",
    "iterations_per_loop": "steps of a loop on the device follow each other as simulated",
    "aoe_mode": "tuning of kernels is not simulated; 'hcclsim tune' tunes the split",
    "is_tailing_optimization": "see --hcom-parallel and --split",
    "min_group_size": "of fusion of collectives on dynamic shapes",
    "stream_max_parallel_num": "of streams of the engines of one NPU",
    "graph_run_mode": "training is simulated",
    **dict.fromkeys(("precision_mode", "customize_dtypes"), "see --amp"),
    **dict.fromkeys(("variable_memory_max_size", "graph_memory_max_size"), "see --hbm-check"),
    **dict.fromkeys(("op_select_implmode", "optypelist_for_implmode"), "of kernels"),
    **dict.fromkeys(("mix_compile_mode", "op_debug_level"), "of compilation"),
    **dict.fromkeys(("dump_path", "enable_dump", "enable_dump_debug", "dump_mode", "dump_step"), "of dumps"),
}


#: The field of parameter_map that takes a value of each type.
FIELDS = {bool: "b", bytes: "s", str: "s", int: "i", float: "f"}

#: Methods that change a list or a dict.
CHANGING = {"append", "extend", "insert", "remove", "pop", "clear", "sort", "reverse", "update", "setdefault", "popitem"}

#: Most elements of a range, which is written out.
LONGEST_RANGE = 65536


class ScriptError(Exception):
    """What cannot be read, with file and line."""


class Known(NamedTuple):
    """The value of a name."""

    value: Any


class Setting(NamedTuple):
    """Something that the script sets, and what became of it."""

    line: int
    what: str
    became: str


class Reader(ast.NodeVisitor):
    """Walks a script in its order and collects options of `hcclsim run`."""

    def __init__(self, path: str, text: str) -> None:
        self.path = path
        self.options: List[str] = []
        self.settings: List[Setting] = []
        #: Where training_trace is to be written; None: it is not wanted.
        self.output: Optional[str] = None
        self._profiling = False
        self._profiling_options: Dict[str, Any] = {}
        #: What names stand for; None: something else.
        self._names: Dict[str, Union[Known, ast.Call, None]] = {}
        #: Branches around what is read: number of the line, and which branch of it.
        self._branches: List[Tuple[int, str]] = []
        self._groups: Dict[str, List[int]] = {}
        self._splits: Dict[str, Tuple[str, List[Any], List[Tuple[int, str]]]] = {}
        self._reads_context = False
        self._ps_keys: Dict[Any, Any] = {}
        self._text = text

    def visit_Assign(self, node: ast.Assign) -> None:
        self.generic_visit(node)  # the value first, as Python does
        for target in node.targets:
            self._assigned(target, node.value)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        self.generic_visit(node)
        if node.value is not None:
            self._assigned(node.target, node.value)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        self.generic_visit(node)
        self._change(node.target)

    def visit_For(self, node: Union[ast.For, ast.AsyncFor]) -> None:
        self._change(node.target)
        self.generic_visit(node)

    visit_AsyncFor = visit_For

    def visit_NamedExpr(self, node: ast.NamedExpr) -> None:
        self.generic_visit(node)
        self._assigned(node.target, node.value)

    def visit_withitem(self, node: ast.withitem) -> None:
        self.generic_visit(node)
        if node.optional_vars is not None:
            self._change(node.optional_vars)

    def visit_Delete(self, node: ast.Delete) -> None:
        for target in node.targets:
            self._change(target)

    def visit_FunctionDef(self, node: Union[ast.FunctionDef, ast.AsyncFunctionDef]) -> None:
        names = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs, node.args.vararg, node.args.kwarg]
        for name in names:
            if name is not None:
                self._names[name.arg] = None
        self.generic_visit(node)

    visit_AsyncFunctionDef = visit_FunctionDef

    def visit_If(self, node: ast.If) -> None:
        if isinstance(node.test, ast.Constant):
            for statement in node.body if node.test.value else node.orelse:
                self.visit(statement)
            return
        self.visit(node.test)
        for branch, statements in (("holds", node.body), ("does not hold", node.orelse)):
            self._branches.append((node.lineno, branch))
            for statement in statements:
                self.visit(statement)
            self._branches.pop()

    def visit_Call(self, node: ast.Call) -> None:
        self.generic_visit(node)  # arguments first, as Python does
        name = _last_name(node.func)
        if name in CHANGING and isinstance(node.func, ast.Attribute):
            self._change(node.func.value)
        take = {
            "set_split_strategy_by_idx": self._split_by_idx,
            "set_split_strategy_by_size": self._split_by_size,
            "create_group": self._create_group,
            "set_auto_parallel_context": self._context,
            "set_ps_context": self._ps_context,
            "NPURunConfig": self._run_config,
            "register_comm_hook": self._comm_hook,
        }.get(name)
        if take is not None:
            take(node)

    def _assigned(self, target: ast.expr, value: ast.expr) -> None:
        if isinstance(target, ast.Name):
            self._names[target.id] = self._known(value)
        elif isinstance(target, (ast.Tuple, ast.List)):
            same = isinstance(value, (ast.Tuple, ast.List)) and len(value.elts) == len(target.elts)
            for number, part in enumerate(target.elts):
                if same and isinstance(value, (ast.Tuple, ast.List)):
                    self._assigned(part, value.elts[number])
                else:
                    self._change(part)
        elif isinstance(target, ast.Attribute):
            self._assigned_attribute(target, value)
        else:
            self._change(target)

    def _known(self, value: ast.expr) -> Union["Known", ast.Call, None]:
        """What a value stands for from here on; None if it is neither a literal nor a call."""
        if isinstance(value, ast.Name) and value.id in self._names:
            return self._names[value.id]
        try:
            return Known(self._literal(value, ""))
        except ScriptError:
            return value if isinstance(value, ast.Call) else None

    def _change(self, target: ast.expr) -> None:
        """What the names in a target stand for is not known from here on."""
        for part in ast.walk(target):
            if isinstance(part, ast.Name):
                self._names[part.id] = None

    def _assigned_attribute(self, target: ast.Attribute, node: ast.expr) -> None:
        if isinstance(target.value, ast.Subscript) and _last_name(target.value.value) == "parameter_map":
            key = self._literal(target.value.slice, "the key of parameter_map")
            value = self._literal(node, f'parameter_map["{key}"]')
            self._parameter(target, key, value)
            field = FIELDS.get(type(value), target.attr)
            if field != target.attr:
                raise self._error(target, f'parameter_map["{key}"]: {value!r} is set by .{field}, not by .{target.attr}')
        elif target.attr in ("remapping", "memory_optimization") and _last_name(target.value) == "rewrite_options":
            name = _last_name(node)
            if name != "OFF":
                raise self._error(target, f"rewrite_options.{target.attr} must be RewriterConfig.OFF on Ascend, it is {name}")
            self._tell(target, f"rewrite_options.{target.attr} = OFF", "as Ascend needs it")

    def _parameter(self, node: ast.AST, key: Any, value: Any) -> None:
        what = f'parameter_map["{key}"] = {value!r}'
        if key == "hcom_parallel":
            self._switch(node, "hcom_parallel", value)
        elif key == "profiling_mode":
            self._profiling = self._bool(node, key, value)
            self._tell(node, what, "" if self._profiling else "no trace is written")
        elif key == "profiling_options":
            self._read_profiling(node, value)
        elif key in NO_EFFECT:
            self._tell(node, what, f"no effect: {NO_EFFECT[key]}")
        else:
            raise self._error(node, f"the NpuOptimizer has no {key!r} that is known here")

    def _read_profiling(self, node: ast.AST, value: Any) -> None:
        try:
            text = value.decode() if isinstance(value, bytes) else value
            told = json.loads(text)
        except (TypeError, ValueError) as error:
            raise self._error(node, f"profiling_options is no JSON: {error}") from None
        if not isinstance(told, dict):
            raise self._error(node, "profiling_options must be a JSON object")
        for key, item in told.items():
            if key not in ("output", "training_trace", "task_trace", "fp_point", "bp_point", "aicpu", "aic_metrics", "hccl"):
                raise self._error(node, f"profiling_options has no {key!r} that is known here")
            if not isinstance(item, str):
                raise self._error(node, f"profiling_options: {key} must be a text, not {item!r}")
        self._profiling_options = told
        self._tell(node, f"profiling_options = {text}", "")

    def _run_config(self, node: ast.Call) -> None:
        for keyword in node.keywords:
            if keyword.arg == "hcom_parallel":
                self._switch(node, "hcom_parallel", self._literal(keyword.value, "hcom_parallel"))
            elif keyword.arg == "profiling_config":
                self._profiling_config(keyword.value)
            else:
                name = keyword.arg or "**"
                self._tell(node, f"NPURunConfig({name}=…)", f"no effect: {NO_EFFECT.get(name, 'not read')}")

    def _profiling_config(self, node: ast.expr) -> None:
        call = self._names.get(node.id) if isinstance(node, ast.Name) else node
        if not isinstance(call, ast.Call) or _last_name(call.func) != "ProfilingConfig":
            raise self._error(node, "profiling_config must be a ProfilingConfig(…) of this script")
        enabled, told = self._arguments(call, ("enable_profiling", "profiling_options"), {"profiling_options": None})
        self._profiling = self._bool(call, "enable_profiling", enabled)
        self._tell(call, f"enable_profiling = {enabled}", "" if enabled else "no trace is written")
        if told is not None:
            self._read_profiling(call, told)

    def _switch(self, node: ast.AST, key: str, value: Any) -> None:
        on = self._bool(node, key, value)
        self._use(node, f"{key} = {value}", f"--hcom-parallel={'on' if on else 'off'}")

    def _create_group(self, node: ast.Call) -> None:
        name, size, ranks = self._arguments(node, ("group", "rank_num", "rank_ids"))
        if name in self._groups:
            raise self._error(node, f"the group {name!r} exists")
        if not isinstance(ranks, list) or len(ranks) != size:
            raise self._error(node, f"rank_num is {size!r}, but rank_ids is {ranks!r}")
        self._groups[name] = ranks
        self._tell(node, f"create_group({name!r}, {size}, {ranks})", "counts where a split is set for it")

    def _split_by_idx(self, node: ast.Call) -> None:
        self._split(node, "idxList", "by-idx")

    def _split_by_size(self, node: ast.Call) -> None:
        self._split(node, "dataSizeList", "by-size")

    def _split(self, node: ast.Call, parameter: str, kind: str) -> None:
        values, group = self._arguments(node, (parameter, "group"), {"group": "hccl_world_group"})
        if not isinstance(values, list) or not values:
            raise self._error(node, f"{parameter} must be a list with values, not {values!r}")
        what = f"set_split_strategy_{kind.replace('-', '_')}({values}, {group!r})"
        if kind in self._splits:
            _, first, branches = self._splits[kind]
            if first != values and _exclude_each_other(branches, self._branches):
                raise self._error(node, f"{kind} is set otherwise in another branch: {first}; give --split-{kind}")
            self._tell(node, what, "no effect: the first setting stays")
            return
        if any(other != group for other, _, _ in self._splits.values()):
            raise self._error(node, "splits are set for several groups; a run has those of one")
        options = [f"--split-{kind}={','.join(map(str, values))}"]
        if group != "hccl_world_group" and not self._splits:
            if group not in self._groups:
                raise self._error(node, f"the group {group!r} does not exist; create_group makes it")
            options += [f"--group={group}={','.join(map(str, self._groups[group]))}", f"--split-group={group}"]
        self._splits[kind] = (group, values, list(self._branches))
        self._use(node, what, *options)

    def _context(self, node: ast.Call) -> None:
        if not self._reads_context:
            self._use(node, "set_auto_parallel_context(…)", f"--context={self.path}")
        self._reads_context = True

    def _ps_context(self, node: ast.Call) -> None:
        keys = {keyword.arg: self._literal(keyword.value, keyword.arg or "**") for keyword in node.keywords}
        self._ps_keys.update(keys)
        told = ", ".join(f"{key}={value}" for key, value in keys.items())
        self._tell(node, f"set_ps_context({told})", "" if self._ps_keys.get("enable_ps") else "no effect: enable_ps is False")

    def _comm_hook(self, node: ast.Call) -> None:
        if len(node.args) != 2:
            raise self._error(node, "register_comm_hook takes a state and a hook")
        hook = _last_name(node.args[1])
        kinds = {"powerSGD_hook": "powersgd", "batched_powerSGD_hook": "batched-powersgd"}
        plain = {"fp16_compress_hook": "fp16", "bf16_compress_hook": "bf16"}
        if hook in plain:
            self._use(node, f"register_comm_hook(…, {hook})", f"--compress={plain[hook]}")
            return
        if hook not in kinds:
            raise self._error(node, f"the hook {hook!r} is not known; known are {', '.join([*kinds, *plain])}")
        keys = ",".join(f"{key}={value}" for key, value in self._state(node.args[0]).items())
        self._use(node, f"register_comm_hook(…, {hook})", f"--compress={kinds[hook]}{':' if keys else ''}{keys}")

    def _state(self, node: ast.expr) -> Dict[str, Any]:
        call = self._names.get(node.id) if isinstance(node, ast.Name) else node
        if not isinstance(call, ast.Call) or _last_name(call.func) != "PowerSGDState":
            raise self._error(node, "the state of the hook must be a PowerSGDState(…) of this script")
        names = {
            "matrix_approximation_rank": "rank",
            "start_powerSGD_iter": "start",
            "min_compression_rate": "min-compression-rate",
            "use_error_feedback": "error-feedback",
            "warm_start": "warm-start",
            "orthogonalization_epsilon": "epsilon",
            "random_seed": "seed",
            "compression_stats_logging_frequency": "compression-stats-logging-frequency",
            "batch_tensors_with_same_shape": "batch-tensors-with-same-shape",
        }
        given = dict(zip(("process_group", *names), call.args))
        given.update({keyword.arg: keyword.value for keyword in call.keywords if keyword.arg is not None})
        keys = {}
        for name, value in given.items():
            if name == "process_group":
                continue
            if name not in names:
                raise self._error(call, f"PowerSGDState has no {name!r}")
            literal = self._literal(value, name)
            keys[names[name]] = ("on" if literal else "off") if isinstance(literal, bool) else literal
        return keys

    def _literal(self, node: ast.expr, what: str) -> Any:
        """A literal, also with names in it that were given one, tf.compat.as_bytes(…) of one, or list(range(…))."""
        known = self._names.get(node.id) if isinstance(node, ast.Name) else None
        if isinstance(known, Known):
            return known.value
        node = known or node
        if isinstance(node, (ast.List, ast.Tuple)) and not any(isinstance(item, ast.Starred) for item in node.elts):
            items = [self._literal(item, what) for item in node.elts]
            return items if isinstance(node, ast.List) else tuple(items)
        if isinstance(node, ast.Dict) and None not in node.keys:
            keys = [self._literal(key, what) for key in node.keys if key is not None]
            return dict(zip(keys, (self._literal(value, what) for value in node.values)))
        name = _last_name(node.func) if isinstance(node, ast.Call) else ""
        try:
            if isinstance(node, ast.Call) and name in ("as_bytes", "as_text", "as_str", "list", "tuple") and len(node.args) == 1:
                inner = self._literal(node.args[0], what)
                return list(inner) if name == "list" else tuple(inner) if name == "tuple" else inner
            if isinstance(node, ast.Call) and name == "range":
                numbers = range(*(self._literal(argument, what) for argument in node.args))
                if len(numbers) > LONGEST_RANGE:
                    raise self._error(node, f"{what} is too long: {ast.unparse(node)}")
                return numbers
            return ast.literal_eval(node)
        except (ValueError, TypeError, SyntaxError, OverflowError):
            raise self._error(node, f"{what} is no literal: {ast.unparse(node)}; the script is read, not executed") from None

    def _arguments(self, node: ast.Call, names: Tuple[str, ...], defaults: Optional[Dict[str, Any]] = None) -> List[Any]:
        values = dict(defaults or {})
        if len(node.args) > len(names):
            raise self._error(node, f"{_last_name(node.func)} takes {len(names)} arguments")
        values.update({name: self._literal(value, name) for name, value in zip(names, node.args)})
        for keyword in node.keywords:
            if keyword.arg is None:
                raise self._error(node, f"**{ast.unparse(keyword.value)} is no literal; the script is read, not executed")
            if keyword.arg not in names:
                raise self._error(node, f"{_last_name(node.func)} has no argument {keyword.arg!r}")
            values[keyword.arg] = self._literal(keyword.value, keyword.arg)
        missing = [name for name in names if name not in values]
        if missing:
            raise self._error(node, f"{_last_name(node.func)} needs {missing[0]}")
        return [values[name] for name in names]

    def _bool(self, node: ast.AST, key: str, value: Any) -> bool:
        if not isinstance(value, bool):
            raise self._error(node, f"{key} must be True or False, not {value!r}")
        return value

    def _use(self, node: ast.AST, what: str, *options: str) -> None:
        self.options += options
        self._tell(node, what, " ".join(options))

    def _tell(self, node: ast.AST, what: str, became: str) -> None:
        conditions = [f"if line {line} {branch}" for line, branch in self._branches]
        self.settings.append(Setting(_line(node), what, ", ".join([became, *conditions] if became else conditions)))

    def _error(self, node: ast.AST, message: str) -> ScriptError:
        return ScriptError(f"{self.path}:{_line(node)}: {message}")

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
        told = self._profiling_options
        if self._profiling and told.get("training_trace") == "on":
            if not told.get("output"):
                raise ScriptError(f"{self.path}: training_trace is on, but profiling_options has no output")
            self.output = told["output"]
        if self._ps_keys.get("enable_ps"):
            keys = ", ".join(f"{key}={value}" for key, value in self._ps_keys.items())
            self.options += ["--mode=ps", f"--ps-context={keys}"]
        for key, option in (("fp_point", "--fp-point"), ("bp_point", "--bp-point")):
            if self._profiling and told.get(key):
                self.options.append(f"{option}={told[key]}")


def _line(node: ast.AST) -> int:
    return getattr(node, "lineno", 1)


def _exclude_each_other(first: List[Tuple[int, str]], second: List[Tuple[int, str]]) -> bool:
    """Whether two places are in different branches of one condition."""
    branch_of = dict(first)
    return any(branch_of.get(line, branch) != branch for line, branch in second)


def _last_name(node: ast.AST) -> str:
    """"as_bytes" of tf.compat.as_bytes; empty for what has no name."""
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def read_script(path: str) -> Reader:
    """Reads a script. Raises ScriptError, with file and line, for what cannot be read."""
    try:
        with open(path, encoding="utf-8") as file:
            text = file.read()
    except (OSError, UnicodeDecodeError) as error:
        raise ScriptError(f"{path}: cannot be read: {error}") from None
    reader = Reader(path, text)
    reader.read()
    return reader


def _mapping(reader: Reader) -> str:
    """What the script sets, a line each, for people."""
    width = max(len(setting.what) for setting in reader.settings)
    lines = [f"  line {setting.line:>4}  {setting.what:<{min(width, 72)}}  {setting.became}".rstrip() for setting in reader.settings]
    return "\n".join([f"{reader.path} sets", *lines, ""])


def main(arguments: List[str]) -> int:
    """`script.py COMMAND FILE.py [OPTION…]`: reads FILE.py, then is COMMAND run with its options and those given here."""
    command, path, *given = arguments
    try:
        reader = read_script(path)
        options = list(reader.options)
        if reader.output is not None and not any(option.split("=")[0] == "--step-trace" for option in given):
            try:
                os.makedirs(reader.output, exist_ok=True)
            except OSError as error:
                raise ScriptError(
                    f"{path}: output of profiling_options cannot be made: {error}; --step-trace FILE writes it elsewhere"
                ) from None
            options.append(f"--step-trace={os.path.join(reader.output, 'step_trace_0.csv')}")
    except ScriptError as error:
        if os.environ.get("HCCLSIM_MESSAGES") == "json":
            print(json.dumps({"error": {"kind": "script", "status": 2, "message": str(error)}}), file=sys.stderr)
        else:
            print(f"hcclsim: error: {error}", file=sys.stderr)
        return 2
    # Options that are given count in place of the script's.
    names = {option.split("=")[0] for option in given}
    options = [option for option in options if option.split("=")[0] not in names]
    if not any(option.startswith("--format") for option in given):
        sys.stdout.write(_mapping(reader) + f"hcclsim run {' '.join(map(shlex.quote, [*options, *given]))}\n\n")
        sys.stdout.flush()
    os.execv(command, [command, "run", *options, *given])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
