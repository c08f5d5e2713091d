"""`imbrex.Drive`: an emulated drive with bytes, for tests of whatever stores things."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from types import TracebackType
from typing import Any, NamedTuple

from . import _imbrex
from ._words import whole


FAULTS = {
    "unreadable": ("offset", "length"),
    "slow": ("offset", "length", "by"),
    "zone-read-only": ("zone",),
    "zone-offline": ("zone",),
    "pointer": ("zone", "to"),
}
"""The kinds of faults, and what each takes."""


@dataclass(frozen=True)
class Zone:
    """A zone; `start`, `length` and `pointer` in bytes, the pointer from the zone's start."""

    index: int
    start: int
    length: int
    pointer: int
    condition: str


class Caveat(NamedTuple):
    """What a caveat disk tells its host: bytes after a write that it spares, and up to where it may damage."""

    no_overlap_bytes: int
    isolation_bytes: int


class Drive:
    """A drive with contents, as one process sees it: every request is answered before the call returns.

    Its clock is simulated: it moves by what requests take, and by [`sleep`][Drive.sleep]. Offsets and lengths are bytes, whole
    sectors of `sector_bytes`. A drive with a volatile write cache acknowledges writes that a power cut loses until they are
    flushed. Use it in a `with` statement, or `close` it.

    Raises:
        ValueError: what cannot be: past the end, no whole sectors, against the rule of a zone. Nothing has changed.
        ImbrexError: what fails: an unreadable sector, a damaged image, a write that destroyed what is read.
    """

    def __init__(self, native: _imbrex.Drive) -> None:
        self._native = native

    @classmethod
    def create(
        cls,
        drive: str,
        path: str | os.PathLike[str] | None = None,
        *,
        write_cache: int | None = None,
        read_ahead: int | None = None,
    ) -> Drive:
        """A new drive, in memory or in the image file `path` (which must not be there yet).

        Args:
            drive: `PROFILE[+LAYER][:key=value,…]`.
            path: the image, which `imbrex drive` and `imbrex serve` take too.
            write_cache: bytes of the volatile write cache, 0 for none; the profile's by default.
            read_ahead: bytes that are read ahead, likewise.
        """
        if not isinstance(drive, str):
            raise TypeError(f"drive = {drive!r}: expected the text of a drive, such as 'imr-1t+track-map'")
        made = cls(_imbrex.Drive.create(drive, None if path is None else os.fspath(path)))
        made._caches(write_cache, read_ahead)
        return made

    @classmethod
    def open(
        cls, path: str | os.PathLike[str], *, write_cache: int | None = None, read_ahead: int | None = None
    ) -> Drive:
        """The drive in the image file `path`; what a killed process left half done is recovered."""
        opened = cls(_imbrex.Drive.open(os.fspath(path)))
        opened._caches(write_cache, read_ahead)
        return opened

    def _caches(self, write_cache: int | None, read_ahead: int | None) -> None:
        if write_cache is None and read_ahead is None:
            return
        held = self._native.facts()
        self._native.set_caches(
            held["write_cache_bytes"] if write_cache is None else whole("write_cache", write_cache),
            held["read_ahead_bytes"] if read_ahead is None else whole("read_ahead", read_ahead),
        )

    def read(self, offset: int, length: int) -> bytes:
        """Reads; what was never written reads as zeros."""
        return self._native.read(whole("offset", offset), whole("length", length))

    def write(self, offset: int, data: bytes | bytearray | memoryview, *, fua: bool = False) -> int:
        """Writes; with `fua` it is durable when the call returns. Returns the simulated nanoseconds that it took."""
        return self._native.write(whole("offset", offset), data, bool(fua))

    def flush(self) -> int:
        """Makes durable what was acknowledged. Returns the simulated nanoseconds that it took."""
        return self._native.flush()

    def trim(self, offset: int, length: int) -> int:
        """Gives up what is stored there; what is read there then is up to the drive's layer. Returns the simulated nanoseconds that it took."""
        return self._native.trim(whole("offset", offset), whole("length", length))

    def sleep(self, ns: int) -> None:
        """Lets simulated nanoseconds pass, in which the drive writes back and cleans."""
        self._native.sleep(whole("ns", ns))

    def power_cut(self, seed: int | None = None) -> bool:
        """Cuts the power and switches it on again.

        What was not flushed is lost; with a `seed`, each sector of it survives or not as that says, as when the drive was
        writing back. Try several seeds. Returns whether there was anything to lose.
        """
        return self._native.power_cut(None if seed is None else whole("seed", seed))

    def fault(
        self,
        kind: str,
        *,
        offset: int | None = None,
        length: int | None = None,
        by: int | str | None = None,
        zone: int | None = None,
        to: int | None = None,
        at: int | str | None = None,
        after_requests: int | None = None,
    ) -> None:
        """Injects a fault, at once or later.

        Args:
            kind: "unreadable" and "slow" (sectors), "zone-read-only" and "zone-offline" (a zone), or "pointer" (the write
                pointer of a zone moves).
            offset: the first byte of the sectors, as `read` takes it.
            length: the bytes of the sectors, as `read` takes them.
            by: time that is added to each access to slow sectors: nanoseconds, or text such as "200ms".
            zone: the index of the zone.
            to: the new write pointer, in bytes from the start of the zone, as `zones` returns it.
            at: time of the drive at which the fault begins: nanoseconds, or text such as "10s".
            after_requests: number of requests after which the fault begins.
        """
        given = {"offset": offset, "length": length, "by": by, "zone": zone, "to": to}
        takes = FAULTS.get(kind) if isinstance(kind, str) else None
        if takes is None:
            raise ValueError(f"kind = {kind!r}: expected one of {', '.join(FAULTS)}")
        for name, value in given.items():
            if (value is None) == (name in takes):
                raise ValueError(f"a fault of kind '{kind}' takes {' and '.join(takes)}, {'and needs' if value is None else 'no'} {name}")
        values: dict[str, int | str] = {"kind": kind}
        for name, key in (("offset", "lba"), ("length", "sectors"), ("to", "to")):
            if given[name] is not None:
                values[key] = self._sectors(name, given[name])
        if zone is not None:
            values["zone"] = whole("zone", zone, most=2**32 - 1)
        for name, time in (("by", by), ("at", at)):
            if time is not None:
                values[name] = time if isinstance(time, str) else f"{whole(name, time)}ns"
        if after_requests is not None:
            values["after_requests"] = whole("after_requests", after_requests)
        lines = [f"{key} = {json.dumps(value)}" for key, value in values.items()]
        self._native.play_faults("[[fault]]\n" + "\n".join(lines) + "\n")

    def _sectors(self, name: str, value: Any) -> int:
        """Bytes as sectors."""
        number, sector = whole(name, value), self.sector_bytes
        if number % sector:
            raise ValueError(f"{name} = {number}: expected whole sectors of {sector} bytes")
        return number // sector

    def zones(self) -> list[Zone]:
        """The zones of a zoned drive; none of another."""
        return [Zone(*zone) for zone in self._native.zones()]

    def open_zone(self, index: int) -> None:
        """Opens a zone: it counts as open until it is closed, finished, full or reset."""
        self._native.change_zone("open", whole("index", index, most=2**32 - 1))

    def close_zone(self, index: int) -> None:
        """Closes a zone: it no longer counts as open."""
        self._native.change_zone("close", whole("index", index, most=2**32 - 1))

    def finish_zone(self, index: int) -> None:
        """Makes a zone full without writing it."""
        self._native.change_zone("finish", whole("index", index, most=2**32 - 1))

    def reset_zone(self, index: int) -> None:
        """Makes a zone empty."""
        self._native.change_zone("reset", whole("index", index, most=2**32 - 1))

    @property
    def caveat(self) -> Caveat | None:
        """What a caveat disk tells its host; None of another."""
        told = self._native.caveat()
        return None if told is None else Caveat(*told)

    def _fact(self, name: str) -> Any:
        return self._native.facts()[name]

    @property
    def capacity_bytes(self) -> int:
        """Bytes that it offers."""
        return int(self._fact("capacity_bytes"))

    @property
    def sector_bytes(self) -> int:
        """Bytes of a sector."""
        return int(self._fact("sector_bytes"))

    @property
    def now_ns(self) -> int:
        """The simulated time; it goes on through power cuts."""
        return int(self._fact("now_ns"))

    @property
    def latency_ns(self) -> int:
        """The simulated nanoseconds that the last request took, failed or not."""
        return int(self._fact("latency_ns"))

    @property
    def dirty_bytes(self) -> int:
        """Bytes acknowledged and not yet durable: what a power cut loses."""
        return int(self._fact("dirty_bytes"))

    def close(self) -> None:
        """Switches it off in good order; a drive in memory is gone then."""
        self._native.close()

    def __repr__(self) -> str:
        try:
            held = self._native.facts()
        except ValueError:
            return "<imbrex.Drive, closed>"
        return f"<imbrex.Drive {held['drive']} of {held['capacity_bytes']:,} bytes at {held['now_ns']:,} ns>"

    def __enter__(self) -> Drive:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
