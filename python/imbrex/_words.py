"""Words: what Python has for options, drives and workloads, as the command line writes it."""

from __future__ import annotations

import difflib
import operator
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Union

from . import _imbrex

Word = Union[str, int, float, bool, os.PathLike[str], Sequence[Union[str, int, float]], None]
"""What an option takes: text, a number, a flag, a path, a list of words; None leaves it out."""

NAMES = {name.replace("-", "_"): name for name in _imbrex.option_names()}


def word(name: str, value: Any) -> str:
    """`value` as it is written on the command line."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (str, int, float)):
        return str(value)
    if isinstance(value, os.PathLike):
        path: str = os.fspath(value)
        return path
    if isinstance(value, (list, tuple)):
        return ",".join(word(name, part) for part in value)
    if hasattr(value, "item") and not isinstance(value, type):
        return word(name, value.item())  # a scalar of NumPy
    raise TypeError(
        f"{name} = {value!r}: expected text, a number, True or False, a path or a list of words, "
        f"not {type(value).__name__}"
    )


def whole(name: str, value: Any, least: int = 0, most: int = 2**64 - 1) -> int:
    """`value` as a whole number from `least` to `most`; `name` is what the call calls it."""
    try:
        number = operator.index(value)
    except TypeError:
        raise TypeError(f"{name} = {value!r}: expected a whole number, not {type(value).__name__}") from None
    if not least <= number <= most:
        raise ValueError(f"{name} = {number}: expected a whole number from {least} to {most}")
    return number


def options(given: Mapping[str, Any], others: Sequence[str] = ()) -> list[tuple[str, str]]:
    """The options of a call, by the names of the command line. None leaves an option out. `others`: what else the call takes."""
    pairs = []
    for name, value in given.items():
        if name not in NAMES:
            near = difflib.get_close_matches(name, [*NAMES, *others], 1)
            meant = f" (did you mean '{near[0]}'?)" if near else ""
            raise TypeError(f"no option is called '{name}'{meant}: expected one of {', '.join(sorted(NAMES))}")
        if value is not None:
            pairs.append((NAMES[name], word(name, value)))
    return pairs


def drives(given: str | os.PathLike[str] | Iterable[str | os.PathLike[str]] | None) -> list[str]:
    """The texts of one drive or of several."""
    if given is None:
        return []
    if isinstance(given, (str, os.PathLike)):
        return [os.fspath(given)]
    try:
        texts = list(given)
    except TypeError:
        raise TypeError(
            f"drives = {given!r}: expected the text of a drive, such as 'imr-1t+track-map', or a list of such"
        ) from None
    for text in texts:
        if not isinstance(text, (str, os.PathLike)):
            raise TypeError(f"drives: {text!r} is no text of a drive, such as 'imr-1t+track-map'")
    return [os.fspath(text) for text in texts]


def workload(given: Any) -> str | _imbrex.Columns:
    """A workload as the native half takes it: words, a path, or columns that stay where they are."""
    if isinstance(given, (str, os.PathLike)):
        return os.fspath(given)
    if isinstance(given, _imbrex.Columns):
        return given
    if hasattr(given, "__arrow_c_stream__"):
        return _imbrex.Columns.of_arrow(given)
    names = getattr(getattr(given, "dtype", None), "names", None)
    if names:  # a structured array of NumPy
        return _imbrex.Columns.of_columns({name: column(given[name].copy()) for name in names})
    if isinstance(given, Mapping):
        return _imbrex.Columns.of_columns({name: column(values) for name, values in given.items()})
    raise TypeError(
        f"a {type(given).__name__} is no workload: expected words such as 'rw=randwrite,bs=4k,number_ios=1000', the path of "
        "a trace, a table (polars, pandas, pyarrow, DuckDB) or a dictionary of NumPy arrays time_ns, op, lba, sectors"
    )


def column(values: Any) -> Any:
    """One column: NumPy's texts become a list, since they are no numbers in memory."""
    kind = getattr(getattr(values, "dtype", None), "kind", None)
    return values.tolist() if kind in ("U", "S", "O", "T") else values


def name_of(given: Any) -> str:
    """The word for a workload in a command."""
    return os.fspath(given) if isinstance(given, (str, os.PathLike)) else "table"
