"""`imbrex.sweep`: workloads times drives times parameters, on the cores there are or on a Dask cluster."""

from __future__ import annotations

import html
import os
import tempfile
import warnings
from collections.abc import Iterable, Mapping
from typing import Any, Union, Unpack

from . import _imbrex, _words
from ._options import SweepOptions, keywords, names
from ._progress import Showing, Shown
from ._simulate import InterruptedWarning
from ._cells import HALF_WIDTH, NONE, RATIO, Cells, Column, count, heading_of, shown
from ._tables import Table, Tabular

Values = Union[str, int, float, bool, Iterable[Union[str, int, float, bool]]]
"""What a parameter takes: a value, a list of values, or a range in words: `"1%..5%/2%"`, `"4k..1m/x2"`, `"4m..64g/log5"`."""


ARGUMENTS = ("workloads", "drives", "parameters", "out", "client", "jobs", "retry_failed", "progress")
"""What `sweep` takes beside options."""


class Sweep(Tabular):
    """The rows of a sweep; itself a table (`polars.DataFrame(sweep)`), a row a point, in the order of the grid.

    `len` is the number of rows. It is less than `points` if the sweep was interrupted.

    Attributes:
        points: number of points of the grid.
        found: those that the dataset had already.
        run: those that were run now.
        failed: those whose row has an `error`.
        damaged: those whose row says that live data was lost; 0 without `check=True`.
        is_stopped: whether it was interrupted; the same call runs the remaining points.
        folder: the folder of the dataset: `sweep.parquet` with all rows, `points/*.parquet` with a row each, and `sweep.html`
            with the charts.
    """

    def __init__(self, native: _imbrex.Sweep, folder: str, figures: Mapping[str, Any], title: str) -> None:
        self._native = native
        self.folder = folder
        self.points: int = figures["points"]
        self.found: int = figures["found"]
        self.run: int = figures["run"]
        self.failed: int = figures["failed"]
        self.damaged: int = figures["damaged"]
        self.is_stopped: bool = figures["is_stopped"]
        self.page = os.fspath(native.write_page(title))

    @property
    def table(self) -> Table:
        """All rows: `key`, `workload`, `drive`, each parameter as text and as `NAME_number`, `error`, the measurements."""
        return Table(self._native.table())

    @property
    def parameters(self) -> list[str]:
        """The names of what was swept."""
        return self._native.swept

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.table.__arrow_c_stream__(requested_schema)

    def __len__(self) -> int:
        return len(self.table)

    def _counts(self) -> str:
        """Returns a line with the numbers of points and the folder."""
        points = f"{count(self.points)} points, {count(self.failed)} failed, in {self.folder}"
        rest = len(self) - ROWS_SHOWN
        return points if rest <= 0 else f"{points}; the first {ROWS_SHOWN} are shown, and the table has {count(rest)} more"

    def _repr_html_(self) -> str:
        charts = "".join(self._native.drawings())
        cells = cells_of(self.table.to_dict(), self.parameters)
        return f"<p>{html.escape(self._counts())}</p>{cells.html()}{charts}"

    def __repr__(self) -> str:
        return f"{cells_of(self.table.to_dict(), self.parameters).text()}\n{self._counts()}"


ROWS_SHOWN = 60
"""Largest number of points that are displayed, as on a terminal."""

MEASURES = {
    "write_mean_ns": ("write mean", "host_writes"),
    "read_mean_ns": ("read mean", "host_reads"),
    "write_amplification": ("write ampl.", None),
}
"""The measurements that are displayed: headings, and the columns with the numbers of requests that were measured."""


def cells_of(table: Mapping[str, list[Any]], parameters: list[str]) -> Cells:
    """Returns the first points as a table: workload, drive, parameters, measurements with ratios to the baseline, error."""
    columns, cells = [], []

    def add(column: Column, values: list[str]) -> None:
        columns.append(column)
        cells.append(values[:ROWS_SHOWN])

    names = ["workload", "drive_head", *parameters]
    for name in names:
        is_number = name in parameters and all(number is not None for number in table[f"{name}_number"])
        values = [shown("", value) for value in table[name]]
        if name not in ("workload", "baseline") or len(set(values)) > 1:
            add(Column(heading_of(name.removesuffix("_head")), "number" if is_number else "text"), values)
    for name, (heading, requests) in MEASURES.items():
        values = [_estimate(table, name, row, requests) for row in range(len(table[name]))]
        if all(value == NONE for value in values):
            continue
        add(Column(heading, "number"), values)
        ratios = table.get(f"{name.removesuffix('_ns')}_ratio", [])
        if any(value is not None for value in ratios):
            add(Column(RATIO, "ratio"), [shown("_ratio", value) for value in ratios])
    if any(table["error"]):
        add(Column("error", "prose"), [value or "" for value in table["error"]])
    return Cells(columns, list(zip(*cells)))


def _estimate(table: Mapping[str, list[Any]], name: str, row: int, requests: str | None) -> str:
    """Returns a measurement of a point; with several seeds, with half of its 95 % interval. Returns a dash without requests."""
    if requests is not None and table[requests][row] == 0:
        return NONE
    half = table.get(f"{name}{HALF_WIDTH}", [None] * (row + 1))[row]
    return shown(name, table[name][row]) + (f" ± {shown(name, half)}" if half else "")


