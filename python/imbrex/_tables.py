"""Tables as people use them: rows by iteration, conversion to pandas and polars, and their display."""

from __future__ import annotations

import html
from collections.abc import Iterator
from typing import Any

from . import _imbrex
from ._cells import Cells, Column, count, heading_of, shown


def rows(table: Any) -> Iterator[dict[str, Any]]:
    """The rows of `table`, each a dictionary by the names of the columns."""
    columns = table.to_dict()
    for values in zip(*columns.values()):
        yield dict(zip(columns, values))


def to_pandas(table: Any) -> Any:
    """`table` as a `pandas.DataFrame`."""
    import pandas  # type: ignore[import-untyped, unused-ignore]

    try:
        import pyarrow  # type: ignore[import-untyped, import-not-found, unused-ignore]
    except ImportError:
        return pandas.DataFrame(table.to_dict() if hasattr(table, "to_dict") else list(table))
    return pyarrow.table(table).to_pandas()


def to_polars(table: Any) -> Any:
    """`table` as a `polars.DataFrame`."""
    import polars

    return polars.DataFrame(table)


class Tabular:
    """What every table of the package can."""

    def to_pandas(self) -> Any:
        """The rows as a `pandas.DataFrame`."""
        return to_pandas(self)

    def to_polars(self) -> Any:
        """The rows as a `polars.DataFrame`."""
        return to_polars(self)


class Table(Tabular):
    """A table of results. It implements the Arrow C stream interface, and iterates over its rows as dictionaries.

    Its data are numbers in the units that the names of the columns say. Only the display has units that suit the numbers.
    """

    def __init__(self, native: _imbrex.Table) -> None:
        self._native = native

    @property
    def columns(self) -> list[str]:
        """The names of the columns."""
        return self._native.columns

    def to_dict(self) -> dict[str, list[Any]]:
        """All rows as a dictionary of lists."""
        return self._native.to_dict()

    def __len__(self) -> int:
        return len(self._native)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return rows(self)

    def __contains__(self, name: object) -> bool:
        return name in self._native

    def __getitem__(self, name: str) -> list[Any]:
        return self._native[name]

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self._native.__arrow_c_stream__(requested_schema)

    def _first(self) -> tuple[Cells, str]:
        """Returns the first rows, and a line with the number of rows and the names of the columns."""
        first = self._native.first()
        cells, length = first_rows(first), len(self)
        shown_rows = len(cells.rows)
        size = f"{count(length)} rows" if length == shown_rows else f"the first {shown_rows} of {count(length)} rows"
        return cells, f"{size}; columns: {', '.join(first)}"

    def _repr_html_(self) -> str:
        cells, note = self._first()
        return f"{cells.html()}<p>{html.escape(note)}</p>"

    def __repr__(self) -> str:
        cells, note = self._first()
        return f"{cells.text()}\n{note}"


PROSE = ("error", "of", "warnings", "what_it_is", "what_it_does", "source")
"""Columns of whole sentences, which break over lines if one is longer than `PROSE_CHARACTERS`."""

PROSE_CHARACTERS = 40
"""Length up to which a sentence stands on one line."""


def first_rows(first: dict[str, list[Any]]) -> Cells:
    """Returns a table of values in base units. A column is one of numbers if all its values are."""
    columns, cells = [], []
    for name, values in first.items():
        is_numeric = all(value is None or type(value) in (int, float) for value in values)
        is_prose = name in PROSE and any(len(value or "") > PROSE_CHARACTERS for value in values)
        columns.append(Column(heading_of(name), "number" if is_numeric else "prose" if is_prose else "text"))
        cells.append([shown(name, value) for value in values])
    return Cells(columns, list(zip(*cells)))
