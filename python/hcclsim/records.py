"""Results: JSON of the command with attributes, columns as NumPy arrays, tables for pandas.

Units stand in the names: `_s` seconds, `_Bps` bytes per second, `bytes` bytes. Formats: docs/formats.md.
"""

from __future__ import annotations

import html
import sys
import typing
from typing import TYPE_CHECKING, Any, Dict, Iterable, List, Sequence, Tuple, Type, TypeVar, Union

import numpy
import numpy.typing

if TYPE_CHECKING:
    import pandas  # type: ignore[import]

_most_fields = 8
_most_rows = 20


class Record(Dict[str, object]):
    """A JSON object whose keys are attributes too: `result.trace.bp_end_s`; a key with a dash is read by `result["fc-bias"]`.

    Type checkers know the fields that a class declares, and no others.
    """

    if not TYPE_CHECKING:

        def __getattr__(self, name):
            try:
                return self[name]
            except KeyError:
                raise AttributeError(f"{type(self).__name__} has no {name!r}; it has {', '.join(map(str, self))}") from None

    def __dir__(self) -> Iterable[str]:
        return [*super().__dir__(), *(key for key in self if str(key).isidentifier())]

    def _headline(self) -> str:
        """What a result is in a few words; the first fields of one that has none of its own."""
        shown = [f"{key}={_short(value)}" for key, value in list(self.items())[:_most_fields]]
        left = len(self) - len(shown)
        return ", ".join([*shown, *([f"{left} more"] if left else [])])

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._headline()})"

    def _repr_html_(self) -> str:
        rows = "".join(f"<tr><th>{_escaped(key)}</th><td>{_escaped(_short(value))}</td></tr>" for key, value in self.items())
        return f"<p>{_escaped(self._headline())}</p><table>{rows}</table>"


class OpenRecord(Record):
    """A record whose fields depend on what was asked for: type checkers take any."""

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any: ...


Row = TypeVar("Row")


class Records(List[Row]):
    """A list of JSON objects: a table whose rows are Records."""

    def column(self, name: str) -> numpy.typing.NDArray[numpy.float64]:
        """One value per row, shape (rows,): float64, int64, bool, or objects; NaN where a number is missing.

        Raises KeyError if no row has it.
        """
        rows = self._rows()
        if rows and not any(name in row for row in rows):
            raise KeyError(name)
        values = [row.get(name) for row in rows]
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
        return list(dict.fromkeys(key for row in self._rows() for key in row))

    def to_pandas(self) -> "pandas.DataFrame":
        """A pandas.DataFrame with a row per record; needs pandas."""
        import pandas

        return pandas.DataFrame({name: self.column(name) for name in self.columns()})

    def _rows(self) -> List[Dict[str, object]]:
        return [row for row in self if isinstance(row, dict)]

    def __repr__(self) -> str:
        return f"<{len(self)} records of {', '.join(self.columns())}>" if self else "<no records>"

    def _repr_html_(self) -> str:
        names = self.columns()
        head = "".join(f"<th>{_escaped(name)}</th>" for name in names)
        rows = [
            "".join(f"<td>{_escaped(_short(row[name])) if name in row else ''}</td>" for name in names)
            for row in self._rows()[:_most_rows]
        ]
        left = len(self) - len(rows)
        body = "".join(f"<tr>{row}</tr>" for row in rows)
        return f"<table><tr>{head}</tr>{body}</table>" + (f"<p>{left} more records</p>" if left else "")


def _escaped(text: object) -> str:
    return html.escape(str(text))


def _short(value: object) -> str:
    if isinstance(value, Records):
        return repr(value)
    if isinstance(value, Record):
        return f"{{{', '.join(map(str, value))}}}"
    if isinstance(value, list) and len(value) > _most_fields:
        return f"<list of {len(value)}>"
    return repr(value)


Kind = TypeVar("Kind", bound=Record)


def of_json(value: object, kind: Type[Record] = OpenRecord) -> object:
    """Dicts become Records, lists of dicts Records tables; all else stays. The outermost dict becomes a `kind`, and those
    in it what the fields of `kind` are declared as."""
    if isinstance(value, dict):
        fields = _fields_of(kind)
        return kind((key, of_json(item, fields.get(key, OpenRecord))) for key, item in value.items())
    if isinstance(value, list):
        items = [of_json(item, kind) for item in value]
        return Records(items) if items and all(isinstance(item, Record) for item in items) else items
    return value


_known_fields: Dict[Type[Record], Dict[str, Type[Record]]] = {}


def _fields_of(kind: Type[Record]) -> Dict[str, Type[Record]]:
    """Fields of a record that are records, or tables of records: by name, the kind of the record."""
    if kind not in _known_fields:
        hints = typing.get_type_hints(kind, vars(sys.modules[kind.__module__]))
        _known_fields[kind] = {name: found for name, hint in hints.items() for found in _records_in(hint)}
    return _known_fields[kind]


def _records_in(hint: object) -> Sequence[Type[Record]]:
    """The record in `Stage`, `Optional[Stage]`, `Records[Stage]` or a list of these; empty for what holds none."""
    if isinstance(hint, type) and issubclass(hint, Record):
        return [hint]
    inner: Tuple[object, ...] = typing.get_args(hint) if typing.get_origin(hint) in (Records, list, Union) else ()
    return [found for one in inner for found in _records_in(one)]


class Remarked(Record):
    """A result with what the command said beside it."""

    #: Sentences for people, not part of the JSON.
    remarks: List[str]
    #: What the result depends on that was assumed, or has no effect.
    notes: List[str]
    #: Settings that are set and have no effect.
    not_modelled: List[str]

    def __str__(self) -> str:
        """What it is, and its notes as the command prints them."""
        return "\n".join([repr(self), *(f"Note: {note}" for note in (self.notes if "notes" in self else []))])
