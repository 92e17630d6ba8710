"""What a network is while it is described: tensors with shapes, and the nodes that a call of its cells leaves."""

from __future__ import annotations

import threading
from numbers import Integral
from typing import Any, Dict, Iterable, List, NamedTuple, Optional, Protocol, Sequence, Tuple, Union, runtime_checkable

Shape = Tuple[int, ...]


@runtime_checkable
class Array(Protocol):
    """What has a shape and a type: an array of NumPy, a tensor of PyTorch or MindSpore."""

    @property
    def shape(self) -> Sequence[int]: ...

    @property
    def dtype(self) -> object: ...


def _dtype_of(array: Array) -> str:
    """The type in the graph of the numbers of an array. Raises TypeError for what is neither float nor int."""
    name = str(array.dtype).lower().rpartition(".")[2]
    if "float" in name:
        return "float32"
    if "int" in name:
        return "int64"
    raise TypeError(f"a tensor has floats or ints, not {array.dtype}")


class Tensor:
    """A tensor of the graph: shape and name; it holds no numbers. In place of a shape it takes an array, such as one of
    NumPy or another Tensor, whose shape and type it has then: floats are float32, ints int64."""

    def __init__(self, shape: "Union[Sequence[int], Array]", name: str = "", dtype: Optional[str] = None) -> None:
        if isinstance(shape, Array):
            dtype = dtype or _dtype_of(shape)
            shape = shape.shape
        dtype = dtype or "float32"
        if isinstance(shape, (str, bytes)) or not isinstance(shape, Iterable):
            raise TypeError(f"a shape is a tuple of ints, not {shape!r}")
        sizes = tuple(shape)
        for size in sizes:
            if isinstance(size, bool) or not isinstance(size, Integral):  # also those of NumPy
                raise TypeError(f"a shape holds ints, not {size!r}")
        self.shape: Shape = tuple(int(size) for size in sizes)
        if any(size < 1 for size in self.shape):
            raise ValueError(f"a dimension must be at least 1: {self.shape}")
        if dtype not in ("float32", "int64"):
            raise ValueError(f"dtype must be float32 or int64, not {dtype!r}")
        self.name = name
        self.dtype = dtype

    def __repr__(self) -> str:
        return f"Tensor({self.shape}, {self.name!r})"

    def __add__(self, other: "Tensor") -> "Tensor":
        from . import ops

        return ops.Add()(self, other)

    def __mul__(self, other: "Tensor") -> "Tensor":
        from . import ops

        return ops.Mul()(self, other)


class Parameter(Tensor):
    """A tensor that is trained: a weight of a cell."""

    def __init__(self, shape: Sequence[int], name: str = "", trainable: bool = True) -> None:
        super().__init__(shape, name)
        self.trainable = trainable
        self.on_servers = False
        self.init_in_server = False
        #: Parts of its dimensions, of a parameter_plan; None: there is none.
        self.plan: Optional[Shape] = None

    def set_param_ps(self, init_in_server: bool = False) -> None:
        """The parameter is kept on parameter servers, and with `init_in_server`, which is for tables of embeddings, begins
        there. Raises TypeError for what is no bool."""
        if not isinstance(init_in_server, bool):
            raise TypeError(f"init_in_server must be bool, not {type(init_in_server).__name__}")
        self.on_servers = True
        self.init_in_server = init_in_server


class Node(NamedTuple):
    """One operator in its place."""

    name: str
    kind: str
    inputs: List[Tensor]
    outputs: List[Tensor]
    attributes: Dict[str, Any]
    #: Strategy, out_strategy, recompute, stage and attributes of the primitive; empty: nothing was set.
    settings: Dict[str, Any]


class Graph:
    """Nodes in forward order, and what goes in and comes out."""

    def __init__(self) -> None:
        self.nodes: List[Node] = []
        self.inputs: List[Tensor] = []
        self.outputs: List[Tensor] = []
        self.parameters: Dict[int, Parameter] = {}
        self._scopes: List[str] = []
        self._settings: List[Dict[str, Any]] = []
        self._names: Dict[str, int] = {}

    @property
    def scope(self) -> str:
        """The path of the cell that is being described."""
        return self._scopes[-1] if self._scopes else ""

    def enter(self, path: str, settings: Dict[str, Any]) -> None:
        """The nodes that follow are within the cell of this path, with what was set for it."""
        self._scopes.append(path)
        self._settings.append(settings)

    def leave(self) -> None:
        """The nodes that follow are those of the cell around it."""
        self._scopes.pop()
        self._settings.pop()

    def path(self, name: str) -> str:
        """The name behind that of its cell, "layers.0.attention.qkv"; a second one of the name has a number."""
        path = ".".join(part for part in (*self._scopes[-1:], name) if part)
        count = self._names.get(path, 0)
        self._names[path] = count + 1
        return f"{path}_{count}" if count else path

    def cell_settings(self) -> Dict[str, Any]:
        """What was set for the cells around the next node, the innermost first."""
        merged: Dict[str, Any] = {}
        for settings in self._settings:
            merged.update(settings)
        return merged

    def keep(self, found: Any) -> None:
        """The outputs of a recomputed cell are kept: what makes them is not computed again, unless it was set itself."""
        kept = {id(tensor) for tensor in (found if isinstance(found, (tuple, list)) else (found,))}
        for node in self.nodes:
            if any(id(tensor) in kept for tensor in node.outputs) and "own_recompute" not in node.settings:
                node.settings["recompute"] = False

    def add(self, node: Node) -> None:
        """Puts a node behind the others. Its parameters are those of the graph from now on."""
        for tensor in node.inputs:
            if isinstance(tensor, Parameter):
                self.parameters.setdefault(id(tensor), tensor)
        self.nodes.append(node)


_traced = threading.local()


def current() -> Graph:
    """The graph that is being described. Raises RuntimeError outside of a network's description."""
    graph: Optional[Graph] = getattr(_traced, "graph", None)
    if graph is None:
        raise RuntimeError("primitives are called within construct() of a cell, which run() or describe() calls")
    return graph


def describe(cell: Any, inputs: Sequence[Tensor]) -> Graph:
    """The graph of a cell for inputs of these shapes. Raises what its construct() raises."""
    graph = Graph()
    _traced.graph = graph
    try:
        for number, tensor in enumerate(inputs):
            tensor.name = tensor.name or f"input{number or ''}"
            graph.inputs.append(tensor)
        found = cell(*graph.inputs)
    finally:
        _traced.graph = None
    graph.outputs = list(found) if isinstance(found, (tuple, list)) else [found]
    if not all(isinstance(tensor, Tensor) for tensor in graph.outputs):
        raise TypeError("construct() must return a Tensor or a tuple of them")
    if not graph.nodes:
        raise ValueError(f"{type(cell).__name__}.construct() computes nothing")
    return graph
