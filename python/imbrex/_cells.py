"""Cells of tables: numbers as text, and tables as HTML for notebooks and as lines for terminals.

The data of a table stay numbers; only its display has text. The native half formats numbers as the program does. Tables have no colours of their own, so that they suit light
and dark pages.
"""

from __future__ import annotations

import html
import math
import re
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, Union

from . import _imbrex

Value = Union[str, int, float, bool, None]
"""A value of a table."""

NONE = "–"
"""Text of a cell without a value."""

HALF_WIDTH = "_half_width_95"
"""End of the name of a column that has half of the 95 % interval of another column."""

SECTOR_BYTES = 512
"""Size of a sector of a trace."""


def _whole(number: float) -> int:
    """Rounds to the nearest whole number, halves upwards."""
    return number if isinstance(number, int) else math.floor(number + 0.5)


def duration(ns: float) -> str:
    """Formats nanoseconds in a unit that suits the length: `850 ns`, `12.50 ms`, `3.20 s`, `2.5 h`."""
    return _imbrex.shown_duration(_whole(ns))


def size(number: float) -> str:
    """Formats bytes in the largest binary unit of which there is at least one: `4 KiB`, `18.6 GiB`, `256 MiB`."""
    return _imbrex.shown_bytes(_whole(number))


def count(number: float) -> str:
    """Formats a number with commas between groups of three digits; a number with decimals has four significant digits."""
    return f"{int(number):,}" if number == int(number) else f"{number:,.4g}"


def ratio(number: float) -> str:
    """Formats a ratio: `1.00`, `38.1`, `117`, `12,345`."""
    return _imbrex.shown_ratio(number)


def gain(number: float) -> str:
    """Formats a ratio of new to old as a change in percent: `+23.8 %`, `±0 %`."""
    return _imbrex.shown_gain(number)


def share(number: float) -> str:
    """Formats a share of 1 in percent with one decimal."""
    return f"{number * 100:.1f} %"


def clock(seconds: float) -> str:
    """Formats seconds as minutes and seconds, or as hours, minutes and seconds: `0:07`, `1:02:03`."""
    minutes, rest = divmod(int(seconds), 60)
    return f"{minutes // 60}:{minutes % 60:02}:{rest:02}" if minutes >= 60 else f"{minutes}:{rest:02}"


RATIOS = ("slowdown", "write_amplification", "read_amplification", "write_overloading")
"""Columns of ratios whose names do not say so."""


def form_of(name: str) -> Callable[[float], str]:
    """Returns the function that formats the numbers of the column `name`."""
    name = name.removesuffix(HALF_WIDTH)
    if name.endswith("_ns"):
        return duration
    if name.endswith("_bytes"):
        return size
    if name.endswith("_ratio") or name in RATIOS:
        return ratio
    if name == "capacity_gain":
        return gain
    if "share" in name.split("_"):
        return share
    return count


def shown(name: str, value: Value) -> str:
    """Formats a value of the column `name`."""
    if value is None:
        return NONE
    if isinstance(value, str):
        return value
    if isinstance(value, bool) or not math.isfinite(value):
        return str(value).lower()
    return form_of(name)(value) if value >= 0 else f"-{form_of(name)(-value)}"


def heading_of(name: str) -> str:
    """Returns the heading of the column `name`: its words, without a unit that the cells have."""
    ends = (HALF_WIDTH, " ±"), ("_ns", ""), ("_ratio", " (×)")
    for end, mark in ends:
        if name.endswith(end):
            return heading_of(name.removesuffix(end)) + mark
    return "LBA" if name == "lba" else name.replace("_", " ")


Kind = Literal["text", "number", "ratio", "prose"]
"""The kind of the cells of a column. A column of ratios stands close to the values that it belongs to."""

RIGHT = ("number", "ratio")
"""Kinds of cells that are aligned to the right."""

RATIO = "(×)"
"""Heading of a column of ratios, as the remarks below the table of results have it."""


@dataclass(frozen=True)
class Column:
    """A column: its heading and the kind of its cells."""

    heading: str
    kind: Kind = "text"


@dataclass(frozen=True)
class Cells:
    """A table of text, with one cell for each column in each row."""

    columns: Sequence[Column]
    rows: Sequence[Sequence[str]]

    def html(self) -> str:
        """Returns the table as HTML. It has no colours, and a bar to scroll if it is wider than the page."""
        head = "".join(_cell(column, column.heading, "th") for column in self.columns)
        body = "".join(f"<tr>{''.join(map(_cell, self.columns, row))}</tr>" for row in self.rows)
        return (
            '<div style="overflow-x:auto"><table style="border-collapse:collapse;font-variant-numeric:tabular-nums">'
            f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
        )

    def text(self, width: int | None = None) -> str:
        """Returns the table as lines with aligned columns. If a line is longer than `width` (by default the terminal's),
        returns a block of lines for each row, with the headings in it."""
        width = shutil.get_terminal_size().columns if width is None else width
        table = [[column.heading for column in self.columns], *self.rows]
        widths = [max(map(len, cells)) for cells in zip(*table)]
        is_right = [column.kind in RIGHT for column in self.columns]
        aligned = [
            [text.rjust(wide) if right else text.ljust(wide) for text, wide, right in zip(row, widths, is_right)]
            for row in table
        ]
        lines = ["  ".join(row).rstrip() for row in aligned]
        if max(map(len, lines)) <= width:
            return "\n".join(lines)
        return "\n".join(line for row in self.rows for line in self._block(row, width))

    def _block(self, row: Sequence[str], width: int) -> list[str]:
        """Returns the lines of a row: its first cell, and below it as many of the others as fit in each line."""
        lines = [row[0], ""]
        for column, cell in zip(self.columns[1:], row[1:]):
            part = f"  {column.heading} {cell}"
            if lines[-1] and len(lines[-1]) + len(part) > width:
                lines.append("")
            lines[-1] += part
        return lines


STYLES = {
    "text": "text-align:left",
    "number": "text-align:right",
    "ratio": "text-align:right;padding-left:0",
    "prose": "text-align:left;min-width:20em",
}
"""Styles of cells by the kind of their column."""


def _cell(column: Column, text: str, tag: str = "td") -> str:
    # Headings break over lines if the table would be wider than the page.
    wraps = "normal" if tag == "th" or column.kind == "prose" else "nowrap"
    rest = "vertical-align:bottom;border-bottom:1px solid" if tag == "th" else "vertical-align:top"
    opening = '<th scope="col"' if tag == "th" else "<td"
    return f'{opening} style="{STYLES[column.kind]};white-space:{wraps};{rest}">{html.escape(text)}</{tag}>'


def with_ratios(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> Cells:
    """Returns a table of results, whose first column has names. Ratios, as in `12.50 ms (3.20×)`, get columns of their own.
    A column without any value is left out."""
    columns = [Column(headings[0])]
    cells = [[row[0]] for row in rows]
    for index, heading in enumerate(headings[1:], 1):
        parts = [re.fullmatch(r"(.*?)(?: \((.*×.*)\))?", row[index]) for row in rows]
        values, ratios = ([(part[group] or "" if part else "") for part in parts] for group in (1, 2))
        if all(value == NONE for value in values):
            continue
        added = [(Column(heading, "number"), values)]
        if any(ratios):
            added.append((Column(RATIO, "ratio"), [text.replace("×", "") for text in ratios]))
        for column, texts in added:
            columns.append(column)
            for row_cells, text in zip(cells, texts):
                row_cells.append(text)
    return Cells(columns, cells)
