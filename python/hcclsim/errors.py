"""Errors by kind.

Every failure has a `kind`, a short stable word (docs/errors.md lists them), a `status`, which is the exit status that the
command would have, and a message that says what is wrong, the bad value, and what is accepted.
"""

from __future__ import annotations

import re
from typing import Any, Dict, Type


class Error(Exception):
    """A failure. `kind`: stable word; `status`: 1 a check failed, 2 bad input, 3 the simulated cluster failed, 4 a defect."""

    kind: str = "internal"
    status: int = 4

    def __init__(self, message: str, kind: str = "", status: int = 0) -> None:
        super().__init__(message)
        self.message = message
        if kind:
            self.kind = kind
        if status:
            self.status = status
        #: What was found all the same, such as a run that differs from its baseline; None: nothing.
        self.result: Any = None

    def __str__(self) -> str:
        return self.message

    def __reduce__(self):
        return (of_kind, (self.kind, self.status, self.message))


class CheckFailed(Error):
    """A check or a comparison found a difference (status 1)."""

    status = 1


class BadInput(Error):
    """An option, its value, or a file is wrong (status 2)."""

    status = 2


class SimulatedFailure(Error):
    """The simulated cluster failed: deadlock, time-out, NPU out of memory (status 3)."""

    status = 3


class InternalError(Error):
    """A defect of hcclsim (status 4)."""

    status = 4


class ContextValueError(BadInput, ValueError):
    """A value is out of range (kind "value-error")."""


class ContextTypeError(BadInput, TypeError):
    """A value is of the wrong type (kind "type-error")."""


class ContextKeyError(BadInput, KeyError):
    """A key of a dict is unknown or missing (kind "key-error")."""


class ContextRuntimeError(BadInput, RuntimeError):
    """Settings do not go together (kind "runtime-error")."""


_by_status: Dict[int, Type[Error]] = {1: CheckFailed, 2: BadInput, 3: SimulatedFailure}
# Those that are exceptions of Python's too, because MindSpore raises them.
_by_kind: Dict[str, Type[Error]] = {
    "value-error": ContextValueError,
    "type-error": ContextTypeError,
    "key-error": ContextKeyError,
    "runtime-error": ContextRuntimeError,
}
_made: Dict[object, Type[Error]] = {}


def class_of(kind: str, status: int) -> Type[Error]:
    """The class of a kind: `DeadlockError` of "deadlock", a subclass of the class of its status."""
    if kind in _by_kind:
        return _by_kind[kind]
    base = _by_status.get(status, InternalError)
    if not kind or kind == "internal":
        return base
    if (kind, base) not in _made:
        words = re.split(r"[^A-Za-z0-9]+", kind)
        name = "".join(word.capitalize() for word in words) + "Error"
        _made[kind, base] = type(name, (base,), {"kind": kind, "__doc__": f'Kind "{kind}".', "__module__": __name__})
    return _made[kind, base]


def of_kind(kind: str, status: int, message: str) -> Error:
    """The exception of a kind, not raised."""
    return class_of(kind, status)(message, kind, status)
