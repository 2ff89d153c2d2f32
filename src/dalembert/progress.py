"""The progress bar of whatever takes seconds: in a terminal by Rich, in a notebook as HTML, else none.

A bar appears after some patience, on a terminal or in a notebook alone, and is gone when the work is done; a bar that
was asked for appears at once, wherever output goes, and stays.
"""

from __future__ import annotations

import html
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, TypeVar

T = TypeVar("T")

PATIENCE = 2.0
"""Seconds before a bar appears that nobody asked for."""

EVERY = 0.1
"""Seconds between two pictures of it."""


class ProgressBar:
    """How far something is on its way from one number to another; called with where it is.

    Parameters
    ----------
    name
        What is going on.
    start, end
        Numbers between which it goes: items, or times of a run.
    unit
        Of these numbers, such as "s"; none for items.
    patience
        Seconds before it appears.
    asked
        Whether somebody asked for it: then it appears at once, also where output is a file.
    """

    def __init__(
        self, name: str, start: float, end: float, unit: str = "", patience: float | None = None, asked: bool = False
    ) -> None:
        self.name, self.start, self.end, self.unit, self.asked = name, start, end, unit, asked
        self.at, self.begun, self.shown = start, time.monotonic(), float("-inf")
        self.patience = 0.0 if asked else PATIENCE if patience is None else patience
        self._view: NotebookView | TerminalView | None = None

    def __call__(self, at: float) -> None:
        """Show where it is, if the time has come."""
        self.at = at
        now = time.monotonic()
        if self._view is None:
            if now - self.begun < self.patience or not (self.asked or in_notebook() or sys.stderr.isatty()):
                return
            self._view = NotebookView(self) if in_notebook() else TerminalView(self)
        if now - self.shown >= EVERY:
            self.shown = now
            self._view.show()

    def stop(self) -> None:
        """Show the last picture and leave it, or take it away if nobody had asked for it."""
        if self._view is not None:
            self._view.show()
            self._view.stop()
            self._view = None

    @property
    def part(self) -> float:
        """How much is done, 0 to 1."""
        return (self.at - self.start) / (self.end - self.start) if self.end > self.start else 1.0

    @property
    def place(self) -> str:
        """Where it is, in words."""
        return f"{self.at:.4g} of {self.end:.4g} {self.unit}".rstrip()


class NotebookView:
    """A bar in the output of a cell; it is drawn anew in place."""

    def __init__(self, bar: ProgressBar) -> None:
        from IPython.display import display

        self.bar = bar
        self.handle: Any = display(self, display_id=True)

    def _repr_html_(self) -> str:
        """Return the bar, where it is, and the seconds so far."""
        bar, seconds = self.bar, time.monotonic() - self.bar.begun
        words = f"{100 * bar.part:.0f} %, {bar.place}, {seconds:.1f} s"
        return f"{html.escape(bar.name)} <progress value='{bar.part:.4f}' max='1'></progress> {words}"

    def show(self) -> None:
        """Draw it anew."""
        if self.handle is not None:
            self.handle.update(self)

    def stop(self) -> None:
        """Leave the last picture, or nothing."""
        if self.handle is not None and not self.bar.asked:
            from IPython.display import HTML

            self.handle.update(HTML(""))


class TerminalView:
    """A bar at the foot of a terminal; where output is a file, one line at the end."""

    def __init__(self, bar: ProgressBar) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

        text, place = TextColumn("{task.description}"), TextColumn("{task.fields[place]}")
        columns = (text, BarColumn(), TaskProgressColumn(), place, TimeElapsedColumn())
        self.bar, self.view = bar, Progress(*columns, console=Console(file=sys.stderr), transient=not bar.asked)
        self.task = self.view.add_task(bar.name, total=bar.end - bar.start, place=bar.place)
        self.view.start()

    def show(self) -> None:
        """Draw it anew."""
        self.view.update(self.task, completed=self.bar.at - self.bar.start, place=self.bar.place)

    def stop(self) -> None:
        """Leave the last picture, or nothing."""
        self.view.stop()


def with_bar(items: Sequence[T], name: str) -> Iterable[T]:
    """Return the items; a bar shows how many are done."""
    return _counted(items, name) if len(items) > 1 else items


def _counted(items: Sequence[T], name: str) -> Iterator[T]:
    bar = ProgressBar(name, 0, len(items))
    try:
        for done, item in enumerate(items):
            yield item
            bar(done + 1)
    finally:
        bar.stop()


def in_notebook() -> bool:
    """Return whether a kernel of Jupyter runs this; nothing is imported for it."""
    get = getattr(sys.modules.get("IPython"), "get_ipython", None)
    shell = get() if get is not None else None
    return shell is not None and type(shell).__name__ == "ZMQInteractiveShell"
