"""Networks that are described in Python: settings and their exceptions, the graph, the strategies, and runs."""

import importlib.util
import tempfile
import unittest
import warnings
from pathlib import Path

import hcclsim
from hcclsim import Layout, Parameter, Tensor, description, nn, ops, settings, tracing


class Mlp(nn.Cell):
    def __init__(self, features=64, layers=4):
        super().__init__()
        self.layers = nn.CellList([nn.Dense(features, features, activation=ops.ReLU()) for _ in range(layers)])
        self.head = nn.Dense(features, 10)

    def construct(self, x):
        for layer in self.layers:
            x = layer(x)
        return self.head(x)


def nodes_of(cell, *shapes):
    nn.name_parts(cell)
    return tracing.describe(cell, [Tensor(shape) for shape in shapes]).nodes


class Forgetting(unittest.TestCase):
    def setUp(self):
        hcclsim.reset()
        self.addCleanup(hcclsim.reset)
        hcclsim.set_auto_parallel_context(parallel_mode="semi_auto_parallel", device_num=8)


class PlainCells(Forgetting):
    def test_a_network_of_them(self):
        net = nn.SequentialCell(
            nn.Conv2d(1, 6, 5), nn.ReLU(), nn.MaxPool2d(2, 2), nn.AvgPool2d(3, 3, "pad", 1), nn.Flatten(),
            nn.Dense(96, 32), nn.GELU(), nn.Dropout(p=0.1), nn.Dense(32, 10), nn.Tanh(), nn.Sigmoid(), nn.Softmax(),
        )  # fmt: skip
        nodes = nodes_of(net, (8, 1, 28, 28))
        self.assertEqual([node.kind for node in nodes[:5]], ["Conv", "Relu", "MaxPool", "AveragePool", "Flatten"])
        self.assertEqual([node.outputs[0].shape for node in nodes[2:5]], [(8, 6, 12, 12), (8, 6, 4, 4), (8, 96)])
        self.assertEqual(nodes[1].name, "1.relu")
        hcclsim.reset()
        result = hcclsim.run(model=net, inputs=[Tensor((8, 1, 28, 28))], npus=2)
        self.assertGreater(result.step_time_s, 0)
        plain = nn.SequentialCell([part for part in net.parts if not isinstance(part, nn.Dropout)])
        self.assertLess(hcclsim.run(model=plain, inputs=[Tensor((8, 1, 28, 28))], npus=2).step_time_s, result.step_time_s)

    def test_errors_say_what_a_script_has_set(self):
        settings.current.split_by_idx[settings.world_group] = [3]
        net = nn.SequentialCell(nn.Dense(64, 64), nn.Dense(64, 64))
        net.parts[0].matmul.shard(((2, 1), (4, 1)))
        message = r"split_by_idx was set by set_split_strategy_by_idx\(\): hcclsim.reset\(\) forgets it"
        with self.assertRaisesRegex(hcclsim.BadInput, message):
            hcclsim.run(model=net, inputs=[Tensor((32, 64))])
        with self.assertRaises(hcclsim.BadInput) as raised:
            hcclsim.run(model=net, inputs=[Tensor((32, 64))], split_by_idx=[3])
        self.assertNotIn("was set by", str(raised.exception))
        with self.assertRaisesRegex(TypeError, r"^measure\(\) has no keyword 'begin'"):
            hcclsim.measure(begin=3)

    def test_what_they_refuse(self):
        self.assertEqual((nn.Dropout(0.9).primitive.rate, nn.Dropout().primitive.rate), (1 - 0.9, 0.5))
        for make in (
            lambda: nn.Dropout(p=1),
            lambda: nn.Dropout(keep_prob=0.5, p=0.5),
            lambda: nn.Softmax(axis=1),
            lambda: nn.MaxPool2d(2, 2, "same"),
            lambda: nn.AvgPool2d(3, 3, "reflect"),
        ):
            with self.assertRaises(ValueError):
                make()


