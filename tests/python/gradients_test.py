"""Reduced gradients of runs with real numbers: the same however the step is spread over NPUs, and what weights move by."""

import tempfile
import unittest
from pathlib import Path

import hcclsim
import numpy

SAMPLES = 8  # of a step, on all NPUs together


def gradients(**keywords):
    """Reduced gradients of the second iteration."""
    chosen = {"iterations": 2, "amp": "O0", "uncertainty": False, "numeric_seed": 7, "data": f"synthetic:{SAMPLES}", **keywords}
    return hcclsim.run(model="tinygpt", numerics=True, keep_gradients=True, **chosen).reduced_gradients


class Layouts(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.one = gradients(npus=1, batch=SAMPLES)

    def expect_same(self, found, factor=1.0):
        """Gradients of micro-batches are added up, so that they are a multiple of those of one batch."""
        self.assertEqual(list(found), list(self.one))
        for name, gradient in self.one.items():
            largest = numpy.abs(gradient).max()
            self.assertEqual((found[name].shape, found[name].dtype), (gradient.shape, numpy.float32), name)
            numpy.testing.assert_allclose(found[name] / factor, gradient, rtol=0, atol=2e-4 * largest + 1e-7, err_msg=name)

    def test_there_is_something_to_compare(self):
        self.assertGreater(len(self.one), 10)
        self.assertTrue(all(numpy.abs(gradient).max() > 0 for gradient in self.one.values()))

    def test_data_parallel(self):
        self.expect_same(gradients(npus=4, batch=2))
        self.expect_same(gradients(npus=4, batch=2, gradients_mean=False, lr=0.0025), 4)

    def test_micro_batches(self):
        # A learning rate of half as much moves the weights as far.
        self.expect_same(gradients(npus=2, batch=4, accumulate=2, lr=0.005), 2)

    def test_stages(self):
        self.expect_same(gradients(npus=4, stages=2, micro_batches=2, micro_batch_size=2, lr=0.005), 2)

    def test_operators_that_are_cut(self):
        self.expect_same(gradients(npus=4, model_parallel=2, batch=4))

    def test_shared_parameters(self):
        for kind in ("on", "zero1", "zero3"):
            with self.subTest(optimizer_parallel=kind):
                self.expect_same(gradients(npus=4, batch=2, optimizer_parallel=kind))

    def test_a_compression_hook_gives_means(self):
        self.expect_same(gradients(npus=4, batch=2, compress="powersgd:start=5"))

    def test_without_loss_scale_and_before_clipping(self):
        self.expect_same(gradients(npus=2, batch=4, iterations=2, loss_scale="static:1024"))
        clipped = gradients(npus=2, batch=4, iterations=1, clip_norm=1e-3)
        self.assertGreater(numpy.sqrt(sum(float((gradient**2).sum()) for gradient in clipped.values())), 1e-2)


class Updates(unittest.TestCase):
    def test_sgd_moves_weights_by_them(self):
        rate = 0.5
        common = {"model": "mlp:8,6,4", "numerics": True, "batch": 4, "npus": 2, "optimizer": "sgd", "lr": rate, "uncertainty": False}
        with tempfile.TemporaryDirectory() as folder:
            weights = []
            for iterations in (1, 2):
                file = Path(folder, f"{iterations}.ckpt")
                result = hcclsim.run(**common, iterations=iterations, save=file, keep_gradients=True)
                weights.append(hcclsim.read_checkpoint(file)["tensors"]["weights"])
            for name, gradient in result.reduced_gradients.items():
                moved = (weights[0][name] - weights[1][name]) / rate
                numpy.testing.assert_allclose(moved, gradient, rtol=1e-4, atol=2e-6, err_msg=name)


class Files(unittest.TestCase):
    def test_the_file(self):
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder, "gradients")
            result = hcclsim.run(model="lenet", batch=4, npus=2, numerics=True, iterations=2, save_gradients=file, uncertainty=False)
            self.assertEqual(result.numerics.saved_gradients, str(file))
            self.assertFalse(hasattr(result, "reduced_gradients"))
            found = hcclsim.read_checkpoint(file)
            self.assertEqual((found["iteration"], list(found["tensors"])), (2, ["gradients"]))
            self.assertEqual(found["tensors"]["gradients"]["conv1.weight"].shape, (6, 1, 5, 5))
            norm = numpy.sqrt(sum(float((gradient.astype(float) ** 2).sum()) for gradient in found["tensors"]["gradients"].values()))
            self.assertAlmostEqual(norm, result.numerics.iterations[-1].gradient_norm, delta=1e-5 * norm)
            # It is no checkpoint to go on from.
            with self.assertRaises(hcclsim.errors.CheckpointError):
                hcclsim.run(model="lenet", batch=4, npus=2, numerics=True, load=file)

    def test_what_is_refused(self):
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder, "gradients")
            with self.assertRaisesRegex(hcclsim.BadInput, "needs numerics"):
                hcclsim.run(model="lenet", save_gradients=file)
            with self.assertRaisesRegex(hcclsim.BadInput, "standard output is taken"):
                hcclsim.run(model="lenet", numerics=True, save_gradients="-")
            with self.assertRaisesRegex(hcclsim.BadInput, "both write"):
                hcclsim.run(model="lenet", numerics=True, save_gradients=file, save=file)
            with self.assertRaises(hcclsim.BadInput):
                hcclsim.run(model="lenet", numerics=True, save_gradients=Path(folder, "none", "gradients"))
            self.assertFalse(file.exists())


if __name__ == "__main__":
    unittest.main()
