"""`imbrex.probe`, `imbrex.validate`, `imbrex.fit`: what is inside a drive, and how near a simulated one comes to a real one."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from typing import Any

from . import _imbrex, _words
from ._progress import Showing, Shown


def probe(
    target: str | os.PathLike[str],
    *,
    tests: Iterable[str] = (),
    budget: str | None = None,
    seed: int = 1,
    progress: Shown = None,
) -> dict[str, Any]:
    """What is inside a drive, from its completion times: the document of `imbrex probe --json`.

    Args:
        target: `sim:DRIVE` (a simulated drive), an image, a served drive (`nbd://…`), a block device, or a file. All but a
            simulated one are only read: the tests that write need leave, which the command line asks for.
        tests: names of tests; all that may run by default.
        budget: time on the drive's clock, such as "30m".
        seed: of the random places.
    """
    with Showing(progress) as shown:
        found: dict[str, Any] = json.loads(_imbrex.probed(os.fspath(target), list(tests), budget, _words.whole("seed", seed), shown))
    found.setdefault("warnings", [])
    return found


def validate(
    measured: str | os.PathLike[str],
    drive: str,
    *,
    workload: str | None = None,
    columns: str | None = None,
    units: str | None = None,
    device: str | None = None,
    progress: Shown = None,
) -> dict[str, Any]:
    """Holds a simulated drive against what a real one did: the document of `imbrex validate --json`.

    Args:
        measured: the file of measurements (DiskSim's, blktrace, fio's, `ios.parquet`, csv).
        drive: as `simulate` takes it.
        workload: of fio's json+, which names no requests: those to issue.
        columns, units, device: how to read the file, as on the command line.
    """
    with Showing(progress) as shown:
        text = _imbrex.validated(os.fspath(measured), drive, workload, columns, units, device, shown)
    found: dict[str, Any] = json.loads(text)
    found.setdefault("warnings", [])
    return found


def fit(
    measured: str | os.PathLike[str],
    profile: str,
    *,
    columns: str | None = None,
    units: str | None = None,
    device: str | None = None,
    progress: Shown = None,
) -> dict[str, Any]:
    """Fits a profile to what a real drive did: the document of `imbrex fit --json`, and the fitted profile as `toml`."""
    with Showing(progress) as shown:
        text, toml = _imbrex.fitted(os.fspath(measured), profile, columns, units, device, shown)
    found: dict[str, Any] = json.loads(text)
    found.setdefault("warnings", [])
    return {**found, "toml": toml}