class Primitives(Forgetting):
    def test_shard_checks(self):
        two = Layout((2, 4), ("dp", "mp"))
        for arguments, error in (
            (([(1, 2)],), TypeError),
            (((1, 2),), TypeError),
            ((((1.0, 2),),), TypeError),
            ((((True, 2),),), TypeError),
            ((None, ((1, 2),)), ValueError),
            ((((1, 2),), [(1, 2)]), TypeError),
            ((((1, 2),), (Layout((2,), ("a",))("a"),)), ValueError),
            (((),), ValueError),
            (((two("dp", "None"), (4, 1)),), TypeError),
            (((two, two),), ValueError),  # of no tensor yet
            (((two("dp", "None"), Layout((4, 2), ("a", "b"))("b", "None")),), ValueError),
            (((two("dp"),), (Layout((4, 2), ("a", "b"))("b"),)), ValueError),
        ):
            with self.subTest(arguments=arguments), self.assertRaises(error):
                ops.MatMul().shard(*arguments)
        for strategy in ((("dp", "None"), ("mp", "None")), (("dp",),)):
            with self.assertRaisesRegex(TypeError, "names of axes go with a Layout, such as Layout"):
                ops.MatMul().shard(strategy)
        with self.assertRaisesRegex(ValueError, "stands alone"):
            two(("dp", "None"), "None")
        primitive = ops.MatMul()
        self.assertIs(primitive.shard(((2, 1), (1, 4))), primitive)

    def test_shard_has_no_effect_elsewhere(self):
        hcclsim.set_auto_parallel_context(parallel_mode="data_parallel")
        with self.assertWarnsRegex(UserWarning, "no effect in parallel_mode data_parallel"):
            primitive = ops.MatMul().shard(((2, 1), (1, 4)))
        self.assertEqual(primitive.settings, {})

    def test_recompute_and_attributes(self):
        self.assertTrue(ops.ReLU().recompute().settings["recompute"])
        with self.assertRaises(TypeError):
            ops.ReLU().recompute(1)
        with self.assertRaises(TypeError):
            ops.Gather().add_prim_attr(3, "x")
        for name, value, error in (
            ("target", "CPU", ValueError),
            ("primitive_target", "GPU", ValueError),
            ("primitive_target", 1, TypeError),
            ("manual_split", [10, 20], TypeError),
            ("manual_split", (10, "20"), TypeError),
            ("manual_split_with_offset", ((10, 0.0),), TypeError),
            ("group_size", "2", TypeError),
            ("group_size", 3, ValueError),
        ):
            with self.subTest(name=name, value=value), self.assertRaises(error):
                ops.Gather().add_prim_attr(name, value)
        split = ops.Gather().add_prim_attr("manual_split", (10, 20, 30, 4))
        self.assertEqual(split.settings["manual_split"], (10, 20, 30, 4))
        split = ops.Gather().add_prim_attr("manual_split_with_offset", ((10, 0), (20, 10)))
        self.assertEqual(split.settings["manual_split"], ((10, 0), (20, 10)))
        hcclsim.reset_auto_parallel_context()
        hcclsim.set_context(mode=hcclsim.PYNATIVE_MODE)
        with self.assertRaises(TypeError):
            ops.ReLU().recompute()

    def test_shapes(self):
        graph_of = lambda primitive, *shapes: primitive.shape_of(*shapes)  # noqa: E731
        self.assertEqual(graph_of(ops.MatMul(), (8, 2, 3), (3, 5)), (8, 2, 5))
        self.assertEqual(graph_of(ops.Conv2D(stride=2, pad=3), (1, 3, 224, 224), (64, 3, 7, 7)), (1, 64, 112, 112))
        self.assertEqual(graph_of(ops.MaxPool(3, 2, 1), (1, 64, 112, 112)), (1, 64, 56, 56))
        self.assertEqual(graph_of(ops.Reshape((-1, 4)), (2, 8)), (4, 4))
        self.assertEqual(graph_of(ops.Concat(1), (2, 3), (2, 4)), (2, 7))
        kinds = {"ReLU": "Relu", "Sigmoid": "Sigmoid", "Conv2D": "Conv", "AvgPool": "AveragePool", "EmbeddingLookup": "Gather"}
        for name, kind in kinds.items():
            self.assertEqual(getattr(ops, name).kind, kind)
        for primitive, shapes in (
            (ops.MatMul(), ((2, 3), (4, 5))),
            (ops.Add(), ((2, 3), (4, 3))),
            (ops.Conv2D(), ((1, 3, 8, 8), (4, 2, 3, 3))),
            (ops.Reshape((3, -1)), ((2, 4),)),
            (ops.Reshape((0, -1)), ((2, 4),)),
            (ops.Transpose((0, 0)), ((2, 4),)),
            (ops.LayerNorm(), ((2, 4), (2,), (2,))),
        ):
            with self.subTest(kind=primitive.kind), self.assertRaises(ValueError):
                primitive.shape_of(*shapes)

    def test_calls_as_mindspore_has_them(self):
        class Forms(nn.Cell):
            def __init__(self):
                super().__init__()
                self.w = Parameter((32, 64), "w")
                self.table = Parameter((16, 64), "table")
                self.rows, self.turned, self.scores = ops.MatMul(transpose_b=True), ops.Transpose(), ops.BatchMatMul(transpose_b=True)
                self.gather, self.concat, self.reshape, self.softmax = ops.Gather(), ops.Concat(1), ops.Reshape(), ops.Softmax(-1)

            def construct(self, x, ids):
                deep = self.rows(self.reshape(x, (4, 2, 64)), self.w)
                scores = self.softmax(self.scores(deep, deep))
                found = self.concat((self.reshape(scores, (4, 4)), self.gather(self.table, ids, 0)))
                return self.turned(found, (1, 0))

        nodes = {node.name: node for node in nodes_of(Forms(), (8, 64), (4,))}
        self.assertEqual((nodes["rows"].kind, nodes["rows"].outputs[0].shape), ("Gemm", (8, 32)))
        self.assertEqual(nodes["scores"].outputs[0].shape, (4, 2, 2))
        self.assertEqual(nodes["concat"].outputs[0].shape, (4, 68))
        self.assertEqual(nodes["turned"].outputs[0].shape, (68, 4))
        for call, error in (
            (lambda: ops.Softmax(1), ValueError),
            (lambda: ops.MatMul(transpose_b=1), TypeError),
            (lambda: ops.Gather()(Tensor((4, 4)), Tensor((4,)), 1), ValueError),
            (lambda: nn.Conv2d(3, 4, 2, pad_mode="same"), ValueError),
            (lambda: nn.Conv2d(3, 4, 3, pad_mode="full"), ValueError),
        ):
            with self.assertRaises(error):
                call()
        convolution = nn.Conv2d(3, 4, 5, stride=2, pad_mode="same")
        self.assertEqual(nodes_of(convolution, (2, 3, 9, 8))[0].outputs[0].shape, (2, 4, 5, 4))

    def test_only_within_construct(self):
        with self.assertRaises(RuntimeError):
            ops.ReLU()(Tensor((1,)))


