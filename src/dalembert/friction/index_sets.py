"""The index sets of a state (seed 001, eq. 19): who slides, who sticks, who is about to slip and in which direction."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float

Array = np.ndarray

STILL = 1e-13
"""A contact acceleration counts as zero up to this part of the terms that it is summed from."""

AT_LIMIT = 1e-12
"""A force counts as at its limit within this part of the limit."""


@dataclass(frozen=True, eq=False)
class IndexSets:
    """Every contact by name is in exactly one of `sliding`, `sticking`, `about_to_slip` and `open`.

    Attributes
    ----------
    sliding
        Contacts in relative motion, I_c: their force is given by the law.
    sticking
        Contacts at relative rest that stay there: zero relative acceleration.
    about_to_slip
        Contacts at relative rest whose force is at the limit and does not hold them: name -> sign of the relative
        acceleration, +1 or -1 (for a plane: its unit vector).
    at_limit
        Sticking contacts whose force is at the limit: they hold, with nothing in reserve.
    open
        Contacts whose normal only pushes and has let go: no reaction, no friction, and the two sides part.
    """

    sliding: tuple[str, ...]
    sticking: tuple[str, ...]
    about_to_slip: Mapping[str, float | Array]
    at_limit: tuple[str, ...]
    open: tuple[str, ...] = ()

    @property
    def at_rest(self) -> tuple[str, ...]:
        """I_s of the seed: contacts of zero relative velocity, sticking or about to slip."""
        return (*self.sticking, *self.about_to_slip)

    def code(self, name: str) -> int:
        """Return 0 for a contact that sticks, 1 slides, +2 or -2 about to slip (a plane: 2), 3 open."""
        if name in self.about_to_slip:
            sign = self.about_to_slip[name]
            return 2 if np.ndim(sign) or sign > 0 else -2
        return 1 if name in self.sliding else 3 if name in self.open else 0

    def __str__(self) -> str:
        onset = [
            f"{name} ({'+' if sign > 0 else '-'})" for name, sign in self.about_to_slip.items() if np.ndim(sign) == 0
        ]
        onset += [name for name, sign in self.about_to_slip.items() if np.ndim(sign)]
        parts = {"sliding": self.sliding, "sticking": self.sticking, "about to slip": onset, "at limit": self.at_limit}
        parts["open"] = self.open
        return "; ".join(f"{what}: {', '.join(who)}" for what, who in parts.items() if who) or "no contacts"


def index_sets(
    names: Sequence[str],
    rest: Bool[Array, " m"],
    forces: Float[Array, " m"],
    limits: Float[Array, " m"],
    acceleration: Float[Array, " m"],
    size: Float[Array, " m"],
) -> IndexSets:
    """Sort bounded contacts by velocity, force and relative acceleration; `size` is what the latter is summed from."""
    held = np.abs(forces) >= limits * (1.0 - AT_LIMIT)
    onset = rest & held & (np.abs(acceleration) > STILL * size)
    stick = rest & ~onset
    return IndexSets(
        tuple(name for name, is_rest in zip(names, rest, strict=True) if not is_rest),
        tuple(name for name, is_stuck in zip(names, stick, strict=True) if is_stuck),
        {names[i]: float(np.sign(acceleration[i])) for i in np.flatnonzero(onset).tolist()},
        tuple(names[i] for i in np.flatnonzero(stick & held).tolist()),
    )
