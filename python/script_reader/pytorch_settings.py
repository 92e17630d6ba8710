"""PyTorch's settings: buckets of DistributedDataParallel and hooks that compress them."""

from __future__ import annotations

import ast
from typing import Dict

from settings import Settings
from tables import BUCKET_MB, HOOKS, ONCE, STATE_KEYS

#: The thing that says that a model is one of DistributedDataParallel.
DDP = "DistributedDataParallel"


class PyTorch:
    """Reads DistributedDataParallel, PowerSGDState and register_comm_hook."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings

    def buckets(self, node: ast.Call) -> None:
        self._settings.set_once(node, DDP, "")
        sizes = [keyword.value for keyword in node.keywords if keyword.arg == "bucket_cap_mb"]
        size = self._settings.values.literal(sizes[0], "bucket_cap_mb") if sizes else None
        if size is not None and (isinstance(size, bool) or not isinstance(size, (int, float)) or size < 1):
            raise self._settings.error(node, f"bucket_cap_mb must be 1 or more, not {size!r}")
        self._set_buckets(node, BUCKET_MB if size is None else int(size))

    def _set_buckets(self, node: ast.Call, size: int) -> None:
        """The buckets of DistributedDataParallel, whose collectives overlap the backward pass."""
        is_new = self._settings.set_once(node, "bucket_cap_mb", size)
        options = " ".join(ONCE[thing][0].format(size) for thing in (DDP, "bucket_cap_mb"))
        self._settings.tell(node, f"{self._settings.values.last_name(node.func)}(…)", options if is_new else "as before")

    def comm_hook(self, node: ast.Call) -> None:
        if DDP not in self._settings.things:
            self._settings.set_once(node, DDP, "")
            self._set_buckets(node, BUCKET_MB)
        given = dict(zip(("state", "hook"), node.args))
        given.update({keyword.arg: keyword.value for keyword in node.keywords if keyword.arg is not None})
        if set(given) != {"state", "hook"} or len(node.args) > 2:
            raise self._settings.error(node, "register_comm_hook takes a state and a hook")
        hook = self._settings.values.last_name(given["hook"])
        if hook not in HOOKS:
            raise self._settings.values.no_literal(node, f"the hook {hook!r} is not known; known are {', '.join(HOOKS)}")
        keys = self._state(given["state"]) if "SGD" in hook else ""
        self._settings.use_once(node, f"register_comm_hook(…, {hook})", "compress", f"{HOOKS[hook]}{':' if keys else ''}{keys}")

    def _state(self, node: ast.expr) -> str:
        call = self._settings.values.resolved(node)
        if not isinstance(call, ast.Call) or self._settings.values.last_name(call.func) != "PowerSGDState":
            raise self._settings.values.no_literal(node, "the state of the hook must be a PowerSGDState(…) of this script")
        given: Dict[str, ast.expr] = dict(zip(("process_group", *STATE_KEYS), call.args))
        given.update({keyword.arg: keyword.value for keyword in call.keywords if keyword.arg is not None})
        given.pop("process_group", None)
        keys = []
        for name, value in given.items():
            if name not in STATE_KEYS:
                raise self._settings.error(call, f"PowerSGDState has no {name!r}")
            literal = self._settings.values.literal(value, name)
            if not isinstance(literal, (bool, int, float)):
                raise self._settings.error(call, f"PowerSGDState: {name} must be a number or a bool, not {literal!r}")
            text = ("on" if literal else "off") if isinstance(literal, bool) else literal
            keys.append(f"{STATE_KEYS[name]}={text}")
        return ",".join(keys)
