"""Limits of the plain engine of dry friction alone; the others are those of `dalembert.simulate.limits`."""

from __future__ import annotations

CONSISTENT_DRY = 1e-9
"""Initial velocities (and positions) may miss a constraint by this part of the velocities; more is a contradiction."""

AHEAD = 1e-7
"""How far to look beyond the end of sticking, as a part of the step, to begin with."""

CLEARLY_SLIDES = 1e-9
"""Part of the relative velocities' size above which a contact clearly slides."""

LIMIT_DROPS = 1e-12
"""A kinetic limit below the static one by more than this part drops where sliding begins."""
