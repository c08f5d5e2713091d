"""What there is: profiles of drives, translation layers, trace formats, built-in workloads."""

from __future__ import annotations

import json
from typing import Any

from . import _imbrex


def _listed(what: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = json.loads(_imbrex.listed(what))
    return rows


def _one(what: str, name: str) -> dict[str, Any]:
    if not isinstance(name, str):
        raise TypeError(f"{name!r} is no name: expected text")
    found: dict[str, Any] = json.loads(_imbrex.one(what, name))
    return found


def drives() -> list[dict[str, Any]]:
    """The profiles of drives: `profile`, `raw_size`, `recording`, `default_layer`, `what_it_is`."""
    return _listed("drives")


def drive(name: str) -> dict[str, Any]:
    """One profile: its text as `toml`, which runs again as it is, and its `values`."""
    return _one("drives", name)


def layers() -> list[dict[str, Any]]:
    """The translation layers, each with its `parameters`: `key`, `type`, `takes`, `default`, `help`."""
    return _listed("layers")


def layer(name: str) -> dict[str, Any]:
    """One translation layer with its parameters."""
    return _one("layers", name)


def formats() -> list[dict[str, Any]]:
    """The trace formats that can be read."""
    return _listed("formats")


def generators() -> list[dict[str, Any]]:
    """The built-in workloads."""
    return _listed("generators")
