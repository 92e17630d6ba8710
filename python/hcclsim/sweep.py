"""Sweeps: every point of a grid of options, kept in an SQLite file; interrupted sweeps go on where they ended."""

from __future__ import annotations

import json
import os
from typing import Any, List, Mapping, Optional, Sequence, Union

from . import errors, helper, options, records

Values = Union[str, int, float, bool, Sequence[Any]]


def run(
    database: "Union[str, os.PathLike[str]]",
    command: str = "run",
    grid: Optional[Mapping[str, Values]] = None,
    *,
    arguments: Sequence[str] = (),
    progress: Optional[helper.Progress] = None,
    **keywords: Any,
) -> records.Records:
    """Computes every point of `grid`, which has a list of values, a range text ("50:99:1") or one value per keyword of
    the command ("run", "collective" or "job", with `arguments` such as "allreduce"), and returns the points.

    A value that is a list itself, as of split_by_size, stands in a list of lists. Keywords are those of the sweep: jobs,
    shard, retry_failed, not_in, shared. Raises CheckFailed, which has the points as its result, if some failed.
    """
    if command not in ("run", "collective", "job"):
        raise ValueError(f"a sweep is of run, collective or job, not of {command!r}")
    if not isinstance(grid, (Mapping, type(None))):
        raise TypeError(f"grid must be a dict of values by keyword, not a {type(grid).__name__}")
    of_sweep = options.command("sweep", "run")
    of_points = options.command(command)
    words: List[str] = []
    for keyword, values in (grid or {}).items():
        words += _texts(of_points.option(keyword), keyword, values)
    head = ["sweep", "run", *of_sweep.arguments(keywords), os.fspath(database), command, *arguments]
    try:
        helper.call([*head, *words], progress=progress)
    except errors.CheckFailed as failed:
        failed.result = results(database)
        raise
    return results(database)


def _texts(option: options.Option, keyword: str, values: Values) -> List[str]:
    """All values in one text: with commas between them, or semicolons where values have commas of their own."""
    if isinstance(values, (str, int, float, bool, os.PathLike)):
        return option.arguments(keyword, values)
    texts = [option.arguments(keyword, value) for value in values]
    if option.is_flag or any(len(text) != 1 for text in texts):
        raise TypeError(f"{keyword} cannot be swept over {values!r}")
    found = [text[0].partition("=")[2] for text in texts]
    lists = option.value == "LIST" or any("," in text for text in found)
    return [f"{option.name}={(';' if lists else ',').join(found)}"]


def results(database: "Union[str, os.PathLike[str]]", *, old: bool = False) -> records.Records:
    """All points with their inputs and figures; `old` also those that newer ones replace."""
    extra = ["--old"] if old else []
    found = records.of_json(json.loads(helper.call(["sweep", "export", *extra, "json", os.fspath(database)]).output))
    return found["points"] if isinstance(found, records.Record) else records.Records(found)


def best(database: "Union[str, os.PathLike[str]]", by: Optional[str] = None) -> records.Records:
    """The best point of each work, as results() has it; mostly there is one. `by`: a figure such as "images_per_s:max"."""
    chosen = [f"--by={by}"] if by else []
    return records.of_json(json.loads(helper.call(["sweep", "best", "--format=json", *chosen, os.fspath(database)]).output))["points"]


def status(database: "Union[str, os.PathLike[str]]") -> str:
    """How far a sweep is, as the command prints it."""
    return helper.call(["sweep", "status", os.fspath(database)]).output
