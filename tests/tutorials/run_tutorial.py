"""Runs a tutorial as a reader would type it: run_tutorial.py --hcclsim COMMAND PAGE.md; status 1 if anything differs.

README.md says what pages look like.
"""

import argparse
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Dict, List, NamedTuple, Tuple


class Step(NamedTuple):
    """A command and the output that the page shows."""

    line: int
    command: str
    shown: List[str]


def read_page(text: str) -> Tuple[List[Step], str, Dict[str, str]]:
    """Commands of console blocks, the program of the python blocks, and files: blocks that name one, "cpp sum.cpp"."""
    steps: List[Step] = []
    files: Dict[str, str] = {}
    program: List[str] = []
    block = ""
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith("```"):
            block = "" if block else line[3:].strip()
        elif block == "console" and line.startswith("$ "):
            steps.append(Step(number, line[2:], []))
        elif block == "console":
            steps[-1].shown.append(line)
        elif block == "python":
            program.append(line)
        elif " " in block:
            name = block.split()[1]
            files[name] = files.get(name, "") + line + "\n"
    return steps, "\n".join(program), files


def fits(shown: List[str], printed: List[str]) -> bool:
    """Whether lines are as shown; "…" alone stands for any lines, within a line for any characters."""
    pattern = "".join(
        "(?:.*\n)*" if line == "…" else ".*".join(map(re.escape, line.split("…"))) + "\n" for line in shown
    )
    return re.fullmatch(pattern, "".join(line + "\n" for line in printed)) is not None


def run_page(page: Path, command: Path) -> List[str]:
    """What differs, a message each."""
    steps, program, files = read_page(page.read_text(encoding="utf-8"))
    faults = [] if steps or program else [f"{page.name} has nothing to run"]
    with tempfile.TemporaryDirectory(prefix="tutorial-") as folder:
        for name, contents in files.items():
            Path(folder, name).write_text(contents, encoding="utf-8")
        environment = {**os.environ, "PATH": f"{command.parent}:{os.environ['PATH']}", "COLUMNS": "200"}
        for step in steps:
            done = subprocess.run(
                ["bash", "-c", step.command], cwd=folder, env=environment, capture_output=True, text=True, check=False
            )
            printed = done.stdout.splitlines()
            if done.returncode != 0:
                faults.append(f"{page.name}:{step.line}: {step.command}: status {done.returncode}\n{done.stderr}")
            elif step.shown and not fits(step.shown, printed):
                faults.append(f"{page.name}:{step.line}: {step.command}: prints\n" + "\n".join(printed))
        if program:
            done = subprocess.run(
                [sys.executable, "-B", "-c", program], cwd=folder, env=environment, capture_output=True, text=True, check=False
            )
            if done.returncode != 0:
                faults.append(f"{page.name}: its program ends with status {done.returncode}\n{done.stderr}")
    return faults


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--hcclsim", type=Path, required=True)
    parser.add_argument("page", type=Path)
    arguments = parser.parse_args()
    faults = run_page(arguments.page, arguments.hcclsim.resolve())
    print("\n".join(faults) or f"{arguments.page.name}: as it stands there")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
