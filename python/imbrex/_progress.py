"""Progress: bars on a terminal are the native half's; a notebook gets a line of its own, which is redrawn."""

from __future__ import annotations

import html
import sys
from collections.abc import Callable
from typing import Any, Union

Told = list[tuple[str, int, Union[int, None]]]
"""How far work is: name, how much is done, how much there is or None."""

Shown = Union[bool, Callable[[Told], object], None]
"""What shows progress: True for bars, False for none, a function that is called with [`Told`], None for what suits."""


def in_notebook() -> bool:
    """Whether this process is the kernel of a notebook."""
    if "IPython" not in sys.modules:
        return False
    from IPython import get_ipython  # type: ignore[import-not-found, unused-ignore]

    shell = get_ipython()  # type: ignore[no-untyped-call, unused-ignore]
    return shell is not None and hasattr(shell, "kernel")


class NotebookBar:
    """A display of a notebook that shows how far work is."""

    def __init__(self) -> None:
        self.handle: Any = None

    def __call__(self, told: Told) -> None:
        from IPython.display import HTML, display  # type: ignore[import-not-found, unused-ignore]

        drawn = HTML(drawing(told))  # type: ignore[no-untyped-call, unused-ignore]
        if self.handle is None:
            self.handle = display(drawn, display_id=True)  # type: ignore[no-untyped-call, unused-ignore]
        else:
            self.handle.update(drawn)

    def close(self) -> None:
        """Takes the display away."""
        if self.handle is not None:
            from IPython.display import HTML

            self.handle.update(HTML(""))  # type: ignore[no-untyped-call, unused-ignore]


def drawing(told: Told) -> str:
    """A line for each piece of work."""
    lines = []
    for name, position, total in told:
        of = f" of {total:,}" if total else ""
        bar = f'<progress value="{position}" max="{total}"></progress> ' if total else ""
        lines.append(f"<div>{bar}{html.escape(name)}: {position:,}{of}</div>")
    return "".join(lines)


class Showing:
    """What a call shows its progress on, while it lasts."""

    def __init__(self, asked: Shown) -> None:
        self.bar = NotebookBar() if asked in (True, None) and in_notebook() else None
        is_terminal = sys.stderr is not None and sys.stderr.isatty()
        self.shown = self.bar or (is_terminal if asked is None else asked)

    def __enter__(self) -> object:
        return self.shown

    def __exit__(self, *_: object) -> None:
        if self.bar is not None:
            self.bar.close()
