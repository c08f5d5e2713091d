"""Progress: the native half draws bars on a terminal, and this module draws rows in a notebook.

This module uses neither rich nor tqdm, since both need ipywidgets in a notebook, so that users without them would need all of
the code below as well.
"""

from __future__ import annotations

import html
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Union

from ._cells import Cells, Column, clock, count, duration

Told = list[tuple[str, int, Union[int, None]]]
"""How far work is: name, how much is done, how much there is or None."""

Shown = Union[bool, Callable[[Told], object], None]
"""What shows progress: True for bars, False for none, a function that is called with [`Told`], None for what suits."""

Show = Callable[[str, str], object]
"""A display: it replaces its contents by a drawing, which it takes as HTML and as text."""

INTERVAL_S = 0.1
"""Shortest time between two drawings."""

UNITS = {"sweep": "points", "laying out the drives": "points"}
"""Units of work by its name; other work with a known end is counted in requests."""

COLUMNS = [Column(""), Column(""), *(Column("", "number") for _ in range(4))]
"""Columns of a drawing as text: name, bar, percentage, amount, time elapsed, time left."""

BAR = '<progress style="width:12em;accent-color:currentColor" value="{:.4f}" max="1"></progress>'
"""A bar as HTML."""

BAR_CHARACTERS = 20
"""Length of a bar as text."""


def in_notebook() -> bool:
    """Whether this process is the kernel of a notebook."""
    if "IPython" not in sys.modules:
        return False
    from IPython import get_ipython  # type: ignore[import-not-found, unused-ignore]

    shell = get_ipython()  # type: ignore[no-untyped-call, unused-ignore]
    return shell is not None and hasattr(shell, "kernel")


class NotebookDisplay:
    """A display in the output of a notebook's cell."""

    def __init__(self) -> None:
        self.handle: Any = None

    def __call__(self, drawing: str, text: str) -> None:
        from IPython.display import display  # type: ignore[import-not-found, unused-ignore]

        data = {"text/html": drawing, "text/plain": text}
        if self.handle is None:
            self.handle = display(data, raw=True, display_id=True)  # type: ignore[no-untyped-call, unused-ignore]
        else:
            self.handle.update(data, raw=True)


class TerminalDisplay:
    """A display on standard error, for work that the native half does not see: points on a cluster."""

    def __init__(self) -> None:
        self.lines = 0

    def __call__(self, drawing: str, text: str) -> None:
        above = f"\x1b[{self.lines}F\x1b[J" if self.lines else ""
        sys.stderr.write(f"{above}{text}\n")
        sys.stderr.flush()
        self.lines = text.count("\n") + 1


@dataclass
class Row:
    """How far a piece of work is. Times are in seconds of a clock that does not jump."""

    name: str
    begin_s: float
    done: int = 0
    total: int | None = None
    end_s: float | None = None

    @property
    def share(self) -> float | None:
        """The share of the work that is done; None if its end is not known."""
        return min(self.done / self.total, 1.0) if self.total else None

    def left_s(self, now_s: float) -> float | None:
        """The seconds that the rest takes at the mean rate until now; None if that is not known."""
        if not self.total or not self.done or self.end_s is not None:
            return None
        return (now_s - self.begin_s) * max(self.total - self.done, 0) / self.done

    def texts(self, now_s: float) -> tuple[str, str, str, str]:
        """The percentage, the amount, the time elapsed and the time left."""
        amount = count(self.done)
        if self.total:
            amount += f" of {count(self.total)} {UNITS.get(self.name, 'requests')}"
        elapsed_s = (now_s if self.end_s is None else self.end_s) - self.begin_s
        left_s = self.left_s(now_s)
        left = "" if left_s is None else f"{clock(left_s)} left"
        return "" if self.share is None else percent(self.share), amount, clock(elapsed_s), left