@keywords(SweepOptions)
def sweep(
    workloads: Any,
    drives: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    parameters: Mapping[str, Values] | None = None,
    *,
    out: str | os.PathLike[str] | None = None,
    client: Any = None,
    jobs: int | None = None,
    retry_failed: bool = False,
    progress: Shown = None,
    **options: Unpack[SweepOptions],
) -> Sweep:
    """Runs every workload on every drive with every value of every parameter: a row a point in one dataset.

    An option takes a value, or several values, which are swept as parameters are. No baseline is run unless one is given.

    A point's key is a hash of what was asked, of the workload's contents and of the version, so a second call with the same
    `out` finds what is there, does what is missing and adds what is new. A point that fails has a row that says why.

    Args:
        workloads: one as `simulate` takes it, a list of them, or a dictionary of tables by name. A parameter's name in braces
            stands for its value: `"rw=randwrite,bs={bs},number_ios=1000"`.
        drives: as `simulate` takes them.
        parameters: names and values of the drives' parameters, or of those that stand in braces in a workload.
        out: the folder of the dataset; a new temporary one by default.
        client: a `distributed.Client`: points are run on its workers, the workload is sent to each once.
        jobs: points run at once on this machine; as many as there are cores by default.
        retry_failed: runs the points again whose rows say that they failed.
        progress: as `simulate` takes it.
        **options: those of `simulate`

    Raises:
        ValueError, TypeError, ImbrexError: as `simulate`; what fails in one point alone is in its row.
    """
    if client is not None and not hasattr(client, "scatter"):
        raise TypeError(f"client = {client!r}: expected a distributed.Client")
    at_once = None if jobs is None else _words.whole("jobs", jobs, least=1, most=2**32 - 1)
    named = _named(workloads)
    texts = _words.drives(drives)
    folder = os.fspath(out) if out is not None else tempfile.mkdtemp(prefix="imbrex-sweep-")
    if parameters is not None and not isinstance(parameters, Mapping):
        raise TypeError(f"parameters = {parameters!r}: expected a dictionary of names and values")
    swept = [(str(name), _values(name, values)) for name, values in (parameters or {}).items()]
    chosen = []
    for name, value in options.items():
        if value is not None:
            _words.options({name: "" if isinstance(value, (list, tuple)) else value}, names(SweepOptions), ARGUMENTS)
            chosen.append((_words.NAMES[name], _values(name, value)))
    with (showing := Showing(progress, is_native=client is None)) as display:
        native = _imbrex.Sweep(named, texts, swept, chosen, folder, display)
        if client is None:
            figures = native.run(at_once, bool(retry_failed), display)
        else:
            from ._dask import run

            figures = run(native, client, retry_failed, display)
        showing.is_stopped = figures["is_stopped"]
    if figures["is_stopped"]:
        warnings.warn("interrupted: the same call runs the remaining points", InterruptedWarning, 2)
    done = Sweep(native, folder, figures, ", ".join(name for name, _ in named))
    if done.failed:
        first = next(error for error in done.table.to_dict()["error"] if error is not None)
        warnings.warn(f"{done.failed} of {done.points} points failed, the first of them: {first}", stacklevel=2)
    if done.damaged:
        lost = f"live data was lost at {done.damaged} of {done.points} points, the first of them: {_lost(done)}"
        warnings.warn(lost, stacklevel=2)
    return done


def _lost(swept: Sweep) -> str:
    """The drive of the first point at which live data was lost, and a description of the loss."""
    table = swept.table.to_dict()
    columns = ("drive", "integrity", "integrity_violation", "integrity_first")
    for drive, verdict, violation, first in zip(*(table[name] for name in columns), strict=True):
        if verdict in ("violation", "live_sectors_destroyed"):
            return f"{drive}: {violation or first}"
    raise AssertionError("a row with lost data has one of these verdicts")


def _named(workloads: Any) -> list[tuple[str, str | _imbrex.Columns]]:
    """Workloads with their names."""
    if isinstance(workloads, (list, tuple)):
        if len(tables := [one for one in workloads if not isinstance(one, (str, os.PathLike))]) > 1:
            raise TypeError(f"{len(tables)} tables without names: give them as a dictionary of names and tables")
        return [(_words.name_of(one), _words.workload(one)) for one in workloads]
    is_columns = isinstance(workloads, Mapping) and {"time_ns", "op", "lba", "sectors"} <= set(workloads)
    if isinstance(workloads, Mapping) and not is_columns:
        return [(str(name), _words.workload(one)) for name, one in workloads.items()]
    return [(_words.name_of(workloads), _words.workload(workloads))]


def _values(name: str, values: Any) -> list[str]:
    """The words of a value or of a list of them."""
    if isinstance(values, (str, int, float, bool)) or hasattr(values, "item") and not hasattr(values, "__len__"):
        return [_words.word(name, values)]
    try:
        return [_words.word(name, value) for value in values]
    except TypeError as error:
        raise TypeError(f"{name} = {values!r}: expected a value, a list of them, or a range in words") from error
