"""Schedules of collectives: made, proved, timed, executed, compared. A schedule is the text of its file, or its path."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Dict, Iterable, Optional, Tuple, Type, TypeVar, Union, cast

from . import options, records, reports, settings
from .experiments import call_with

#: A path, or the text of a schedule, which has line breaks.
Schedule = Union[str, "os.PathLike[str]"]
Report = TypeVar("Report", bound=records.Record)


class Text(str):
    """The text of a schedule, and the platform that it was made for."""

    #: As generate() got it; None: the default one.
    platform: Optional[object]


@options.of_command("schedule", "generate")
def generate(collective: str = "allreduce", **keywords: object) -> Text:
    """The schedule of a collective on a platform, as text. Raises BadInput for what has none."""
    made = Text(call_with(("schedule", "generate"), [collective], keywords))
    made.platform = keywords.get("platform")
    return made


@options.of_command("schedule", "check")
def check(*schedules: Schedule, **keywords: object) -> reports.Check:
    """Proves schedules (docs/checker.md): the verdict of every level, findings with the tasks they are about.

    Returns the report. Raises CheckFailed, which has the report as its result, for one that is wrong.
    """
    return _of_files(("schedule", "check"), reports.Check, schedules, keywords)


@options.of_command("schedule", "time")
def time(*schedules: Schedule, **keywords: object) -> reports.Timing:
    """How long schedules take on a platform: `schedules`, each with its time_s. Without a `platform` it is the one that
    generate() made them for. Raises ValueError if it made them for several."""
    made_for = {str(one.platform) for one in schedules if isinstance(one, Text) and one.platform is not None}
    if keywords.get("platform") is None and made_for:
        if len(made_for) > 1:
            raise ValueError(f"these schedules were made for {', '.join(sorted(made_for))}: give the platform to time them on")
        keywords["platform"] = made_for.pop()
    return _of_files(("schedule", "time"), reports.Timing, schedules, keywords)


@options.of_command("schedule", "run")
def execute(schedule: Schedule, **keywords: object) -> reports.Execution:
    """Executes a schedule on real data and compares the values with what they must be."""
    return _of_files(("schedule", "run"), reports.Execution, [schedule], keywords)


@options.of_command("schedule", "diff")
def diff(first: Schedule, second: Schedule, **keywords: object) -> reports.Differences:
    """Where two schedules differ: CheckFailed, which has the report as its result, if they do."""
    return _of_files(("schedule", "diff"), reports.Differences, [first, second], keywords)


@options.of_command("schedule", "show")
def show(schedule: Schedule, **keywords: object) -> reports.ShownSchedule:
    """The whole schedule; with ranks="all" or "0-3" the tasks of these ranks with all numbers."""
    return _of_files(("schedule", "show"), reports.ShownSchedule, [schedule], keywords)


def _of_files(
    words: Tuple[str, ...], kind: Type[Report], schedules: Iterable[Schedule], keywords: Dict[str, object]
) -> Report:
    with settings.Folder() as folder:
        files = [_file(schedule, folder, number) for number, schedule in enumerate(schedules)]
        return cast(Report, call_with(words, files, keywords, kind))


def _file(schedule: Schedule, folder: Path, number: int) -> str:
    if isinstance(schedule, str) and "\n" in schedule:
        path = folder / f"schedule{number}.txt"
        path.write_text(schedule, encoding="utf-8")
        return str(path)
    return os.fspath(schedule)

