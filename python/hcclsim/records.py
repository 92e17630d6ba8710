"""Results: JSON of the command with attributes, columns as NumPy arrays, tables for pandas.

Units stand in the names: `_s` seconds, `_Bps` bytes per second, `bytes` bytes. Formats: docs/formats.md.
"""

from __future__ import annotations

from typing import Any, Dict, Iterable, List

import numpy


class Record(Dict[str, Any]):
    """A JSON object whose keys are attributes too: `result.trace.bp_end_s`; a key with a dash is read by `result["fc-bias"]`."""

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(f"{type(self).__name__} has no {name!r}; it has {', '.join(map(str, self))}") from None

    def __dir__(self) -> Iterable[str]:
        return [*super().__dir__(), *(key for key in self if str(key).isidentifier())]

    def __repr__(self) -> str:
        fields = ", ".join(f"{key}={_short(value)}" for key, value in self.items())
        return f"{type(self).__name__}({fields})"


class Records(List[Any]):
    """A list of JSON objects: a table whose rows are Records."""

    def column(self, name: str) -> numpy.ndarray:
        """One value per row, shape (rows,): float64, int64, bool, or objects; NaN where a number is missing.

        Raises KeyError if no row has it.
        """
        if self and not any(isinstance(row, dict) and name in row for row in self):
            raise KeyError(name)
        values = [row.get(name) for row in self]
        if any(value is None for value in values) and all(
            value is None or (isinstance(value, (int, float)) and not isinstance(value, bool)) for value in values
        ):
            values = [numpy.nan if value is None else value for value in values]
        kinds = {type(value) for value in values}
        if not kinds <= {int, float, bool} or (bool in kinds and len(kinds) > 1):
            array = numpy.empty(len(values), dtype=object)
            array[:] = values
            return array
        return numpy.array(values)

    def columns(self) -> List[str]:
        """Names of all columns, in the order in which they first appear."""
        return list(dict.fromkeys(key for row in self for key in row))

    def to_pandas(self):
        """A pandas.DataFrame with a row per record; needs pandas."""
        import pandas  # type: ignore[import]

        return pandas.DataFrame({name: self.column(name) for name in self.columns()})

    def __repr__(self) -> str:
        return f"<{len(self)} records of {', '.join(self.columns())}>" if self else "<no records>"


def _short(value: Any) -> str:
    if isinstance(value, Record):
        return f"{{{', '.join(map(str, value))}}}"
    return repr(value)


def of_json(value: Any, kind: type = Record) -> Any:
    """Dicts become Records (the outermost one a `kind`), lists of dicts Records tables; all else stays."""
    if isinstance(value, dict):
        return kind((key, of_json(item)) for key, item in value.items())
    if isinstance(value, list):
        items = [of_json(item) for item in value]
        return Records(items) if items and all(isinstance(item, Record) for item in items) else items
    return value


class Remarked(Record):
    """A result with what the command said beside it."""

    #: Sentences for people, not part of the JSON.
    remarks: List[str]


class RunResult(Remarked):
    """A training step, simulated: `step_time_s`, `trace`, `segments`, `gradients`, `ranks`, `hbm_peak_bytes`, `stages`, `notes`,
    `numerics` …"""

    #: With run(keep_gradients=True): the reduced gradients of the last iteration, by parameter.
    reduced_gradients: Dict[str, numpy.ndarray]

    def losses(self) -> numpy.ndarray:
        """Mean loss of every iteration with real gradients, shape (iterations,), float64. Raises ValueError without."""
        if not self.get("numerics"):
            raise ValueError("this run has no real gradients: run(numerics=True)")
        return self["numerics"]["iterations"].column("loss")

    def ready_times_s(self) -> numpy.ndarray:
        """Seconds since fp_start at which each gradient is there, shape (gradients,), in production order."""
        return self["gradients"].column("ready_s")


class TuneResult(Remarked):
    """The best split of a step's gradients: `best`, `best_by_cost`, `strategies`, `by_segments`, `sensitivity` …"""


class SearchResult(Remarked):
    """The outcome of a search of strategies or of plans."""


class Measurement(Remarked):
    """A collective at many sizes: `rows` has `bytes`, `time_s`, `algbw_Bps`, `busbw_Bps`, `algorithm` …"""
