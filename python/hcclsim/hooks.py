"""A hook that compresses gradients in the place of the allreduces of a run."""

from __future__ import annotations

from types import ModuleType
from typing import Any, Callable, Optional, Union

from . import _core, default_hooks, errors, settings
from . import powerSGD_hook as powerSGD

#: A hook of powerSGD_hook or default_hooks; the module powerSGD_hook stands for its hook of that name.
Hook = Union[ModuleType, Callable[[Any], str]]


def register_comm_hook(state: object, hook: Hook) -> None:
    """Puts a hook in the place of the allreduces of runs that follow.

    Raises TypeError for a function that is none of this module's hooks, RuntimeError if one is registered already, as
    in PyTorch, and ValueError for a state that the hook refuses.
    """
    if settings.current.compression is not None:
        raise RuntimeError("a communication hook is registered already; there can be one")
    settings.current.compression = settings_of(state, hook)
    settings.current.hook_state = state


def settings_of(state: object, hook: Hook) -> str:
    """A hook and its state as `--compress` takes them. Raises TypeError for a function that is none of this module's
    hooks, ValueError for a state that the hook refuses."""
    if hook is powerSGD:  # the module, for its hook of the same name
        hook = powerSGD.powerSGD_hook
    if isinstance(hook, ModuleType) or hook not in (
        powerSGD.powerSGD_hook,
        powerSGD.batched_powerSGD_hook,
        default_hooks.fp16_compress_hook,
        default_hooks.bf16_compress_hook,
    ):
        raise TypeError(
            "register_comm_hook takes powerSGD_hook, batched_powerSGD_hook, fp16_compress_hook or bf16_compress_hook"
        )
    try:
        return _core.check_compression(hook(state))
    except errors.BadInput as refused:
        raise errors.of_kind("value-error", 2, refused.message) from None


def registered_comm_hook() -> Optional[str]:
    """The hook that runs use, in full; None: none."""
    return settings.current.compression
