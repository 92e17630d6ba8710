"""Errors by kind.

Every failure has a `kind`, a short stable word (docs/errors.md lists them), a `status`, which is the exit status that the
command would have, and a message that says what is wrong, the bad value, and what is accepted. Each kind has a class, such
as `DeadlockError` of "deadlock", and each status one: an error is of both.

    try:
        hcclsim.run(model="gpt2-xl")
    except hcclsim.errors.HbmError as error:
        print(error)
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Dict, Type


class Error(Exception):
    """A failure. `kind`: stable word; `status`: 1 a check failed, 2 bad input, 3 the simulated cluster failed, 4 a defect."""

    kind: str = "internal"
    status: int = 4

    def __init__(self, message: str, kind: str = "", status: int = 0) -> None:
        super().__init__(message)
        self.message: str = message
        if kind:
            self.kind = kind
        if status:
            self.status = status
        #: What was found all the same, such as a run that differs from its baseline; None: nothing.
        self.result: object = None

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


class ContextAssertionError(BadInput, AssertionError):
    """What was called needs another mode (kind "assertion-error")."""


_by_status: Dict[int, Type[Error]] = {1: CheckFailed, 2: BadInput, 3: SimulatedFailure}
# Those that are exceptions of Python's too, because MindSpore raises them.
_by_kind: Dict[str, Type[Error]] = {
    "value-error": ContextValueError,
    "type-error": ContextTypeError,
    "key-error": ContextKeyError,
    "runtime-error": ContextRuntimeError,
    "assertion-error": ContextAssertionError,
}
_raised: Dict[object, Type[Error]] = {}


def _kinds() -> Dict[str, str]:
    """The kinds, each with what it means; the file is that of the documentation."""
    text = (Path(__file__).parent / "error_kinds.txt").read_text(encoding="utf-8")
    lines = (line.partition(":") for line in text.splitlines() if line and not line.startswith("#"))
    return {kind.strip(): meaning.strip() for kind, _, meaning in lines}


def class_name(kind: str) -> str:
    """"NoRouteError" of "no-route"."""
    return "".join(word.capitalize() for word in re.split(r"[^A-Za-z0-9]+", kind)) + "Error"


def _new_class(kind: str, meaning: str) -> Type[Error]:
    made = type(class_name(kind), (Error,), {"kind": kind, "__doc__": f'Kind "{kind}": {meaning}.', "__module__": __name__})
    globals()[made.__name__] = made
    return made


_by_kind["internal"] = InternalError
for _kind, _meaning in _kinds().items():
    if _kind not in _by_kind:
        _by_kind[_kind] = _new_class(_kind, _meaning)


def class_of(kind: str, status: int) -> Type[Error]:
    """The class that an error of a kind and a status is of: a subclass of that of the kind and that of the status."""
    by_status = _by_status.get(status, InternalError)
    by_kind = _by_kind.get(kind, by_status)
    if issubclass(by_kind, by_status):
        return by_kind
    if (kind, by_status) not in _raised:
        names = {"kind": kind, "__doc__": by_kind.__doc__, "__module__": __name__}
        _raised[kind, by_status] = type(by_kind.__name__, (by_kind, by_status), names)
    return _raised[kind, by_status]


def of_kind(kind: str, status: int, message: str) -> Error:
    """The exception of a kind, not raised."""
    return class_of(kind, status)(message, kind, status)
