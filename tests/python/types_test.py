"""What mypy --strict says of a program that uses the package, and of the package; and that results have the fields and types
that it believes."""

import keyword
import os
import subprocess
import sys
import tempfile
import textwrap
import typing
import unittest
from pathlib import Path

import hcclsim
from hcclsim import records, reports

PACKAGES = Path(hcclsim.__file__).parents[1]

PROGRAM = textwrap.dedent(
    """
    import numpy
    import hcclsim

    result = hcclsim.run(model="lenet", npus=2, split_by_size=[80, 20], hcom_parallel=True)
    reveal_type(result.step_time_s)
    reveal_type(result.trace.allreduce[0].start_s)
    reveal_type(result.segments[0].bytes)
    reveal_type(hcclsim.tune(model="lenet").best.by_idx)
    reveal_type(hcclsim.measure("allreduce", size="1M").rows[0].algbw_Bps)
    reveal_type(hcclsim.search(model="lenet", npus=2, global_batch=4).pareto[0].command)
    reveal_type(hcclsim.schedule.time("s.txt"))
    points = hcclsim.sweep.run("s.db", "run", {"batch": [1, 2]})
    reveal_type(points[0])
    state = hcclsim.powerSGD_hook.PowerSGDState(matrix_approximation_rank=2)
    hcclsim.register_comm_hook(state, hcclsim.powerSGD_hook.powerSGD_hook)
    image = hcclsim.Tensor(numpy.zeros((2, 3)))
    total: float = result.step_time_s + points.column("step_time_s").sum()
    reveal_type(hcclsim.schedule.time("s.txt").schedules[0].time_s)
    reveal_type(hcclsim.schedule.check("s.txt").ok)
    reveal_type(hcclsim.networks.show("lenet").layers[0].operator)
    reveal_type(hcclsim.networks.listing()[0].title)
    reveal_type(hcclsim.platform.show().links[0].used_Bps)
    reveal_type(hcclsim.show_plan(model="lenet").roles[0].streams)
    reveal_type(points[0].step_time_s)
    reveal_type(hcclsim.read_checkpoint("w.ckpt")["tensors"]["weights"]["fc.weight"].ndim)
    sizes: list[int] = [1, 2]
    cuts = [*hcclsim.segments(numpy.array(sizes), by_size=[50, 50]), *hcclsim.segments(sizes)]


    class Net(hcclsim.nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.fc1 = hcclsim.nn.Dense(784, 512)
            self.relu = hcclsim.ops.ReLU()
            self.fc2 = hcclsim.nn.Dense(512, 10)

        def construct(self, x: hcclsim.Tensor) -> hcclsim.Tensor:
            return self.fc2(self.relu(self.fc1(x)))


    class Two(hcclsim.nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.net = Net()

        def construct(self, x: hcclsim.Tensor, y: hcclsim.Tensor) -> tuple[hcclsim.Tensor, hcclsim.Tensor]:
            return self.net(x), self.net(y)


    reveal_type(Two()(image, image))
    hcclsim.run(model=Net(), inputs=[image])
    """
)

#: A line each that is wrong.
WRONG = """
import hcclsim
result = hcclsim.run(model="lenet")
hcclsim.run(model=3)
hcclsim.nothing
result.step_time
result.segments[0].nonsense
result.trace.bp_end
hcclsim.tune(model="lenet").best.nonsense
hcclsim.measure().rows[0].time
hcclsim.schedule.time("s.txt").time_s
hcclsim.schedule.check("s.txt").okay
hcclsim.networks.show("lenet").layer
hcclsim.platform.show().npu
hcclsim.show_plan().role
hcclsim.run(model=hcclsim.nn.ReLU(), inputs=[3])
"""


def some_results():
    """A result of every function, with many of the parts that options add."""
    lenet = {"model": "lenet", "npus": 4}
    yield hcclsim.run(**lenet, advice=True, explain=True, explain_memory=True, links=3, hcom_parallel=True, fault="npu[1].late=1ms")
    yield hcclsim.run(**lenet, exec="eager", jitter=0.1, iterations=5, loss_scale="dynamic", data_images_per_s=100)
    yield hcclsim.run(**lenet, mtbf="1000d", restart_time="1m", job_time="1m", checkpoint_every=2, checkpoint_bandwidth=1e9)
    yield hcclsim.run(**lenet, batch=2, numerics=True, iterations=2, check_gradients=True, compress="powersgd:start=2")
    yield hcclsim.run(**lenet, mode="ps", servers=2, numerics=True, batch=2, ps_async=True)
    yield hcclsim.run(model="wide-deep", mode="ps", npus=4, servers=2, vocab_cache_size=4096, batch=64)
    gpt = {"model": "gpt2-small", "layers": 4, "sequence": 64, "batch": 4, "npus": 8, "stages": 2, "micro_batches": 4}
    yield hcclsim.run(**gpt, model_parallel=2, context_parallel=2, comm_reuse=32)
    yield hcclsim.run(model="tinymoe", npus=8, expert_parallel=4)
    for chosen in ({"hcom_parallel": True, "explain": True}, {"compress": "powersgd:start=2"}, {"streams": "2-shared"}):
        yield hcclsim.tune(**lenet, **chosen)
    yield hcclsim.tune(**gpt)
    yield hcclsim.search(model="tinygpt", npus=2, global_batch=4)
    yield hcclsim.search(model="tinygpt", npus=2, mode="exact")
    yield hcclsim.measure(size="1M", explain=True, links=2)
    ring, mesh = (hcclsim.schedule.generate("allreduce", algorithm=one, bytes="64K") for one in ("ring", "mesh-one-shot"))
    yield hcclsim.schedule.time(ring, mesh, together=True, links=1)
    yield from (function(ring) for function in (hcclsim.schedule.check, hcclsim.schedule.execute, hcclsim.schedule.show))
    yield hcclsim.schedule.show(ring, ranks="all")
    yield hcclsim.schedule.diff(ring, ring)
    yield hcclsim.platform.show(route="0:5")
    yield hcclsim.networks.listing()
    yield from (hcclsim.networks.show("lenet", **{part: True}) for part in ("operators", "parameters", "gradients", "kernels"))
    yield hcclsim.show_plan(**gpt, exec="eager", data_images_per_s=1000)
    yield hcclsim.check_plan(**gpt)


