"""Cells: networks that are described in Python, with MindSpore's names and settings.

    class Net(nn.Cell):
        def __init__(self):
            super().__init__()
            self.fc1 = nn.Dense(784, 512)
            self.fc2 = nn.Dense(512, 10)
            self.relu = ops.ReLU()

        def construct(self, x):
            return self.fc2(self.relu(self.fc1(x)))

    hcclsim.run(model=Net(), inputs=[Tensor((32, 784))], npus=8)

What is set by pipeline_stage, recompute(), shard() and set_param_ps() counts in that run.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable, Dict, Iterator, List, Optional, Protocol, Tuple, TypeVar, cast

from . import ops, regions, tracing
from .tracing import Parameter
from .tracing import Tensor as Tensor  # nn.Tensor is meant to be used, too

_recompute_options = {
    "mp_comm_recompute": True,
    "parallel_optimizer_comm_recompute": False,
    "recompute_slice_activation": False,
}


Found = TypeVar("Found", covariant=True)


class _Constructing(Protocol[Found]):
    """A cell, for type checkers: its call gives what its construct() gives."""

    @property
    def construct(self) -> Callable[..., Found]: ...


class Cell:
    """A part of a network: its attributes are cells, primitives and parameters; construct() says what it computes."""

    _parts: Dict[str, Any]

    def __init__(self) -> None:
        object.__setattr__(self, "_parts", {})
        self._settings: Dict[str, Any] = {}
        self._recompute: Optional[Dict[str, bool]] = None
        self._within_recomputed = False
        self._pipeline_stage: Optional[int] = None
        self._inputs: Tuple[Tensor, ...] = ()

    def __setattr__(self, name: str, value: Any) -> None:
        if isinstance(value, (Cell, ops.Primitive, Parameter)):
            if "_parts" not in self.__dict__:
                raise AttributeError("call super().__init__() before parts are set")
            self._parts[name] = value
            if isinstance(value, ops.Primitive) and not value.name:
                value.name = name
        object.__setattr__(self, name, value)

    if TYPE_CHECKING:
        # Classes of cells have parameters and results of their own.
        construct: Callable[..., Any]

        def __call__(self: _Constructing[Found], *inputs: Tensor) -> Found: ...

    else:

        def construct(self, *inputs):
            """What the cell computes; to be written by each class of cells."""
            raise NotImplementedError(f"{type(self).__name__} has no construct()")

        def __call__(self, *inputs):
            return self._described(inputs)

    def _described(self, inputs: Tuple[Tensor, ...]) -> Any:
        graph = tracing.current()
        graph.enter(self.__dict__.get("_path", ""), {**self.__dict__.get("_of_lists", {}), **self._settings})
        try:
            found = self.construct(*inputs)
        finally:
            graph.leave()
        if self._recompute is not None:
            graph.keep(found)
        return found

    def cells(self) -> Iterator["Cell"]:
        """Cells directly within this one."""
        return (part for part in self._parts.values() if isinstance(part, Cell))

    def parameters_and_names(self, prefix: str = "") -> Iterator[Tuple[str, Parameter]]:
        """All parameters with their names, "layers.0.weight", in the order in which they were set."""
        for name, part in self._parts.items():
            path = f"{prefix}{name}"
            if isinstance(part, Parameter):
                yield path, part
            elif isinstance(part, Cell):
                yield from part.parameters_and_names(path + ".")

    def trainable_params(self) -> List[Parameter]:
        """Parameters that are trained."""
        return [parameter for _, parameter in self.parameters_and_names() if parameter.trainable]

    @property
    def pipeline_stage(self) -> Optional[int]:
        """The stage of the pipeline that this cell is computed in; None: that of the cell around it, or before it.

        Raises TypeError for what is no int, ValueError for a negative one.
        """
        return self._pipeline_stage

    @pipeline_stage.setter
    def pipeline_stage(self, stage: int) -> None:
        if isinstance(stage, bool) or not isinstance(stage, int):
            raise TypeError(f"pipeline_stage must be int, not {type(stage).__name__}")
        if stage < 0:
            raise ValueError(f"pipeline_stage must not be negative, it is {stage}")
        self._pipeline_stage = stage
        self._settings["stage"] = stage

    def recompute(self, **options: bool) -> None:
        """The outputs within this cell are computed again in the backward pass; its own outputs are kept. Options:
        mp_comm_recompute (True), parallel_optimizer_comm_recompute (False), recompute_slice_activation (False).

        Raises ValueError for another option, TypeError for what is no bool, RuntimeError if this cell or one around it is
        recomputed already.
        """
        for name, value in options.items():
            if name not in _recompute_options:
                raise ValueError(f"recompute() has no {name!r}; it has {', '.join(_recompute_options)}")
            if not isinstance(value, bool):
                raise TypeError(f"{name} must be bool, not {type(value).__name__}")
        if self._recompute is not None or self._within_recomputed:
            raise RuntimeError("recompute() is set for this cell, or one around it, already")
        self._recompute = {**_recompute_options, **options}
        self._settings["recompute"] = True
        for cell in self.cells():
            cell._mark_within()

    def _mark_within(self) -> None:
        self._within_recomputed = True
        for cell in self.cells():
            cell._mark_within()

    def shard(
        self,
        in_strategy: Tuple[Any, ...],
        out_strategy: Optional[Tuple[Any, ...]] = None,
        parameter_plan: Optional[Dict[str, Tuple[Any, ...]]] = None,
        device: str = "Ascend",
        level: int = 0,
    ) -> "Cell":
        """A region with strategies of its own in PyNative mode: how its inputs and parameters are cut; the rest of its
        operators follows by propagation. out_strategy, device and level have no effect.

        Raises AssertionError unless mode is PYNATIVE_MODE, parallel_mode auto_parallel, search_mode sharding_propagation
        and the target Ascend or GPU; TypeError for wrong types; ValueError for a plan that does not fit its parameter, of
        which the first one stays, with a warning. dataset_strategy becomes "full_batch", with a warning, if none was set.
        """
        own = dict(self.parameters_and_names())
        self._settings["region"] = regions.region_of(own, in_strategy, out_strategy, parameter_plan, device, level)
        return self

    def set_param_ps(self, recurse: bool = True, init_in_server: bool = False) -> None:
        """All trained parameters, of cells within too if `recurse`, are kept on parameter servers. Raises TypeError for
        what is no bool."""
        if not isinstance(recurse, bool):
            raise TypeError(f"recurse must be bool, not {type(recurse).__name__}")
        for name, parameter in self.parameters_and_names():
            if parameter.trainable and (recurse or "." not in name):
                parameter.set_param_ps(init_in_server)

    def set_inputs(self, *inputs: Tensor) -> None:
        """Shapes of the inputs, which run() takes if it is given none."""
        if not all(isinstance(tensor, Tensor) for tensor in inputs):
            raise TypeError("set_inputs() takes Tensors")
        self._inputs = inputs

    def inputs(self) -> Tuple[Tensor, ...]:
        """What set_inputs() was given."""
        return self._inputs

    def options(self) -> Dict[str, Any]:
        """Keywords of run() that this cell, and those within it, stand for. Raises ValueError for cells that do not agree
        in the options of recompute(), of which a run has one set."""
        chosen: Dict[str, Any] = dict(self._recompute or {})
        for cell in self.cells():
            for key, value in cell.options().items():
                if chosen.setdefault(key, value) != value:
                    raise ValueError(f"cells differ in {key} of recompute(): a run has one value of it")
        return chosen


class SequentialCell(Cell):
    """Cells and primitives, each with the output of the one before."""

    def __init__(self, *parts: Any) -> None:
        super().__init__()
        self.parts = list(parts[0]) if len(parts) == 1 and isinstance(parts[0], (list, tuple)) else list(parts)
        for number, part in enumerate(self.parts):
            setattr(self, str(number), part)

    def construct(self, *inputs: Tensor) -> Tensor:
        (found,) = inputs
        for part in self.parts:
            found = part(found)
        return found


class CellList(SequentialCell):
    """Cells in a list, to be called one by one. What is set for the list is set for each of them."""

    def recompute(self, **options: bool) -> None:
        """As recompute() of each cell of the list."""
        super().recompute(**options)
        del self._settings["recompute"]
        for cell in self.cells():
            cell._within_recomputed = False
            cell.recompute(**options)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.parts)

    def __len__(self) -> int:
        return len(self.parts)

    def __getitem__(self, index: int) -> Any:
        return self.parts[index]

    def construct(self, *inputs: Tensor) -> Any:
        raise NotImplementedError("a CellList is called cell by cell")


class Dense(Cell):
    """x · wᵀ + b over the last dimension; weight (out_channels, in_channels)."""

    def __init__(self, in_channels: int, out_channels: int, has_bias: bool = True, activation: Any = None) -> None:
        super().__init__()
        self.weight = Parameter((out_channels, in_channels), "weight")
        self.bias = Parameter((out_channels,), "bias") if has_bias else None
        self.matmul = ops.Gemm(name="matmul")
        self.activation = activation

    def construct(self, *inputs: Tensor) -> Tensor:
        (x,) = inputs
        shape = x.shape
        rows = x if len(shape) == 2 else ops.Reshape((-1, shape[-1]))(x)
        found = self.matmul(rows, self.weight, *([self.bias] if self.bias is not None else []))
        if len(shape) != 2:
            found = ops.Reshape((*shape[:-1], found.shape[-1]))(found)
        return found if self.activation is None else cast(Tensor, self.activation(found))


def _padding(kernel_size: int, padding: int, pad_mode: str) -> int:
    """On each side. Raises ValueError for another pad_mode, or "same" with an even kernel_size."""
    if pad_mode not in ("pad", "valid", "same") or (pad_mode == "same" and kernel_size % 2 == 0):
        raise ValueError(f"pad_mode {pad_mode!r} with kernel_size {kernel_size}: accepted: pad, valid, same with an odd one")
    return {"pad": padding, "valid": 0, "same": kernel_size // 2}[pad_mode]


class Conv2d(Cell):
    """Convolution of NCHW; weight (out_channels, in_channels / group, kernel_size, kernel_size). pad_mode "pad", the
    default, pads by `padding` on all sides, "valid" not at all, "same", MindSpore's default, so that a stride of 1 keeps height
    and width. Raises ValueError for another pad_mode, or "same" with an even kernel_size."""

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: int,
        stride: int = 1,
        padding: int = 0,
        group: int = 1,
        has_bias: bool = False,
        pad_mode: str = "pad",
    ) -> None:
        super().__init__()
        padding = _padding(kernel_size, padding, pad_mode)
        self.weight = Parameter((out_channels, in_channels // group, kernel_size, kernel_size), "weight")
        self.bias = Parameter((out_channels,), "bias") if has_bias else None
        self.conv2d = ops.Conv2D(stride, padding, group, name="conv2d")

    def construct(self, *inputs: Tensor) -> Tensor:
        return self.conv2d(inputs[0], self.weight, *([self.bias] if self.bias is not None else []))


class BatchNorm2d(Cell):
    """Normalises the channels of NCHW."""

    def __init__(self, num_features: int) -> None:
        super().__init__()
        self.gamma = Parameter((num_features,), "gamma")
        self.beta = Parameter((num_features,), "beta")
        self.moving_mean = Parameter((num_features,), "moving_mean", trainable=False)
        self.moving_variance = Parameter((num_features,), "moving_variance", trainable=False)
        self.bn = ops.BatchNorm(name="bn")

    def construct(self, *inputs: Tensor) -> Tensor:
        return self.bn(inputs[0], self.gamma, self.beta, self.moving_mean, self.moving_variance)


class LayerNorm(Cell):
    """Normalises the last dimension."""

    def __init__(self, normalized_shape: Any) -> None:
        super().__init__()
        (size,) = normalized_shape if isinstance(normalized_shape, (list, tuple)) else (normalized_shape,)
        self.gamma = Parameter((size,), "gamma")
        self.beta = Parameter((size,), "beta")
        self.layer_norm = ops.LayerNorm(name="layer_norm")

    def construct(self, *inputs: Tensor) -> Tensor:
        return self.layer_norm(inputs[0], self.gamma, self.beta)


class Embedding(Cell):
    """Rows of a table by ids."""

    def __init__(self, vocab_size: int, embedding_size: int) -> None:
        super().__init__()
        self.embedding_table = Parameter((vocab_size, embedding_size), "embedding_table")
        self.gather = ops.Gather(name="gather")

    def construct(self, *inputs: Tensor) -> Tensor:
        return self.gather(self.embedding_table, inputs[0])


class _OfPrimitive(Cell):
    """A primitive of one tensor as a cell."""

    def __init__(self, primitive: ops.Primitive) -> None:
        super().__init__()
        self.primitive = primitive

    def construct(self, *inputs: Tensor) -> Tensor:
        (x,) = inputs
        return self.primitive(x)


class ReLU(_OfPrimitive):
    """max(x, 0)."""

    def __init__(self) -> None:
        super().__init__(ops.ReLU(name="relu"))


class GELU(_OfPrimitive):
    """Gaussian error linear unit; `approximate` has no effect."""

    def __init__(self, approximate: bool = True) -> None:
        super().__init__(ops.GeLU(name="gelu"))


class Sigmoid(_OfPrimitive):
    """1 / (1 + exp(-x))."""

    def __init__(self) -> None:
        super().__init__(ops.Sigmoid(name="sigmoid"))


class Tanh(_OfPrimitive):
    """Hyperbolic tangent."""

    def __init__(self) -> None:
        super().__init__(ops.Tanh(name="tanh"))


class Softmax(_OfPrimitive):
    """Softmax over the last dimension. Raises ValueError for another axis than -1."""

    def __init__(self, axis: int = -1) -> None:
        super().__init__(ops.Softmax(axis, name="softmax"))


class Dropout(_OfPrimitive):
    """Each number becomes 0 with probability p; MindSpore's older keep_prob is 1 - p, of which the default is a half.

    Raises ValueError for a p outside of 0 <= p < 1, or both.
    """

    def __init__(self, keep_prob: Optional[float] = None, p: Optional[float] = None) -> None:
        if keep_prob is not None and p is not None:
            raise ValueError("Dropout has a p or a keep_prob, not both")
        super().__init__(ops.Dropout(p if p is not None else 0.5 if keep_prob is None else 1 - keep_prob, name="dropout"))


class MaxPool2d(_OfPrimitive):
    """Largest of each window of NCHW. pad_mode and padding as of Conv2d, "valid" by default."""

    def __init__(self, kernel_size: int = 1, stride: int = 1, pad_mode: str = "valid", padding: int = 0) -> None:
        super().__init__(ops.MaxPool(kernel_size, stride, _padding(kernel_size, padding, pad_mode), name="max_pool"))


class AvgPool2d(_OfPrimitive):
    """Mean of each window of NCHW. pad_mode and padding as of Conv2d, "valid" by default."""

    def __init__(self, kernel_size: int = 1, stride: int = 1, pad_mode: str = "valid", padding: int = 0) -> None:
        super().__init__(ops.AvgPool(kernel_size, stride, _padding(kernel_size, padding, pad_mode), name="avg_pool"))


class Flatten(_OfPrimitive):
    """(n, …) to (n, rest)."""

    def __init__(self) -> None:
        super().__init__(ops.Flatten(name="flatten"))


class _Wrapper(Cell):
    _keyword = ""

    def __init__(self, network: Cell, micro_size: int) -> None:
        super().__init__()
        if isinstance(micro_size, bool) or not isinstance(micro_size, int):
            raise TypeError(f"micro_size must be int, not {type(micro_size).__name__}")
        if micro_size <= 0:
            raise ValueError(f"micro_size must be positive, it is {micro_size}")
        if not isinstance(network, Cell):
            raise TypeError(f"network must be a Cell, not {type(network).__name__}")
        self.network = network
        self.micro_size = micro_size

    def construct(self, *inputs: Tensor) -> Any:
        for tensor in inputs:
            if tensor.shape[0] % self.micro_size:
                raise ValueError(f"{tensor.shape[0]} samples cannot be cut into {self.micro_size} micro-batches")
        return self.network(*inputs)

    def inputs(self) -> Tuple[Tensor, ...]:
        return self._inputs or self.network.inputs()

    def options(self) -> Dict[str, Any]:
        return {**super().options(), self._keyword: self.micro_size}


class PipelineCell(_Wrapper):
    """The network with its batch cut into micro_size micro-batches, which pass through the stages of pipeline_stages.

    Raises TypeError for a micro_size that is no int, ValueError if it is not positive; and when it is run, for a batch
    that it does not divide.
    """

    _keyword = "micro_batches"


class GradAccumulationCell(_Wrapper):
    """The network with its batch cut into micro_size micro-batches whose gradients are added up, without stages.
    Raises as PipelineCell does."""

    _keyword = "accumulate"


def name_parts(cell: Cell, path: str = "", of_lists: Optional[Dict[str, Any]] = None) -> None:
    """Gives every part the path that it has in the whole, "layers.0.attention"; wrappers have none. Cells of lists, which
    are not called themselves, get what was set for these."""
    cell.__dict__["_path"] = path
    cell.__dict__["_of_lists"] = of_lists or {}
    inherited = {**(of_lists or {}), **cell._settings} if isinstance(cell, CellList) else {}
    for name, part in cell.__dict__["_parts"].items():
        below = path if isinstance(cell, _Wrapper) else f"{path}.{name}" if path else name
        if isinstance(part, Cell):
            name_parts(part, below, inherited)
        elif isinstance(part, Parameter):
            part.name = below


def parameters_on_servers(cell: Cell) -> List[Parameter]:
    """The parameters for which set_param_ps() was called."""
    return [parameter for _, parameter in cell.parameters_and_names() if parameter.on_servers]
