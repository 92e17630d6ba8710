"""Strategies of operators of networks that are described in Python: what the command makes of them."""

import tempfile
import unittest
from pathlib import Path

import hcclsim
from hcclsim import Layout, Parameter, Tensor, description, nn, ops


class Strategies(unittest.TestCase):
    def setUp(self):
        hcclsim.reset()
        self.addCleanup(hcclsim.reset)
        hcclsim.set_auto_parallel_context(parallel_mode="semi_auto_parallel", device_num=8)

    def test_strategies_beside_reshapes_and_operators_of_no_kind(self):
        class Fields(nn.Cell):
            def __init__(self):
                super().__init__()
                self.table = nn.Embedding(64, 16)
                self.flat = ops.Flatten()
                self.fc = nn.Dense(64, 32)
                self.gate, self.product = ops.Sigmoid(), ops.Mul()

            def construct(self, ids):
                x = self.fc(self.flat(self.table(ids)))
                return self.product(x, self.gate(x))

        def step_of(change):
            net = Fields()
            change(net)
            return hcclsim.run(model=net, inputs=Tensor((32, 4), dtype="int64"), npus=4, uncertainty=False)

        hcclsim.set_auto_parallel_context(device_num=4)
        plain = step_of(lambda net: None)
        # Cut by samples as they are without strategies, nothing is sent; by outputs the products are gathered.
        self.assertEqual(step_of(lambda net: net.fc.matmul.shard(((4, 1), (1, 1)))).compute_s, plain.compute_s)
        self.assertGreater(step_of(lambda net: net.fc.matmul.shard(((1, 1), (4, 1)))).step_time_s, 0)
        by_hand = step_of(lambda net: net.table.gather.shard(((4, 1), (1, 4))).add_prim_attr("manual_split", (10, 20, 30, 4)))
        self.assertGreater(by_hand.step_time_s, 0)
        with self.assertWarnsRegex(UserWarning, "shard.. of flat, a Flatten, has no effect"):
            step_of(lambda net: net.flat.shard(((4, 1, 1),)))
        with self.assertRaisesRegex(hcclsim.BadInput, "what the operator does along other axes"):
            step_of(lambda net: net.gate.shard(((1, 4),)))

    def test_weights_of_products_are_inputs_by_outputs(self):
        class Product(nn.Cell):
            def __init__(self, *axes):
                super().__init__()
                self.w = Parameter((64, 32), "w")
                self.product, self.head = ops.MatMul(), nn.Dense(32, 8)
                if axes:
                    self.product.shard(*axes)

            def construct(self, x):
                return self.head(self.product(x, self.w))

        class Turned(nn.Cell):
            def __init__(self, strategy):
                super().__init__()
                self.product, self.head = nn.Dense(64, 32, has_bias=False), nn.Dense(32, 8)
                self.product.matmul.shard(strategy)

            def construct(self, x):
                return self.head(self.product(x))

        class Rows(nn.Cell):
            def __init__(self, strategy):
                super().__init__()
                self.w = Parameter((32, 64), "w")
                self.product, self.head = ops.MatMul(transpose_b=True), nn.Dense(32, 8)
                self.product.shard(strategy)

            def construct(self, x):
                return self.head(self.product(x, self.w))

        def step(cell, *shape):
            return hcclsim.run(model=cell, inputs=Tensor(shape or (32, 64)), uncertainty=False).step_time_s

        layout = Layout((2, 4), ("dp", "mp"))
        self.assertEqual(step(Product(((2, 1), (1, 4)))), step(Turned(((2, 1), (4, 1)))))
        self.assertEqual(step(Product((layout("dp", "None"), layout("None", "mp")))), step(Turned(((2, 1), (4, 1)))))
        self.assertEqual(step(Product(((2, 4), (4, 1)))), step(Turned(((2, 4), (1, 4)))))
        self.assertEqual(step(Rows(((2, 4), (1, 4)))), step(Turned(((2, 4), (1, 4)))))
        with self.assertRaisesRegex(hcclsim.BadInput, "must be cut alike"):
            step(Product(((2, 1), (4, 1))))  # of what is added up all tensors are cut alike
        # Three axes are samples, positions and features.
        self.assertEqual(step(Product(((2, 1, 1), (1, 4))), 32, 10, 64), step(Product(((2, 1), (1, 4))), 32, 10, 64))

    def test_attention_of_primitives(self):
        class Attention(nn.Cell):
            def __init__(self):
                super().__init__()
                self.query, self.key, self.value, self.output = (nn.Dense(64, 64) for _ in range(4))
                self.scores, self.softmax, self.weighted = ops.BatchMatMul(), ops.Softmax(), ops.BatchMatMul()

            def construct(self, x):
                batch, rows, features = x.shape
                heads = [
                    ops.Transpose(order)(ops.Reshape((batch, rows, 8, features // 8))(dense(x)))
                    for dense, order in ((self.query, (0, 2, 1, 3)), (self.key, (0, 2, 3, 1)), (self.value, (0, 2, 1, 3)))
                ]
                found = self.weighted(self.softmax(self.scores(heads[0], heads[1])), heads[2])
                return x + self.output(ops.Reshape((batch, rows, features))(ops.Transpose((0, 2, 1, 3))(found)))

        def text_of(cell):
            with tempfile.TemporaryDirectory() as folder:
                found = description.write(cell, [Tensor((16, 12, 64))], Path(folder))
                self.assertGreater(hcclsim.run(model=cell, inputs=Tensor((16, 12, 64)), uncertainty=False).step_time_s, 0)
                return found["strategy"].read_text(encoding="utf-8")

        cell = Attention()
        cell.scores.shard(((2, 4, 1, 1), (2, 4, 1, 1)))
        cell.softmax.shard(((2, 4, 1, 1),))
        self.assertEqual(text_of(cell), '["softmax"]\nstrategy = [[2, 1, 4], [2, 1, 4], [2, 1, 4]]\n')
        layout = Layout((2, 4), ("dp", "mp"))
        cell = Attention()
        cell.weighted.shard((layout("dp", "mp", "None", "None"), layout("dp", "mp", "None", "None")))
        self.assertIn('strategy = [["dp", "None", "mp"], ["dp", "None", "mp"], ["dp", "None", "mp"]]', text_of(cell))
        for strategy, message in ((((2, 1, 4, 1), (2, 1, 1, 1)), "not positions"), (((4, 2, 1, 1),) * 2, "are one attention")):
            cell = Attention()
            cell.softmax.shard(((2, 4, 1, 1),))
            cell.scores.shard(strategy)
            with self.assertRaisesRegex(ValueError, message):
                text_of(cell)
        # What is set for a cell counts for the operators that the command makes of it.
        cell = Attention()
        cell.recompute()
        self.assertIn('["softmax"]\nrecompute = true\n', text_of(cell))

    def test_parts_of_other_operators(self):
        class Biased(nn.Cell):
            def __init__(self):
                super().__init__()
                self.w, self.b = Parameter((64, 32), "w"), Parameter((32,), "b")
                self.product, self.add, self.head = ops.MatMul(), ops.Add(), nn.Dense(32, 8)

            def construct(self, x):
                return self.head(self.add(self.product(x, self.w), self.b))

        net = Biased()
        net.product.shard(((2, 1), (1, 4)))
        net.add.shard(((2, 4), (4,)))
        with self.assertWarnsRegex(UserWarning, "what is set for add has no effect"):
            self.assertGreater(hcclsim.run(model=net, inputs=Tensor((32, 64)), uncertainty=False).step_time_s, 0)

    def test_a_dense_of_three_axes(self):
        class Deep(nn.Cell):
            def __init__(self):
                super().__init__()
                self.a, self.b = nn.Dense(64, 64), nn.Dense(64, 64)

            def construct(self, x):
                return self.b(self.a(x))

        net = Deep()
        net.a.matmul.shard(((2, 1), (4, 1)))
        self.assertGreater(hcclsim.run(model=net, inputs=Tensor((32, 10, 64)), uncertainty=False).step_time_s, 0)

    def test_real_numbers_are_those_without_strategies(self):
        class Deep(nn.Cell):
            def __init__(self):
                super().__init__()
                self.w = Parameter((64, 32), "w")
                self.first, self.relu, self.product, self.last = nn.Dense(64, 64), ops.ReLU(), ops.MatMul(), nn.Dense(32, 16)

            def construct(self, x):
                return self.last(self.product(self.relu(self.first(x)), self.w))

        def losses(change=lambda net: None):
            net = Deep()
            change(net)
            run = hcclsim.run(model=net, inputs=Tensor((8, 5, 64)), numerics=True, iterations=3, uncertainty=False)
            return list(run.losses())

        plain = losses()
        for change in (
            lambda net: net.first.matmul.shard(((2, 1), (4, 1))),
            lambda net: net.product.shard(((2, 1, 1), (1, 4))),
            lambda net: (net.first.matmul.shard(((2, 1), (4, 1))), net.product.shard(((2, 1, 4), (4, 1)))),
        ):
            for found, expected in zip(losses(change), plain):
                self.assertAlmostEqual(found, expected, delta=1e-3 * expected)

    def test_pairs_of_products_have_one_sum(self):
        class Pair(nn.Cell):
            def __init__(self):
                super().__init__()
                self.up, self.relu, self.down = nn.Dense(64, 256), ops.ReLU(), nn.Dense(256, 64)

            def construct(self, x):
                return self.down(self.relu(self.up(x)))

        net = Pair()
        net.up.matmul.shard(((2, 1), (4, 1)))
        net.relu.shard(((2, 1, 4),))
        net.down.matmul.shard(((2, 4), (1, 4)))
        plan = hcclsim.show_plan(model=net, inputs=Tensor((16, 10, 64)))
        forward = [one.name for one in plan.collectives if one.name.endswith(":forward")]
        # The batch, of which every device reads a part, and the sum; not what is between the products.
        self.assertEqual(forward, ["up.input.all_gather:forward", "down.all_reduce:forward"])


if __name__ == "__main__":
    unittest.main()
