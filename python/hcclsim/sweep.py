"""Sweeps: every point of a grid of options, kept in an SQLite file; interrupted sweeps go on where they ended."""

from __future__ import annotations

import json
import os
from typing import Iterable, List, Mapping, Optional, Sequence, Union, cast

from . import errors, helper, options, records

Values = Union[str, int, float, bool, Sequence[object]]


def run(
    database: "Union[str, os.PathLike[str]]",
    command: str = "run",
    grid: Optional[Mapping[str, Values]] = None,
    *,
    arguments: Sequence[str] = (),
    progress: Optional[helper.Progress] = None,
    **keywords: object,
) -> records.Records[records.Record]:
    """Computes every point of `grid`, which has a list of values, a range text ("50:99:1") or one value per keyword of
    the command ("run", "collective" or "job", with `arguments` such as "allreduce"), and returns the points of this grid,
    as results() does.

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
    head = ["sweep", "run", "--format=json", *of_sweep.arguments(keywords), os.fspath(database), command, *arguments]
    try:
        told = helper.call([*head, *words], progress=progress).output
    except errors.CheckFailed as failed:
        failed.result = _points(database, str(failed.result))
        raise
    except errors.Error as failed:
        failed.message = of_points.in_keywords(failed.message)
        raise
    return _points(database, told)


def _points(database: "Union[str, os.PathLike[str]]", told: str) -> records.Records[records.Record]:
    """The points whose ids the command told."""
    ids = set(json.loads(told)["ids"])
    return records.Records(point for point in results(database, old=True) if point["id"] in ids)


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


def results(database: "Union[str, os.PathLike[str]]", *, old: bool = False) -> records.Records[records.Record]:
    """All points with their figures, and a column for each input, by its keyword; `old` also those that newer ones replace.

    `inputs` has the inputs as texts, `result` the JSON of a point's command.
    """
    extra = ["--old"] if old else []
    return _table(json.loads(helper.call(["sweep", "export", *extra, "json", os.fspath(database)]).output)["points"])


def best(database: "Union[str, os.PathLike[str]]", by: Optional[str] = None) -> records.Records[records.Record]:
    """The best point of each work, as results() has it; mostly there is one. `by`: a figure such as "images_per_s:max"."""
    chosen = [f"--by={by}"] if by else []
    return _table(json.loads(helper.call(["sweep", "best", "--format=json", *chosen, os.fspath(database)]).output)["points"])


def _table(points: Iterable[Mapping[str, object]]) -> records.Records[records.Record]:
    rows = []
    for point in points:
        inputs = {key.replace("-", "_"): _value(text) for key, text in cast(Mapping[str, str], point["inputs"]).items()}
        rows.append(cast(records.Record, records.of_json({"point": point["point"], **inputs, **point})))
    return records.Records(rows)


def _value(text: str) -> Union[int, float, str]:
    """An input as a number, if it is one."""
    for number in (int, float):
        try:
            return number(text)
        except ValueError:
            pass
    return text


def status(database: "Union[str, os.PathLike[str]]") -> str:
    """How far a sweep is, as the command prints it."""
    return helper.call(["sweep", "status", os.fspath(database)]).output
