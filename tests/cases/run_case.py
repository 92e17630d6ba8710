#!/usr/bin/env python3
"""Runs text-driven cases: what a command line prints, its exit status and the files that it leaves (tests/README.md).

A case file is a list of blocks, each a test of its own. A block begins with a comment at the begin of the file or after
an empty line, and its name is made of the comment. Its steps share a fresh temporary folder, which is also their working
directory:

    # Comment.
    label long                                     not of every run of the tests: ./bootstrap test-long
    label memory                                   depends on the memory that the program takes: not under sanitizers
    $ hcclsim run --model resnet5 > /dev/null      a line for sh; the step expects status 0 unless it says otherwise
    status 2
    stdout is NAME                                 equals the golden file NAME
    stdout is empty
    stderr contains TEXT                           also: lacks TEXT, matches REGEX (each ^ and $ stand at a line's ends)
    file timeline.json exists                      also: absent, and all that is said of stdout

The golden files of run.case are in the folder run beside it: there `stdout is default.txt` compares with
run/default.txt. A case file names one of another with its folder, as in `stdout is run/default.txt`.

The steps of a first block with the comment "Setup" come before those of every other block of the file.

{tmp}, {data} and {platforms} stand for the temporary folder, tests/data and platforms, here and in golden files.
Trailing white space does not count in these lines, and there is no quoting in them.
"""

import argparse
import difflib
import os
import re
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]
TIMEOUT_S = 1200  # for what hangs; no measure of speed


class Failure(Exception):
    """An expectation that was not met."""


class Block:
    """Part of a case file: (line number, line) of each line that is no comment."""

    def __init__(self, name):
        self.name = name
        self.lines = []
        self.labels = []

    @property
    def golden(self):
        """Whether something that is printed is compared as a whole."""
        return any(re.match(r"(stdout|stderr|file \S+) is (?!empty$)", line) for _, line in self.lines)


def name_of(comment, taken):
    """The beginning of a comment as a word that no other block has."""
    words = re.sub(r"[^A-Za-z0-9]+", "_", comment).strip("_")
    name = words if len(words) <= 60 else words[:60].rpartition("_")[0]
    if not name:
        raise Failure(f"the comment '{comment}' names no block")
    same = sum(block.name == name or block.name.startswith(name + ".") for block in taken)
    return f"{name}.{same + 1}" if same else name


def blocks_of(path):
    """The blocks of a case file, each with the steps of its setup."""
    blocks, after_blank = [], True
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        line = line.rstrip()
        if line.startswith("#") and after_blank:
            blocks.append(Block(name_of(line[1:].strip(), blocks)))
        elif line and not line.startswith("#"):
            if not blocks:
                raise Failure(f"{path}:{number}: a block begins with a comment, which is its name")
            if line.startswith("label "):
                blocks[-1].labels.append(line[len("label ") :])
            else:
                blocks[-1].lines.append((number, line))
        after_blank = not line
    blocks = [block for block in blocks if block.lines]  # a comment alone is a remark
    if any(block.name.startswith("Setup") and (block is not blocks[0] or block.labels) for block in blocks):
        raise Failure(f"{path}: a setup is the first block, and has no label")
    if blocks and blocks[0].name == "Setup":
        setup = blocks.pop(0)
        for block in blocks:
            block.lines = setup.lines + block.lines
    if not blocks:
        raise Failure(f"{path}: no command")
    return blocks


class Case:
    """One block of a case file being run."""

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

    def run(self, block):
        steps = 0
        status, outputs = None, {}
        for number, line in block.lines:
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
            raise Failure(f"{self.path}: no command in {block.name}")
        try:
            self.expect_success(status)
        except Failure as failure:
            raise Failure(f"{self.path}: last command\n{failure}") from None

    shows_times = False

    def execute(self, command):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
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
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        if self.shows_times and seconds > 1:
            print(f"{seconds:6.1f} s  {self.path.name}: {command}", flush=True)
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
        shown = name if "/" in name else f"{self.path.stem}/{name}"
        golden = self.path.parent / shown
        if self.update:
            golden.parent.mkdir(parents=True, exist_ok=True)
            golden.write_text(text, encoding="utf-8")
            return
        if not golden.exists():
            raise Failure(f"there is no {shown} beside the case file; --update writes it")
        expected = golden.read_text(encoding="utf-8")
        if text != expected:
            difference = difflib.unified_diff(expected.splitlines(True), text.splitlines(True), shown, "printed")
            raise Failure("".join(difference))


def run_case(path, hcclsim, update=False, name=None):
    """Runs the blocks of a case file, or one; raises Failure at the first expectation that is not met."""
    blocks = [block for block in blocks_of(path) if name in (None, block.name)]
    if not blocks:
        raise Failure(f"{path}: no block {name}")
    for block in blocks:
        with tempfile.TemporaryDirectory(prefix="hcclsim-case-") as tmp:
            Case(path, hcclsim, Path(tmp), update).run(block)


def main():
    parser = argparse.ArgumentParser(description="Runs text-driven cases (tests/cases/*.case).")
    parser.add_argument("--hcclsim", type=Path, default=TESTS.parent / "build/release/hcclsim", help="the command")
    parser.add_argument("--update", action="store_true", help="write the golden files instead of comparing")
    parser.add_argument("--block", metavar="NAME", help="this block alone")
    parser.add_argument("--list", action="store_true", help="file, block, whether it has golden files, labels")
    parser.add_argument("--times", action="store_true", help="processor time of every step of more than a second")
    parser.add_argument("cases", nargs="*", type=Path, metavar="FILE.case", help="default: all")
    options = parser.parse_args()
    Case.shows_times = options.times
    failed = 0
    for path in options.cases or sorted((TESTS / "cases").glob("*.case")):
        try:
            if options.list:
                for block in blocks_of(path):
                    print(path.stem, block.name, "golden" if block.golden else "-", *block.labels)
            else:
                run_case(path, options.hcclsim, options.update, options.block)
        except (Failure, subprocess.TimeoutExpired, OSError, ValueError) as failure:
            failed += 1
            print(failure, file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
