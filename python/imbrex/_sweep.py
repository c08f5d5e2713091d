"""`imbrex.sweep`: workloads times drives times parameters, on the cores there are or on a Dask cluster."""

from __future__ import annotations

import os
import tempfile
import warnings
from collections.abc import Iterable, Mapping
from typing import Any, Union, Unpack

from . import _imbrex, _words
from ._options import SweepOptions, keywords, names
from ._progress import Showing, Shown
from ._simulate import InterruptedWarning
from ._tables import Tabular

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
    def table(self) -> _imbrex.Table:
        """All rows: `key`, `workload`, `drive`, each parameter as text and as `NAME_number`, `error`, the measurements."""
        return self._native.table()

    @property
    def parameters(self) -> list[str]:
        """The names of what was swept."""
        return self._native.swept

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.table.__arrow_c_stream__(requested_schema)

    def __len__(self) -> int:
        return len(self.table)

    def _repr_html_(self) -> str:
        charts = "".join(self._native.drawings())
        return f"<p>{self.points:,} points, {self.failed:,} failed, in {self.folder}</p>{charts}"

    def __repr__(self) -> str:
        return f"<imbrex.Sweep of {self.points} points, {self.failed} failed, in {self.folder!r}>"


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
    with Showing(progress) as shown:
        native = _imbrex.Sweep(named, texts, swept, chosen, folder, shown)
        if client is None:
            figures = native.run(at_once, bool(retry_failed), shown)
        else:
            from ._dask import run

            figures = run(native, client, retry_failed, shown)
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
