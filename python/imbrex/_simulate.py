"""`imbrex.simulate`: one workload on several drives, side by side."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
import warnings
from collections.abc import Iterable, Iterator
from typing import Any, Unpack

from . import _imbrex, _words
from ._cells import with_ratios
from ._options import SimulateOptions, keywords, names
from ._progress import Showing, Shown
from ._tables import Table


class InterruptedWarning(UserWarning):
    """The work was interrupted: what it gave is of what was done until then."""


NARROW_COLUMNS = 80
"""Width of the terminal for which copied results keep their table, if the whole table does not fit."""


TABLE = "<table></table>"
"""The place of the table in the fragment of copied results."""


class _Kept:
    """The native half of results that were copied or came from another process: all but the file of plans."""

    def __init__(self, held: dict[str, Any]) -> None:
        self.held = held
        self.is_stopped: bool = held["is_stopped"]
        self.not_run: list[str] = held["not_run"]
        self.notes: list[str] = held["notes"]
        self.folder: str | None = held["folder"]

    def summary_json(self) -> str:
        text: str = self.held["summary"]
        return text

    def table(self, columns: int | None = None) -> str:
        text: str = self.held["table"]
        is_wide = columns is not None and any(len(line) > columns for line in text.splitlines())
        return self.held["narrow_table"] if is_wide else text

    def latency(self) -> _imbrex.Table:
        table: _imbrex.Table = self.held["latency"]
        return table

    def timeline(self) -> _imbrex.Table:
        table: _imbrex.Table = self.held["timeline"]
        return table

    def ios(self) -> _imbrex.Table | None:
        table: _imbrex.Table | None = self.held["ios"]
        return table

    def plans(self) -> None:
        return None

    def explain_json(self) -> str | None:
        text: str | None = self.held["explain"]
        return text

    def report(self, path: str) -> None:
        with open(path, "w", encoding="utf-8") as file:
            file.write(self.held["report"])

    def cells(self) -> tuple[list[str], list[list[str]]]:
        cells: tuple[list[str], list[list[str]]] = self.held["cells"]
        return cells

    def fragment(self, table: str) -> str:
        before, after = self.held["fragment"]
        return f"{before}{table}{after}"


def _restored(held: dict[str, Any]) -> Results:
    return Results(_Kept(held))


class Results:
    """What a simulation came to. It iterates over the drives' texts, and `results[text]` are a drive's figures.

    Results can be copied and pickled, but for the file of plans, which stays where it is.

    Attributes:
        summary: the document of `summary.json`: times in nanoseconds, sizes in bytes, ratios as numbers.
        is_stopped: whether it was interrupted; then everything is of the requests read until then.
        not_run: why drives that were asked for did not run, a line each.
        notes: what was decided on the way, for people, a line each; `summary["warnings"]` has them too.
    """

    def __init__(self, native: _imbrex.Simulated | _Kept) -> None:
        self._native = native
        self.summary: dict[str, Any] = json.loads(native.summary_json())
        self.is_stopped = native.is_stopped
        self.not_run = native.not_run
        self.notes = native.notes

    @property
    def drives(self) -> list[dict[str, Any]]:
        """`summary["drives"]`: what each drive made of the workload, baselines among them."""
        drives: list[dict[str, Any]] = self.summary["drives"]
        return drives

    def __getitem__(self, drive: str) -> dict[str, Any]:
        """The results of the drive of this text."""
        for result in self.drives:
            if result["drive"] == drive:
                return result
        raise KeyError(f"no drive '{drive}' in these results; there are {', '.join(r['drive'] for r in self.drives)}")

    def __iter__(self) -> Iterator[str]:
        return (result["drive"] for result in self.drives)

    def __len__(self) -> int:
        return len(self.drives)

    def __contains__(self, drive: object) -> bool:
        return any(result["drive"] == drive for result in self.drives)

    def __reduce__(self) -> tuple[Any, tuple[dict[str, Any]]]:
        native = self._native
        if isinstance(native, _Kept):
            return _restored, (native.held,)
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "report.html")
            native.report(path)
            with open(path, encoding="utf-8") as file:
                report = file.read()
        held = {
            "summary": native.summary_json(),
            "table": native.table(),
            "narrow_table": native.table(NARROW_COLUMNS),
            "latency": native.latency(),
            "timeline": native.timeline(),
            "ios": native.ios(),
            "explain": native.explain_json(),
            "report": report,
            "cells": native.cells(),
            "fragment": native.fragment(TABLE).split(TABLE),
            "is_stopped": self.is_stopped,
            "not_run": self.not_run,
            "notes": self.notes,
            "folder": self.folder,
        }
        return _restored, (held,)

    @property
    def latency(self) -> Table:
        """Histograms of latency: columns `drive`, `operation`, `upper_edge_ns`, `count`."""
        return Table(self._native.latency())

    @property
    def timeline(self) -> Table:
        """Completions over simulated time: `drive`, `begin_ns`, `width_ns`, `reads`, `writes`, `read_bytes`, `write_bytes`."""
        return Table(self._native.timeline())

    @property
    def ios(self) -> Table:
        """One row a request, with `per_io=True`; streamed from a file, however many there are."""
        table = self._native.ios()
        if table is None:
            raise AttributeError("the rows of requests were not kept: give per_io=True to simulate")
        return Table(table)

    @property
    def plans(self) -> str:
        """The path of `plan.jsonl`, every step on the medium, with `plans=True`. It goes with these results."""
        path = self._native.plans()
        if path is None:
            raise AttributeError("the plans were not kept: give plans=True to simulate")
        return os.fspath(path)

    def explain(self, worst: int = 10) -> Table:
        """The parts of the longest latencies, with `explain=` in `simulate`: one row a part.

        Columns: `drive`, `rank` (0 is the longest), `request`, `operation`, `lba`, `sectors`, `device`, `arrival_ns`,
        `latency_ns`, `cause`, `duration_ns`, `conventional`, `of`, `first_request`, `last_request`. The durations of a
        request sum to its latency.

        Args:
            worst: the number of requests of each drive; at most as many as `simulate` was asked to explain.
        """
        text = self._native.explain_json()
        if text is None:
            raise AttributeError("the causes of latencies were not looked for: give explain=10 to simulate")
        return Table(_imbrex.explained_table(text, _words.whole("worst", worst)))

    @property
    def folder(self) -> str | None:
        """The folder that took the files, with `out=`."""
        folder = self._native.folder
        return None if folder is None else os.fspath(folder)

    def report(self, path: str | os.PathLike[str]) -> str:
        """Writes the page `report.html` as `path`, whole or not at all; returns the path."""
        self._native.report(os.fspath(path))
        return os.fspath(path)

    def _repr_html_(self) -> str:
        return self._native.fragment(with_ratios(*self._native.cells()).html())

    def __str__(self) -> str:
        return self._native.table()

    def __repr__(self) -> str:
        return self._native.table(shutil.get_terminal_size().columns)


@keywords(SimulateOptions)
def simulate(
    workload: Any,
    drives: str | os.PathLike[str] | Iterable[str | os.PathLike[str]] | None = None,
    *,
    progress: Shown = None,
    **options: Unpack[SimulateOptions],
) -> Results:
    """Runs one workload on several drives, side by side, as `imbrex simulate` does.

    Args:
        workload: words (`"rw=randwrite,bs=4k,number_ios=10000"`), the name of a built-in workload, the path of a trace, any
            table with the Arrow C stream interface (polars, pandas, pyarrow, DuckDB; its columns are not copied) or a
            dictionary of NumPy arrays. Columns: `time_ns` (nanoseconds since any epoch), `op` (0 or "read", 1 or "write",
            2 or "flush", 3 or "trim"; 128 more for FUA), `lba` and `sectors` (of 512 bytes), and `device` if there are
            several. Do not change columns while the call lasts.
        drives: `PROFILE[+LAYER][:key=value,…]`, the path of a profile in TOML, or a list of them; `"all"` for one drive
            for each translation layer that is not host-managed. None for `"all"`, or for six drives if the workload is
            `"demo"`.
        progress: True or False; a function, called ten times a second with a list of (name, done, of or None); None shows
            bars on a terminal and in a notebook.
        **options: those of `imbrex simulate`, with `_` for `-`

    Raises:
        ValueError: what was asked for is not known, or makes no sense.
        TypeError: an argument of the wrong type, or an unknown option.
        ImbrexError: the world did not play along: a trace that cannot be read, a folder that cannot be written.
        KeyboardInterrupt: Ctrl-C before anything was done. Later the results are those of the requests read until then, with
            an `InterruptedWarning`.
    """
    given_options: dict[str, Any] = {**options}
    pairs = _words.options(given_options, names(SimulateOptions), ("workload", "drives", "progress"))
    texts = _words.drives(drives)
    given = _words.workload(workload)
    command = ["imbrex", "simulate", _words.name_of(workload)]
    for text in texts:
        command += ["--drive", text]
    flags = {_words.NAMES[name] for name, value in given_options.items() if isinstance(value, bool)}
    for name, value in pairs:
        command += ([f"--{name}"] if value == "true" else []) if name in flags else [f"--{name}", value]
    with (showing := Showing(progress)) as shown:
        results = Results(_imbrex.simulate(given, texts, pairs, command, shown))
        showing.is_stopped = results.is_stopped
    if results.is_stopped:
        warnings.warn("interrupted: the results are those of the requests read until then", InterruptedWarning, 2)
    for reason in results.not_run:
        warnings.warn(f"not run: {reason}", stacklevel=2)
    return results
