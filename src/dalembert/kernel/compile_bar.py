"""The bar that is shown while loops are compiled: what, and that it happens once on a machine."""

from __future__ import annotations

from typing import Any

from numba.core import event

from dalembert.kernel.loop_cache import PACKAGE, functions_of
from dalembert.progress import ProgressBar

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
        self.depth, self.count = 0, 0
        self.bar: ProgressBar | None = None

    def on_start(self, event: Any) -> None:
        """Note that a function's compilation begins."""
        function = event.data["dispatcher"].py_func
        if not self.depth:
            module = str(function.__module__)
            if not module.startswith(PACKAGE):
                return
            room = module.removeprefix(f"{PACKAGE}.")
            what = next((words for name, words in ROOMS.items() if room.startswith(name)), room)
            self.count = 0
            self.bar = ProgressBar(
                f"compiling {what}, once on this machine", 0, functions_of(function), patience=PATIENCE
            )
        self.depth += 1
        self._show()

    def on_end(self, event: Any) -> None:
        """Note that a function's compilation has ended, with or without success."""
        if not self.depth:
            return
        self.depth -= 1
        self.count += 1
        self._show()
        if not self.depth and self.bar is not None:
            self.bar.stop()
            self.bar = None

    def _show(self) -> None:
        if self.bar is not None:
            self.bar(min(self.count, self.bar.end))


def watch_compiling() -> None:
    """Show a bar from here on whenever loops of this package are compiled in a terminal."""
    event.register("numba:compile", CompileWatch())
