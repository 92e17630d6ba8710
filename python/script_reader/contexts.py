"""MindSpore's contexts in a script.

Where all values are literals, the command reads the calls from the script itself (`--context`), with its lines. Where
they are names of literals, they are options of the command line; get_group_size() and get_rank() are those of the run.
"""

from __future__ import annotations

import ast
from typing import Any, Collection, Dict, List, Optional

from values import NoLiteral, Values

#: Options that a call may leave to the run, and the calls.
_OF_THE_RUN = {
    "device_num": ("get_group_size", "get_rank_size", "get_local_rank_size"),
    "global_rank": ("get_rank", "get_rank_id"),
}


#: Other options of the command line for them.
_OTHER_NAMES = {"device_num": ("--npus",), "global_rank": ("--rank",), "pipeline_stages": ("--stages", "--pp")}


class _OfTheRun:
    """The value that the run has."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _OfTheRun)


class Contexts:
    """What set_auto_parallel_context, set_context and set_ps_context have set so far."""

    def __init__(self, values: Values, given: Collection[str]) -> None:
        self.ps_keys: Dict[str, Any] = {}
        self._values = values
        self._given = given
        self._options: Dict[str, Any] = {}
        self._is_called = False
        #: Whether a value is no literal that the command reads.
        self._has_names = False
        self._mode: Optional[ast.Call] = None

    def arguments(self, node: ast.Call) -> Dict[str, Any]:
        """Options of a call of set_auto_parallel_context. Raises ScriptError for what is no literal."""
        if node.args:
            raise self._values.error(node, "set_auto_parallel_context takes its options by keyword only")
        return {keyword.arg: self._value(keyword.arg, keyword.value) for keyword in node.keywords if keyword.arg is not None}

    def set_options(self, node: ast.Call) -> None:
        """What a call of set_auto_parallel_context sets. Raises ScriptError for ** of what is no literal."""
        self._is_called = True
        self._has_names = self._has_names or not all(_is_plain(keyword) for keyword in node.keywords)
        for keyword in node.keywords:
            if keyword.arg is None:
                told = self._values.literal(keyword.value, f"**{ast.unparse(keyword.value)}")
                if not isinstance(told, dict):
                    raise self._values.error(node, f"**{ast.unparse(keyword.value)} is no dict")
                self._options.update(told)
            else:
                self._options[keyword.arg] = self._value(keyword.arg, keyword.value)

    def told(self, node: ast.Call) -> str:
        """The options of a call as people read them."""
        return ", ".join(f"{f'{one.arg}=' if one.arg else '**'}{ast.unparse(one.value)}" for one in node.keywords)

    def of_the_run(self, node: ast.Call) -> str:
        """Which options of a call are left to the run, for people."""
        return ", ".join(f"{key}: as the run has it" for key, value in self.arguments(node).items() if value == _OfTheRun())

    def reset(self) -> None:
        """All options have their defaults again."""
        self._options.clear()

    def set_mode(self, node: ast.Call) -> None:
        """A call of set_context."""
        self._mode = node

    def options(self) -> List[str]:
        """Options of the command line for set_auto_parallel_context. Raises ScriptError where they cannot say all."""
        if not self._is_called:
            return []
        if not self._has_names:
            return [f"--context={self._values.path}"]
        self._require_defaults()
        chosen = {key: value for key, value in self._options.items() if value != _OfTheRun()}
        # Also without another option they are MindSpore's.
        chosen.setdefault("parallel_mode", "stand_alone")
        return [f"--{key.replace('_', '-')}={_text(value)}" for key, value in chosen.items()]

    def ps_options(self) -> List[str]:
        """Options of the command line for set_ps_context."""
        if not self.ps_keys.get("enable_ps"):
            return []
        return ["--mode=ps", f"--ps-context={', '.join(f'{key}={value}' for key, value in self.ps_keys.items())}"]

    def _value(self, key: str, node: ast.expr) -> Any:
        call = self._values.resolved(node)
        if isinstance(call, ast.Call) and self._values.last_name(call.func) in _OF_THE_RUN.get(key, ()):
            return _OfTheRun()
        if _is_mode(node):
            return node.attr.lower()  # type: ignore[attr-defined]
        try:
            return self._values.literal(node, key)
        except NoLiteral:
            # An option of the command line is in its place.
            if not {f"--{key.replace('_', '-')}", *_OTHER_NAMES.get(key, ())}.intersection(self._given):
                raise
            return _OfTheRun()

    def _require_defaults(self) -> None:
        """The command line has no options for what set_context sets."""
        for keyword in self._mode.keywords if self._mode is not None else []:
            last = self._values.last_name(keyword.value) or ast.unparse(keyword.value)
            otherwise = (keyword.arg == "mode" and last in ("PYNATIVE_MODE", "1")) or (
                keyword.arg == "device_target" and last in ("'GPU'", "'CPU'")
            )
            if otherwise:
                raise self._values.error(
                    keyword.value, f"{keyword.arg}={last}: with it all values of set_auto_parallel_context must be literals"
                )


def _is_mode(node: ast.expr) -> bool:
    """ParallelMode.DATA_PARALLEL, also with a module before it."""
    owner = node.value if isinstance(node, ast.Attribute) else None
    return getattr(owner, "attr", getattr(owner, "id", "")) == "ParallelMode"


def _is_plain(keyword: ast.keyword) -> bool:
    if keyword.arg is None:
        return False
    if _is_mode(keyword.value):
        return True
    try:
        ast.literal_eval(keyword.value)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return False
    return True


def _text(value: Any) -> str:
    return value if isinstance(value, str) and value.isidentifier() else repr(value)
