"""The figures of the seeds: friction law, belt, crank-slider, maps."""

from __future__ import annotations

from typing import Any

import numpy as np

from dalembert.friction import Law
from dalembert.simulate import Trajectory
from dalembert.simulate.plots import draw
from dalembert.types import Array
from dalembert.view.report_page import ACCENT, INK, QUIET, SECOND

# ----------------------------------------------------------------------------------------------------------------------
# The figures of seed 001: the friction law (Fig. 1), the blocks on the belt (Figs. 3 to 5) with their phases.


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
    draw(axes, run, "velocities")


def draw_forces(axes: Any, run: Trajectory) -> None:
    """Draw Fig. 5: the friction forces."""
    draw(axes, run, "forces")


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


# ----------------------------------------------------------------------------------------------------------------------
# The crank-slider of seed 000, and what becomes of its rod as the mass goes to zero.


def draw_crank_slider(axes: Any, angle: float) -> None:
    """Draw crank, rod (equal lengths, one) and slider at a crank angle in radians."""
    pin, tip = np.array([np.cos(angle), np.sin(angle)]), np.array([2 * np.cos(angle), 0.0])
    axes.axhline(0.0, color=QUIET, lw=0.8, zorder=0)
    axes.plot([0, pin[0]], [0, pin[1]], color=INK, lw=7, solid_capstyle="round")
    axes.plot([pin[0], tip[0]], [pin[1], tip[1]], color=ACCENT, lw=1.5)
    axes.plot([0, pin[0]], [0, pin[1]], "o", color="white", mec=INK, ms=8, mew=1.5)
    axes.plot(*tip, "s", color="white", mec=INK, ms=14, mew=1.5)
    axes.annotate("crank: all the mass", pin / 2, (-0.35, 0.95), color=INK, fontsize=10)
    axes.annotate("massless rod", (pin + tip) / 2, (pin + tip) / 2 + [0.08, 0.12], color=ACCENT, fontsize=10)
    axes.set(xlim=(-0.5, 2.3), ylim=(-0.35, 1.25), aspect="equal")
    axes.set_axis_off()


def draw_massless_limit(axes: Any, masses: Array, block: Array, traditional: Array) -> None:
    """Draw relative errors of the block form and of M^-1 over the mass of the rod, log-log."""
    floor = np.finfo(float).eps / 4
    axes.loglog(
        masses, np.maximum(traditional, floor), "o-", ms=4, color=SECOND, label="through $M^{-1}$, eqs. (24), (25)"
    )
    axes.loglog(masses, np.maximum(block, floor), "o-", ms=4, color=ACCENT, label="through the block matrix, eq. (23)")
    axes.set(xlabel="mass of the rod over mass of the crank", ylabel="relative error of the accelerations")
    axes.invert_xaxis()
    axes.grid(color=QUIET, alpha=0.35, lw=0.6)
    axes.legend(frameon=False)
    axes.spines[["top", "right"]].set_visible(False)


def draw_convergence(axes: Any, masses: Array, differences: Array) -> None:
    """Draw the distance of the answer to the massless one over the mass of the rod, log-log."""
    axes.loglog(masses, differences, "o-", ms=4, color=ACCENT)
    axes.loglog(
        masses, differences[-1] / masses[-1] * masses, "--", lw=1, color=QUIET, label="proportional to the mass"
    )
    axes.set(xlabel="mass of the rod over mass of the crank", ylabel=r"$|\ddot q(m_2) - \ddot q(0)|$")
    axes.invert_xaxis()
    axes.grid(color=QUIET, alpha=0.35, lw=0.6)
    axes.legend(frameon=False)
    axes.spines[["top", "right"]].set_visible(False)


# ----------------------------------------------------------------------------------------------------------------------
# The maps between velocities, accelerations and forces (seed 000, Fig. 1).
#
# A : TQ -> TC          A^T : T*C -> T*Q        M : T2Q -> T*Q
# A+^T : TC -> TQ       A+ : T*Q -> T*C         M+ : T*Q -> T2Q        Lambda+ : T2C -> T*C


