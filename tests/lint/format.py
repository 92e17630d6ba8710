#!/usr/bin/env python3
"""Fails with a diff when a C++ file is not as clang-format 14 would write it; --fix writes it.

usage: format.py [--fix]
"""

import difflib
import os
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import repository

ROOT = Path(__file__).resolve().parents[2]


def main():
    fix = "--fix" in sys.argv[1:]
    program = shutil.which("clang-format-14") or shutil.which("clang-format")
    if program is None:
        sys.exit("clang-format-14 is not installed (./bootstrap test installs it)")

    def difference(path):
        file = ROOT / path
        before = file.read_text(encoding="utf-8")
        done = subprocess.run([program, file], stdout=subprocess.PIPE, text=True, check=True)
        if fix and done.stdout != before:
            file.write_text(done.stdout, encoding="utf-8")
        lines = difflib.unified_diff(before.splitlines(True), done.stdout.splitlines(True), str(path), "formatted")
        return "".join(lines)

    paths = [path for path in repository.files(ROOT) if path.suffix in repository.CPP_SUFFIXES]
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        differences = [text for text in pool.map(difference, paths) if text]
    print("".join(differences), end="")
    print(f"format: {len(differences)} of {len(paths)} files {'rewritten' if fix else 'differ'}")
    if differences and not fix:
        print("tests/lint/format.py --fix formats them")
    return 1 if differences and not fix else 0


if __name__ == "__main__":
    sys.exit(main())
