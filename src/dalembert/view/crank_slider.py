"""The crank-slider of seed 000, and what becomes of its rod as the mass goes to zero."""

from __future__ import annotations

from typing import Any

import numpy as np

from dalembert.view.figure import ACCENT, INK, QUIET, SECOND

Array = np.ndarray


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
