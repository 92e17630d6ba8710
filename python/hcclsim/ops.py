"""Primitives: the operators of networks that are described in Python, with MindSpore's names and settings."""

from __future__ import annotations

import math
import warnings
from typing import Any, Dict, Optional, Sequence, Tuple

from . import settings, tracing
from .layout import Layout
from .tracing import Shape, Tensor


class Primitive:
    """An operator. shard(), recompute() and add_prim_attr() return it, so that calls can follow each other."""

    #: The operator of ONNX; by default the name of the class.
    kind = ""

    def __init_subclass__(cls, kind: str = "") -> None:
        super().__init_subclass__()
        if kind or not (cls.kind or cls.__name__.startswith("_")):
            cls.kind = kind or cls.__name__

    def __init__(self, name: str = "") -> None:
        #: What it is called in its cell; by default its kind.
        self.name = name
        self.settings: Dict[str, Any] = {}

    def shard(self, in_strategy: Optional[Tuple[Any, ...]] = None, out_strategy: Optional[Tuple[Any, ...]] = None) -> "Primitive":
        """How the inputs, and the output, are cut: a tuple per input of parts per dimension, or Layouts.

        Raises TypeError if a strategy is no tuple, holds neither tuples nor Layouts, both, or tuples of other than ints;
        ValueError for an out_strategy alone, tuples on one side and Layouts on the other, an empty strategy, Layouts
        of several matrices or without a tensor. Outside of semi_auto_parallel
        and auto_parallel it has no effect, with a warning.
        """
        for what, strategy in (("in_strategy", in_strategy), ("out_strategy", out_strategy)):
            if strategy is not None:
                _check_strategy(what, strategy)
        if in_strategy is None and out_strategy is not None:
            raise ValueError("an out_strategy needs an in_strategy")
        if in_strategy and out_strategy:
            if isinstance(in_strategy[0], Layout) != isinstance(out_strategy[0], Layout):
                raise ValueError("in_strategy and out_strategy must both hold tuples, or both Layouts")
            _check_layouts([element for element in (*in_strategy, *out_strategy) if isinstance(element, Layout)])
        mode = settings.current.context.get("parallel_mode")
        if mode not in ("semi_auto_parallel", "auto_parallel"):
            warnings.warn(f"shard() has no effect in parallel_mode {mode}", stacklevel=2)
            return self
        self.settings["strategy"] = in_strategy
        self.settings["out_strategy"] = out_strategy
        return self

    def recompute(self, mode: bool = True) -> "Primitive":
        """Whether its output is computed again in the backward pass, whatever its cell says. Raises TypeError for what
        is no bool, and in PyNative mode."""
        if not isinstance(mode, bool):
            raise TypeError(f"recompute() takes a bool, not {type(mode).__name__}")
        if not settings.current.context.graph_mode:
            raise TypeError("recompute() of a primitive needs graph mode")
        self.settings["recompute"] = self.settings["own_recompute"] = mode
        return self

    def add_prim_attr(self, name: str, value: Any) -> "Primitive":
        """Sets an attribute of a table's look-up: manual_split, a tuple of the rows of each part, such as (10, 20, 30, 4);
        manual_split_with_offset, a tuple of (rows, offset) of each; or primitive_target, "CPU" or "Ascend". Of a
        BatchNorm group_size, the number of neighbouring devices that have statistics in common, a power of two.

        Raises TypeError for a name that is no str or a value of another type, ValueError for an attribute, a target or a
        size that is not known. All go with a strategy, shard(); whether the parts fit the table shows when run() cuts it.
        """
        if not isinstance(name, str):
            raise TypeError(f"the name of an attribute must be str, not {type(name).__name__}")
        if name not in _attributes:
            raise ValueError(f"{name!r} is not known; known are {', '.join(_attributes)}")
        if name == "primitive_target":
            if not isinstance(value, str):
                raise TypeError(f"{name} must be str, not {type(value).__name__}")
            if value not in ("CPU", "Ascend"):
                raise ValueError(f"{name} must be CPU or Ascend, not {value!r}")
        elif name == "group_size":
            if isinstance(value, bool) or not isinstance(value, int):
                raise TypeError(f"{name} must be int, not {type(value).__name__}")
            if value < 1 or value & (value - 1):
                raise ValueError(f"{name} must be a power of two, it is {value}")
        else:
            name = "manual_split"
            _check_parts(name, value)
        self.settings[name] = value
        return self

    def __call__(self, *inputs: Tensor) -> Tensor:
        graph = tracing.current()
        for tensor in inputs:
            if not isinstance(tensor, Tensor):
                raise TypeError(f"{type(self).__name__} takes Tensors, not {type(tensor).__name__}")
        name = graph.path(self.name or type(self).__name__.lower())
        output = Tensor(self.shape_of(*(tensor.shape for tensor in inputs)), f"{name}.out")
        chosen = {**graph.cell_settings(), **{key: value for key, value in self.settings.items() if value is not None}}
        graph.add(tracing.Node(name, self.kind, list(inputs), [output], self.attributes(*inputs), chosen))
        return output

    def attributes(self, *inputs: Tensor) -> Dict[str, Any]:
        """Attributes of the ONNX operator."""
        return {}

    def shape_of(self, *shapes: Shape) -> Shape:
        """The shape of the output. Raises ValueError for inputs that do not go together."""
        raise NotImplementedError


