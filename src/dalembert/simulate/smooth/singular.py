"""What is done where rows become dependent, or a kernel declines a state."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from dalembert.simulate.smooth import advance_loops as loop
from dalembert.simulate.smooth import loop_state as at
from dalembert.simulate.smooth.step_loops import FINE, begin_at, certified

if TYPE_CHECKING:
    from dalembert.simulate.smooth.explicit import Explicit

SINGULAR = 0.2
"""Part of the usual distance from a singular configuration below which rows are about to become dependent."""

JUMPS = (1.0, 0.83, 0.71, 0.6, 0.5, 0.41, 0.33)
"""Steps that are tried across a singular configuration, as parts of the usual one."""


def near_singular(stepper: Explicit) -> bool:
    """Return whether rows are about to become dependent that are not so elsewhere: s_r / s_1 falls out of line."""
    if stepper.rank is None:
        return False
    return stepper.distance() < SINGULAR * stepper.rank.kept


def over_the_singularity(stepper: Explicit, code: int) -> int:
    """Choose a step that leads past a configuration where rows depend on each other.

    Accelerations next to it are noise; of several steps across it, the one with the least error is taken, and
    noted in `extra["relaxed"]`.
    """
    if stepper.counts[at.CLOSING] == 2:
        return code
    best, choice = np.inf, 0.0
    for part in JUMPS:
        h = min(part * stepper.clock[at.USUAL], stepper.clock[at.STOP] - stepper.clock[at.T])
        stepper.clock[at.ALLOWED] = np.inf
        arguments = (
            stepper.work,
            stepper.tables,
            stepper.pair,
            stepper.now,
            stepper.clock,
            stepper.counts,
            stepper.limits,
        )
        what, ratio = loop.try_step(*arguments, h, stepper.clock[at.T] + h)
        if what == FINE and ratio < best and _certified(stepper):
            best, choice = ratio, h
    if not best < loop.LARGEST_NOISE:
        stepper.clock[at.ALLOWED] = 1.0
        return code
    stepper.clock[at.ALLOWED], stepper.clock[at.H] = max(1.0, 1.01 * best), choice
    stepper.counts[at.RELAXED] += best > 1.0
    stepper.counts[at.CLOSING] = 2
    return at.FULL


def _certified(stepper: Explicit) -> bool:
    """Return whether accelerations exist at the settled end of a tried step."""
    w = stepper.work
    w.base[:], w.x[:] = w.q, 0.0
    kept = w.carried.order.copy()
    found = certified(w)
    w.carried.order[:] = kept
    return bool(found)


def by_kkt(stepper: Explicit, arguments: tuple[Any, ...]) -> int:
    """Take one step whose states are solved through `KKT` where the kernel declines them."""
    code = stepper.careful(
        begin_at,
        stepper.work,
        stepper.tables,
        stepper.now,
        stepper.clock[at.T],
        stepper.clock[at.BEGIN],
        stepper.clock[at.STOP],
    )
    if code != FINE:
        return code
    missing = stepper.counts[at.SAMPLES] == 0 or stepper.samples.t[stepper.counts[at.SAMPLES] - 1] < stepper.clock[at.T]
    last = stepper.session.blocks[-1]["t"][-1] if stepper.session.blocks else -np.inf
    if missing and last < stepper.clock[at.T] and stepper.limits.every == 0.0:
        stepper.work.q[:] = stepper.now.q
        stepper.write(stepper.clock[at.TRIED])
    stepper.session.extra["by_kkt"] = stepper.session.extra.get("by_kkt", 0) + 1
    return stepper.careful(loop.advance, *arguments, 1)
