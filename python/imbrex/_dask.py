"""A sweep on a Dask cluster: workloads are sent to each worker once, rows come back one by one and are kept here."""

from __future__ import annotations

import time
from typing import Any

from . import _imbrex

ATTEMPTS = 5
"""How often a point is sent again that was lost with its worker."""

_shipped: dict[str, _imbrex.Shipped] = {}
"""On a worker: the workloads that came to this process."""


def run_there(name: str, payload: tuple[str | None, list[tuple[str, str]], bytes], task: str) -> bytes:
    """On a worker: runs a point on the workload called `name`, which is made of `payload` the first time."""
    if name not in _shipped:
        _shipped[name] = _imbrex.Shipped(*payload)
    return _shipped[name].run(task)


def run(native: _imbrex.Sweep, client: Any, again: bool, shown: Any) -> dict[str, Any]:
    """Runs what is missing on the workers of `client`."""
    from distributed import as_completed  # type: ignore[import-not-found, unused-ignore]

    missing = native.missing(again)
    left = dict(enumerate(missing))
    done = 0
    is_stopped = False
    stamp = f"{time.time_ns():x}"
    for _ in range(ATTEMPTS):
        if not left or is_stopped:
            break
        wanted = {index for index, _ in left.values()}
        sent = {index: client.scatter(native.payload(index), broadcast=True, hash=False) for index in sorted(wanted)}
        futures = {
            client.submit(run_there, f"{stamp}-{workload}", sent[workload], task, pure=False, retries=ATTEMPTS): number
            for number, (workload, task) in left.items()
        }
        try:
            for future in as_completed(futures):  # type: ignore[no-untyped-call, unused-ignore]
                if future.status == "finished":
                    native.keep(future.result())
                    del left[futures[future]]
                    done += 1
                    if callable(shown):
                        shown([("sweep", done, len(missing))])
                elif future.status == "error" and not _is_lost(future.exception()):
                    raise future.exception()
        except KeyboardInterrupt:
            is_stopped = True
            client.cancel(list(futures))
    rows = native.table().to_dict()
    failed = sum(error is not None for error in rows.get("error", []))
    return {
        "points": len(native),
        "found": len(native) - len(missing),
        "run": done,
        "failed": failed,
        "is_stopped": bool(left),
    }


def _is_lost(error: BaseException | None) -> bool:
    """Whether a point was lost with its worker, rather than failed by itself."""
    from distributed.scheduler import KilledWorker  # type: ignore[import-not-found, unused-ignore]

    return isinstance(error, KilledWorker) or type(error).__name__ in ("CancelledError", "FutureCancelledError")