def _check_strategy(what: str, strategy: Any) -> None:
    if not isinstance(strategy, tuple):
        raise TypeError(f"{what} must be a tuple, such as ((2, 1), (4, 1)) or one of Layouts, not a {type(strategy).__name__}")
    if not strategy:
        raise ValueError(f"{what} is empty; it holds a tuple or a Layout per tensor")
    for element in strategy:
        if not isinstance(element, (tuple, Layout)):
            raise TypeError(f"{what} holds a tuple or a Layout per tensor, not {element!r}")
        if isinstance(element, Layout) != isinstance(strategy[0], Layout):
            raise TypeError(f"{what} holds tuples or Layouts, not both")
        for parts in element if isinstance(element, tuple) else ():
            _check_number(what, parts)
    _check_layouts([element for element in strategy if isinstance(element, Layout)])


def _check_number(what: str, parts: Any) -> None:
    if isinstance(parts, str):
        raise TypeError(f'{what}: names of axes go with a Layout, such as Layout((2, 4), ("dp", "mp"))("dp", "None"), not {parts!r}')
    if isinstance(parts, bool) or not isinstance(parts, int):
        raise TypeError(f"{what} must hold ints, not {parts!r} of type {type(parts).__name__}")


def _check_layouts(layouts: Sequence[Layout]) -> None:
    for layout in layouts:
        if layout.dimensions is None:
            raise ValueError(f"{layout} has no tensor yet: call it with an axis per dimension")
        if (layout.device_matrix, layout.alias_name) != (layouts[0].device_matrix, layouts[0].alias_name):
            raise ValueError(f"Layouts of one operator have one device_matrix and alias_name: {layouts[0]} and {layout}")


_attributes = ("manual_split", "manual_split_with_offset", "primitive_target", "group_size")


def _check_parts(name: str, value: Any) -> None:
    if not isinstance(value, tuple):
        raise TypeError(f"{name} must be a tuple, not {type(value).__name__}")
    for part in value:
        for number in part if isinstance(part, tuple) else (part,):
            if isinstance(number, bool) or not isinstance(number, int):
                raise TypeError(f"{name} must hold ints, or pairs of them, not {number!r}")


def _broadcast(first: Shape, second: Shape) -> Shape:
    longer, shorter = sorted((first, second), key=len, reverse=True)
    padded = (1,) * (len(longer) - len(shorter)) + shorter
    if any(a != b and 1 not in (a, b) for a, b in zip(longer, padded)):
        raise ValueError(f"shapes {first} and {second} do not go together")
    return tuple(max(a, b) for a, b in zip(longer, padded))


class _Unary(Primitive):
    def shape_of(self, *shapes: Shape) -> Shape:
        (shape,) = shapes
        return shape


class ReLU(_Unary, kind="Relu"):
    """max(x, 0)."""


class GeLU(_Unary, kind="Gelu"):
    """Gaussian error linear unit."""


class Sigmoid(_Unary):
    """1 / (1 + exp(-x))."""


class Tanh(_Unary):
    """Hyperbolic tangent."""


class Softmax(_Unary):
    """Softmax over the last dimension. Raises ValueError for another axis than -1."""

    def __init__(self, axis: int = -1, name: str = "") -> None:
        super().__init__(name)
        if axis != -1:
            raise ValueError(f"Softmax is over the last dimension, axis -1, not {axis!r}")

    def attributes(self, *inputs: Tensor) -> Dict[str, Any]:
        return {"axis": -1}


class Dropout(_Unary):
    """Each number becomes 0 with this probability. Raises ValueError for one outside of 0 <= rate < 1."""

    def __init__(self, rate: float = 0.5, name: str = "") -> None:
        super().__init__(name)
        if not 0 <= rate < 1:
            raise ValueError(f"Dropout needs 0 <= rate < 1, not {rate!r}")
        self.rate = rate

    def attributes(self, *inputs: Tensor) -> Dict[str, Any]:
        return {"ratio": self.rate}


class _Binary(Primitive):
    def shape_of(self, *shapes: Shape) -> Shape:
        return _broadcast(*shapes)


class Add(_Binary):
    """Sum, with broadcast."""


