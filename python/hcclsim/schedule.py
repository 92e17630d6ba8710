"""Schedules of collectives: made, proved, timed, executed, compared. A schedule is the text of its file, or its path."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Iterable, Union

from . import options, settings
from .experiments import call_with

#: A path, or the text of a schedule, which has line breaks.
Schedule = Union[str, "os.PathLike[str]"]


@options.of_command("schedule", "generate")
def generate(collective: str = "allreduce", **keywords: Any) -> str:
    """The schedule of a collective on a platform, as text. Raises BadInput for what has none."""
    return call_with(("schedule", "generate"), [collective], keywords)


@options.of_command("schedule", "check")
def check(*schedules: Schedule, **keywords: Any) -> Any:
    """Proves schedules (docs/checker.md): the verdict of every level, findings with the tasks they are about.

    Returns the report. Raises CheckFailed, which has the report as its result, for one that is wrong.
    """
    return _of_files(("schedule", "check"), schedules, keywords)


@options.of_command("schedule", "time")
def time(*schedules: Schedule, **keywords: Any) -> Any:
    """How long schedules take on a platform: time_s, the bound, the busiest link."""
    return _of_files(("schedule", "time"), schedules, keywords)


@options.of_command("schedule", "run")
def execute(schedule: Schedule, **keywords: Any) -> Any:
    """Executes a schedule on real data and compares the values with what they must be."""
    return _of_files(("schedule", "run"), [schedule], keywords)


@options.of_command("schedule", "diff")
def diff(first: Schedule, second: Schedule, **keywords: Any) -> Any:
    """Where two schedules differ: CheckFailed, which has the report as its result, if they do."""
    return _of_files(("schedule", "diff"), [first, second], keywords)


@options.of_command("schedule", "show")
def show(schedule: Schedule, **keywords: Any) -> Any:
    """The whole schedule; with ranks="all" or "0-3" the tasks of these ranks with all numbers."""
    return _of_files(("schedule", "show"), [schedule], keywords)


def _of_files(words: tuple, schedules: Iterable[Schedule], keywords: Any) -> Any:
    with settings.Folder() as folder:
        files = [_file(schedule, folder, number) for number, schedule in enumerate(schedules)]
        return call_with(words, files, keywords)


def _file(schedule: Schedule, folder: Path, number: int) -> str:
    if isinstance(schedule, str) and "\n" in schedule:
        path = folder / f"schedule{number}.txt"
        path.write_text(schedule, encoding="utf-8")
        return str(path)
    return os.fspath(schedule)

