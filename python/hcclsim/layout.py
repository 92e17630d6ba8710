"""Layout: how a tensor lies on a matrix of devices whose axes have names, as MindSpore has it."""

from __future__ import annotations

from typing import Tuple, Union

Axes = Union[str, Tuple[str, ...]]


class Layout:
    """A matrix of devices and names of its axes; called with one name, "None" or tuple of names per dimension of a
    tensor it gives the layout of that tensor: Layout((2, 2, 2), ("dp", "sp", "mp"))("dp", "mp").

    Raises TypeError if an argument is no tuple of ints or of strs, ValueError if their lengths differ, or a name is
    empty, "None" or there twice.
    """

    def __init__(self, device_matrix: Tuple[int, ...], alias_name: Tuple[str, ...]) -> None:
        if not isinstance(device_matrix, tuple):
            raise TypeError(f"device_matrix must be a tuple, not {type(device_matrix).__name__}")
        if not isinstance(alias_name, tuple):
            raise TypeError(f"alias_name must be a tuple, not {type(alias_name).__name__}")
        if len(device_matrix) != len(alias_name):
            raise ValueError(f"device_matrix has {len(device_matrix)} axes, alias_name {len(alias_name)}")
        for size in device_matrix:
            if isinstance(size, bool) or not isinstance(size, int):
                raise TypeError(f"device_matrix must hold ints, not {size!r}")
            if size < 1:
                raise ValueError(f"an axis of device_matrix must be at least 1, not {size}")
        for name in alias_name:
            if not isinstance(name, str):
                raise TypeError(f"alias_name must hold strs, not {name!r}")
            if name in ("", "None"):
                raise ValueError(f"an axis cannot be called {name!r}")
        if len(set(alias_name)) != len(alias_name):
            raise ValueError(f"a name is there twice: {alias_name}")
        self.device_matrix = device_matrix
        self.alias_name = alias_name
        #: Axes of each dimension; None before the call.
        self.dimensions: Tuple[Axes, ...] | None = None

    def __call__(self, *tensor_map: Axes) -> "Layout":
        taken: list[str] = []
        for axes in tensor_map:
            for name in axes if isinstance(axes, tuple) else (axes,):
                if not isinstance(name, str):
                    raise TypeError(f"a dimension is cut by a name, \"None\" or a tuple of names, not by {name!r}")
                if name == "None":
                    if isinstance(axes, tuple):
                        raise ValueError(f'"None" stands alone for a dimension that is not cut, not in {axes!r}')
                    continue
                if name not in self.alias_name:
                    raise ValueError(f"{name!r} is no axis; there are {', '.join(self.alias_name)}")
                if name in taken:
                    raise ValueError(f"{name!r} cuts two dimensions")
                taken.append(name)
        called = Layout(self.device_matrix, self.alias_name)
        called.dimensions = tensor_map
        return called

    @property
    def tensor_map(self) -> Tuple[Union[int, Tuple[int, ...]], ...]:
        """Numbers of the axes, counted from the right; -1 for a dimension that is not cut."""
        if self.dimensions is None:
            raise ValueError("this Layout has no tensor yet: call it with an axis per dimension")

        def number(name: str) -> int:
            return -1 if name == "None" else len(self.alias_name) - 1 - self.alias_name.index(name)

        return tuple(
            tuple(number(name) for name in axes) if isinstance(axes, tuple) else number(axes) for axes in self.dimensions
        )

    def cuts(self) -> Tuple[int, ...]:
        """Parts of each dimension."""
        if self.dimensions is None:
            raise ValueError("this Layout has no tensor yet: call it with an axis per dimension")
        sizes = dict(zip(self.alias_name, self.device_matrix))
        sizes["None"] = 1
        parts = []
        for axes in self.dimensions:
            product = 1
            for name in axes if isinstance(axes, tuple) else (axes,):
                product *= sizes[name]
            parts.append(product)
        return tuple(parts)

    def __repr__(self) -> str:
        text = f"Layout({self.device_matrix}, {self.alias_name})"
        return text if self.dimensions is None else f"{text}({', '.join(map(repr, self.dimensions))})"
