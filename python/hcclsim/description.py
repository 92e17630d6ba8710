"""A network that is described in Python, as files that the command reads: ONNX, and strategies of its operators.

Needs the package onnx (Debian: python3-onnx).
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Dict, List, Sequence

from . import helper, nn, tracing
from .strategies import is_anything_set, strategy_text
from .tracing import Parameter, Tensor

_opset = 17


def write(cell: nn.Cell, inputs: Sequence[Tensor], folder: Path) -> Dict[str, Any]:
    """Describes the cell, writes its network as ONNX and, if something is set, strategy.toml to `folder`. Returns the keywords
    of run() that stand for all of it. Raises what construct() raises, ValueError without inputs, TypeError for inputs that
    are no Tensors."""
    chosen = list(_tensors(inputs)) or list(cell.inputs())
    if not chosen:
        raise ValueError("a cell needs the shapes of its inputs: run(model=cell, inputs=[Tensor(…)]), or set_inputs()")
    nn.name_parts(cell)
    # Described anew for each run: names stay the same.
    graph = tracing.describe(cell, [Tensor(tensor.shape, tensor.name, tensor.dtype) for tensor in chosen])
    network = folder / f"{type(cell).__name__}.onnx"  # the name of the model in results
    network.write_bytes(_model_of(graph, type(cell).__name__).SerializeToString())
    keywords: Dict[str, Any] = {"model": network, "batch": chosen[0].shape[0], **cell.options()}
    if is_anything_set(graph):
        shown = json.loads(helper.call(["models", "show", str(network), "--operators", "--format=json"]).output)
        operators = {operator["name"] for operator in shown["layers"]}
        path = folder / "strategy.toml"
        path.write_text(strategy_text(graph, operators), encoding="utf-8")
        keywords["strategy"] = path
    on_servers = nn.parameters_on_servers(cell)
    if on_servers:
        keywords["ps_params"] = [parameter.name for parameter in on_servers]
        if any(parameter.init_in_server for parameter in on_servers):
            keywords["init_in_server"] = True
    return keywords


def _tensors(inputs: Any) -> Sequence[Tensor]:
    if not isinstance(inputs, (Tensor, list, tuple)):
        raise TypeError(f"inputs are Tensors with the shapes of the network's inputs, not {inputs!r}")
    given = [inputs] if isinstance(inputs, Tensor) else list(inputs)
    for tensor in given:
        if not isinstance(tensor, Tensor):
            raise TypeError(f"inputs are Tensors with the shapes of the network's inputs, not {tensor!r}")
        if not tensor.shape:
            raise ValueError("an input has no dimension: its first one are the samples")
    return given


def _model_of(graph: tracing.Graph, name: str) -> Any:
    from onnx import TensorProto, helper  # type: ignore[import]

    types = {"float32": TensorProto.FLOAT, "int64": TensorProto.INT64}
    nodes: List[Any] = []
    initializers: List[Any] = []
    for node in graph.nodes:
        attributes = dict(node.attributes)
        inputs = [tensor.name for tensor in node.inputs]
        if node.kind == "Reshape":  # the shape is an input of its own
            shape = [-1, *attributes.pop("shape")[1:]]  # for any number of samples
            inputs.append(f"{node.name}.shape")
            initializers.append(helper.make_tensor(inputs[-1], TensorProto.INT64, [len(shape)], shape))
        elif node.kind == "Dropout":  # and so is the rate
            inputs.append(f"{node.name}.ratio")
            initializers.append(helper.make_tensor(inputs[-1], TensorProto.FLOAT, [], [attributes.pop("ratio")]))
        outputs = [tensor.name for tensor in node.outputs]
        if node.kind == "Gelu":  # an operator from a later set on; here by the error function
            nodes += _gelu(node.name, inputs[0], outputs[0])
        else:
            nodes.append(helper.make_node(node.kind, inputs, outputs, name=node.name, **attributes))
    if any(node.kind == "Gelu" for node in graph.nodes):
        values = {"gelu.root": 2**0.5, "gelu.one": 1.0, "gelu.half": 0.5}
        initializers += [helper.make_tensor(key, TensorProto.FLOAT, [], [value]) for key, value in values.items()]
    # Timing needs no numbers: the weights are named with their shapes, and their bytes are in no file.
    initializers += [_weight(parameter) for parameter in graph.parameters.values()]
    described = helper.make_graph(
        nodes,
        name,
        [helper.make_tensor_value_info(tensor.name, types[tensor.dtype], _of_samples(tensor)) for tensor in graph.inputs],
        [helper.make_tensor_value_info(tensor.name, types[tensor.dtype], _of_samples(tensor)) for tensor in graph.outputs],
        initializers,
    )
    return helper.make_model(described, opset_imports=[helper.make_opsetid("", _opset)], producer_name="hcclsim")


def _gelu(name: str, x: str, out: str) -> List[Any]:
    """x / 2 (1 + erf(x / sqrt 2))."""
    from onnx import helper

    steps = (("Div", x, "gelu.root"), ("Erf", f"{name}.div"), ("Add", f"{name}.erf", "gelu.one"), ("Mul", x, f"{name}.add"))
    nodes = [helper.make_node(kind, inputs, [f"{name}.{kind.lower()}"], name=f"{name}.{kind.lower()}") for kind, *inputs in steps]
    return [*nodes, helper.make_node("Mul", [f"{name}.mul", "gelu.half"], [out], name=name)]


def _of_samples(tensor: Tensor) -> List[Any]:
    """The shape with a name for the number of samples, which micro-batches divide."""
    return ["batch", *tensor.shape[1:]]


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
