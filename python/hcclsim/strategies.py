"""What was set for the operators of a network that is described in Python, as the file of --strategy (docs/parallel.md).

The command makes one operator of some nodes: a linear operator of a product and the bias behind it, an attention of two
products and what stands between them. What was set for these nodes is said of that operator.
"""

from __future__ import annotations

import warnings
from typing import Any, Collection, Dict, Iterator, List, NamedTuple, Optional, Sequence, Tuple

from . import tracing
from .layout import Layout
from .tracing import Node, Parameter

# Where a tensor lies otherwise takes no operator of the command.
_MOVES = ("Reshape", "Flatten", "Transpose")
_ELEMENTWISE = ("Add", "Sub", "Mul", "Div")


def operator_name(node: Node) -> str:
    """As the command calls the operator: with parameters by their cell ("layers.0" of layers.0.weight), else by its node."""
    for tensor in node.inputs:
        if isinstance(tensor, Parameter) and "." in tensor.name:
            return tensor.name.rpartition(".")[0]
    return node.name


def is_anything_set(graph: tracing.Graph) -> bool:
    """Whether there is something to write."""
    return any(_keys(node) or "region" in node.settings for node in graph.nodes)


def strategy_text(graph: tracing.Graph, operators: Optional[Collection[str]] = None) -> str:
    """What was set for operators; empty if nothing was. `operators` are the names of those that the command makes of the
    graph; None: one of each node. Raises ValueError for what cannot be said of them."""
    nodes = [node for node in graph.nodes if node.kind not in _MOVES]
    for node in graph.nodes:
        if node.kind in _MOVES and "strategy" in node.settings:
            warnings.warn(f"shard() of {node.name}, a {node.kind}, has no effect", stacklevel=2)
    sections: List[str] = []
    if operators is not None:
        for attention in _attentions(graph):
            if operator_name(attention.softmax) in operators and operator_name(attention.scores) not in operators:
                sections.append(attention.section())
                nodes = [node for node in nodes if all(node is not part for part in attention.parts())]
        for node in nodes:
            if operator_name(node) not in operators and ({"strategy", "own_recompute"} & node.settings.keys()):
                warnings.warn(f"what is set for {operator_name(node)} has no effect: it is a part of another operator", stacklevel=2)
        nodes = [node for node in nodes if operator_name(node) in operators]
    sections += [_section(operator_name(node), _strategy_lines(node), node.settings) for node in nodes]
    sections += _regions(graph, operators)
    return "\n".join(section for section in sections if section)


def _keys(node: Node) -> List[str]:
    return [key for key in ("strategy", "manual_split", "primitive_target", "group_size", "recompute", "stage") if key in node.settings]


def _section(name: str, strategy: List[str], chosen: Dict[str, Any]) -> str:
    lines = list(strategy)
    if not lines:
        for key in ("manual_split", "primitive_target", "group_size"):
            if key in chosen and chosen[key] != "Ascend":
                raise ValueError(f"{name}: {key} goes with a strategy: call shard() of the primitive too")
    for key in ("manual_split", "primitive_target", "group_size", "recompute", "stage"):
        if key in chosen:
            lines.append(f"{key} = {_toml(chosen[key])}")
    return "\n".join([f"[{_toml(name)}]", *lines, ""]) if lines else ""


def _strategy_lines(node: Node) -> List[str]:
    strategy = node.settings.get("strategy")
    if strategy is None:
        return []
    tensors = [*node.inputs, *[None] * (len(strategy) - len(node.inputs))]
    cuts = [_of_rows(node, element, tensor) for element, tensor in zip(strategy, tensors)]
    if _has_turned_weight(node) and len(cuts) > 1:
        cuts[1] = tuple(reversed(cuts[1]))
    lines = [*_axes(strategy), f"strategy = {_toml(cuts)}"]
    out = node.settings.get("out_strategy")
    if out is not None:
        lines.append(f"out_strategy = {_toml(_of_rows(node, out[0], node.outputs[0]))}")
    return lines


def _axes(strategy: Sequence[Any]) -> List[str]:
    layouts = [element for element in strategy if isinstance(element, Layout)]
    if not layouts:
        return []
    return [f"device_matrix = {_toml(layouts[0].device_matrix)}", f"alias_name = {_toml(layouts[0].alias_name)}"]


def _cuts(element: Any) -> Tuple[Any, ...]:
    return tuple(element.dimensions or ()) if isinstance(element, Layout) else tuple(element)


def _of_rows(node: Node, element: Any, tensor: Optional[tracing.Tensor]) -> Tuple[Any, ...]:
    """Cuts of a tensor of three axes, which the command has as rows: those of samples cut the rows."""
    cuts = _cuts(element)
    known = tensor is not None and not isinstance(tensor, Parameter) and len(tensor.shape) == 3
    if known and node.kind != "Gather" and len(cuts) == 3 and cuts[1] in (1, "None"):
        return (cuts[0], cuts[2])
    return cuts


