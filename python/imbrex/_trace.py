"""`imbrex.Trace`: a workload looked at, taken in batches, or written in another format."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from typing import Any, Unpack

from . import _imbrex, _words
from ._options import TraceOptions, keywords, names
from ._progress import Showing, Shown
from ._tables import Tabular


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

    def info(self, *, progress: Shown = None) -> dict[str, Any]:
        """What is in it: counts, bytes, span, working sets, sequentiality, hot tracks, as `imbrex trace info --json`."""
        with Showing(progress) as shown:
            found: dict[str, Any] = json.loads(self._native.info_json(shown))
        return found

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