class Layouts(unittest.TestCase):
    def test_the_example_of_the_documentation(self):
        layout = Layout((2, 2, 2), ("dp", "sp", "mp"))("dp", "mp")
        self.assertEqual(layout.tensor_map, (2, 0))
        self.assertEqual(layout.cuts(), (2, 2))
        self.assertEqual(Layout((2, 4), ("a", "b"))(("a", "b"), "None").cuts(), (8, 1))

    def test_checks(self):
        for arguments, error in (
            (([2], ("a",)), TypeError),
            (((2,), ["a"]), TypeError),
            (((2, 2), ("a",)), ValueError),
            ((("2",), ("a",)), TypeError),
            (((2,), (1,)), TypeError),
            (((2,), ("",)), ValueError),
            (((2,), ("None",)), ValueError),
            (((2, 2), ("a", "a")), ValueError),
        ):
            with self.subTest(arguments=arguments), self.assertRaises(error):
                Layout(*arguments)
        for axes, error in ((("c",), ValueError), (("a", "a"), ValueError), ((1,), TypeError)):
            with self.subTest(axes=axes), self.assertRaises(error):
                Layout((2, 2), ("a", "b"))(*axes)


class Cells(Forgetting):
    def test_names_are_paths(self):
        nodes = nodes_of(Mlp(), (8, 64))
        self.assertEqual(nodes[0].name, "layers.0.matmul")
        self.assertEqual([tensor.name for tensor in nodes[0].inputs], ["input", "layers.0.weight", "layers.0.bias"])
        self.assertEqual(nodes[-1].outputs[0].shape, (8, 10))

    def test_pipeline_stage(self):
        net = Mlp()
        for wrong, error in ((1.0, TypeError), (True, TypeError), ("1", TypeError), (-1, ValueError)):
            with self.subTest(stage=wrong), self.assertRaises(error):
                net.pipeline_stage = wrong
        net.layers[1].pipeline_stage = 0
        net.head.pipeline_stage = 1
        stages = {node.name: node.settings.get("stage") for node in nodes_of(net, (8, 64))}
        self.assertEqual((stages["layers.1.matmul"], stages["head.matmul"]), (0, 1))

    def test_recompute(self):
        net = Mlp()
        for options, error in (({"mp": True}, ValueError), ({"mp_comm_recompute": 1}, TypeError)):
            with self.subTest(options=options), self.assertRaises(error):
                net.recompute(**options)
        net.layers.recompute(mp_comm_recompute=False)
        with self.assertRaises(RuntimeError):
            net.layers.recompute()
        with self.assertRaises(RuntimeError):
            net.layers[0].recompute()
        self.assertFalse(net.options()["mp_comm_recompute"])

    def test_lists_set_their_cells(self):
        net = Mlp(layers=2)
        net.layers.pipeline_stage = 1
        net.layers[0].pipeline_stage = 0
        net.layers.recompute()
        chosen = {node.name: (node.settings.get("stage"), node.settings.get("recompute")) for node in nodes_of(net, (8, 64))}
        self.assertEqual(
            list(chosen.values()), [(0, True), (0, False), (1, True), (1, False), (None, None)]
        )

    def test_outputs_of_a_recomputed_cell_are_kept(self):
        net = Mlp(layers=1)
        net.layers[0].recompute()
        kept = {node.name: node.settings.get("recompute") for node in nodes_of(net, (8, 64))}
        self.assertEqual(list(kept.values()), [True, False, None])

    def test_wrappers(self):
        for wrapper in (nn.PipelineCell, nn.GradAccumulationCell):
            for size, error in ((1.0, TypeError), ("2", TypeError), (True, TypeError), (0, ValueError), (-1, ValueError)):
                with self.subTest(wrapper=wrapper.__name__, size=size), self.assertRaises(error):
                    wrapper(Mlp(), size)
        self.assertEqual(nn.PipelineCell(Mlp(), 4).options(), {"micro_batches": 4})
        self.assertEqual(nn.GradAccumulationCell(Mlp(), 2).options(), {"accumulate": 2})
        with self.assertRaisesRegex(ValueError, "8 samples cannot be cut into 3"):
            nodes_of(nn.PipelineCell(Mlp(), 3), (8, 64))
        self.assertEqual(nodes_of(nn.PipelineCell(Mlp(), 2), (8, 64))[0].name, "layers.0.matmul")

    def test_functional_shard(self):
        net = Mlp()
        with self.assertRaises(AssertionError):
            net.shard(((8, 1),))
        hcclsim.reset_auto_parallel_context()
        hcclsim.set_context(mode=hcclsim.PYNATIVE_MODE)
        hcclsim.set_auto_parallel_context(parallel_mode="auto_parallel", search_mode="sharding_propagation", device_num=8)
        for options, error in (
            ({"in_strategy": [(8, 1)]}, TypeError),
            ({"in_strategy": ((8, 1),), "out_strategy": [1]}, TypeError),
            ({"in_strategy": ((8, 1),), "parameter_plan": []}, TypeError),
            ({"in_strategy": ((8, 1),), "parameter_plan": {"head.weight": [1, 8]}}, TypeError),
            ({"in_strategy": ((8, 1),), "parameter_plan": {"head.weight": (1, 7)}}, ValueError),
            ({"in_strategy": ((8, 1),), "device": 3}, TypeError),
            ({"in_strategy": ((8, 1),), "level": "0"}, TypeError),
            ({"in_strategy": ([8, 1],)}, TypeError),
            ({"in_strategy": (("8", 1),)}, TypeError),
            ({"in_strategy": ((0, 1),)}, ValueError),
            ({"in_strategy": (Layout((8,), ("a",))("a", "None"),)}, TypeError),
            ({"in_strategy": ((8, 1),), "parameter_plan": {"head.weight": (1, 0)}}, ValueError),
            ({"in_strategy": ((8, 1),), "parameter_plan": {"head.weight": (1, "8")}}, TypeError),
        ):
            with self.subTest(options=options), self.assertRaises(error):
                net.shard(**options)
        with self.assertWarnsRegex(UserWarning, "no parameter 'tail'"):
            net.shard(((8, 1),), parameter_plan={"tail": (1,), "head.weight": (1, 8)})
        text = description.strategy_text(tracing.describe(net, [Tensor((8, 64))]))
        self.assertIn("[[shard]]", text)
        self.assertIn('"head.weight" = [1, 8]', text)
        with self.assertWarnsRegex(UserWarning, "head.weight has the plan .1, 8. already, which stays"):
            net.shard(((1, 8),), parameter_plan={"head.weight": (1, 4)})
        text = description.strategy_text(tracing.describe(net, [Tensor((8, 64))]))
        self.assertIn('"head.weight" = [1, 8]', text)
        self.assertIn("in_strategy = [[1, 8]]", text)

    def test_functional_shard_of_functions(self):
        hcclsim.reset_auto_parallel_context()
        with self.assertRaises(AssertionError):
            hcclsim.shard(Mlp(), ((8, 1),))
        hcclsim.set_context(mode=hcclsim.PYNATIVE_MODE)
        hcclsim.set_auto_parallel_context(parallel_mode="auto_parallel", search_mode="sharding_propagation", device_num=8)
        with self.assertWarnsRegex(UserWarning, 'dataset_strategy is "full_batch"'):
            hcclsim.shard(Mlp(), ((8, 1),))
        self.assertEqual(hcclsim.get_auto_parallel_context("dataset_strategy"), "full_batch")

        class Halves(nn.Cell):
            def __init__(self, shard):
                super().__init__()
                self.fc1, self.fc2 = nn.Dense(64, 32), nn.Dense(32, 64)
                self.pair = hcclsim.shard(self.both, ((1, 8),)) if shard else self.both
                self.fc3 = nn.Dense(64, 16)

            def both(self, x):
                return self.fc2(self.fc1(x))

            def construct(self, x):
                return self.fc3(self.pair(x))

        text = description.strategy_text(tracing.describe(Halves(True), [Tensor((8, 64))]))
        self.assertIn('operators = ["matmul", "matmul_1"]', text)  # of cells that have no names yet
        figures = [hcclsim.run(model=Halves(shard), inputs=Tensor((8, 64)), uncertainty=False) for shard in (True, False)]
        self.assertEqual(figures[0].parallel.schedule, figures[1].parallel.schedule)
        self.assertNotEqual(figures[0].step_time_s, figures[1].step_time_s)
        for arguments, error in (((3, ((8, 1),)), TypeError), ((print, ((8, 1),), None, {"w": (1,)}), TypeError)):
            with self.assertRaises(error):
                hcclsim.shard(*arguments)
        with self.assertRaisesRegex(hcclsim.BadInput, "has 16 parts for 8 devices"):
            net = Halves(False)
            net.fc1.shard(((16, 1),))
            hcclsim.run(model=net, inputs=Tensor((16, 64)))

    def test_parameters_on_servers(self):
        net = Mlp()
        net.head.set_param_ps()
        nn.name_parts(net)
        self.assertEqual([parameter.name for parameter in nn.parameters_on_servers(net)], ["head.weight", "head.bias"])
        with self.assertRaises(TypeError):
            net.set_param_ps(recurse=1)


