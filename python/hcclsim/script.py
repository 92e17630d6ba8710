"""Training scripts for Ascend, read and never executed: what they set becomes options of `hcclsim run`.

Read are calls with literal arguments and assignments of literals:

- TensorFlow: parameter_map["hcom_parallel"].b, ["profiling_mode"].b, ["profiling_options"].s of the NpuOptimizer, and
  what else its parameter_map sets; NPURunConfig(hcom_parallel=…); rewrite options (remapping, memory_optimization);
- HCCL: create_group, set_split_strategy_by_idx, set_split_strategy_by_size;
- MindSpore: set_auto_parallel_context (`--context` reads them from the same file);
- PyTorch: PowerSGDState and register_comm_hook.

Stands alone: only Python's own library is needed. `hcclsim script FILE.py` runs it as a program.
"""

from __future__ import annotations

import ast
import json
import os
import sys
from typing import Any, Dict, List, NamedTuple, Optional, Tuple

#: Keys of the NpuOptimizer that are known and change nothing of what is simulated, with what they do.
NO_EFFECT = {
    "use_off_line": "the network runs on the NPU, as simulated",
    "enable_data_pre_proc": "preprocessing of data on the device is not simulated",
    "iterations_per_loop": "steps of a loop on the device follow each other as simulated",
    "precision_mode": "see --amp",
    "mix_compile_mode": "of compilation",
    "dump_path": "of dumps",
    "enable_dump": "of dumps",
    "enable_dump_debug": "of dumps",
    "dump_mode": "of dumps",
    "dump_step": "of dumps",
    "aoe_mode": "tuning of kernels is not simulated; 'hcclsim tune' tunes the split",
    "is_tailing_optimization": "see --hcom-parallel and --split",
    "min_group_size": "of fusion of collectives on dynamic shapes",
    "stream_max_parallel_num": "of streams of the engines of one NPU",
    "op_select_implmode": "of kernels",
    "optypelist_for_implmode": "of kernels",
    "graph_run_mode": "training is simulated",
    "op_debug_level": "of compilation",
    "variable_memory_max_size": "see --hbm-check",
    "graph_memory_max_size": "see --hbm-check",
    "customize_dtypes": "see --amp",
}


