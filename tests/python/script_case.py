"""What tests of `hcclsim script` share."""

import json
import os
import subprocess
import tempfile
import unittest
from pathlib import Path

COMMAND = os.environ["HCCLSIM_COMMAND"]
SCRIPTS = Path(__file__).parent / "scripts"


def script(path, *options, status=0):
    """Standard output, or of a failure standard error."""
    done = subprocess.run([COMMAND, "script", str(path), *options], capture_output=True, text=True, check=False)
    if done.returncode != status:
        raise AssertionError(f"status {done.returncode}, not {status}: {done.stdout}{done.stderr}")
    return done.stderr if status else done.stdout


def run(*options):
    return json.loads(subprocess.run([COMMAND, "run", *options, "--format=json"], capture_output=True, check=True).stdout)


class ScriptTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def written(self, text):
        path = self.folder / "train.py"
        path.write_text(text, encoding="utf-8")
        return path
