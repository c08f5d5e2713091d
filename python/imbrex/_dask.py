"""A sweep on a Dask cluster: workloads are sent to each worker once, rows come back one by one and are kept here."""

from __future__ import annotations

import uuid
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


def forget(stamp: str) -> None:
    """On a worker: lets go of the workloads that came for the sweep called `stamp`."""
    for name in [name for name in _shipped if name.startswith(f"{stamp}-")]:
        del _shipped[name]


def run(native: _imbrex.Sweep, client: Any, again: bool, shown: Any) -> dict[str, Any]:
    """Runs what is missing on the workers of `client`."""
    missing = native.missing(again)
    left = dict(enumerate(missing))
    # The workers of a client serve several sweeps, also those of other processes.
    stamp = uuid.uuid4().hex
    try:
        _run_left(native, client, stamp, left, len(missing), shown)
    finally:
        client.run(forget, stamp, on_error="ignore")
    rows = native.table().to_dict()
    failed = sum(error is not None for error in rows.get("error", []))
    return {
        "points": len(native),
        "found": len(native) - len(missing),
        "run": len(missing) - len(left),
        "failed": failed,
        "damaged": native.damaged(),
        "is_stopped": bool(left),
    }


def _run_left(
    native: _imbrex.Sweep, client: Any, stamp: str, left: dict[int, tuple[int, str]], total: int, shown: Any
) -> None:
    """Runs the points `left`, and removes each whose row is kept. Returns early when interrupted."""
    from distributed import as_completed  # type: ignore[import-not-found, unused-ignore]

    for _ in range(ATTEMPTS):
        if not left:
            return
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
                    if callable(shown):
                        shown([("sweep", total - len(left), total)])
                elif future.status == "error" and not _is_lost(future.exception()):
                    raise future.exception()
        except KeyboardInterrupt:
            client.cancel(list(futures))
            return
        except BaseException:
            client.cancel(list(futures))
            raise


def _is_lost(error: BaseException | None) -> bool:
    """Whether a point was lost with its worker, rather than failed by itself."""
    from distributed.scheduler import KilledWorker  # type: ignore[import-not-found, unused-ignore]

    return isinstance(error, KilledWorker) or type(error).__name__ in ("CancelledError", "FutureCancelledError")
