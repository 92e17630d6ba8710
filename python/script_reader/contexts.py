"""MindSpore's contexts in a script.

Where all values are literals and the calls stand under no condition, the command reads them from the script itself
(`--context`), with its lines. Otherwise they are options of the command line; a device_num and a global_rank that are no
literals are those of the run.
"""

from __future__ import annotations

import ast
from typing import Any, Dict, List, Tuple

from held import Held, Things, counting
from settings import Settings
from tables import AS_THE_RUN, OTHER_NAMES, PATH_KEYS, RUN_KEYS
from values import NoLiteral, is_mode

#: How the names of a context's things begin.
OF_CONTEXT = "set_auto_parallel_context: "
OF_SERVERS = "set_ps_context: "
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
        #: Whether the command cannot read the calls itself.
        self._needs_options = False

    def context(self, node: ast.Call) -> None:
        options = self._options(node, self._settings.has_conditions())
        for key, value in options.items():
            if value == OfTheRun():
                self._settings.things.pop(OF_CONTEXT + key, None)
            else:
                self._settings.things[OF_CONTEXT + key] = self._settings.held(node, value)
        self._settings.tell(node, f"set_auto_parallel_context({self._told(node)})", self._became(options))

    def reset(self, node: ast.Call) -> None:
        self._settings.things = {thing: value for thing, value in self._settings.things.items() if not thing.startswith(OF_CONTEXT)}
        self._settings.tell(node, "reset_auto_parallel_context()", "")

    def mode(self, node: ast.Call) -> None:
        for thing, value in self._mode(node, self._settings.has_conditions()).items():
            self._settings.things[thing] = self._settings.held(node, value)

    def ps_context(self, node: ast.Call) -> None:
        keys = {keyword.arg or "**": self._values.literal(keyword.value, keyword.arg or "**") for keyword in node.keywords}
        for key, value in keys.items():
            self._settings.things[OF_SERVERS + key] = self._settings.held(node, value)
        told = ", ".join(f"{key}={value}" for key, value in keys.items())
        enabled = self._settings.things.get(f"{OF_SERVERS}enable_ps")
        is_off = enabled is None or (isinstance(enabled, Held) and not enabled.value)
        self._settings.tell(node, f"set_ps_context({told})", "no effect: enable_ps is False" if is_off else "")

    def _options(self, node: ast.Call, has_conditions: bool) -> Dict[str, Any]:
        """What a call of set_auto_parallel_context sets. Raises ScriptError for what is no literal."""
        if node.args:
            raise self._values.error(node, "set_auto_parallel_context takes its options by keyword only")
        self._is_called = True
        self._needs_options |= has_conditions or not all(self._is_plain(keyword) for keyword in node.keywords)
        options: Dict[str, Any] = {}
        for keyword in node.keywords:
            if keyword.arg is None:
                told = self._values.literal(keyword.value, f"**{ast.unparse(keyword.value)}")
                if not isinstance(told, dict):
                    raise self._values.error(node, f"**{ast.unparse(keyword.value)} is no dict")
                options.update(told)
            else:
                options[keyword.arg] = self._value(keyword.arg, keyword.value)
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

    def _became(self, options: Dict[str, Any]) -> str:
        """What of a call no option comes of, for people."""
        told = []
        for key, value in options.items():
            if value == OfTheRun():
                told.append(f"{key}: no effect on time" if key in PATH_KEYS else f"{key}: {AS_THE_RUN} ({places(key)[-1]})")
        return ", ".join(told)

    def options(self) -> List[str]:
        """Options of the command line for the contexts. Raises ScriptError where they cannot say all."""
        return [*self._of_context(self._settings.things), *self._of_servers(self._settings.things)]

    def _of_context(self, things: Things) -> List[str]:
        keys = [thing[len(OF_CONTEXT) :] for thing in things if thing.startswith(OF_CONTEXT)]
        if not self._is_called or "--context" in self._given:
            return []
        if not self._needs_options and not any(self._is_given(key) for key in keys):
            return [f"--context={self._values.path}"]
        chosen = {key: counting(things, OF_CONTEXT + key, self._values, places(key)) for key in keys if not self._is_given(key)}
        if not self._is_given("parallel_mode"):
            chosen.setdefault("parallel_mode", "stand_alone")  # also without another option they are MindSpore's
        if chosen.get("parallel_mode") not in _MODELESS and MODE in things:
            if counting(things, MODE, self._values, ("--parallel-mode data_parallel",)) == "PyNative":
                raise self._values.error_in(
                    things[MODE].line,
                    "mode=PYNATIVE_MODE: beside it set_auto_parallel_context must have literals and stand under no condition",
                )
        return [f"--{key.replace('_', '-')}={_text(value)}" for key, value in chosen.items()]

    def _of_servers(self, things: Things) -> List[str]:
        if "--ps-context" in self._given:
            return []
        keys = [thing[len(OF_SERVERS) :] for thing in things if thing.startswith(OF_SERVERS)]
        told = {key: counting(things, OF_SERVERS + key, self._values, ("--ps-context",)) for key in keys}
        if not told.get("enable_ps"):
            return []
        return ["--mode=ps", f"--ps-context={', '.join(f'{key}={value}' for key, value in told.items())}"]

    def _is_given(self, key: str) -> bool:
        return not {*places(key), "--context"}.isdisjoint(self._given)

    def _value(self, key: str, node: ast.expr) -> Any:
        try:
            return self._values.literal(node, key)
        except NoLiteral as error:
            if key in RUN_KEYS or key in PATH_KEYS or self._is_given(key):
                return OfTheRun()
            raise error.or_option(places(key)[0]) from None

    def _is_plain(self, keyword: ast.keyword) -> bool:
        """Whether the command can read an argument."""
        if keyword.arg is None:
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


def _text(value: Any) -> str:
    return value if isinstance(value, str) and value.isidentifier() else repr(value)
