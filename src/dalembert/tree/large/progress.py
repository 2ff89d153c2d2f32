"""A bar for what takes seconds: only on a terminal, only after two seconds, gone when it is done."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from time import perf_counter
from typing import Any, TypeVar

T = TypeVar("T")

PATIENCE = 2.0
"""Seconds before a bar appears."""

EVERY = 0.2
"""Seconds between two changes of it."""


def progress(items: Sequence[T], what: str) -> Iterable[T]:
    """Return the items; on a terminal, show how many are done and how long the rest will take."""
    return _shown(items, what) if len(items) > 1 and sys.stderr.isatty() else items


def _shown(items: Sequence[T], what: str) -> Iterator[T]:
    from rich.console import Console
    from rich.progress import Progress

    begin = last = perf_counter()
    bar: Any = None
    try:
        for done, item in enumerate(items):
            yield item
            now = perf_counter()
            if bar is None and now - begin > PATIENCE:
                bar = Progress(console=Console(file=sys.stderr), transient=True)
                bar.start()
                bar.add_task(what, total=len(items))
            if bar is not None and now - last > EVERY:
                bar.update(bar.task_ids[0], completed=done + 1)
                last = now
    finally:
        if bar is not None:
            bar.stop()
