"""A network that is described in Python, as files that the command reads: ONNX, and strategies of its operators.

Needs the package onnx (Debian: python3-onnx).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Dict, Iterable, List, Sequence

from . import nn, tracing
from .layout import Layout
from .tracing import Parameter, Tensor

_opset = 17
# Operators that ONNX has from a later opset on, or not at all.
_own_domain = {"Gelu": "com.microsoft"}


def write(cell: nn.Cell, inputs: Sequence[Tensor], folder: Path) -> Dict[str, Any]:
    """Describes the cell, writes network.onnx and, if something is set, strategy.toml to `folder`. Returns the keywords
    of run() that stand for all of it. Raises what construct() raises, ValueError without inputs."""
    chosen = list(inputs) or list(cell.inputs())
    if not chosen:
        raise ValueError("a cell needs the shapes of its inputs: run(model=cell, inputs=[Tensor(…)]), or set_inputs()")
    nn.name_parts(cell)
    # Described anew for each run: names stay the same.
    graph = tracing.describe(cell, [Tensor(tensor.shape, tensor.name, tensor.dtype) for tensor in chosen])
    network = folder / "network.onnx"
    network.write_bytes(_model_of(graph, type(cell).__name__).SerializeToString())
    keywords: Dict[str, Any] = {"model": network, **cell.options()}
    strategies = strategy_text(graph)
    if strategies:
        path = folder / "strategy.toml"
        path.write_text(strategies, encoding="utf-8")
        keywords["strategy"] = path
    on_servers = nn.parameters_on_servers(cell)
    if on_servers:
        keywords["ps_params"] = on_servers
    return keywords


def _model_of(graph: tracing.Graph, name: str) -> Any:
    from onnx import TensorProto, helper

    types = {"float32": TensorProto.FLOAT, "int64": TensorProto.INT64}
    nodes: List[Any] = []
    initializers: List[Any] = []
    for node in graph.nodes:
        attributes = dict(node.attributes)
        inputs = [tensor.name for tensor in node.inputs]
        if node.kind == "Reshape":  # the shape is an input of its own
            shape = attributes.pop("shape")
            inputs.append(f"{node.name}.shape")
            initializers.append(helper.make_tensor(inputs[-1], TensorProto.INT64, [len(shape)], shape))
        domain = _own_domain.get(node.kind, "")
        outputs = [tensor.name for tensor in node.outputs]
        nodes.append(helper.make_node(node.kind, inputs, outputs, name=node.name, domain=domain, **attributes))
    # Timing needs no numbers: the weights are named with their shapes, and their bytes are in no file.
    initializers += [_weight(parameter) for parameter in graph.parameters.values()]
    described = helper.make_graph(
        nodes,
        name,
        [helper.make_tensor_value_info(tensor.name, types[tensor.dtype], tensor.shape) for tensor in graph.inputs],
        [helper.make_tensor_value_info(tensor.name, types[tensor.dtype], tensor.shape) for tensor in graph.outputs],
        initializers,
    )
    opsets = [helper.make_opsetid("", _opset), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(described, opset_imports=opsets, producer_name="hcclsim")


def _weight(parameter: Parameter) -> Any:
    from onnx import TensorProto

    tensor = TensorProto()
    tensor.name = parameter.name
    tensor.data_type = TensorProto.FLOAT
    tensor.dims.extend(parameter.shape)
    tensor.data_location = TensorProto.EXTERNAL
    entry = tensor.external_data.add()
    entry.key, entry.value = "location", "weights.bin"
    return tensor


def strategy_text(graph: tracing.Graph) -> str:
    """What was set for operators, as the file of --strategy (docs/parallel.md); empty if nothing was."""
    sections = [_section(node) for node in graph.nodes]
    regions: Dict[int, List[str]] = {}
    settings: Dict[int, Dict[str, Any]] = {}
    for node in graph.nodes:
        region = node.settings.get("region")
        if region is not None:
            regions.setdefault(id(region), []).append(node.name)
            settings[id(region)] = region
    sections += [_region(names, settings[key]) for key, names in regions.items()]
    return "\n".join(section for section in sections if section)


def _section(node: tracing.Node) -> str:
    chosen = node.settings
    lines = []
    strategy = chosen.get("strategy")
    if strategy is not None:
        layouts = [element for element in strategy if isinstance(element, Layout)]
        if layouts:
            lines.append(f"device_matrix = {_toml(layouts[0].device_matrix)}")
            lines.append(f"alias_name = {_toml(layouts[0].alias_name)}")
        lines.append(f"strategy = {_toml([_cuts(element) for element in strategy])}")
        out = chosen.get("out_strategy")
        if out is not None:
            lines.append(f"out_strategy = {_toml(_cuts(out[0]))}")
    for key in ("manual_split", "primitive_target", "recompute", "stage"):
        if key in chosen:
            lines.append(f"{key} = {_toml(chosen[key])}")
    return "\n".join([f"[{_toml(node.name)}]", *lines, ""]) if lines else ""


def _cuts(element: Any) -> Iterable[Any]:
    return element.dimensions if isinstance(element, Layout) else element


def _region(names: Sequence[str], region: Dict[str, Any]) -> str:
    cuts = ["None" if strategy is None else strategy for strategy in region["in_strategy"]]
    lines = ["[[shard]]", f"operators = {_toml(list(names))}", f"in_strategy = {_toml(cuts)}"]
    if region["parameter_plan"]:
        plan = ", ".join(f"{_toml(name)} = {_toml(strategy)}" for name, strategy in region["parameter_plan"].items())
        lines.append(f"parameter_plan = {{ {plan} }}")
    return "\n".join([*lines, ""])


def _toml(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(_toml(item) for item in value)}]"
    return repr(value)
