"""The bar that is shown while loops are compiled: what, and that it happens once on a machine."""

from __future__ import annotations

import sys
import time
from typing import Any

from numba.core import event

from dalembert.kernel.loop_cache import PACKAGE, functions_of

PATIENCE = 1.0
"""Seconds before the bar appears."""

ROOMS = {
    "kkt": "batches of block systems",
    "friction": "the friction solver",
    "large": "the recursions of large mechanisms",
    "tableau": "the sparse elimination",
    "simulate.contact": "contact geometry",
    "simulate.events": "the location of events",
    "simulate.steppers": "the time stepper",
    "simulate": "the time stepper",
}
"""What the loops of a room do, for the person who waits."""


class CompileWatch(event.Listener):
    """Follows Numba through the functions that one entry needs; compilation is nested, the outermost is the entry."""

    def __init__(self) -> None:
        self.depth, self.count, self.total = 0, 0, 1
        self.begun, self.text = 0.0, ""
        self.bar: Any = None

    def on_start(self, event: Any) -> None:
        """Note that a function's compilation begins."""
        function = event.data["dispatcher"].py_func
        if not self.depth:
            module = str(function.__module__)
            if not module.startswith(PACKAGE):
                return
            room = module.removeprefix(f"{PACKAGE}.")
            what = next((words for name, words in ROOMS.items() if room.startswith(name)), room)
            self.text = f"compiling {what}, once on this machine"
            self.count, self.total, self.begun = 0, functions_of(function), time.monotonic()
        self.depth += 1
        self._show()

    def on_end(self, event: Any) -> None:
        """Note that a function's compilation has ended, with or without success."""
        if not self.depth:
            return
        self.depth -= 1
        self.count += 1
        if self.depth:
            self._show()
        elif self.bar is not None:
            self.bar.stop()
            self.bar = None

    def _show(self) -> None:
        if self.bar is None:
            if time.monotonic() - self.begun < PATIENCE or not sys.stderr.isatty():
                return
            from rich.console import Console
            from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

            columns = (TextColumn("{task.description}:"), MofNCompleteColumn(), BarColumn(), TimeElapsedColumn())
            self.bar = Progress(*columns, console=Console(file=sys.stderr), transient=True)
            self.bar.add_task(self.text, total=self.total)
            self.bar.start()
        self.bar.update(self.bar.task_ids[0], completed=min(self.count, self.total), description=self.text)


def watch_compiling() -> None:
    """Show a bar from here on whenever loops of this package are compiled in a terminal."""
    event.register("numba:compile", CompileWatch())