def fits(value, hint):
    """Whether a value is of a type, as far as a result has it."""
    inner = typing.get_args(hint)
    if hint in (object, typing.Any):
        return True
    if typing.get_origin(hint) is typing.Union:
        return any(fits(value, one) for one in inner)
    if typing.get_origin(hint) in (list, records.Records):
        return isinstance(value, list) and all(fits(one, inner[0]) for one in value)
    if typing.get_origin(hint) is dict:
        return isinstance(value, dict) and all(fits(one, inner[1]) for one in value.values())
    if hint in (int, float):
        return isinstance(value, (int, hint)) and not isinstance(value, bool)
    return isinstance(value, hint)


def mypy(path):
    environment = {**os.environ, "MYPYPATH": str(PACKAGES)}
    with tempfile.TemporaryDirectory() as cache:
        words = ["/usr/bin/mypy", "--strict", f"--cache-dir={cache}", str(path)]
        done = subprocess.run(words, capture_output=True, text=True, env=environment, check=False, cwd=cache)
    return done.stdout.splitlines()


class Types(unittest.TestCase):
    def test_a_program_is_checked(self):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "program.py")
            path.write_text(PROGRAM, encoding="utf-8")
            told = mypy(path)
            self.assertEqual([line for line in told if ": error:" in line], [])
            revealed = [line.partition('is "')[2].rstrip('"').replace("builtins.", "") for line in told if "Revealed type" in line]
            self.assertEqual(
                revealed,
                [
                    "float",
                    "float",
                    "int",
                    "Union[list[int], None]",
                    "float",
                    "str",
                    "hcclsim.reports.Timing",
                    "hcclsim.reports.Point",
                    "float",
                    "bool",
                    "str",
                    "str",
                    "float",
                    "list[str]",
                    "float",
                    "int",
                    "Tuple[hcclsim.tracing.Tensor, hcclsim.tracing.Tensor]",
                ],
            )

    def test_typos_are_errors(self):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "program.py")
            path.write_text(WRONG, encoding="utf-8")
            wrong = [int(line.split(":")[1]) for line in mypy(path) if ": error:" in line]
            self.assertEqual(wrong, list(range(4, 1 + len(WRONG.splitlines()))))

    def test_the_package_itself(self):
        with tempfile.TemporaryDirectory() as cache:
            words = ["/usr/bin/mypy", "--strict", f"--cache-dir={cache}", "-p", "hcclsim"]
            done = subprocess.run(words, capture_output=True, text=True, check=False, cwd=PACKAGES)
        self.assertRegex(done.stdout, "^Success: no issues found")

    def test_stubs_say_no_any(self):
        for stub in (PACKAGES / "hcclsim").glob("*.pyi"):
            self.assertNotRegex(stub.read_text(encoding="utf-8"), r"\bAny\b", stub.name)


class Fields(unittest.TestCase):
    def test_all_are_declared(self):
        for made in some_results():
            self.expect_declared(made)

    def expect_declared(self, found):
        """All fields of records are declared, with their types, but for those of open ones."""
        for record in found if isinstance(found, list) else [found]:
            if not isinstance(record, (dict, list)):
                continue
            if isinstance(record, list):
                self.expect_declared(record)
                continue
            kind = type(record)
            declared = typing.get_type_hints(kind, vars(sys.modules[kind.__module__]))
            for key, value in record.items():
                with self.subTest(kind=kind.__name__, key=key):
                    if kind not in (records.OpenRecord, reports.Point, reports.ShownSchedule) and not keyword.iskeyword(key):
                        self.assertIn(key, declared)
                    self.assertTrue(fits(value, declared.get(key, object)), f"{value!r} is no {declared.get(key)}")
                self.expect_declared(value)


if __name__ == "__main__":
    if not Path("/usr/bin/mypy").exists() and os.environ.get("HCCLSIM_CI") != "1":
        sys.exit("mypy is not installed")
    unittest.main()
