"""A bar that shows how far a run has come: in terminals by Rich, in notebooks as HTML."""

from __future__ import annotations

import html
import time
from typing import Any

SHOWN_EVERY = 0.1
"""Seconds between two pictures of the bar in a notebook."""


class NotebookBar:
    """A bar in the output of a cell; it is drawn anew in place."""

    def __init__(self, name: str, start: float, end: float) -> None:
        from IPython.display import display

        self.name, self.start, self.end, self.at = name, start, end, start
        self.begun = self.shown = time.monotonic()
        self.handle: Any = display(self, display_id=True)

    def _repr_html_(self) -> str:
        """Return the bar, the time of the run and that of the clock."""
        part = (self.at - self.start) / (self.end - self.start)
        seconds = time.monotonic() - self.begun
        said = f"{100 * part:.0f} %, t = {self.at:.4g} of {self.end:.4g} s, {seconds:.1f} s"
        return f"{html.escape(self.name)} <progress value='{part:.4f}' max='1'></progress> {said}"

    def __call__(self, t: float) -> None:
        """Show a time."""
        self.at = t
        if time.monotonic() - self.shown > SHOWN_EVERY:
            self._show()

    def _show(self) -> None:
        self.shown = time.monotonic()
        if self.handle is not None:
            self.handle.update(self)

    def stop(self) -> None:
        """Show the last picture."""
        self._show()


class TerminalBar:
    """A bar at the foot of a terminal; where output is a file, one line at the end."""

    def __init__(self, name: str, start: float, end: float) -> None:
        from rich.progress import Progress

        self.start, self.bar = start, Progress()
        self.task = self.bar.add_task(name, total=end - start)
        self.bar.start()

    def __call__(self, t: float) -> None:
        """Show a time."""
        self.bar.update(self.task, completed=t - self.start)

    def stop(self) -> None:
        """Leave the last picture."""
        self.bar.stop()


LATE = 2.0
"""Seconds after which a run shows a bar that nobody asked for."""


class LateBar:
    """A bar that appears when a run takes longer than `LATE`; in a terminal or a notebook, and nowhere else."""

    def __init__(self, name: str, start: float, end: float) -> None:
        self.make = lambda: progress_bar(name, start, end)
        self.begun = time.monotonic()
        self.bar: Any = None

    def __call__(self, t: float) -> None:
        """Show a time, once it is late."""
        if self.bar is None and time.monotonic() - self.begun > LATE and (_in_notebook() or _in_terminal()):
            self.bar = self.make()
        if self.bar is not None:
            self.bar(t)

    def stop(self) -> None:
        """Leave the last picture, if there was one."""
        if self.bar is not None:
            self.bar.stop()


def progress_bar(name: str, start: float, end: float, late: bool = False) -> NotebookBar | TerminalBar | LateBar:
    """Return a running bar for where we are; `late`: one that appears where a run takes long."""
    if late:
        return LateBar(name, start, end)
    return (NotebookBar if _in_notebook() else TerminalBar)(name, start, end)


def _in_terminal() -> bool:
    """Return whether somebody looks at the output."""
    import sys

    return bool(getattr(sys.stdout, "isatty", lambda: False)())


def _in_notebook() -> bool:
    """Return whether a kernel of Jupyter runs this; nothing is imported for it."""
    import sys

    shell = sys.modules.get("IPython")
    get = getattr(shell, "get_ipython", None)
    found = get() if get is not None else None
    return found is not None and type(found).__name__ == "ZMQInteractiveShell"
