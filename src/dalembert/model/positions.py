"""What a search for a configuration gives: loops closed or left open, a position of rest."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

Array = np.ndarray


CONTRADICTING = 1e-9
LEAST = ": redundant loops contradict each other by that, within the model's digits; their squares are least"
"""A gap, metres or radians, that rounding does not explain; and what it is."""


@dataclass(frozen=True, eq=False)
class Assembly:
    """What became of closing the loops.

    Attributes
    ----------
    q, v
        The configuration found, and the admissible velocity nearest to the one asked for.
    gap
        Largest residual that remains, metres or radians.
    open
        Rows that remain open and by how much, the worst first; "rate of ..." where speeds that are held contradict
        the constraints.
    starts
        Guesses that were tried.
    """

    q: Array
    v: Array
    gap: float
    open: dict[str, float]
    starts: int

    @property
    def ok(self) -> bool:
        """True when all loops are closed."""
        return not self.open

    def __str__(self) -> str:
        if self.ok:
            return f"closed to {self.gap:.1e}" + (LEAST if self.gap > CONTRADICTING else "")
        worst = ", ".join(f"{name!r} by {gap:.3g}" for name, gap in list(self.open.items())[:3])
        return f"cannot be closed from here ({self.starts} starts): what remains open is {worst}"


@dataclass(frozen=True, eq=False)
class Equilibrium:
    """A position of rest.

    Attributes
    ----------
    q, multipliers
        Configuration, and multipliers of the constraint rows that hold it.
    residual
        Largest force that is not balanced, newton or newton metre.
    stiffness
        Eigenvalues of the stiffness along admissible motions relative to the mass, 1/s^2: squares of the natural
        frequencies without damping; one that is negative is a motion that runs away.
    """

    q: Array
    multipliers: Array
    residual: float
    stiffness: Array

    @property
    def stable(self) -> bool:
        """True when every small displacement comes back."""
        return bool((self.stiffness > 0.0).all())
