"""`hcclsim script` runs this folder as a program: COMMAND FILE.py [OPTION…]. Only Python's own library is needed."""

from __future__ import annotations

import json
import os
import shlex
import sys
from typing import List, Sequence, Set, Tuple

from network import network_of
from reader import Reader, read_script
from tables import GROUPS, SPLITS
from values import ScriptError


def _mapping(reader: Reader) -> str:
    """What the script sets, a line each, for people."""
    width = max(len(setting.what) for setting in reader.settings)
    lines = [f"  line {setting.line:>4}  {setting.what:<{min(width, 72)}}  {setting.became}".rstrip() for setting in reader.settings]
    return "\n".join([f"{reader.path} sets", *lines, ""])


def _notes(reader: Reader) -> str:
    """What of it is not as the script alone says, for people who read JSON."""
    assumed = [setting for setting in reader.settings if setting.is_assumed]
    return "".join(f"Note: {reader.path}:{setting.line}: {setting.what}: {setting.became}\n" for setting in assumed)


def _branches(words: Sequence[str]) -> Tuple[List[str], List[str]]:
    """The values of --branch, and all other options. Raises ScriptError."""
    branches: List[str] = []
    others: List[str] = []
    rest = iter(words)
    for word in rest:
        name, mark, value = word.partition("=")
        if name != "--branch":
            others.append(word)
            continue
        branches.append(value if mark else next(rest, ""))
        if not branches[-1]:
            raise ScriptError("--branch needs a value: a line of a branch, a text that a condition compares with, or a condition")
    return branches, others


def _overridden(given: Sequence[str], names: Set[str]) -> Set[str]:
    """Options of a script that do not count beside those that are given: of what a run has one, given ones drop all."""
    found = set(names)
    for one_of in (SPLITS, GROUPS):
        if names.intersection(one_of):
            found.update(one_of)
    if "--mode" in names and "ps" not in given and "--mode=ps" not in given:
        found.add("--ps-context")
    return found


def _options(reader: Reader, given: Sequence[str], names: Set[str]) -> List[str]:
    """What is left of the script's options beside those that are given. Raises ScriptError."""
    dropped = _overridden(given, names)
    of_contexts = [] if "--context" in names else reader.context_options
    options = [option for option in [*reader.options, *of_contexts] if option.split("=")[0] not in dropped]
    if reader.output is not None and "--step-trace" not in names:
        try:
            os.makedirs(reader.output, exist_ok=True)
        except OSError as error:
            raise ScriptError(
                f"{reader.path}: output of profiling_options cannot be made: {error}; --step-trace FILE writes it elsewhere"
            ) from None
        options.append(f"--step-trace={os.path.join(reader.output, 'step_trace_0.csv')}")
    return options


def main(arguments: List[str]) -> int:
    """Reads FILE.py, then is COMMAND run with its options and those given here."""
    command, path, *words = arguments
    try:
        branches, given = _branches(words)
        names = {option.split("=")[0] for option in given if option.startswith("-")}
        reader = read_script(path, names, branches)
        options = _options(reader, given, names)
        reader.settings.extend(network_of(reader, command, names))
    except ScriptError as error:
        if os.environ.get("HCCLSIM_MESSAGES") == "json":
            print(json.dumps({"error": {"kind": "script", "status": 2, "message": str(error)}}), file=sys.stderr)
        else:
            print(f"hcclsim: error: {error}", file=sys.stderr)
        return 2
    if any(option.startswith("--format") for option in given):
        sys.stderr.write(_notes(reader))
    else:
        sys.stdout.write(_mapping(reader) + f"hcclsim run {' '.join(map(shlex.quote, [*options, *given]))}\n\n")
        sys.stdout.flush()
    os.execv(command, [command, "run", *options, *given])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
