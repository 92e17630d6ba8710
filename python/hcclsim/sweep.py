"""Sweeps: every point of a grid of options, kept in an SQLite file; interrupted sweeps go on where they ended."""

from __future__ import annotations

import ast
import json
import os
from typing import Dict, Iterable, List, Mapping, Optional, Sequence, Union, cast

from . import errors, helper, options, records, reports, settings

Values = Union[str, int, float, bool, Sequence[object]]


def run(
    database: "Union[str, os.PathLike[str]]",
    command: str = "run",
    grid: Optional[Mapping[str, Values]] = None,
    *,
    arguments: Sequence[str] = (),
    progress: Optional[helper.Progress] = None,
    **keywords: object,
) -> records.Records[reports.Point]:
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
    for option, keyword in of_points.chosen(grid or {}).items():
        words += _texts(option, keyword, (grid or {})[keyword])
    head = ["sweep", "run", "--format=json", *of_sweep.arguments(keywords), os.fspath(database), command, *arguments]
    try:
        with settings.Folder() as folder:
            told = helper.call([*head, *words], progress=progress, folder=folder).output
    except errors.Error as failed:
        failed.message = of_points.in_keywords(of_sweep.in_keywords(failed.message, words), words)
        if isinstance(failed, errors.CheckFailed):
            failed.result = _points(database, str(failed.result), grid or {})
        raise
    return _points(database, told, grid or {})


def _points(database: "Union[str, os.PathLike[str]]", told: str, keywords: Iterable[str]) -> records.Records[reports.Point]:
    """The points whose ids the command told, with columns of these keywords."""
    ids = set(json.loads(told)["ids"])
    return _table((point for point in _exported(database, old=True) if point["id"] in ids), keywords)


def _texts(option: options.Option, keyword: str, values: Values) -> List[str]:
    """All values in one text: with commas between them, or semicolons where values have commas of their own."""
    if isinstance(values, (str, int, float, bool, os.PathLike)):
        return option.arguments(keyword, values)
    if option.is_flag and len(values) == 1:
        return option.arguments(keyword, values[0])
    if option.is_flag:
        raise TypeError(f"{keyword} cannot be swept over {values!r}: it is True or False for all points")
    texts = [option.arguments(keyword, value) for value in values]
    if any(len(text) != 1 for text in texts):
        raise TypeError(f"{keyword} cannot be swept over {values!r}")
    found = [text[0].partition("=")[2] for text in texts]
    lists = option.value == "LIST" or any("," in text for text in found)
    return [f"{option.name}={(';' if lists else ',').join(found)}"]


def results(database: "Union[str, os.PathLike[str]]", *, old: bool = False) -> records.Records[reports.Point]:
    """All points with their figures, and a column for each input, by its keyword; `old` also those that newer ones replace.

    Values are as the keyword takes them: True and False, numbers, tuples of those of a list. `inputs` has them as texts,
    `result` the JSON of a point's command.
    """
    return _table(_exported(database, old))


def best(database: "Union[str, os.PathLike[str]]", by: Optional[str] = None) -> records.Records[reports.Point]:
    """The best point of each work, as results() has it; mostly there is one. `by`: a figure such as "images_per_s:max"."""
    chosen = [f"--by={by}"] if by else []
    return _table(json.loads(_told("best", [*chosen, "--format=json", os.fspath(database)]))["points"])


def _told(word: str, arguments: Sequence[str]) -> str:
    """What a command of sweeps prints; its errors are in words of Python."""
    try:
        return helper.call(["sweep", word, *arguments]).output
    except errors.Error as failed:
        failed.message = options.command("sweep", word).in_keywords(failed.message, arguments)
        raise


def _exported(database: "Union[str, os.PathLike[str]]", old: bool) -> List[Mapping[str, object]]:
    extra = ["--old"] if old else []
    told = json.loads(_told("export", [*extra, "json", os.fspath(database)]))
    return cast(List[Mapping[str, object]], told["points"])


def _table(points: Iterable[Mapping[str, object]], keywords: Iterable[str] = ()) -> records.Records[reports.Point]:
    """Points with a column for each input; of names of one option that which is among the keywords."""
    rows = []
    commands = {name: options.command(name) for name in ("run", "collective", "job")}
    for point in points:
        command = commands.get(str(point["command"]), commands["run"])  # those of a search have the inputs of runs
        rows.append({"point": point["point"], **_inputs(command, cast(Mapping[str, str], point["inputs"]), keywords), **point})
    return records.Records(cast(reports.Point, records.of_json(row, reports.Point)) for row in rows)


def _inputs(command: options.Command, texts: Mapping[str, str], keywords: Iterable[str]) -> Dict[str, object]:
    """Values of a point's inputs by keyword; the target of an edit, or a variable of the environment, by its name."""
    named = command.chosen(keywords)
    found: Dict[str, object] = {}
    for name, text in texts.items():
        keyword = name.replace("-", "_")
        option = command.by_keyword.get(keyword)
        if option is None:
            found[name] = _number(text)
        else:
            found[named.get(option, option.keywords[0])] = _value(option, text)
    return found


def _value(option: options.Option, text: str) -> object:
    """An input as its keyword takes it."""
    if option.is_switch and text in ("on", "off"):
        return text == "on"
    if option.is_flag and text == "true":
        return True
    if option.value == "LIST":
        return tuple(_number(item) for item in text.split(","))
    if option.is_literal:
        try:
            return cast(object, ast.literal_eval(text))
        except (ValueError, SyntaxError):
            return text
    return _number(text)


def _number(text: str) -> Union[int, float, str]:
    """A text as a number, if it is one."""
    try:
        return int(text)
    except ValueError:
        pass
    try:
        return float(text)
    except ValueError:
        return text


def status(database: "Union[str, os.PathLike[str]]") -> str:
    """How far a sweep is, as the command prints it."""
    return _told("status", [os.fspath(database)])
