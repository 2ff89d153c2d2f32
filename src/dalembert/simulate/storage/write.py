"""A finished run written at once, in the same layout as one that is written while it goes on."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from dalembert.errors import ModelError
from dalembert.simulate.storage.sink import FileSink

FINAL = ".part"
"""Ending of the file while it is written: it gets its name when it is complete."""


def save_run(run: Any, path: Any) -> None:
    """Write a run; a file of that name is replaced when the new one is complete."""
    path = Path(path)
    part = path.with_name(path.name + FINAL)
    part.unlink(missing_ok=True)
    sink = FileSink(part, run.session)
    sink(dict(run.samples), run.session.checkpoint or {})
    sink.close()
    if sink.failed:
        part.unlink(missing_ok=True)
        raise ModelError(f"{path} could not be written: {sink.failed}")
    os.replace(part, path)
