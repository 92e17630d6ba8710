"""The helper: the command `hcclsim` as a process of its own for each call.

A simulation engine is one per process, and a notebook with threads cannot be forked; so nothing is simulated in this
process. The helper is spawned without a shell, gets no standard input, prints its result as JSON, and tells everything
else as messages of JSON, a line each. While it works, other threads of this process run.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import threading
from pathlib import Path
from typing import IO, Callable, List, NamedTuple, Optional, Sequence

from . import errors

Progress = Callable[[str], None]


class Finished(NamedTuple):
    """What a call of the command left: its standard output, remarks beside it, and its exit status."""

    output: str
    remarks: List[str]
    status: int


def command_path() -> str:
    """The program that is called: $HCCLSIM_COMMAND, the one within this package, or `hcclsim` of the PATH.

    Raises FileNotFoundError if there is none.
    """
    named = os.environ.get("HCCLSIM_COMMAND")
    if named:
        return named
    for beside in (Path(__file__).parent / "bin" / "hcclsim", Path(__file__).parents[2] / "hcclsim"):
        if beside.is_file():  # of the installed package; of a build folder
            return str(beside)
    found = shutil.which("hcclsim")
    if found is None:
        raise FileNotFoundError("the command hcclsim was not found; put it on the PATH, or name it in HCCLSIM_COMMAND")
    return found


class _Messages:
    """Reads standard error: the error, the remarks, and progress as it comes."""

    def __init__(self, stream: IO[str], progress: Optional[Progress], end: Callable[[], None]) -> None:
        self.error: Optional[errors.Error] = None
        self.remarks: List[str] = []
        self._stream = stream
        self._progress = progress
        self._end = end
        self.raised: Optional[BaseException] = None

    def read(self) -> None:
        for line in self._stream:
            self._take(line.rstrip("\n"))

    def _take(self, line: str) -> None:
        try:
            message = json.loads(line) if line.startswith("{") else None
        except ValueError:
            message = None
        if not isinstance(message, dict):
            if line:
                self.remarks.append(line)
        elif "error" in message:
            told = message["error"]
            self.error = errors.of_kind(told["kind"], told["status"], told["message"])
        elif "progress" in message and self._progress is not None and self.raised is None:
            try:
                self._progress(message["progress"])
            except BaseException as raised:  # of the user's function: ends the helper, and is passed on
                self.raised = raised
                self._end()


def call(
    arguments: Sequence[str],
    *,
    progress: Optional[Progress] = None,
    folder: Optional[Path] = None,
) -> Finished:
    """Calls the command and waits for its end. Its temporary files are in `folder`, if there is one.

    `progress` is called with a line of text some times per second, from another thread; what it raises ends the helper,
    and is raised here. Raises the Error that the command reports, with what it printed as its result; KeyboardInterrupt
    ends the helper too.
    """
    variables = {**os.environ, "HCCLSIM_MESSAGES": "json"}
    if folder is not None:
        variables["TMPDIR"] = str(folder)
    process = subprocess.Popen(
        [command_path(), *arguments],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=variables,
        encoding="utf-8",
        errors="replace",
    )
    assert process.stdout is not None and process.stderr is not None
    messages = _Messages(process.stderr, progress, lambda: process.send_signal(signal.SIGINT))
    reader = threading.Thread(target=messages.read, name="hcclsim messages", daemon=True)
    reader.start()
    try:
        output = process.stdout.read()
        process.wait()
    except BaseException:
        process.send_signal(signal.SIGINT)
        try:
            process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        raise
    finally:
        process.stdout.close()
    reader.join()
    process.stderr.close()
    if messages.raised is not None:
        raise messages.raised
    if messages.error is not None:
        messages.error.result = output
        raise messages.error
    if process.returncode < 0 or process.returncode > 1:
        what = "\n".join(messages.remarks) or f"the helper ended with status {process.returncode}"
        raise errors.of_kind("crash", 4, what)
    return Finished(output, messages.remarks, process.returncode)
