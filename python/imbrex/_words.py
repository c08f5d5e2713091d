"""Words: what Python has for options, drives and workloads, as the command line writes it."""

from __future__ import annotations

import difflib
import keyword
import operator
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from . import _imbrex

# A word that Python keeps for itself gets an underscore.
NAMES = {(f"{name}_" if keyword.iskeyword(name) else name.replace("-", "_")): name for name in _imbrex.option_names()}


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


def options(given: Mapping[str, Any], known: Sequence[str], others: Sequence[str] = ()) -> list[tuple[str, str]]:
    """The options of a call, by the names of the command line. None leaves an option out. `known`: the options that the
    call takes. `others`: its other arguments."""
    pairs = []
    for name, value in given.items():
        if name not in known:
            near = difflib.get_close_matches(name, [*known, *others], 1)
            meant = f" (did you mean '{near[0]}'?)" if near else ""
            raise TypeError(f"no option is called '{name}'{meant}: expected one of {', '.join(sorted(known))}")
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
        return _imbrex.Columns.of_columns({name: column(name, given[name].copy()) for name in names})
    if isinstance(given, Mapping):
        return _imbrex.Columns.of_columns({name: column(name, values) for name, values in given.items()})
    raise TypeError(
        f"a {type(given).__name__} is no workload: expected words such as 'rw=randwrite,bs=4k,number_ios=1000', the path of "
        "a trace, a table (polars, pandas, pyarrow, DuckDB) or a dictionary of NumPy arrays time_ns, op, lba, sectors"
    )


USED = ("time_ns", "op", "lba", "sectors", "device")
"""The columns of a table of requests; others are not looked at."""

NS = {"W": 604_800 * 10**9, "D": 86_400 * 10**9, "h": 3_600 * 10**9, "m": 60 * 10**9, "s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}
"""Nanoseconds of one of each of NumPy's units of time."""

PARTS = {"ps": 10**3, "fs": 10**6, "as": 10**9}
"""How many of each finer unit are a nanosecond."""


def column(name: str, values: Any) -> Any:
    """One column as the native half reads it: whole numbers of this machine, or a list."""
    if name not in USED:
        return values
    if hasattr(values, "to_numpy") and type(getattr(values, "dtype", None)).__module__.startswith("numpy"):
        values = values.to_numpy()  # a Series of pandas on an array of NumPy
    masked = getattr(values, "mask", None)
    if masked is not None and hasattr(values, "filled"):  # a masked array of NumPy
        rows = [index for index, is_masked in enumerate(_list(masked, len(values))) if is_masked]
        if rows:
            raise ValueError(f"column '{name}': the value of row {rows[0]} is masked: leave out such rows, or fill them")
        values = values.data
    kind = getattr(getattr(values, "dtype", None), "kind", None)
    if kind in ("M", "m"):
        return _nanoseconds(name, values)
    if kind in ("i", "u") and not values.dtype.isnative:
        return values.astype(values.dtype.newbyteorder("="))
    if kind == "S":
        return [text.decode() for text in values.tolist()]
    return values.tolist() if kind in ("U", "O", "T") else values


def _list(masked: Any, length: int) -> list[bool]:
    """A mask as a list; NumPy has one value where no row is masked."""
    given = masked.tolist()
    return given if isinstance(given, list) else [bool(given)] * length


def _nanoseconds(name: str, values: Any) -> Any:
    """Dates or durations of NumPy as whole nanoseconds."""
    import numpy

    if name != "time_ns":
        raise TypeError(f"column '{name}' has the type {values.dtype}: expected whole numbers")
    unit, count = numpy.datetime_data(values.dtype)
    is_date = values.dtype.kind == "M"
    if unit in ("Y", "M") and is_date:
        values, unit, count = values.astype("datetime64[D]"), "D", 1
    if unit not in NS and unit not in PARTS:
        raise TypeError(f"column '{name}' has the type {values.dtype}: a {unit} is no fixed time; cast it to ns, us, ms or s")
    numbers = values.astype(values.dtype.newbyteorder("=")).astype("int64")
    missing = numpy.flatnonzero(numpy.isnat(values))
    if len(missing):
        raise ValueError(f"column '{name}': the time of row {missing[0]} is missing (NaT)")
    if unit in PARTS:
        return [number * count // PARTS[unit] for number in numbers.tolist()]
    factor = NS[unit] * count
    far = numpy.flatnonzero(numpy.abs(numbers) > (2**63 - 1) // factor)
    if len(far):
        raise ValueError(f"column '{name}': {values[far[0]]} in row {far[0]} is too far for 64 bits of nanoseconds")
    return numbers * factor


def name_of(given: Any) -> str:
    """The word for a workload in a command."""
    return os.fspath(given) if isinstance(given, (str, os.PathLike)) else "table"
