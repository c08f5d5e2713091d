"""`imbrex.Trace`: a workload looked at, taken in batches, or written in another format."""

from __future__ import annotations

import html
import json
import os
from collections.abc import Iterator, Mapping
from typing import Any, Unpack

from . import _imbrex, _words
from ._cells import SECTOR_BYTES, Cells, Column, Value, heading_of, shown, size
from ._options import TraceOptions, keywords, names
from ._progress import Showing, Shown
from ._tables import Tabular


class Info(dict[str, Any]):
    """The statistics of a trace: the document of `imbrex trace info --json`. They are displayed as tables."""

    def _tables(self) -> list[Cells]:
        """Returns the tables of the figures, of the distributions, and of the devices if there are several."""
        figures = [row for row in _figures(self) if row[1]]
        tables = [Cells([Column("figure"), Column("value", "number")], figures)]
        shapes = {name: shape for name, shape in self.items() if isinstance(shape, dict) and "p50" in shape}
        if shapes:
            names = list(next(iter(shapes.values())))
            columns = [Column("distribution"), *(Column(name, "number") for name in names)]
            rows = [[_label(name), *(shown(name, shape[of]) for of in names)] for name, shape in shapes.items()]
            tables.append(Cells(columns, rows))
        devices = self.get("devices", [])
        if len(devices) > 1:
            names = [name for name in devices[0] if name != "device"]
            columns = [Column("device") if name == "name" else Column(_label(name), "number") for name in names]
            tables.append(Cells(columns, [[_value(name, device[name]) for name in names] for device in devices]))
        return tables

    def _repr_html_(self) -> str:
        notes = "".join(f"<p>{html.escape(note)}</p>" for note in self.get("warnings", []))
        return "".join(table.html() for table in self._tables()) + notes

    def __repr__(self) -> str:
        return "\n\n".join([*(table.text() for table in self._tables()), *self.get("warnings", [])])


LABELS = {
    "empty": "empty requests",
    "lba_end": "reaches to",
    "share_1": "share of the hottest",
    "share_10": "share of 10",
    "share_100": "share of 100",
    "written": "tracks written",
}
"""Labels of figures whose names do not explain themselves."""


def _label(name: str) -> str:
    """Returns the label of a figure: its words without the unit."""
    return LABELS.get(name) or heading_of(name.removesuffix("_bytes") if name.endswith("_size_bytes") else name)


def _value(name: str, value: Value) -> str:
    """Formats a figure. The end of the addresses is a size, as on a terminal."""
    return size(value * SECTOR_BYTES) if name == "lba_end" and isinstance(value, int) else shown(name, value)


def _figures(document: Mapping[str, Any], group: str = "") -> Iterator[tuple[str, str]]:
    """Yields the label and the text of each figure of a document, except for distributions and lists."""
    for name, value in document.items():
        if isinstance(value, dict) and "p50" not in value:
            yield from _figures(value, f"{heading_of(name)}: ")
        # A remark on the reading of the file says nothing if its count is 0.
        elif name != "schema" and not isinstance(value, (dict, list)) and not (group == "reading: " and not value):
            yield f"{group}{_label(name)}", _value(name, value)


@keywords(TraceOptions)
class Trace(Tabular):
    """A trace, or any other workload; it is read through once for its counts and its hash.

    It is a table itself (`polars.DataFrame(trace)`, `pyarrow.table(trace)`): `time_ns` (null where a generator names no
    time), `op`, `lba`, `sectors`, `device`, as `simulate` takes them.

    Args:
        workload: as `simulate` takes it.
        progress: as `simulate` takes it.
        **options: those of `imbrex trace info`
    """

    def __init__(self, workload: Any, *, progress: Shown = None, **options: Unpack[TraceOptions]) -> None:
        pairs = _words.options(options, names(TraceOptions), ("workload", "progress"))
        given = _words.workload(workload)
        with Showing(progress) as shown:
            self._native = _imbrex.Trace(given, pairs, shown)

    @property
    def name(self) -> str:
        """What it is called in results."""
        return self._native.name

    @property
    def format(self) -> str:
        """Its format; `generator` for words, `table` for columns in memory."""
        return self._native.format

    @property
    def sha256(self) -> str:
        """The hash of its contents, in hexadecimal."""
        return self._native.sha256

    def info(self, *, progress: Shown = None) -> Info:
        """What is in it: counts, bytes, span, working sets, sequentiality, hot tracks, as `imbrex trace info --json`."""
        with Showing(progress) as display:
            return Info(json.loads(self._native.info_json(display)))

    def batches(self, rows: int = 65_536) -> Iterator[_imbrex.Batch]:
        """Its requests as tables of `rows` rows, the last of them shorter: memory is that of one."""
        return self._native.batches(_words.whole("rows", rows, least=1))

    def __iter__(self) -> Iterator[_imbrex.Batch]:
        return self.batches()

    def convert(
        self, path: str | os.PathLike[str], to: str | None = None, *, progress: Shown = None
    ) -> dict[str, Any]:
        """Writes it as the file `path`, whole or not at all, in the format `to` or the one that the ending says.

        Returns:
            `to`, `requests`, and `lost`: what the format cannot say, with counts.
        """
        with Showing(progress) as shown:
            done: dict[str, Any] = json.loads(self._native.convert(os.fspath(path), to, shown))
        return done

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self._native.__arrow_c_stream__(requested_schema)

    def __repr__(self) -> str:
        return f"<imbrex.Trace {self.name!r} ({self.format})>"
