"""MindSpore's contexts in a script.

Where all values are literals and the calls stand under no condition, the command reads them from the script itself
(`--context`), with its lines. Otherwise they are options of the command line; a device_num and a global_rank that are no
literals are those of the run.
"""

from __future__ import annotations

import ast
import difflib
from collections import Counter
from typing import Any, Callable, Dict, List, Sequence, Tuple

from held import Held, Reset, Things, counting, keys, reset
from settings import Settings
from tables import AS_THE_RUN, CONTEXT_KEYS, FORMER_KEYS, OTHER_NAMES, OUTPUT_KEYS, PATH_KEYS, RUN_KEYS, SERVER_KEYS, SERVERS
from values import NoLiteral, is_mode

#: The kinds of things that contexts are.
_CONTEXT, _SERVERS = "set_auto_parallel_context", "set_ps_context"

#: Calls that the command reads from the script itself.
CONTEXT_CALLS = (_CONTEXT, "reset_auto_parallel_context")

#: How the names of a context's things begin.
OF_CONTEXT, OF_SERVERS = f"{_CONTEXT}: ", f"{_SERVERS}: "
MODE = "mode of set_context"

_MODES = {"GRAPH_MODE": "graph", "0": "graph", "PYNATIVE_MODE": "PyNative", "1": "PyNative"}

#: In these a step is the same in graph and in PyNative mode.
_MODELESS = ("stand_alone", "data_parallel", "hybrid_parallel")


