"""`hcclsim script` runs this folder as a program: COMMAND FILE.py [OPTION…]. Only Python's own library is needed."""

from __future__ import annotations

import json
import os
import shlex
import sys
from typing import List, Sequence, Set

from reader import Reader, read_script
from tables import GROUPS, SPLITS
from values import ScriptError


def _mapping(reader: Reader) -> str:
    """What the script sets, a line each, for people."""
    width = max(len(setting.what) for setting in reader.settings)
    lines = [f"  line {setting.line:>4}  {setting.what:<{min(width, 72)}}  {setting.became}".rstrip() for setting in reader.settings]
    return "\n".join([f"{reader.path} sets", *lines, ""])


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
    command, path, *given = arguments
    names = {option.split("=")[0] for option in given if option.startswith("-")}
    try:
        reader = read_script(path, names)
        options = _options(reader, given, names)
    except ScriptError as error:
        if os.environ.get("HCCLSIM_MESSAGES") == "json":
            print(json.dumps({"error": {"kind": "script", "status": 2, "message": str(error)}}), file=sys.stderr)
        else:
            print(f"hcclsim: error: {error}", file=sys.stderr)
        return 2
    if not any(option.startswith("--format") for option in given):
        sys.stdout.write(_mapping(reader) + f"hcclsim run {' '.join(map(shlex.quote, [*options, *given]))}\n\n")
        sys.stdout.flush()
    os.execv(command, [command, "run", *options, *given])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
