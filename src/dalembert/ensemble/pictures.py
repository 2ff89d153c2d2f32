"""Pictures of studies: fans over time, histograms, scatter over inputs; runs without an answer are marked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from dalembert.errors import MissingExtraError, ModelError
from dalembert.types import Array

if TYPE_CHECKING:
    from dalembert.ensemble.study import Study

BANDS = ((0.05, 0.95), (0.25, 0.75))
"""Quantiles between which a fan is shaded."""

MOST_PANELS = 24
MOST_DOTS = 5000
"""Runs of a scatter; of more every so many is drawn."""

BLUE, RED = "#2b6cb0", "#c53030"


def figure_of(study: Study, what: Any = None) -> Any:
    """Return a figure: a row per quantity, its histogram or fan first, then scatter over every input."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise MissingExtraError("matplotlib", "view", "a picture of a study") from error
    names = study.kept if what is None else [what] if isinstance(what, str) else list(what)
    rows = [(name, label, column) for name in names for label, column in _columns(study, name)]
    inputs = [(label, column) for name in study.inputs for label, column in _columns(study, name, True)]
    if not rows:
        raise ModelError("there is nothing to draw: no quantity of the study is a number or a course over time")
    fans = [row for row in rows if row[2].ndim == 2]
    numbers = [row for row in rows if row[2].ndim == 1]
    across = 1 + (len(inputs) if numbers else 0)
    rows = (fans + numbers)[: max(1, MOST_PANELS // across)]
    figure = Figure(figsize=(3.4 * across, 2.6 * len(rows)), layout="constrained")
    axes = np.asarray(figure.subplots(len(rows), across, squeeze=False))
    good = study.succeeded
    for row, (name, label, column) in zip(axes, rows, strict=True):
        if column.ndim == 2:
            _fan(row[0], study, name, label, column[good])
            for axis in row[1:]:
                axis.set_axis_off()
            continue
        _histogram(row[0], label, column[good])
        for axis, (word, x) in zip(row[1:], inputs, strict=True):
            _scatter(axis, word, x, label, column, good)
    counts = ", ".join(f"{count} {word}" for word, count in study.status_counts.items())
    figure.suptitle(f"{study.runs} runs: {counts}", fontsize=10)
    return figure


def _columns(study: Study, name: str, numbers: bool = False) -> list[tuple[str, Array]]:
    """Return the numbers, or courses over time, that an array consists of, with labels."""
    y, times = study.input(name) if numbers else study[name], study.times(name)
    if y.ndim == 1:
        return [(name, y)]
    if times is not None and not numbers:
        parts = y[:, :, None] if y.ndim == 2 else y
        single = parts.shape[2] == 1
        return [(name if single else f"{name}[{k}]", parts[:, :, k]) for k in range(parts.shape[2])]
    return [(f"{name}[{k}]", y[:, k]) for k in range(y.shape[1])] if y.ndim == 2 else []


def _fan(axis: Any, study: Study, name: str, label: str, rows: Array) -> None:
    times = study.times(name)
    for k, ends in enumerate(BANDS):
        low, high = np.nanquantile(rows, ends, axis=0)
        axis.fill_between(
            times, low, high, color=BLUE, alpha=0.2 + 0.2 * k, linewidth=0, label=f"{ends[0]:.0%} to {ends[1]:.0%}"
        )
    axis.plot(times, np.nanmedian(rows, axis=0), color=BLUE, label="median")
    axis.set_xlabel("t [s]")
    axis.set_ylabel(label)
    axis.legend(fontsize=7)


def _histogram(axis: Any, label: str, y: Array) -> None:
    y = y[np.isfinite(y)]
    axis.hist(y, bins=min(60, max(8, int(np.sqrt(len(y))))) if len(y) else 1, color=BLUE, alpha=0.8)
    axis.set_xlabel(label)
    axis.set_ylabel("runs")


def _scatter(axis: Any, word: str, x: Array, label: str, y: Array, good: Array) -> None:
    every = max(1, len(x) // MOST_DOTS)
    axis.plot(x[good][::every], y[good][::every], ".", color=BLUE, markersize=3, alpha=0.6)
    failed = x[~good & np.isfinite(x)][::every]
    if failed.size:  # at the foot: they have no value
        foot, words = np.full(failed.size, 0.02), f"{int((~good).sum())} without an answer"
        axis.plot(failed, foot, "x", color=RED, markersize=4, transform=axis.get_xaxis_transform(), label=words)
        axis.legend(fontsize=7)
    axis.set_xlabel(word)
    axis.set_ylabel(label)
