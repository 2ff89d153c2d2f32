"""The maps between velocities, accelerations and forces (seed 000, Fig. 1).

A : TQ -> TC          A^T : T*C -> T*Q        M : T2Q -> T*Q
A+^T : TC -> TQ       A+ : T*Q -> T*C         M+ : T*Q -> T2Q        Lambda+ : T2C -> T*C
"""

from __future__ import annotations

from typing import Any

from dalembert.view.figure import ACCENT, INK, SECOND

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
