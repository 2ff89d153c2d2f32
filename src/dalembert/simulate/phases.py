"""Draw a trajectory with its phases: the background says which contacts stick."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from dalembert.errors import ModelError

if TYPE_CHECKING:
    from dalembert.simulate.trajectory import Trajectory

Array = np.ndarray

LINES = ("#1f2a36", "#c4472b", "#2a6f97", "#7a5195", "#5b8c5a", "#b8860b")
SHADES = ("#ffffff", "#f3e3c3", "#d9e8d3", "#cfe0ee", "#eed5d2", "#e3d9ee", "#dfe3e6", "#f7d9b0")
"""Colours of lines, and of index sets in the order in which they first occur."""


def phases(run: Trajectory) -> list[tuple[float, float, tuple[str, ...]]]:
    """Return (start, end, sticking contacts) of every phase."""
    found: list[tuple[float, float, tuple[str, ...]]] = []
    for s in range(run.t.size - 1):
        stuck = tuple(name for name, mode in zip(run.contacts, run.modes[s], strict=True) if mode == 0)
        same = run.t[s + 1] == run.t[s]
        if same:
            continue
        if found and found[-1][2] == stuck:
            found[-1] = (found[-1][0], float(run.t[s + 1]), stuck)
        else:
            found.append((float(run.t[s]), float(run.t[s + 1]), stuck))
    return found


def draw_panel(axes: Any, run: Trajectory, what: str) -> None:
    """Draw velocities, forces or coordinates over shaded phases."""
    panels = {
        "velocities": (run.v, [f"{name}" for name in run.coordinates], "velocity, m/s"),
        "coordinates": (run.q, list(run.coordinates), "coordinate, m"),
    }
    if what == "forces":
        values, labels, unit = run.forces, list(run.dynamics.columns.names), "friction force, N"
    elif what in panels:
        values, labels, unit = panels[what]
    else:
        raise ModelError(f"what={what!r} is not one of 'velocities', 'coordinates', 'forces'")
    shade(axes, run)
    for j, label in enumerate(labels):
        axes.plot(run.t, values[:, j], color=LINES[j % len(LINES)], lw=1.3, label=label)
    axes.set(xlabel="time, s", ylabel=unit, xlim=(run.t[0], run.t[-1]))
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, fontsize=8, loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=4)


def shade(axes: Any, run: Trajectory) -> None:
    """Shade the phases, one colour per set of sticking contacts, each once in the legend."""
    colours: dict[tuple[str, ...], str] = {(): SHADES[0]}
    for start, end, stuck in phases(run):
        new = stuck not in colours
        if new:
            colours[stuck] = SHADES[len(colours) % len(SHADES)]
        label = f"stick: {', '.join(stuck)}" if new else None
        axes.axvspan(start, end, color=colours[stuck], lw=0, label=label, zorder=0)
