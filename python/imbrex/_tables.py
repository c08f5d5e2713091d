"""Tables as people use them: rows by iteration, and conversion to pandas and polars."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from . import _imbrex


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
        return pandas.DataFrame(_imbrex.Table.to_dict(table) if isinstance(table, _imbrex.Table) else list(table))
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
