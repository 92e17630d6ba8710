"""`hcclsim script` runs this folder as a program: COMMAND FILE.py [OPTION…]. Only Python's own library is needed."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import sys
from typing import List, Optional, Sequence, Set, Tuple

from network import network_of
from reader import Reader, read_script
from tables import GROUPS, SERVERS, SPLITS
from values import ScriptError

#: Bytes of a message, as of the command's own.
_LONGEST_MESSAGE = 2000


def _mapping(reader: Reader) -> str:
    """What the script sets, a line each, for people."""
    width = max(len(setting.what) for setting in reader.settings)
    lines = [f"  line {setting.line:>4}  {setting.what:<{min(width, 72)}}  {setting.told}".rstrip() for setting in reader.settings]
    return "\n".join([f"{reader.path} sets", *lines, ""])


def _notes(reader: Reader) -> str:
    """What of it is not as the script alone says, for people who read JSON."""
    assumed = [setting for setting in reader.settings if setting.is_assumed]
    return "".join(f"Note: {reader.path}:{setting.line}: {setting.what}: {setting.told}\n" for setting in assumed)


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


def _overridden(names: Set[str]) -> Set[str]:
    """Options of a script that do not count beside those that are given: of what a run has one, given ones drop all."""
    found = set(names)
    for one_of in (SPLITS, GROUPS):
        if names.intersection(one_of):
            found.update(one_of)
    if "--mode" in names and SERVERS not in names:
        found.add("--ps-context")
    return found


def _value_of(given: Sequence[str], option: str) -> Optional[str]:
    """The value of an option that is given as "OPTION VALUE" or "OPTION=VALUE"."""
    for word, following in zip(given, [*given[1:], None]):
        if word == option:
            return following
        if word.startswith(f"{option}="):
            return word[len(option) + 1 :]
    return None


def _step_trace(reader: Reader, given: Sequence[str], names: Set[str]) -> List[str]:
    """The option for the output of profiling_options, which goes below the folder of --output-dir, wherever its path
    leads; none: it is not written. Raises ScriptError."""
    folder = _value_of(given, "--output-dir")
    if reader.output is None or "--step-trace" in names or folder is None:
        return []
    output = os.path.join(folder, os.path.normpath(os.path.join("/", reader.output)).lstrip("/"))
    try:
        os.makedirs(output, exist_ok=True)
    except OSError as error:
        raise ScriptError(
            f"{reader.path}: output of profiling_options cannot be made: {error}; --step-trace FILE writes it elsewhere"
        ) from None
    return [f"--step-trace={os.path.join(output, 'step_trace_0.csv')}"]


def _options(reader: Reader, given: Sequence[str], names: Set[str]) -> List[str]:
    """What is left of the script's options beside those that are given. Raises ScriptError."""
    dropped = _overridden(names)
    of_contexts = [] if "--context" in names else reader.context_options
    options = [option for option in [*reader.options, *of_contexts] if option.split("=")[0] not in dropped]
    return [*options, *_step_trace(reader, given, names)]


def _unwritten(reader: Reader, options: Sequence[str], names: Set[str]) -> str:
    """A line on the output of profiling_options, if it is not written."""
    if reader.output is None or "--step-trace" in names or any(option.startswith("--step-trace=") for option in options):
        return ""
    return f"Note: output {reader.output!r} of profiling_options is not written; --output-dir DIR writes it below a folder\n"


def _shown(text: str) -> bytes:
    """A text for people, who do not see the file in memory that a pipe became."""
    return re.sub(r"/proc/self/fd/\d+", "-", text).encode("utf-8", "surrogateescape")


def _shortened(message: bytes) -> str:
    """A message of at most 2 KB: the middle of a longer one is left out."""
    first, last = _LONGEST_MESSAGE * 3 // 4, _LONGEST_MESSAGE // 4 - len(" … ".encode())
    parts = [message] if len(message) <= _LONGEST_MESSAGE else [message[:first], message[-last:]]
    return " … ".join(part.decode("utf-8", "ignore") for part in parts)


def _print(text: bytes, stream: int = 1) -> None:
    """Writes to standard output or error, without a buffer that Python would write again at its end. Raises OSError."""
    while text:
        text = text[os.write(stream, text) :]


def _fail(kind: str, message: str) -> int:
    """Says what is wrong, as the command does; returns the exit status."""
    told = _shortened(_shown(message))
    if os.environ.get("HCCLSIM_MESSAGES") == "json":
        told = json.dumps({"error": {"kind": kind, "status": 2, "message": told}})
    else:
        told = f"hcclsim: error: {told}"
    try:
        os.write(2, f"{told}\n".encode())
    except OSError:
        pass  # nobody reads it
    return 2


def main(arguments: List[str]) -> int:
    """Reads FILE.py, then is COMMAND run with its options and those given here."""
    command, path, *words = arguments
    try:
        branches, given = _branches(words)
        names = {option.split("=")[0] for option in given if option.startswith("-")}
        if _value_of(given, "--mode") == "ps":
            names.add(SERVERS)
        reader = read_script(path, names, branches)
        options = _options(reader, given, names)
        reader.settings.extend(network_of(reader, command, names))
        if any(option.startswith("--format") for option in given):
            _print(_shown(_notes(reader)), 2)
        else:
            words = " ".join(map(shlex.quote, [*options, *given]))
            _print(_shown(f"{_mapping(reader)}{_unwritten(reader, options, names)}hcclsim run {words}\n\n"))
    except ScriptError as error:
        return _fail("script", str(error))
    except BrokenPipeError:
        return 128 + signal.SIGPIPE  # as if the signal had ended it
    except OSError as error:
        return _fail("output", f"cannot write to standard output: {error.strerror}")
    os.execv(command, [command, "run", *options, *given])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