class Sub(_Binary):
    """Difference, with broadcast."""


class Mul(_Binary):
    """Product by element, with broadcast."""


class Div(_Binary):
    """Quotient, with broadcast."""


class MatMul(Primitive):
    """Matrix product of the last two dimensions; (…, m, k) x (…, k, n) = (…, m, n), with transpose_b (…, n, k). Raises
    TypeError for a transpose_b that is no bool, ValueError for inputs that do not go together."""

    def __init__(self, *, transpose_b: bool = False, name: str = "") -> None:
        super().__init__(name)
        if not isinstance(transpose_b, bool):
            raise TypeError(f"transpose_b must be bool, not {type(transpose_b).__name__}")
        self.transpose_b = transpose_b

    def __call__(self, *inputs: Tensor) -> Tensor:
        if not self.transpose_b:
            return super().__call__(*inputs)
        first, second = inputs
        if isinstance(second, tracing.Parameter) and len(second.shape) == 2:
            return _times_rows(self, first, second)
        axes = list(range(len(second.shape)))
        turned = Transpose([*axes[:-2], axes[-1], axes[-2]])(second)
        return super().__call__(first, turned)

    def shape_of(self, *shapes: Shape) -> Shape:
        first, second = shapes
        if len(first) < 2 or len(second) < 2 or first[-1] != second[-2]:
            raise ValueError(f"matrices of {first} and {second} cannot be multiplied")
        return (*_broadcast(first[:-2], second[:-2]), first[-2], second[-1])


BatchMatMul = MatMul


def _times_rows(product: MatMul, x: Tensor, weight: Tensor) -> Tensor:
    """x · wᵀ over the last dimension of x, under the name and with the settings of a product."""
    gemm = Gemm(name=product.name or "matmul")
    gemm.settings = product.settings
    if len(x.shape) == 2:
        return gemm(x, weight)
    found = gemm(Reshape((-1, x.shape[-1]))(x), weight)
    return Reshape((*x.shape[:-1], found.shape[-1]))(found)


class Gemm(Primitive):
    """x · wᵀ + b for rows x: (m, k), w: (n, k), b: (n)."""

    def attributes(self, *inputs: Tensor) -> Dict[str, Any]:
        return {"transB": 1}

    def shape_of(self, *shapes: Shape) -> Shape:
        rows, weight = shapes[:2]
        if len(rows) != 2 or rows[1] != weight[1]:
            raise ValueError(f"rows of {rows} and a weight of {weight} do not go together")
        return (rows[0], weight[0])


