"""shard(): a part of a network with strategies of its own in PyNative mode."""

from __future__ import annotations

import warnings
from typing import Any, Callable, Dict, Mapping, Optional, Tuple

from . import settings, tracing
from .tracing import Parameter, Tensor


def region_of(
    parameters: Mapping[str, Parameter],
    in_strategy: Tuple[Any, ...],
    out_strategy: Optional[Tuple[Any, ...]],
    parameter_plan: Optional[Mapping[str, Tuple[Any, ...]]],
    device: str,
    level: int,
) -> Dict[str, Any]:
    """What shard() says of a part with these parameters. dataset_strategy becomes "full_batch" if none is set, with a
    warning. Raises as Cell.shard() does."""
    context = settings.current.context
    assert not context.graph_mode, "shard() needs PyNative mode: set_context(mode=PYNATIVE_MODE)"
    assert context.get("parallel_mode") == "auto_parallel", "shard() needs parallel_mode auto_parallel"
    assert context.device_target in ("Ascend", "GPU"), "shard() needs Ascend or GPU"
    assert context.get("search_mode") == "sharding_propagation", "shard() needs search_mode sharding_propagation"
    checks: Tuple[Tuple[str, Any, Tuple[type, ...]], ...] = (
        ("in_strategy", in_strategy, (tuple,)),
        ("out_strategy", out_strategy, (tuple, type(None))),
        ("parameter_plan", parameter_plan, (dict, type(None))),
        ("device", device, (str,)),
        ("level", level, (int,)),
    )
    for what, value, kinds in checks:
        if not isinstance(value, kinds) or (what == "level" and isinstance(value, bool)):
            raise TypeError(f"{what} cannot be a {type(value).__name__}")
    for strategy in in_strategy:
        if strategy is not None:
            _check_cuts("in_strategy", strategy)
    for name, strategy in (parameter_plan or {}).items():
        _plan(parameters, name, strategy)
    if not context.is_set("dataset_strategy"):
        warnings.warn('dataset_strategy is "full_batch" from here on, for shard() and none was set', stacklevel=3)
        context.set("dataset_strategy", "full_batch")
        settings.current.context_calls.append(("dataset_strategy", "full_batch"))
    planned = {name: parameter for name, parameter in parameters.items() if parameter.plan is not None}
    return {"in_strategy": in_strategy, "planned": planned}


def _check_cuts(what: str, strategy: Any) -> None:
    if not isinstance(strategy, tuple):
        raise TypeError(f"{what} holds a tuple of ints or None per tensor, not {strategy!r}")
    for parts in strategy:
        if isinstance(parts, bool) or not isinstance(parts, int):
            raise TypeError(f"{what} must hold ints, not {parts!r} of type {type(parts).__name__}")
        if parts < 1:
            raise ValueError(f"{what}: a dimension is cut into 1 or more parts, not {parts}")


def _plan(parameters: Mapping[str, Parameter], name: Any, strategy: Any) -> None:
    """Notes how a parameter is cut; the first plan of it stays."""
    if not isinstance(name, str) or not isinstance(strategy, tuple):
        raise TypeError(f"parameter_plan maps a str to a tuple, not {name!r} to {strategy!r}")
    _check_cuts("parameter_plan", strategy)
    if name not in parameters:
        warnings.warn(f"parameter_plan: there is no parameter {name!r}", stacklevel=4)
        return
    parameter = parameters[name]
    shape = parameter.shape
    if len(strategy) != len(shape) or any(size % parts for size, parts in zip(shape, strategy)):
        raise ValueError(f"{name} of shape {shape} cannot be cut by {strategy}")
    if parameter.plan not in (None, strategy):
        warnings.warn(f"parameter_plan: {name} has the plan {parameter.plan} already, which stays", stacklevel=4)
        return
    parameter.plan = strategy


def shard(
    fn: Callable[..., Any],
    in_strategy: Tuple[Any, ...],
    out_strategy: Optional[Tuple[Any, ...]] = None,
    parameter_plan: Optional[Dict[str, Tuple[Any, ...]]] = None,
    device: str = "Ascend",
    level: int = 0,
) -> Callable[..., Any]:
    """MindSpore's shard(): of a Cell as its shard(); of a function of Tensors a function whose operators are a region
    with strategies of its own, to be called in construct().

    Raises as Cell.shard() does, and TypeError for what cannot be called, or a parameter_plan without a Cell.
    """
    from . import nn

    if isinstance(fn, nn.Cell):
        return fn.shard(in_strategy, out_strategy, parameter_plan, device, level)
    if not callable(fn):
        raise TypeError(f"shard() takes a Cell or a function, not {type(fn).__name__}")
    region = region_of({}, in_strategy, out_strategy, None if parameter_plan is None else {}, device, level)
    if parameter_plan is not None:
        raise TypeError("parameter_plan names parameters of a Cell, and this is a function")

    def sharded(*inputs: Tensor) -> Any:
        graph = tracing.current()
        graph.enter(graph.scope, {"region": dict(region)})  # each call is a region
        try:
            return fn(*inputs)
        finally:
            graph.leave()

    return sharded