def _has_turned_weight(node: Node) -> bool:
    """Whether the weight of a product is (inputs, outputs), which the command has as (outputs, inputs)."""
    return node.kind == "MatMul" and isinstance(node.inputs[1], Parameter) and len(node.inputs[1].shape) == 2


class _Attention(NamedTuple):
    """Two products with a softmax between them."""

    scores: Node
    softmax: Node
    values: Node
    between: List[Node]

    def parts(self) -> Iterator[Node]:
        """All nodes of it."""
        yield from (self.scores, self.softmax, self.values)
        yield from self.between

    def section(self) -> str:
        """What was set for its nodes, of the operator, which has the name of the softmax: the cuts of samples, positions
        and heads of queries, keys and values."""
        chosen: Dict[str, Any] = {}
        for part in (self.scores, self.softmax, self.values):
            chosen.update(part.settings)
        chosen.pop("strategy", None)
        given = [part for part in (self.scores, self.softmax, self.values) if part.settings.get("strategy")]
        cuts = [self._cuts_of(part) for part in given]
        if any(other != cuts[0] for other in cuts):
            names = ", ".join(operator_name(part) for part in given)
            raise ValueError(f"{names} are one attention: their strategies must cut samples and heads alike")
        lines = [*_axes(given[0].settings["strategy"]), f"strategy = {_toml(cuts[:1] * 3)}"] if given else []
        return _section(operator_name(self.softmax), lines, chosen)

    def _cuts_of(self, part: Node) -> Tuple[Any, ...]:
        cuts = _cuts(part.settings["strategy"][0])
        if len(cuts) != len(part.inputs[0].shape):
            raise ValueError(f"{operator_name(part)}: a strategy of {len(cuts)} axes for a tensor of {len(part.inputs[0].shape)}")
        *samples, rows, columns = cuts
        whole = (1, "None")
        if rows not in whole or columns not in whole:
            raise ValueError(f"{operator_name(part)}: of an attention samples and heads are cut, not positions or features: {cuts}")
        uncut = "None" if any(isinstance(cut, (str, tuple)) for cut in cuts) else 1
        return (samples[0], uncut, samples[1] if len(samples) > 1 else uncut)


def _attentions(graph: tracing.Graph) -> Iterator[_Attention]:
    maker = {id(tensor): node for node in graph.nodes for tensor in node.outputs}
    readers: Dict[int, List[Node]] = {}
    for node in graph.nodes:
        for tensor in node.inputs:
            readers.setdefault(id(tensor), []).append(node)
    for softmax in graph.nodes:
        if softmax.kind != "Softmax":
            continue
        between: List[Node] = []
        scores = maker.get(id(softmax.inputs[0]))
        while scores is not None and scores.kind in _ELEMENTWISE:
            between.append(scores)
            scores = maker.get(id(scores.inputs[0]))
        values = _only(readers.get(id(softmax.outputs[0]), []))
        while values is not None and values.kind in _ELEMENTWISE:
            between.append(values)
            values = _only(readers.get(id(values.outputs[0]), []))
        if scores is not None and values is not None and scores.kind == values.kind == "MatMul":
            yield _Attention(scores, softmax, values, between)


def _only(nodes: List[Node]) -> Optional[Node]:
    return nodes[0] if len(nodes) == 1 else None


def _regions(graph: tracing.Graph, operators: Optional[Collection[str]]) -> List[str]:
    names: Dict[int, List[str]] = {}
    regions: Dict[int, Dict[str, Any]] = {}
    for node in graph.nodes:
        region = node.settings.get("region")
        if region is None or node.kind in _MOVES or not (operators is None or operator_name(node) in operators):
            continue
        names.setdefault(id(region), []).append(operator_name(node))
        regions[id(region)] = region
    turned = {node.inputs[1].name for node in graph.nodes if _has_turned_weight(node)}
    return [_region(names[key], region, turned) for key, region in regions.items()]


def _region(names: Sequence[str], region: Dict[str, Any], turned: Collection[str]) -> str:
    cuts = ["None" if strategy is None else strategy for strategy in region["in_strategy"]]
    lines = ["[[shard]]", f"operators = {_toml(list(names))}", f"in_strategy = {_toml(cuts)}"]
    # Paths within a part, or within the whole once its parts have names.
    plan = {
        parameter.name if parameter.name.endswith(path) else path: parameter.plan for path, parameter in region["planned"].items()
    }
    if plan:
        told = {name: tuple(reversed(cuts)) if name in turned else cuts for name, cuts in plan.items()}
        lines.append(f"parameter_plan = {{ {', '.join(f'{_toml(name)} = {_toml(cuts)}' for name, cuts in told.items())} }}")
    return "\n".join([*lines, ""])


def _toml(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(_toml(item) for item in value)}]"
    return repr(value)
