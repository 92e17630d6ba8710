#!/usr/bin/env python3
"""Runs text-driven cases: what a command line prints, its exit status and the files that it leaves (tests/README.md).

A case file is a list of steps that share a fresh temporary folder, which is also their working directory:

    # Comment.
    $ hcclsim run --model resnet5 > /dev/null      a line for sh; the step expects status 0 unless it says otherwise
    status 2
    stdout is NAME                                 equals tests/golden/NAME
    stdout is empty
    stderr contains TEXT                           also: lacks TEXT, matches REGEX (each ^ and $ stand at a line's ends)
    file timeline.json exists                      also: absent, and all that is said of stdout

{tmp}, {data} and {platforms} stand for the temporary folder, tests/data and platforms, here and in golden files.
Trailing white space does not count in these lines, and there is no quoting in them.
"""

import argparse
import difflib
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]
TIMEOUT_S = 240


class Failure(Exception):
    """An expectation that was not met."""


class Case:
    """One case file being run."""

    def __init__(self, path, hcclsim, tmp, update):
        self.path = path
        self.tmp = tmp
        self.update = update
        self.places = {"{tmp}": str(tmp), "{data}": str(TESTS / "data"), "{platforms}": str(TESTS.parent / "platforms")}
        # What users set of HCCL changes what the command does.
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("HCCL_")}
        self.environment = {**inherited, "PATH": f"{hcclsim.resolve().parent}:{os.environ['PATH']}", "LC_ALL": "C"}
        self.environment.pop("RANK_TABLE_FILE", None)  # a default of hcclsim run

    def expand(self, text):
        for name, place in self.places.items():
            text = text.replace(name, place)
        return text

    def hide_places(self, text):
        for name, place in self.places.items():
            text = text.replace(place, name)
        return text

    def run(self):
        steps = 0
        status, outputs = None, {}
        for number, line in enumerate(self.path.read_text(encoding="utf-8").splitlines(), 1):
            line = line.rstrip()
            if not line or line.startswith("#"):
                continue
            try:
                if line.startswith("$ "):
                    self.expect_success(status)
                    steps += 1
                    status, outputs = self.execute(self.expand(line[2:]))
                elif steps == 0:
                    raise Failure("an expectation before the first command")
                elif line.startswith("status "):
                    self.expect_status(int(line[len("status ") :]), status, outputs)
                    status = None
                else:
                    self.expect(line, outputs)
            except Failure as failure:
                raise Failure(f"{self.path}:{number}: {line}\n{failure}") from None
        if steps == 0:
            raise Failure(f"{self.path}: no command")
        try:
            self.expect_success(status)
        except Failure as failure:
            raise Failure(f"{self.path}: last command\n{failure}") from None

    def execute(self, command):
        done = subprocess.run(
            ["sh", "-c", command],
            cwd=self.tmp,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            timeout=TIMEOUT_S,
            check=False,
        )
        texts = {"stdout": done.stdout.decode(), "stderr": done.stderr.decode()}
        return (done.returncode, texts["stderr"]), {name: self.hide_places(text) for name, text in texts.items()}

    @staticmethod
    def expect_success(status):
        """The status of a step that stated none. `status` is None where one was stated."""
        if status is not None and status[0] != 0:
            raise Failure(f"the command before ended with status {status[0]}: {status[1]}")

    @staticmethod
    def expect_status(expected, status, outputs):
        if status is None:
            raise Failure("a second status for one command")
        if status[0] != expected:
            raise Failure(f"ended with status {status[0]}\nstdout: {outputs['stdout']}\nstderr: {outputs['stderr']}")

    def expect(self, line, outputs):
        words = line.split(" ", 1)
        if words[0] in outputs and len(words) == 2:
            self.expect_text(words[1], outputs[words[0]])
            return
        match = re.fullmatch(r"file (\S+) (.+)", line)
        if match is None:
            raise Failure("not understood; see tests/cases/run_case.py")
        file = self.tmp / self.expand(match[1])
        if match[2] == "absent":
            if file.exists():
                raise Failure("it exists")
            return
        if not file.exists():
            raise Failure(f"there is no such file; there are {sorted(path.name for path in self.tmp.iterdir())}")
        if match[2] != "exists":
            self.expect_text(match[2], self.hide_places(file.read_text(encoding="utf-8")))

    def expect_text(self, expectation, text):
        verb, _, operand = expectation.partition(" ")
        operand = self.hide_places(operand)
        if verb == "is" and operand:
            self.expect_golden(operand, text)
        elif verb == "contains" and operand:
            if operand not in text:
                raise Failure(f"it is:\n{text}")
        elif verb == "lacks" and operand:
            if operand in text:
                raise Failure(f"it is:\n{text}")
        elif verb == "matches" and operand:
            if not re.search(operand, text, re.MULTILINE):
                raise Failure(f"it is:\n{text}")
        else:
            raise Failure("not understood; see tests/cases/run_case.py")

    def expect_golden(self, name, text):
        if name == "empty":
            if text:
                raise Failure(f"it is:\n{text}")
            return
        golden = TESTS / "golden" / name
        if self.update:
            golden.parent.mkdir(parents=True, exist_ok=True)
            golden.write_text(text, encoding="utf-8")
            return
        if not golden.exists():
            raise Failure(f"there is no tests/golden/{name}; --update writes it")
        expected = golden.read_text(encoding="utf-8")
        if text != expected:
            difference = difflib.unified_diff(
                expected.splitlines(True), text.splitlines(True), f"tests/golden/{name}", "printed"
            )
            raise Failure("".join(difference))


def run_case(path, hcclsim, update=False):
    """Runs one case file; raises Failure at the first expectation that is not met."""
    with tempfile.TemporaryDirectory(prefix="hcclsim-case-") as tmp:
        Case(path, hcclsim, Path(tmp), update).run()


def main():
    parser = argparse.ArgumentParser(description="Runs text-driven cases (tests/cases/*.case).")
    parser.add_argument("--hcclsim", type=Path, default=TESTS.parent / "build/release/hcclsim", help="the command")
    parser.add_argument("--update", action="store_true", help="write the golden files instead of comparing")
    parser.add_argument("cases", nargs="*", type=Path, metavar="FILE.case", help="default: all")
    options = parser.parse_args()
    failed = 0
    for path in options.cases or sorted((TESTS / "cases").glob("*.case")):
        try:
            run_case(path, options.hcclsim, options.update)
        except (Failure, subprocess.TimeoutExpired, OSError, ValueError) as failure:
            failed += 1
            print(failure, file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
