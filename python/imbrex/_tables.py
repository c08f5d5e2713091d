"""Tables as people use them: rows by iteration, conversion to pandas and polars, and their display."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from typing import Any

from . import _imbrex
from ._cells import NONE, Cells, Column, count, heading_of, read, shown


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
        # The native half reads the first rows of a long table without the others.
        names, values = read(self._native._repr_html_())
        length = len(self)
        size = f"{count(length)} rows" if length == len(values) else f"the first {len(values)} of {count(length)} rows"
        return first_rows(names, values), f"{size}; columns: {', '.join(names)}"

    def _repr_html_(self) -> str:
        cells, note = self._first()
        return f"{cells.html()}<p>{html.escape(note)}</p>"

    def __repr__(self) -> str:
        cells, note = self._first()
        return f"{cells.text()}\n{note}"


NO_NUMBERS = (NONE, "NaN", "inf", "-inf")
"""Texts of cells without a number in columns of numbers."""

PROSE = ("error", "of", "warnings", "what_it_is", "what_it_does", "source")
"""Columns of whole sentences, which break over lines if one is longer than `PROSE_CHARACTERS`."""

PROSE_CHARACTERS = 40
"""Length up to which a sentence stands on one line."""


def first_rows(names: list[str], values: list[list[str]]) -> Cells:
    """Returns a table of values that are written in base units. A column is one of numbers if all its values are."""
    columns, cells = [], []
    for name, texts in zip(names, zip(*values) if values else [()] * len(names)):
        numbers = [_number(text) for text in texts]
        has_numbers = all(number is not None or text in NO_NUMBERS for number, text in zip(numbers, texts))
        # The values of a swept parameter are texts, such as `4096`.
        is_numeric = has_numbers and f"{name}_number" not in names
        is_prose = name in PROSE and any(len(text) > PROSE_CHARACTERS for text in texts)
        columns.append(Column(heading_of(name), "number" if is_numeric else "prose" if is_prose else "text"))
        values_or_texts = [text if number is None or not is_numeric else number for number, text in zip(numbers, texts)]
        cells.append([shown(name, value) for value in values_or_texts])
    return Cells(columns, list(zip(*cells)))


def _number(text: str) -> int | float | None:
    """Returns the number that `text` writes, or None."""
    if not re.fullmatch(r"-?\d{1,20}(\.\d+)?", text):
        return None
    return float(text) if "." in text else int(text)