SPACES = {
    "velocity": (0.0, 2.0, r"$T\mathcal{Q}$", "velocities  $\\dot q$"),
    "acceleration": (2.6, 2.0, r"$T^2\mathcal{Q}$", "accelerations  $\\ddot q$"),
    "force": (5.2, 2.0, r"$T^*\mathcal{Q}$", "forces  $\\Upsilon$"),
    "constraint velocity": (0.0, 0.0, r"$T\mathcal{C}$", "constraint velocities  $\\dot c$"),
    "constraint acceleration": (2.6, 0.0, r"$T^2\mathcal{C}$", "constraint accelerations  $\\ddot c$"),
    "constraint force": (5.2, 0.0, r"$T^*\mathcal{C}$", "constraint forces  $\\lambda$"),
}
"""Each space: position, symbol, and what lives there."""

MAPS = (
    ("velocity", "constraint velocity", "$A$", False),
    ("constraint velocity", "velocity", r"$A^{\dagger T}$", True),
    ("acceleration", "force", "$M$", False),
    ("force", "acceleration", r"$M^{\dagger}$", True),
    ("constraint force", "force", "$A^T$", False),
    ("force", "constraint force", r"$A^{\dagger}$", True),
    ("constraint acceleration", "constraint force", r"$\Lambda^{\dagger}$", True),
)
"""Each map: from, to, symbol, and whether it is a dagger term."""


def draw_maps(axes: Any) -> None:
    """Draw the spaces and maps on matplotlib axes: given maps dark, dagger terms in colour."""
    for x, y, symbol, meaning in SPACES.values():
        axes.text(x, y, symbol, ha="center", va="center", fontsize=17, color=INK)
        axes.text(x, y + (0.42 if y else -0.42), meaning, ha="center", va="center", fontsize=9, color=INK)
    for start, end, symbol, dagger in MAPS:
        _arrow(axes, SPACES[start][:2], SPACES[end][:2], symbol, ACCENT if dagger else SECOND)
    axes.set(xlim=(-1.1, 6.3), ylim=(-0.8, 2.8), aspect="equal")
    axes.set_axis_off()


def _arrow(axes: Any, start: tuple[float, float], end: tuple[float, float], symbol: str, colour: str) -> None:
    """Draw one map as an arrow shifted to its right, so that a pair of opposite maps stands side by side."""
    dx, dy = end[0] - start[0], end[1] - start[1]
    length = (dx * dx + dy * dy) ** 0.5
    ux, uy = dx / length, dy / length
    sx, sy = 0.11 * uy, -0.11 * ux
    gap = 0.45
    tail = (start[0] + gap * ux + sx, start[1] + gap * uy + sy)
    head = (end[0] - gap * ux + sx, end[1] - gap * uy + sy)
    axes.annotate("", xy=head, xytext=tail, arrowprops={"arrowstyle": "-|>", "color": colour, "lw": 1.6})
    side = -1.0 if start[1] == end[1] == 0.0 else 1.0
    middle = (0.5 * (tail[0] + head[0]) + side * 2.6 * sx, 0.5 * (tail[1] + head[1]) + side * 2.2 * sy)
    axes.text(*middle, symbol, ha="center", va="center", fontsize=13, color=colour)


# ----------------------------------------------------------------------------------------------------------------------
# Springs in place of rows (seed 001, sec. 1): drift and cost over stiffness.


def draw_penalty(axes: Any, stiffness: Any, values: Any, exact: float, label: str) -> None:
    """Draw drift or cost of penalty runs over stiffness, log-log, with that of exact rows as a line."""
    floor = np.finfo(float).eps / 4
    axes.loglog(stiffness, np.maximum(values, floor), "o-", ms=4, color=ACCENT, label="springs")
    axes.axhline(max(exact, floor), ls="--", lw=1.2, color=SECOND, label="exact rows")
    axes.set(xlabel="stiffness, N/m", ylabel=label)
    axes.grid(color=QUIET, alpha=0.35, lw=0.6)
    axes.legend(frameon=False)
    axes.spines[["top", "right"]].set_visible(False)
