"""What tests of programs for HCCL share: they are compiled with g++ as a user would, and run by `hcclsim exec`."""

import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

HCCLSIM = str(Path(sys.argv.pop(1)).resolve())
HERE = Path(__file__).resolve().parent
EXAMPLES = HERE.parents[1] / "examples" / "clients"
FOLDER = tempfile.TemporaryDirectory()
LIMIT_S = 300


def run(*words, **settings):
    return subprocess.run(words, capture_output=True, text=True, timeout=LIMIT_S, check=False, **settings)


def program(source):
    """The program of a source, compiled when it is first asked for."""
    path = Path(FOLDER.name) / source.stem
    if not path.exists():
        flags = run(HCCLSIM, "exec", "--flags").stdout.split()
        standard = ["-std=c++20"] if source.stem == "threads" else []
        done = run("g++", "-O1", "-Wall", "-Wextra", "-Werror", *standard, f"-I{HERE.parents[1]}", "-o", str(path), str(source),
                   *flags)
        if done.returncode != 0:
            raise AssertionError(done.stderr)
    return str(path)


def on_npus(processes, *words, platform="atlas800t-a2", options=(), **variables):
    return run(HCCLSIM, "exec", "--platform", platform, "-n", str(processes), *options, "--", *words,
               env={**os.environ, **variables})


class ProgramsTest(unittest.TestCase):
    maxDiff = None

    def passes(self, done):
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return done.stdout

    def passes_with_refusals(self, done):
        """Of a program that also asks for what is refused, which is told."""
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertNotIn("hcclsim: error", done.stderr)
        return done.stdout