def percent(share: float) -> str:
    """Formats a share as a percentage of three significant digits, rounded down, so that 100 % is the end."""
    value = share * 100
    places = 0 if value >= 100 else 1 if value >= 10 else 2 if value >= 1 else 3
    return f"{int(value * 10**places + 1e-9) / 10**places:.{places}f} %"


class Rows:
    """The rows of a drawing, in the order of their beginnings. Work that is no longer reported has ended."""

    def __init__(self) -> None:
        self.by_key: dict[tuple[str, int], Row] = {}

    def see(self, told: Told, now_s: float) -> None:
        """Takes over a report."""
        under_way = set()
        for name, done, total in told:
            # Work of one name may be under way several times.
            key = next((name, number) for number in range(len(told)) if (name, number) not in under_way)
            under_way.add(key)
            row = self.by_key.get(key)
            if row is None or row.end_s is not None:
                row = self.by_key[key] = Row(name, now_s)
            row.done, row.total = done, total
        for key, row in self.by_key.items():
            if key not in under_way and row.end_s is None:
                row.end_s = now_s
                row.done = row.total or row.done

    def html(self, now_s: float) -> str:
        """Returns the drawing as HTML: a row for each piece of work."""
        cell = '<td style="text-align:{};white-space:nowrap">{}</td>'
        body = ""
        for row in self.by_key.values():
            bar = "" if row.share is None else BAR.format(row.share)
            texts = [html.escape(row.name), bar, *row.texts(now_s)]
            body += f"<tr>{''.join(cell.format('right' if at > 1 else 'left', text) for at, text in enumerate(texts))}</tr>"
        return f'<table style="border-collapse:collapse;font-variant-numeric:tabular-nums"><tbody>{body}</tbody></table>'

    def text(self, now_s: float) -> str:
        """Returns the drawing as lines."""
        lines = []
        for row in self.by_key.values():
            bar = "" if row.share is None else ("=" * int(row.share * BAR_CHARACTERS)).ljust(BAR_CHARACTERS)
            lines.append([row.name, bar, *row.texts(now_s)])
        return Cells(COLUMNS, lines).text(10_000).lstrip("\n")


class Drawing:
    """Draws the rows of progress on a display, at most ten times a second, and one line at the end."""

    def __init__(self, show: Show, now_s: Callable[[], float] = time.monotonic) -> None:
        self.show, self.now_s = show, now_s
        self.rows = Rows()
        self.begin_s = now_s()
        self.drawn_s: float | None = None

    def __call__(self, told: Told) -> None:
        now_s = self.now_s()
        self.rows.see(told, now_s)
        if self.rows.by_key and (self.drawn_s is None or now_s - self.drawn_s >= INTERVAL_S):
            self.drawn_s = now_s
            self.show(self.rows.html(now_s), self.rows.text(now_s))

    def end(self, outcome: str) -> None:
        """Replaces the rows by a line with the outcome and the time in all. Without rows, shows nothing."""
        if self.drawn_s is not None:
            line = f"{outcome} {duration((self.now_s() - self.begin_s) * 1e9)}"
            self.show(f'<div style="opacity:.7">{line}</div>', line)


class Showing:
    """The display of a call's progress. The body of its `with` statement gets the value that the native half takes.

    Attributes:
        is_stopped: whether the work was interrupted and gave a part of its results.
    """

    def __init__(self, asked: Shown, *, is_native: bool = True) -> None:
        is_terminal = sys.stderr is not None and sys.stderr.isatty()
        self.is_stopped = False
        self.drawing: Drawing | None = None
        if asked in (True, None) and in_notebook():
            self.drawing = Drawing(NotebookDisplay())
        elif asked in (True, None) and is_terminal and not is_native:
            self.drawing = Drawing(TerminalDisplay())
        self.shown = self.drawing or (is_terminal if asked is None else asked)

    def __enter__(self) -> object:
        return self.shown

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self.drawing is None:
            return
        if self.is_stopped or (kind is not None and issubclass(kind, KeyboardInterrupt)):
            self.drawing.end("interrupted after")
        else:
            self.drawing.end("done in" if kind is None else "failed after")
