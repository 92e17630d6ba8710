"""What mypy --strict says of a program that uses the package, and of the package."""

import os
import subprocess
import sys
import tempfile
import textwrap
import unittest
from pathlib import Path

import hcclsim

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
    """
)


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
                    "hcclsim.records.Record",
                    "hcclsim.records.Record",
                ],
            )
            path.write_text("import hcclsim\nhcclsim.run(model=3)\nhcclsim.nothing\n", encoding="utf-8")
            self.assertEqual(len([line for line in mypy(path) if ": error:" in line]), 2)

    def test_stubs_say_no_any(self):
        for stub in (PACKAGES / "hcclsim").glob("*.pyi"):
            self.assertNotRegex(stub.read_text(encoding="utf-8"), r"\bAny\b", stub.name)


if __name__ == "__main__":
    if not Path("/usr/bin/mypy").exists() and os.environ.get("HCCLSIM_CI") != "1":
        sys.exit("mypy is not installed")
    unittest.main()
