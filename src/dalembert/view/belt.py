"""The figures of seed 001: the friction law (Fig. 1), the blocks on the belt (Figs. 3 to 5) with their phases."""

from __future__ import annotations

from typing import Any

import numpy as np

from dalembert.friction import Law
from dalembert.simulate import Trajectory
from dalembert.simulate.phases import draw_panel
from dalembert.view.figure import ACCENT, INK, QUIET, SECOND


def draw_law(axes: Any, law: Law, speed: float = 1.0) -> None:
    """Draw the graph of a law with its vertical line at rest (Fig. 1): resistance, minus the force on the system."""
    velocity, force = law.graph(speed)
    axes.axhline(0.0, color=QUIET, lw=0.6)
    axes.plot(velocity, -force, color=ACCENT, lw=1.8)
    limit = law.static()
    axes.annotate("static limit", (0.0, limit), (0.12 * speed, 1.06 * limit), color=INK, fontsize=9)
    axes.margins(y=0.15)
    axes.set(xlabel="sliding velocity, m/s", ylabel="resistance, N", xlim=(-speed, speed))
    axes.set_xticks([-speed, -0.5 * speed, 0.0, 0.5 * speed, speed])
    axes.spines[["top", "right"]].set_visible(False)


def draw_blocks(axes: Any) -> None:
    """Draw the arrangement (Fig. 3): springs, two blocks side by side, the belt."""
    axes.plot([-0.4, 6.2], [0.0, 0.0], color=INK, lw=3.0)
    axes.annotate("", xy=(6.0, -0.25), xytext=(5.0, -0.25), arrowprops={"arrowstyle": "-|>", "color": SECOND})
    axes.text(5.5, -0.5, "belt, v", color=SECOND, ha="center", fontsize=9)
    axes.plot([-0.4, -0.4], [0.0, 1.6], color=INK, lw=3.0)
    _spring(axes, -0.4, 1.4, 0.6)
    _spring(axes, 2.6, 3.8, 0.9)
    for x, name in ((1.4, "$m_1$"), (3.8, "$m_2$")):
        axes.add_patch(_box(x, 0.03, 1.2, 1.1))
        axes.text(x + 0.6, 0.6, name, ha="center", va="center", color=INK)
    axes.plot([2.6, 3.8], [0.35, 0.35], color=ACCENT, lw=2.5)
    for x, y, name in ((2.0, -0.3, "$T_1$"), (4.4, -0.3, "$T_2$"), (3.2, 0.12, "$T_3$")):
        axes.text(x, y, name, ha="center", color=ACCENT, fontsize=10)
    axes.set(xlim=(-0.7, 6.4), ylim=(-0.75, 1.8), aspect="equal")
    axes.set_axis_off()


def draw_velocities(axes: Any, run: Trajectory) -> None:
    """Draw Fig. 4: velocities of the blocks, phases shaded by the contacts that stick."""
    draw_panel(axes, run, "velocities")


def draw_forces(axes: Any, run: Trajectory) -> None:
    """Draw Fig. 5: the friction forces."""
    draw_panel(axes, run, "forces")


def _spring(axes: Any, start: float, end: float, height: float) -> None:
    x = np.linspace(start, end, 60)
    inside = (x > start + 0.2) & (x < end - 0.2)
    axes.plot(
        x,
        height + np.where(inside, 0.13 * np.sin(14.0 * np.pi * (x - start) / (end - start)), 0.0),
        color=SECOND,
        lw=1.2,
    )


def _box(x: float, y: float, width: float, height: float) -> Any:
    from matplotlib.patches import Rectangle

    return Rectangle((x, y), width, height, facecolor="#f5f3ef", edgecolor=INK, lw=1.4)