@unittest.skipUnless(importlib.util.find_spec("onnx"), "the package onnx is not installed")
class Runs(Forgetting):
    def test_strategies_of_primitives(self):
        net = Mlp()
        net.head.matmul.shard((Layout((2, 4), ("dp", "mp"))("dp", "mp"), Layout((2, 4), ("dp", "mp"))("None", "mp")))
        text = description.strategy_text(tracing.describe(net, [Tensor((8, 64))]))
        self.assertIn("device_matrix = [2, 4]", text)
        self.assertIn('strategy = [["dp", "mp"], ["None", "mp"]]', text)

    def test_neighbours_that_share_statistics(self):
        norm = nn.BatchNorm2d(16)
        norm.bn.shard(((8, 1, 1, 1), (1,), (1,))).add_prim_attr("group_size", 2)
        text = description.strategy_text(tracing.describe(norm, [Tensor((8, 16, 4, 4))]))
        self.assertIn("strategy = [[8, 1, 1, 1], [1], [1]]\ngroup_size = 2\n", text)

    def test_files(self):
        with tempfile.TemporaryDirectory() as folder:
            keywords = description.write(Mlp(), [Tensor((8, 64))], Path(folder))
            self.assertEqual((list(keywords), keywords["batch"]), (["model", "batch"], 8))
            import onnx

            model = onnx.load(str(keywords["model"]), load_external_data=False)
            self.assertEqual([node.name for node in model.graph.node][:2], ["layers.0.matmul", "layers.0.activation"])
            self.assertEqual(model.graph.initializer[0].name, "layers.0.weight")

    def test_a_step(self):
        result = hcclsim.run(model=Mlp(), inputs=[Tensor((8, 64))])
        self.assertEqual((result.npus, result.model), (8, "Mlp.onnx"))
        self.assertEqual(result, hcclsim.run(model=Mlp(), inputs=Tensor((8, 64))))  # whatever the folder was
        self.assertEqual(result.gradients.column("bytes").sum(), 4 * (4 * (64 * 64 + 64) + 64 * 10 + 10))

    def test_strategies_count(self):
        net = Mlp(features=1024)
        plain = hcclsim.run(model=net, inputs=[Tensor((64, 1024))])
        for layer in net.layers:
            layer.matmul.shard(((1, 1), (8, 1)))
        cut = hcclsim.run(model=net, inputs=[Tensor((64, 1024))])
        self.assertLess(cut.hbm_peak_bytes, plain.hbm_peak_bytes)

    def test_a_pipeline(self):
        hcclsim.set_auto_parallel_context(pipeline_stages=2)
        net = Mlp()
        for number, layer in enumerate(net.layers):
            layer.pipeline_stage = number // 2
        net.head.pipeline_stage = 1
        result = hcclsim.run(model=nn.PipelineCell(net, 4), inputs=[Tensor((32, 64))])
        self.assertEqual((result.parallel.stages, result.parallel.micro_batches), (2, 4))

    def test_a_pipeline_of_cells_without_numbers(self):
        class Net(nn.Cell):
            def __init__(self):
                super().__init__()
                self.encoder = nn.Dense(64, 128)
                self.relu = ops.ReLU()
                self.decoder = nn.Dense(128, 10)

            def construct(self, x):
                return self.decoder(self.relu(self.encoder(x)))

        hcclsim.set_auto_parallel_context(pipeline_stages=2)
        net = Net()
        net.encoder.pipeline_stage = 0
        net.decoder.pipeline_stage = 1
        result = hcclsim.run(model=nn.PipelineCell(net, 4), inputs=[Tensor((32, 64))])
        self.assertEqual([list(stage.layers) for stage in result.stages], [[1], [1]])
        # A micro-batch of 8 samples on 4 ranks of a stage, 128 numbers each, forward and backward.
        sent = sum(row.bytes_per_rank for row in result.traffic if row.kind == "send" and row.stage == 0)
        self.assertEqual(sent % (4 * 128), 0)
        self.assertGreater(sent, 0)
        net.decoder.pipeline_stage = 0
        with self.assertRaises(hcclsim.errors.PipelineError):
            hcclsim.run(model=nn.PipelineCell(net, 4), inputs=[Tensor((32, 64))])

    def test_recomputed_cells_with_options(self):
        for options in ({}, {"mp_comm_recompute": False}):
            net = Mlp()
            net.layers.recompute(**options)
            self.assertGreater(hcclsim.run(model=net, inputs=[Tensor((64, 64))]).step_time_s, 0)
        net = Mlp()
        net.layers[0].recompute(mp_comm_recompute=False)
        net.layers[1].recompute()
        with self.assertRaisesRegex(ValueError, "cells differ in mp_comm_recompute"):
            hcclsim.run(model=net, inputs=[Tensor((64, 64))])

    def test_shapes_are_ints(self):
        for shape in (3, "ab", ("a",), (2.5, 3), (True,), [[1]]):
            with self.subTest(shape=shape), self.assertRaisesRegex(TypeError, "a shape"):
                Tensor(shape)

    def test_a_network_computes(self):
        class Same(nn.Cell):
            def construct(self, x):
                return x

        with self.assertRaisesRegex(ValueError, "computes nothing"):
            hcclsim.run(model=Same(), inputs=Tensor((8, 64)))

    def test_inputs_are_tensors(self):
        for wrong, error in (([(8, 64)], TypeError), ("ab", TypeError), ([Tensor(())], ValueError)):
            with self.subTest(inputs=wrong), self.assertRaises(error):
                hcclsim.run(model=Mlp(), inputs=wrong)
        self.assertEqual(hcclsim.run(model=Mlp(), inputs=Tensor((8, 64))).batch, 8)

    def test_inputs_are_needed(self):
        with self.assertRaisesRegex(ValueError, "shapes of its inputs"):
            hcclsim.run(model=Mlp())
        net = Mlp()
        net.set_inputs(Tensor((8, 64)))
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            hcclsim.run(model=net)


if __name__ == "__main__":
    unittest.main()
