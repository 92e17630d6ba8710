"""MindSpore's contexts: options are checked when they are set, with MindSpore's exceptions, and used by run()."""

from __future__ import annotations

import copy
import warnings
from typing import Any, Dict, Optional

from . import settings

GRAPH_MODE = 0
PYNATIVE_MODE = 1


class ParallelMode:
    """Values of parallel_mode."""

    STAND_ALONE = "stand_alone"
    DATA_PARALLEL = "data_parallel"
    HYBRID_PARALLEL = "hybrid_parallel"
    SEMI_AUTO_PARALLEL = "semi_auto_parallel"
    AUTO_PARALLEL = "auto_parallel"


def set_auto_parallel_context(**options: Any) -> None:
    """Sets options of parallel training, in the order in which they are given (`hcclsim context show` lists them).

    Raises ValueError for an unknown option or a value out of range, TypeError for a wrong type, KeyError for a dict that
    lacks a key. What comes before the wrong one stays set, as in MindSpore.
    """
    context = settings.current.context
    told = len(context.warnings)
    for key, value in options.items():
        context.set(key, value)
        settings.current.context_calls.append((key, copy.deepcopy(value)))
    for warning in context.warnings[told:]:
        warnings.warn(warning, stacklevel=2)


def get_auto_parallel_context(attr_key: str) -> Any:
    """The value of an option, or its default. Raises ValueError for an unknown one.

    device_num and global_rank that were never set are those of the run; their documented defaults are 1 and 0.
    """
    if not isinstance(attr_key, str):
        raise TypeError(f"attr_key must be str, not {type(attr_key).__name__}")
    value = settings.current.context.read(attr_key)
    return {"device_num": 1, "global_rank": 0}.get(attr_key) if value is None else value


def reset_auto_parallel_context() -> None:
    """All options have their defaults again."""
    settings.current.context.reset()
    settings.current.context_calls.clear()


def set_context(*, mode: Optional[int] = None, device_target: Optional[str] = None, **others: Any) -> None:
    """Graph mode or PyNative mode, and the target; what is not given stays. All other options of MindSpore's, such as
    device_id, have no effect, with a warning. Raises ValueError for other values, and for PyNative mode if an option is
    set that needs graph mode; TypeError for a target that is no str."""
    for name in others:
        warnings.warn(f"set_context: {name} has no effect", stacklevel=2)
    if device_target is not None and not isinstance(device_target, str):
        raise TypeError(f"device_target must be str, not {type(device_target).__name__}")
    if mode is not None:
        _set_mode(mode)
    if device_target is not None:
        settings.current.context.set_device_target(device_target)


def _set_mode(mode: Any) -> None:
    if mode not in (GRAPH_MODE, PYNATIVE_MODE) or isinstance(mode, bool):
        raise ValueError(f"mode must be GRAPH_MODE (0) or PYNATIVE_MODE (1), not {mode!r}")
    settings.current.context.set_graph_mode(mode == GRAPH_MODE)


_ps_defaults = {
    "enable_ps": False,
    "config_file_path": "",
    "scheduler_manage_port": 11202,
    "enable_ssl": False,
    "client_password": "",
    "server_password": "",
}
_ps_internal = {
    "server_mode": "",
    "ms_role": "MS_WORKER",
    "worker_num": 0,
    "server_num": 0,
    "scheduler_ip": "",
    "scheduler_port": 0,
}
_ps_known: Dict[str, Any] = {**_ps_defaults, **_ps_internal}
_ps_roles = ("MS_WORKER", "MS_PSERVER", "MS_SERVER", "MS_SCHED")


def set_ps_context(**options: Any) -> None:
    """Sets options of training with parameter servers: enable_ps, worker_num, server_num, config_file_path,
    scheduler_manage_port, enable_ssl and others.

    With enable_ps True, run() simulates parameter servers. Raises ValueError for an unknown option, role or port (1024
    to 65535), TypeError for a wrong type.
    """
    for key, value in options.items():
        if key not in _ps_known:
            raise ValueError(f"{key!r} is no option of set_ps_context; it has {', '.join(_ps_known)}")
        kind = type(_ps_known[key])
        if type(value) is not kind:
            raise TypeError(f"{key} must be {kind.__name__}, not {type(value).__name__}")
        if key.endswith("_port") and not 1024 <= value <= 65535:
            raise ValueError(f"{key} must be a port from 1024 to 65535, not {value}")
        if key == "ms_role" and value not in _ps_roles:
            raise ValueError(f"{key} must be one of {', '.join(_ps_roles)}, not {value!r}")
        if key.endswith("_num") and value < 0:
            raise ValueError(f"{key} must not be negative, it is {value}")
        settings.current.ps_context[key] = value


def get_ps_context(attr_key: str) -> Any:
    """The value of an option, or its default. Raises ValueError for an unknown one."""
    if attr_key not in _ps_known:
        raise ValueError(f"{attr_key!r} is no option of get_ps_context; it has {', '.join(_ps_known)}")
    return settings.current.ps_context.get(attr_key, _ps_known[attr_key])


def reset_ps_context() -> None:
    """All options have their defaults again; there are no parameter servers."""
    settings.current.ps_context.clear()
    settings.current.ps_parameters.clear()
    settings.current.ps_init_in_server = False


def set_param_ps(parameters: Any = "*", init_in_server: bool = False) -> None:
    """Keeps the parameters on servers whose names fit one of the patterns, such as "fc*"; "*" is all.

    With `init_in_server` tables of embeddings begin there. Raises TypeError for what is no pattern, or no bool.
    """
    patterns = [parameters] if isinstance(parameters, str) else parameters
    if not isinstance(patterns, (list, tuple)) or not all(isinstance(pattern, str) and pattern for pattern in patterns):
        raise TypeError(f"patterns of parameters must be texts, not {parameters!r}")
    if not isinstance(init_in_server, bool):
        raise TypeError(f"init_in_server must be bool, not {type(init_in_server).__name__}")
    settings.current.ps_parameters.extend(patterns)
    settings.current.ps_init_in_server = settings.current.ps_init_in_server or init_in_server