class _Windows(Primitive):
    """Windows that go over the height and width of NCHW, `stride` apart, with `pad` more on all sides."""

    def __init__(self, stride: int, pad: int, name: str) -> None:
        super().__init__(name)
        self.stride, self.pad = stride, pad

    def of_windows(self, sizes: Sequence[int]) -> Dict[str, Any]:
        """Attributes of windows of these sizes."""
        return {"kernel_shape": list(sizes), "strides": [self.stride] * 2, "pads": [self.pad] * 4}

    def sides(self, images: Shape, sizes: Sequence[int]) -> Shape:
        """Height and width of what windows of these sizes leave of images."""
        return tuple((side + 2 * self.pad - size) // self.stride + 1 for side, size in zip(images[2:], sizes))


class Conv2D(_Windows, kind="Conv"):
    """Convolution of NCHW; weight (out, in / group, kh, kw). `pad` on all sides."""

    def __init__(self, stride: int = 1, pad: int = 0, group: int = 1, name: str = "") -> None:
        super().__init__(stride, pad, name)
        self.group = group

    def attributes(self, *inputs: Tensor) -> Dict[str, Any]:
        return {**self.of_windows(inputs[1].shape[2:]), "group": self.group}

    def shape_of(self, *shapes: Shape) -> Shape:
        images, weight = shapes[:2]
        if len(images) != 4 or images[1] != weight[1] * self.group:
            raise ValueError(f"images of {images} and a weight of {weight} do not go together")
        return (images[0], weight[0], *self.sides(images, weight[2:]))


class _Pool(_Windows):
    def __init__(self, kernel_size: int = 1, strides: int = 1, pad: int = 0, name: str = "") -> None:
        super().__init__(strides, pad, name)
        self.window = (kernel_size, kernel_size)

    def attributes(self, *inputs: Tensor) -> Dict[str, Any]:
        return self.of_windows(self.window)

    def shape_of(self, *shapes: Shape) -> Shape:
        (images,) = shapes
        if len(images) != 4:
            raise ValueError(f"pooling takes NCHW, not {images}")
        return (*images[:2], *self.sides(images, self.window))


class MaxPool(_Pool):
    """Largest of each window."""


class AvgPool(_Pool, kind="AveragePool"):
    """Mean of each window."""


class GlobalAvgPool(Primitive, kind="GlobalAveragePool"):
    """Mean of each channel: (n, c, h, w) to (n, c, 1, 1)."""

    def shape_of(self, *shapes: Shape) -> Shape:
        (images,) = shapes
        return (*images[:2], 1, 1)


class BatchNorm(Primitive, kind="BatchNormalization"):
    """Normalises channels; inputs x, gamma, beta, moving mean, moving variance."""

    def shape_of(self, *shapes: Shape) -> Shape:
        return shapes[0]


class LayerNorm(Primitive, kind="LayerNormalization"):
    """Normalises the last dimension; inputs x, gamma, beta."""

    def attributes(self, *inputs: Tensor) -> Dict[str, Any]:
        return {"axis": -1}

    def shape_of(self, *shapes: Shape) -> Shape:
        if shapes[1] != shapes[0][-1:]:
            raise ValueError(f"a scale of {shapes[1]} does not fit {shapes[0]}")
        return shapes[0]


class Gather(Primitive):
    """Rows of a table (rows, features) by ids of any shape: (…, features). Raises ValueError for another axis than 0."""

    def __call__(self, *inputs: Any) -> Tensor:
        table, ids, *axis = inputs
        if axis not in ([], [0]):
            raise ValueError(f"{type(self).__name__} takes rows, axis 0, not {axis[0]!r}")
        return super().__call__(table, ids)

    def shape_of(self, *shapes: Shape) -> Shape:
        table, ids = shapes
        return (*ids, *table[1:])


class EmbeddingLookup(Gather):
    """Gather; with add_prim_attr("primitive_target", "CPU") the table is in the host's memory."""


class Reshape(Primitive):
    """The same elements in another shape, Reshape(shape)(x) or Reshape()(x, shape); one dimension may be -1."""

    def __init__(self, shape: Sequence[int] = (), name: str = "") -> None:
        super().__init__(name)
        self.target = tuple(shape)

    def __call__(self, *inputs: Any) -> Tensor:
        x, *shape = inputs
        if shape:
            self.target = tuple(shape[0])
        return super().__call__(x)

    def attributes(self, *inputs: Tensor) -> Dict[str, Any]:
        return {"shape": list(self.shape_of(inputs[0].shape))}

    def shape_of(self, *shapes: Shape) -> Shape:
        (shape,) = shapes
        elements = math.prod(shape)
        known = math.prod(size for size in self.target if size != -1)
        target = tuple(elements // max(known, 1) if size == -1 else size for size in self.target)
        if self.target.count(-1) > 1 or math.prod(target) != elements:
            raise ValueError(f"{shape} cannot become {self.target}")
        return target


class Flatten(Primitive):
    """(n, …) to (n, rest)."""

    def attributes(self, *inputs: Tensor) -> Dict[str, Any]:
        return {"axis": 1}

    def shape_of(self, *shapes: Shape) -> Shape:
        (shape,) = shapes
        return (shape[0], math.prod(shape[1:]))


class Transpose(Primitive):
    """Dimensions in another order, Transpose(perm)(x) or Transpose()(x, perm)."""

    def __init__(self, perm: Sequence[int] = (), name: str = "") -> None:
        super().__init__(name)
        self.perm = list(perm)

    def __call__(self, *inputs: Any) -> Tensor:
        x, *perm = inputs
        if perm:
            self.perm = list(perm[0])
        return super().__call__(x)

    def attributes(self, *inputs: Tensor) -> Dict[str, Any]:
        return {"perm": self.perm}

    def shape_of(self, *shapes: Shape) -> Shape:
        (shape,) = shapes
        if sorted(self.perm) != list(range(len(shape))):
            raise ValueError(f"{self.perm} is no order of the dimensions of {shape}")
        return tuple(shape[axis] for axis in self.perm)


class Concat(Primitive):
    """Tensors, or a tuple of them, one behind the other along a dimension."""

    def __init__(self, axis: int = 0, name: str = "") -> None:
        super().__init__(name)
        self.axis = axis

    def __call__(self, *inputs: Any) -> Tensor:
        return super().__call__(*(inputs[0] if len(inputs) == 1 and isinstance(inputs[0], (tuple, list)) else inputs))

    def attributes(self, *inputs: Tensor) -> Dict[str, Any]:
        return {"axis": self.axis}

    def shape_of(self, *shapes: Shape) -> Shape:
        axis = self.axis % len(shapes[0])
        rests = {(*shape[:axis], *shape[axis + 1 :]) for shape in shapes}
        if len(rests) != 1:
            raise ValueError(f"shapes {shapes} cannot stand one behind the other along {axis}")
        return (*shapes[0][:axis], sum(shape[axis] for shape in shapes), *shapes[0][axis + 1 :])

