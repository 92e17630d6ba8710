#!/usr/bin/env python3
"""Checks that the output in README.md is what the command prints (tests/cases/run/default.txt); --fix puts it there."""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
README = ROOT / "README.md"
GOLDEN = ROOT / "tests" / "cases" / "run" / "default.txt"
BEGIN = "<!-- output of `hcclsim run`: tests/lint/readme.py --fix -->\n"
END = "<!-- end of output -->\n"


def with_output(text, output):
    """The text with the output between its markers, as an indented block."""
    head, begin, rest = text.partition(BEGIN)
    _, end, tail = rest.partition(END)
    if not begin or not end:
        sys.exit(f"README.md lacks the line {(BEGIN if not begin else END).strip()}")
    block = "".join(f"    {line}\n" for line in output.splitlines())
    return f"{head}{BEGIN}\n{block}\n{END}{tail}"


def main():
    text = README.read_text(encoding="utf-8")
    wanted = with_output(text, GOLDEN.read_text(encoding="utf-8"))
    if "--fix" in sys.argv[1:]:
        README.write_text(wanted, encoding="utf-8")
    elif text != wanted:
        sys.exit("README.md does not show what the command prints; run tests/lint/readme.py --fix")


if __name__ == "__main__":
    main()