class OfTheRun:
    """The value that the run has."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, OfTheRun)


class Contexts:
    """What set_auto_parallel_context, set_context and set_ps_context say."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._values = settings.values
        self._given = settings.given
        self._is_called = False
        self._called: Counter[str] = Counter()
        #: Where people are told of the calls.
        self._calls: List[int] = []
        #: Whether the command cannot read the calls itself.
        self._needs_options = False

    def context(self, node: ast.Call) -> None:
        if "--context" in self._given:
            self._tell(node, f"{_CONTEXT}({self._told(node)})", "")
            return
        options = self._options(node, self._settings.has_conditions())
        for key, value in options.items():
            before = self._settings.things.get(OF_CONTEXT + key)
            if isinstance(value, dict) and isinstance(before, Held) and isinstance(before.value, dict):
                value = {**before.value, **value}  # MindSpore sets them key by key
            if value == OfTheRun():
                self._settings.things.pop(OF_CONTEXT + key, None)
            else:
                self._settings.things[OF_CONTEXT + key] = self._settings.held(node, value)
        self._tell(node, f"{_CONTEXT}({self._told(node)})", self._became(node, options))

    def reset(self, node: ast.Call) -> None:
        self._needs_options |= self._settings.has_conditions()
        self._settings.things = reset(self._settings.things, _CONTEXT, self._settings.held(node, Reset()))
        self._tell(node, "reset_auto_parallel_context()", "")

    def reset_ps(self, node: ast.Call) -> None:
        self._settings.things = reset(self._settings.things, _SERVERS, self._settings.held(node, Reset()))
        self._settings.tell(node, "reset_ps_context()", "")

    def mode(self, node: ast.Call) -> None:
        for thing, value in self._mode(node, self._settings.has_conditions()).items():
            self._settings.things[thing] = self._settings.held(node, value)

    def ps_context(self, node: ast.Call) -> None:
        given = self._keywords(node, _SERVERS, SERVER_KEYS, lambda key, value: self._values.literal(value, key))
        for key, value in given.items():
            self._settings.things[OF_SERVERS + key] = self._settings.held(node, value)
        told = ", ".join(f"{key}={value}" for key, value in given.items())
        enabled = self._settings.things.get(f"{OF_SERVERS}enable_ps")
        is_off = enabled is None or (isinstance(enabled, Held) and not enabled.value)
        self._settings.tell(node, f"{_SERVERS}({told})", "no effect: enable_ps is False" if is_off else "")

    def _tell(self, node: ast.Call, what: str, became: str) -> None:
        self._calls.append(len(self._settings.told))
        self._settings.tell(node, what, became, any(keyword.arg in FORMER_KEYS for keyword in node.keywords))

    def _keywords(self, node: ast.Call, called: str, known: Sequence[str], read: Callable[[str, ast.expr], Any]) -> Dict[str, Any]:
        """What a call sets, by its keywords as they are today. Raises ScriptError for those that are not known."""
        options: Dict[str, Any] = {}
        for keyword in node.keywords:
            key = FORMER_KEYS.get(keyword.arg or "", keyword.arg)
            given = self._values.literal(keyword.value, f"**{ast.unparse(keyword.value)}") if key is None else {key: None}
            if not isinstance(given, dict):
                raise self._values.error(node, f"**{ast.unparse(keyword.value)} is no dict")
            for name in given:
                if name not in known:
                    near = difflib.get_close_matches(str(name), known, 1)
                    advice = f"did you mean {near[0]}?" if near else "leave it out"
                    raise self._values.error(keyword.value, f"{called} has no option {name!r}; {advice}")
            options.update(given if key is None else {key: read(key, keyword.value)})
        return options

    def _options(self, node: ast.Call, has_conditions: bool) -> Dict[str, Any]:
        """What a call of set_auto_parallel_context sets. Raises ScriptError for what is no literal."""
        if node.args:
            raise self._values.error(node, "set_auto_parallel_context takes its options by keyword only")
        self._is_called = True
        options = self._keywords(node, _CONTEXT, CONTEXT_KEYS, self._value)
        is_plain = all(self._is_plain(keyword) for keyword in node.keywords) and not _fuses_nothing(options.get("comm_fusion"))
        self._needs_options |= has_conditions or not is_plain
        return options

    def _mode(self, node: ast.Call, has_conditions: bool) -> Dict[str, str]:
        """What a call of set_context says of the mode."""
        for keyword in node.keywords:
            if keyword.arg == "mode":
                name = self._values.last_name(keyword.value) or ast.unparse(keyword.value)
                self._needs_options |= has_conditions or name not in _MODES
                return {MODE: _MODES[name]} if name in _MODES else {}
        return {}

    def _told(self, node: ast.Call) -> str:
        """The options of a call as people read them."""
        return ", ".join(f"{f'{one.arg}=' if one.arg else '**'}{ast.unparse(one.value)}" for one in node.keywords)

    def _became(self, node: ast.Call, options: Dict[str, Any]) -> str:
        """What people are told of the options of a call that do not become options of the command line as they are."""
        told = [f"{one.arg}: the former name of {FORMER_KEYS[one.arg]}" for one in node.keywords if one.arg in FORMER_KEYS]
        for key, value in options.items():
            given = [option for option in places(key) if option in self._given]
            if key in PATH_KEYS and value == OfTheRun():
                told.append(f"{key}: no effect on time")
            elif key in RUN_KEYS and value == OfTheRun():
                told.append(f"{key}: {AS_THE_RUN} ({places(key)[-1]})")
            elif given:
                told.append(f"{key}: {given[0]} is given")
        return ", ".join(told)

    def expect(self, called: Counter[str]) -> None:
        """Says what the script calls, and how often."""
        self._called = called

    def options(self) -> List[str]:
        """Options of the command line for the contexts. Raises ScriptError where they cannot say all."""
        servers = self._of_servers(self._settings.things)
        if self._may_serve(bool(servers)):
            self._leave_out()
            return servers
        return [*self._of_context(self._settings.things), *servers]

    def _may_serve(self, by_script: bool) -> bool:
        """Whether there are parameter servers, `by_script` or by the command line."""
        return SERVERS in self._given or (by_script and "--mode" not in self._given)

    def _leave_out(self) -> None:
        """Says that parameter servers are simulated without what else contexts set. Raises ScriptError for options of the
        command line beside servers of the script."""
        enabled = self._settings.things.get(f"{OF_SERVERS}enable_ps")
        given = [option for option in ("--context", *(places(key)[0] for key in CONTEXT_KEYS)) if option in self._given]
        if given and enabled is not None and SERVERS not in self._given:
            raise self._values.error_in(
                enabled.line, f"{given[0]} does not go with the parameter servers of set_ps_context; give --mode allreduce, or leave it out"
            )
        for call in self._calls:
            self._settings.amend(call, "not simulated beside parameter servers; --mode allreduce simulates it instead")

    def _of_context(self, things: Things) -> List[str]:
        names = keys(things, _CONTEXT)
        if not self._is_called or "--context" in self._given:
            return []
        # The command reads also calls that are not executed.
        needs_options = self._needs_options or sum(self._called[name] for name in CONTEXT_CALLS) > len(self._calls)
        if not needs_options and not any(self._is_given(key) for key in names):
            return [f"--context={self._values.path}"]
        chosen = {key: counting(things, OF_CONTEXT + key, self._values, places(key)) for key in names if not self._is_given(key)}
        self._leave_out_outputs(chosen, things)
        if not self._is_given("parallel_mode"):
            chosen.setdefault("parallel_mode", "stand_alone")  # also without another option they are MindSpore's
        if chosen.get("parallel_mode") not in _MODELESS and MODE in things:
            if counting(things, MODE, self._values, ("--parallel-mode data_parallel",)) == "PyNative":
                raise self._values.error_in(
                    things[MODE].line,
                    "mode=PYNATIVE_MODE: beside it set_auto_parallel_context must have literals and stand under no condition",
                )
        if _fuses_nothing(chosen.get("comm_fusion")):
            return self._without_fusion(chosen, things[f"{OF_CONTEXT}comm_fusion"].line)
        return _written(chosen)

    def _leave_out_outputs(self, chosen: Dict[str, Any], things: Things) -> None:
        """Files to be written: an option would write them wherever the script says."""
        for key in OUTPUT_KEYS:
            if chosen.pop(key, None):
                self._add_to_call(things[OF_CONTEXT + key].line, f"{key}: not written; {places(key)[-1]} writes it")
        config = chosen.get("strategy_ckpt_config")
        if isinstance(config, dict) and config.pop("save_file", None):
            line = things[OF_CONTEXT + "strategy_ckpt_config"].line
            self._add_to_call(line, "save_file: not written; --strategy-ckpt-save-file writes it")

    def _add_to_call(self, line: int, became: str) -> None:
        for call in self._calls:
            told = self._settings.told[call]
            if told.line == line:
                self._settings.amend(call, ", ".join(text for text in (told.became, became) if text))

    def _without_fusion(self, chosen: Dict[str, Any], line: int) -> List[str]:
        """Options where the size of comm_fusion's allreduces is 0: in data parallelism each gradient is reduced by itself,
        whatever else is set; other modes refuse it."""
        if chosen.get("parallel_mode", "data_parallel") not in _MODELESS:
            raise self._values.error_in(
                line, f"comm_fusion: in {chosen['parallel_mode']} the size of allreduce must be 1 MB or more, not 0; give --comm-fusion"
            )
        fusing = ("comm_fusion", "all_reduce_fusion_config")
        return [*_written({key: value for key, value in chosen.items() if key not in fusing}), "--fusion=none"]

    def _of_servers(self, things: Things) -> List[str]:
        if "--ps-context" in self._given:
            return []
        told = {key: counting(things, OF_SERVERS + key, self._values, ("--ps-context",)) for key in keys(things, _SERVERS)}
        if not told.get("enable_ps"):
            return []
        return [SERVERS, f"--ps-context={', '.join(f'{key}={value}' for key, value in told.items())}"]

    def _is_given(self, key: str) -> bool:
        return not {*places(key), "--context"}.isdisjoint(self._given)

    def _value(self, key: str, node: ast.expr) -> Any:
        try:
            return self._values.literal(node, key)
        except NoLiteral as error:
            if key in RUN_KEYS or key in PATH_KEYS or self._is_given(key):
                return OfTheRun()
            told = error.or_option(places(key)[0])
            if self._may_serve(self._called[_SERVERS] > 0):
                return told  # an error only if there are no servers
            raise told from None

    def _is_plain(self, keyword: ast.keyword) -> bool:
        """Whether the command can read an argument."""
        if keyword.arg is None or keyword.arg in FORMER_KEYS:
            return False
        if is_mode(keyword.value, self._values):
            return True
        try:
            ast.literal_eval(keyword.value)
        except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
            return False
        return True


def places(key: str) -> Tuple[str, ...]:
    """Options of the command line that stand for a key."""
    return (f"--{key.replace('_', '-')}", *OTHER_NAMES.get(key, ()))


def _written(options: Dict[str, Any]) -> List[str]:
    return [f"--{key.replace('_', '-')}={_text(value)}" for key, value in options.items()]


def _fuses_nothing(fusion: Any) -> bool:
    """Whether a comm_fusion says 0 MB for allreduces."""
    allreduce = fusion.get("allreduce") if isinstance(fusion, dict) else None
    return isinstance(allreduce, dict) and allreduce.get("mode") == "size" and allreduce.get("config") == 0


def _text(value: Any) -> str:
    return value if isinstance(value, str) and value.isidentifier() else repr(value)