class ScriptError(Exception):
    """What cannot be read, with file and line."""


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
        self._constants: Dict[str, ast.expr] = {}
        self._groups: Dict[str, List[int]] = {}
        self._splits: Dict[str, str] = {}
        self._reads_context = False
        self._states: Dict[str, Dict[str, Any]] = {}
        self._text = text

    # --- What is read

    def visit_Assign(self, node: ast.Assign) -> None:
        self._assigned(node)
        self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> None:
        self.generic_visit(node)  # arguments first, as Python does
        name = _last_name(node.func)
        take = {
            "set_split_strategy_by_idx": self._split_by_idx,
            "set_split_strategy_by_size": self._split_by_size,
            "create_group": self._create_group,
            "set_auto_parallel_context": self._context,
            "NPURunConfig": self._run_config,
            "register_comm_hook": self._comm_hook,
        }.get(name)
        if take is not None:
            take(node)

    def _assigned(self, node: ast.Assign) -> None:
        target = node.targets[0]
        if isinstance(target, ast.Name):
            self._constants[target.id] = node.value
            return
        if not isinstance(target, ast.Attribute):
            return
        if isinstance(target.value, ast.Subscript) and _last_name(target.value.value) == "parameter_map":
            key = self._literal(target.value.slice, "the key of parameter_map")
            self._parameter(node, key, self._literal(node.value, f'parameter_map["{key}"]'))
        elif target.attr in ("remapping", "memory_optimization") and _last_name(target.value) == "rewrite_options":
            value = _last_name(node.value)
            if value != "OFF":
                raise self._error(node, f"rewrite_options.{target.attr} must be RewriterConfig.OFF on Ascend, it is {value}")
            self._tell(node, f"rewrite_options.{target.attr} = OFF", "as Ascend needs it")

    def _parameter(self, node: ast.Assign, key: Any, value: Any) -> None:
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
        text = value.decode() if isinstance(value, bytes) else value
        try:
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
            self._tell(node, what, "no effect: the first setting stays")
            return
        if any(other != group for other in self._splits.values()):
            raise self._error(node, "splits are set for several groups; a run has those of one")
        options = [f"--split-{kind}={','.join(map(str, values))}"]
        if group != "hccl_world_group" and not self._splits:
            if group not in self._groups:
                raise self._error(node, f"the group {group!r} does not exist; create_group makes it")
            options += [f"--group={group}={','.join(map(str, self._groups[group]))}", f"--split-group={group}"]
        self._splits[kind] = group
        self._use(node, what, *options)

    def _context(self, node: ast.Call) -> None:
        if not self._reads_context:
            self._use(node, "set_auto_parallel_context(…)", f"--context={self.path}")
        self._reads_context = True

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
        call = self._constants.get(node.id) if isinstance(node, ast.Name) else node
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

    # --- What is literal

    def _literal(self, node: ast.expr, what: str) -> Any:
        """A literal, a name that was given one, or tf.compat.as_bytes(…) of one."""
        if isinstance(node, ast.Name) and node.id in self._constants:
            return self._literal(self._constants[node.id], what)
        if isinstance(node, ast.Call) and _last_name(node.func) in ("as_bytes", "as_text", "as_str", "list", "tuple"):
            inner = self._literal(node.args[0], what)
            return list(inner) if _last_name(node.func) == "list" else inner
        if isinstance(node, ast.Call) and _last_name(node.func) == "range":
            return range(*(self._literal(argument, what) for argument in node.args))
        try:
            return ast.literal_eval(node)
        except (ValueError, SyntaxError):
            raise self._error(node, f"{what} is no literal: {ast.unparse(node)}; the script is read, not executed") from None

    def _arguments(self, node: ast.Call, names: Tuple[str, ...], defaults: Optional[Dict[str, Any]] = None) -> List[Any]:
        values = dict(defaults or {})
        if len(node.args) > len(names):
            raise self._error(node, f"{_last_name(node.func)} takes {len(names)} arguments")
        values.update({name: self._literal(value, name) for name, value in zip(names, node.args)})
        for keyword in node.keywords:
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

    # --- What comes out

    def _use(self, node: ast.AST, what: str, *options: str) -> None:
        self.options += options
        self._tell(node, what, " ".join(options))

    def _tell(self, node: ast.AST, what: str, became: str) -> None:
        self.settings.append(Setting(node.lineno, what, became))

    def _error(self, node: ast.AST, message: str) -> ScriptError:
        return ScriptError(f"{self.path}:{node.lineno}: {message}")

    def read(self) -> None:
        """Reads all of the script. Raises ScriptError."""
        try:
            tree = ast.parse(self._text, self.path)
        except SyntaxError as error:
            raise ScriptError(f"{self.path}:{error.lineno}: this is no Python: {error.msg}") from None
        self.visit(tree)
        if not self.settings:
            raise ScriptError(f"{self.path}: sets nothing that is known here; docs/python.md lists what is read")
        told = self._profiling_options
        if self._profiling and told.get("training_trace") == "on":
            if not told.get("output"):
                raise ScriptError(f"{self.path}: training_trace is on, but profiling_options has no output")
            self.output = told["output"]
        for key, option in (("fp_point", "--fp-point"), ("bp_point", "--bp-point")):
            if self._profiling and told.get(key):
                self.options.append(f"{option}={told[key]}")


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
        sys.stdout.write(_mapping(reader) + f"hcclsim run {' '.join([*options, *given])}\n\n")
        sys.stdout.flush()
    os.execv(command, [command, "run", *options, *given])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
