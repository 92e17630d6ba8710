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
import re
import tokenize
from collections import Counter
from typing import Any, Collection, Dict, List, Optional, Sequence, Set, Tuple, Union

from branches import Branches, Fork, Way, fork_of_choice, fork_of_if, hint
from contexts import OF_CONTEXT, Contexts
from functions import Functions
from hccl_settings import Hccl
from held import Held, Things, counting, merged, sets_anything
from pytorch_settings import PyTorch
from settings import Setting, Settings
from tables import ONCE, SERVERS, SPLIT_CALLS, SPLITS
from tensorflow_settings import TensorFlow
from values import CHANGING, Meaning, ScriptError, Values, line_of


class Reader(ast.NodeVisitor):
    """Walks a script in its order and collects options of `hcclsim run`. `given` are the options of the command line,
    which count first; `branches` those that say which branches are taken."""

    def __init__(self, path: str, text: str, given: Collection[str] = (), branches: Sequence[str] = ()) -> None:
        self.path = path
        self.options: List[str] = []
        #: Those of MindSpore's contexts.
        self.context_options: List[str] = []
        self._text = text
        self._functions = Functions(ast.Module([], []))
        self._values = Values(path)
        self._chosen = branches
        self._branches = Branches(self._values, (), ast.Module([], []))
        self._settings = Settings(self._values, given, bool(branches))
        self._tensorflow = TensorFlow(self._settings)
        self._hccl = Hccl(self._settings)
        self._contexts = Contexts(self._settings)
        self._pytorch = PyTorch(self._settings)
        self._calls = {
            "set_split_strategy_by_idx": self._hccl.split_by_idx,
            "set_split_strategy_by_size": self._hccl.split_by_size,
            "create_group": self._hccl.create_group,
            "set_auto_parallel_context": self._contexts.context,
            "reset_auto_parallel_context": self._contexts.reset,
            "set_context": self._contexts.mode,
            "set_ps_context": self._contexts.ps_context,
            "reset_ps_context": self._contexts.reset_ps,
            "NPURunConfig": self._tensorflow.run_config,
            "DistributedDataParallel": self._pytorch.buckets,
            "register_comm_hook": self._pytorch.comm_hook,
        }

    @property
    def words(self) -> Set[str]:
        """Names in the script, in small letters without underscores."""
        return {word.replace("_", "").lower() for word in re.findall(r"[A-Za-z_]\w*", self._text)}

    @property
    def settings(self) -> List[Setting]:
        """What is set, for people."""
        return self._settings.told

    @property
    def output(self) -> Optional[str]:
        """Where training_trace is to be written; None: it is not wanted."""
        return self._tensorflow.output

    @property
    def last_index(self) -> Optional[Tuple[int, int, bool]]:
        """The last index of a split, its line, and whether it has to be the last gradient's."""
        if self._hccl.last_index is not None:
            return (*self._hccl.last_index, True)
        fused = self._settings.things.get(f"{OF_CONTEXT}all_reduce_fusion_config")
        if SERVERS in self.context_options or self._settings.is_given("--all-reduce-fusion-config", "--context", SERVERS, *SPLITS):
            return None
        if isinstance(fused, Held) and isinstance(fused.value, list) and fused.value and type(fused.value[-1]) is int:
            return fused.value[-1], fused.line, False
        return None

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
        self._values.change_inside(node.target)  # lists are changed in their place

    def visit_withitem(self, node: ast.withitem) -> None:
        self.generic_visit(node)
        if node.optional_vars is not None:
            self._values.change(node.optional_vars)

    def visit_Delete(self, node: ast.Delete) -> None:
        for target in node.targets:
            self._values.change(target)

    def visit_Import(self, node: ast.Import) -> None:
        for name in node.names:
            self._values.import_as((name.asname or name.name).split(".")[0], name.name)

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        for name in node.names:
            self._values.import_as(name.asname or name.name, name.name)

    def visit_FunctionDef(self, node: Union[ast.FunctionDef, ast.AsyncFunctionDef]) -> None:
        before = self._values.names
        self._enter(node.args, self._functions.changed_behind(node))
        for outside in (*node.decorator_list, node.args):
            self.visit(outside)
        at_begin = dict(self._values.names)
        self._visit_fork(Fork(node.lineno, [Way("", node.body)]), may_pass=True)
        # Its own names end here.
        changes = self._functions.record(node, at_begin, self._values.names)
        self._values.merge([{**changes, **before}, {**before, **changes}])

    visit_AsyncFunctionDef = visit_FunctionDef

    def visit_Lambda(self, node: ast.Lambda) -> None:
        before = self._values.names
        self._enter(node.args)
        self._visit_fork(Fork(node.lineno, [Way("", [ast.copy_location(ast.Expr(node.body), node.body)])]), may_pass=True)
        self._values.names = before

    def _enter(self, arguments: ast.arguments, unknown: Collection[str] = ()) -> None:
        """Begins a function, of whose arguments nothing is known."""
        own = {part.arg for part in ast.walk(arguments) if isinstance(part, ast.arg)}
        self._values.names = {
            name: None if name in unknown or name.split(".")[0] in unknown else meaning for name, meaning in self._values.names.items()
        }
        self._values.names.update(dict.fromkeys(own))

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        before = self._values.names
        # Parts of self are of the objects of one class.
        self._values.names = {name: meaning for name, meaning in before.items() if not name.startswith("self.")}
        self.generic_visit(node)
        changed = [name for name, meaning in self._values.names.items() if before.get(name) is not meaning and not name.startswith("self.")]
        own = {name if "." in name else f"{node.name}.{name}": self._values.names[name] for name in changed}
        self._values.names = {**before, **own}

    def visit_Module(self, node: ast.Module) -> None:
        self._visit_all(node.body)

    def visit_With(self, node: Union[ast.With, ast.AsyncWith]) -> None:
        for item in node.items:
            self.visit(item)
        self._visit_all(node.body)

    visit_AsyncWith = visit_With

    def visit_If(self, node: ast.If) -> None:
        self.visit(node.test)
        self._visit_fork(fork_of_if(node))

    def visit_Match(self, node: Any) -> None:
        """`match`, which Python has from 3.10 on."""
        self.visit(node.subject)
        ways = [Way(f"if line {line_of(case.pattern)} matches", case.body) for case in node.cases]
        last = node.cases[-1]
        if last.guard is not None or getattr(last.pattern, "pattern", last.pattern) is not None:
            ways.append(Way("", []))  # nothing matches
        self._visit_fork(Fork(node.lineno, ways))

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
        self._visit_all(node.body)
        self._visit_all(node.orelse)
        self._values.merge([before, self._values.names])

    visit_AsyncFor = visit_For

    def visit_While(self, node: ast.While) -> None:
        self.visit(node.test)
        before = dict(self._values.names)
        if self._branches.holds(node.test) is not False:
            self._visit_all(node.body)
        self._visit_all(node.orelse)
        self._values.merge([before, self._values.names])

    def visit_BoolOp(self, node: ast.BoolOp) -> None:
        """`x and f()`, which calls f where x holds; `x or f()` where it does not."""
        if not self._sets_anything(node.values[1:]):
            self.generic_visit(node)
            return
        self.visit(node.values[0])
        rest = node.values[1]
        if len(node.values) > 2:
            rest = ast.copy_location(ast.BoolOp(node.op, node.values[1:]), rest)
        is_and = isinstance(node.op, ast.And)
        self._visit_fork(fork_of_choice(node, node.values[0], [rest] if is_and else [], [] if is_and else [rest]))

    def visit_IfExp(self, node: ast.IfExp) -> None:
        if not self._sets_anything((node.body, node.orelse)):
            self.generic_visit(node)
            return
        self.visit(node.test)
        self._visit_fork(fork_of_choice(node, node.test, [node.body], [node.orelse]))

    def _visit_fork(self, fork: Fork, may_pass: bool = False, fails: bool = False) -> None:
        """Reads the way that is taken, or all of them, each from what holds before. `may_pass`: there may be no way that
        is taken; `fails`: the first one is, unless something fails, and then another one."""
        way, is_chosen = self._branches.taken(fork)
        if way is not None:
            self._settings.depth_of_chosen += is_chosen
            self._visit_all(way.statements)
            self._settings.depth_of_chosen -= is_chosen
            return
        names, things = self._values.names, self._settings.things
        after_names: List[Dict[str, Meaning]] = []
        after: List[Things] = []
        for number, one in enumerate(fork.ways):
            self._values.names, self._settings.things = dict(names), dict(things)
            self._settings.ways.append((fork, number))
            self._visit_all(one.statements)
            self._settings.ways.pop()
            after_names.append(self._values.names)
            after.append(self._settings.things)
        if fails and sets_anything(things, after[0]):
            after = [after[0], *(one for one in after[1:] if sets_anything(things, one))]
        self._settings.things = merged(things, after, fork, may_pass)
        self._values.merge(after_names, hint(fork))

    def _visit_all(self, statements: Sequence[ast.stmt]) -> None:
        """Reads statements as far as they are executed."""
        for number, statement in enumerate(statements):
            if isinstance(statement, ast.If) and self._branches.leaves(statement.body) and self._sets_anything(statement.body):
                # What follows is done in its place.
                self.visit(statement.test)
                rest = [*statement.orelse, *statements[number + 1 :]]
                self._visit_fork(fork_of_if(statement, rest))
                return
            is_last = self._branches.leaves([statement])
            self.visit(statement)
            if is_last:
                return

    def _sets_anything(self, nodes: Sequence[ast.AST]) -> bool:
        calls = (part for node in nodes for part in ast.walk(node) if isinstance(part, ast.Call))
        return any(self._values.last_name(call.func) in self._calls for call in calls)

    def _assigned(self, target: ast.expr, value: ast.expr) -> None:
        self._values.assign(target, value)
        if isinstance(target, ast.Attribute):
            self._tensorflow.assigned(target, value)

    # Calls. -----------------------------------------------------------------------------------------------------------

    def visit_Call(self, node: ast.Call) -> None:
        self.generic_visit(node)  # arguments first, as Python does
        name = self._values.last_name(node.func)
        if name in CHANGING and isinstance(node.func, ast.Attribute):
            self._values.change_inside(node.func.value)
        if name == "setattr" and node.args:
            self._values.change(node.args[0])
        for changed in self._functions.changed_by(node, name, self._values.names):
            self._values.names[changed] = None
        for argument in self._functions.changed_arguments(node, name):
            self._values.change_inside(argument)
        take = self._calls.get(name)
        if take is not None:
            self._settings.or_given(node, name, ast.unparse(node), lambda: take(node))
        elif name not in self._functions:
            near = difflib.get_close_matches(str(name), SPLIT_CALLS, 1, 0.85)
            if near:
                self._settings.tell(node, ast.unparse(node), f"no effect: there is no {name}; did you mean {near[0]}?")

    # All. -------------------------------------------------------------------------------------------------------------

    def read(self) -> None:
        """Reads all of the script. Raises ScriptError."""
        try:
            tree = ast.parse(self._text, self.path)
            self._functions = Functions(tree)
            self._branches = Branches(self._values, self._chosen, tree)
            self._values.holds = self._branches.holds
            self._contexts.expect(Counter(self._values.last_name(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)))
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
            if thing in self._settings.things and not self._settings.is_given(*places):
                value = counting(self._settings.things, thing, self._values, places[:1])
                self.options += options.format(value).split(" ")
        self.options += self._hccl.options()
        self.context_options = self._contexts.options()
        if not self._settings.is_given("--step-trace"):
            self.options += self._tensorflow.options()


def read_script(path: str, given: Collection[str], branches: Sequence[str] = ()) -> Reader:
    """Reads a script; `branches` are the values of --branch. Raises ScriptError, with file and line, for what cannot be
    read."""
    try:
        with tokenize.open(path) as file:  # in the encoding that the script names
            text = file.read()
    except (OSError, UnicodeDecodeError, SyntaxError) as error:
        raise ScriptError(f"{path}: cannot be read: {error}") from None
    reader = Reader(path, text, given, branches)
    reader.read()
    return reader
