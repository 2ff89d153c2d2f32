"""The progress bar of a run: `dalembert.progress` between two times."""

from __future__ import annotations

from dalembert.progress import ProgressBar


def progress_bar(name: str, start: float, end: float, late: bool = False) -> ProgressBar:
    """Return a bar in seconds of the run; `late`: one that appears where a run takes long, and is gone at its end."""
    return ProgressBar(name, start, end, "s", asked=not late)
