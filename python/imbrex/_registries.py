"""What there is: profiles of drives, translation layers, trace formats, built-in workloads."""

from __future__ import annotations

import json
from typing import Any

from . import _imbrex
from ._cells import Cells, Column, Kind, heading_of
from ._tables import PROSE


class Listing(list[dict[str, Any]]):
    """A list of dictionaries with equal keys. It is displayed as a table, without parameters of layers and exact sizes."""

    def _cells(self) -> Cells:
        names = [name for name in self[0] if name not in ("parameters", "raw_bytes")] if self else []
        kinds: dict[str, Kind] = {"raw_size": "number", **dict.fromkeys(PROSE, "prose")}
        columns = [Column(heading_of(name), kinds.get(name, "text")) for name in names]
        texts = [[row[name] for name in names] for row in self]
        return Cells(columns, [[text if isinstance(text, str) else ", ".join(text) for text in row] for row in texts])

    def _repr_html_(self) -> str:
        return self._cells().html()

    def __repr__(self) -> str:
        return self._cells().text()


def _listed(what: str) -> Listing:
    return Listing(json.loads(_imbrex.listed(what)))


def _one(what: str, name: str) -> dict[str, Any]:
    if not isinstance(name, str):
        raise TypeError(f"{name!r} is no name: expected text")
    found: dict[str, Any] = json.loads(_imbrex.one(what, name))
    return found


def drives() -> Listing:
    """The profiles of drives: `profile`, `raw_bytes`, `raw_size`, `recording`, `default_layer`, `what_it_is`."""
    return _listed("drives")


def drive(name: str) -> dict[str, Any]:
    """One profile: its text as `toml`, which runs again as it is, and its `values`."""
    return _one("drives", name)


def layers() -> Listing:
    """The translation layers, each with its `parameters`: `key`, `type`, `takes`, `default`, `help`."""
    return _listed("layers")


def layer(name: str) -> dict[str, Any]:
    """One translation layer with its parameters."""
    return _one("layers", name)


def formats() -> Listing:
    """The trace formats that can be read."""
    return _listed("formats")


def generators() -> Listing:
    """The built-in workloads."""
    return _listed("generators")
