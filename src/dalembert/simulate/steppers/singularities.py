"""Explicit steps across singular configurations, and states that a kernel declines.

Where rows become dependent on the way, accelerations are noise along the directions that these rows forbid, and so is
the error that a step estimates of itself. Settling takes such noise out. Steps across are therefore judged by what is
left behind it: the distance between the settled ends of the pair's two methods, and the balance of energy. Both are
measured in tolerances.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import numpy as np

from dalembert.errors import DalembertError
from dalembert.simulate.limits import ENERGY_ROUNDING
from dalembert.simulate.steppers import advance_loops as loop
from dalembert.simulate.steppers import explicit_loops as at
from dalembert.simulate.steppers.explicit_loops import FINE, certified, settle
from dalembert.simulate.witness import balanced, step_tolerance
from dalembert.types import Array

if TYPE_CHECKING:
    from dalembert.simulate.steppers.explicit import Explicit

SINGULAR = 0.2
"""Part of the usual distance from a singular configuration below which rows are about to become dependent."""

JUMPS = (1.0, 0.83, 0.71, 0.6, 0.5, 0.41, 0.33), (0.23, 0.17, 0.12, 0.08, 0.055)
"""Steps that are tried across a singular configuration, as parts of the usual one: those that end farther away first,
where forces are less noise; shorter ones where these are too long for the motion."""

FAIR = 3.0
"""Tolerances by which a step across may change the balance of energy; usual steps stay below one."""


def near_singular(stepper: Explicit) -> bool:
    """Return whether rows are about to become dependent that are not so elsewhere: s_r / s_1 falls out of line."""
    if stepper.rank is None:
        return False
    return stepper.distance() < SINGULAR * stepper.rank.kept


def over_the_singularity(stepper: Explicit, code: int, arguments: tuple[Any, ...]) -> int:
    """Take the best of several steps that lead past a configuration where rows depend on each other.

    Its error is noted as that of a step with a wider tolerance, where it is above one.
    """
    s, clock, counts = stepper, stepper.clock, stepper.counts
    if counts[at.CLOSING] == 2:
        return code
    energy, best, choice, error, allowed = _energy(s, s.now.q, s.now.v), (np.inf, np.inf), 0.0, np.inf, 1.0
    for part in (part for series in JUMPS for part in series):
        if part == JUMPS[1][0] and choice:
            break
        h = min(part * clock[at.USUAL], clock[at.STOP] - clock[at.T])
        clock[at.ALLOWED] = np.inf
        what, ratio = loop.try_step(s.work, s.tables, s.pair, s.now, clock, counts, s.limits, h, clock[at.T] + h)
        if what != FINE or not ratio < loop.LARGEST_NOISE:
            continue
        # the step that is quietest before settling ends farthest away; but not where it breaks the balance
        off = _imbalance(s, energy)
        rank = (off if off > FAIR else 0.0, float(ratio))
        if rank < best and _certified(s):
            best, choice, allowed = rank, h, float(ratio)
            error = min(allowed, max(off, _settled_error(s, h)))
    clock[at.ALLOWED] = 1.0
    if not choice:
        return code
    clock[at.ALLOWED], clock[at.H] = max(1.0, 1.01 * allowed), choice
    counts[at.CLOSING] = 2
    wide, noted = counts[at.RELAXED], clock[[at.FIRST_WIDE, at.LAST_WIDE, at.WIDEST]].copy()
    code = loop.advance(*arguments, 1)
    if counts[at.RELAXED] > wide:  # noted by the error before settling
        clock[at.WIDEST] = max(noted[2], error)
        if error <= 1.0:
            counts[at.RELAXED] = wide
            clock[[at.FIRST_WIDE, at.LAST_WIDE, at.WIDEST]] = noted
    return code


def _settled_error(stepper: Explicit, h: float) -> float:
    """Return the distance between the settled ends of the two methods of a pair, in tolerances; `work` is kept."""
    s, w, now, n = stepper, stepper.work, stepper.now, stepper.m.nv
    q, v, y = w.q.copy(), w.v.copy(), now.y.copy()
    now.y[: 2 * n] -= h * (s.pair.error @ now.K[: s.pair.error.size, : 2 * n])
    code = settle(w, now, s.clock[at.T] + h)
    moved, change = np.asarray(s.m.difference(q, w.q)), w.v - v
    w.q[:], w.v[:], now.y[:] = q, v, y
    if code != FINE:
        return np.inf
    places, limits = s.limits.scale_place, s.limits
    size = np.where(places < 0, 1.0, np.maximum(np.abs(now.q[places]), np.abs(q[places])))
    scale = np.concatenate([size, np.maximum(np.abs(now.v), np.abs(v))])
    errors = np.concatenate([moved, change]) / (limits.atol + limits.rtol * scale)
    return float(np.sqrt(np.mean(errors**2))) if n else 0.0


def _energy(stepper: Explicit, q: Array, v: Array) -> float:
    """Return kinetic and potential energy at a state; NaN where they are not all that is balanced."""
    t = float(stepper.clock[at.T])
    if not balanced(stepper.m, q[None], np.array([t])):
        return np.nan
    if hasattr(stepper.m, "balance"):
        return float(stepper.m.balance(q, v, t))
    return float(stepper.m.energy(q, v).total)


def _imbalance(stepper: Explicit, energy: float) -> float:
    """Return by how much the settled end of a step breaks the balance of energy, in tolerances."""
    if np.isnan(energy):
        return 0.0
    s, w = stepper, stepper.work
    done = float(s.now.y[2 * s.m.nv] - s.now.work[0])
    change = abs(_energy(s, w.q, w.v) - energy - done)
    worth = step_tolerance(s.m, w.q[None], w.v[None], s.limits.rtol, s.limits.atol)
    return change / (float(worth[0]) + ENERGY_ROUNDING * abs(energy))


def _certified(stepper: Explicit) -> bool:
    """Return whether accelerations exist at the settled end of a tried step."""
    w = stepper.work
    w.base[:], w.x[:] = w.q, 0.0
    order = w.carried.order.copy()
    sure = certified(w)
    w.carried.order[:] = order
    return bool(sure)


def by_kkt(stepper: Explicit, arguments: tuple[Any, ...]) -> int:
    """Take one step whose states are solved through `KKT` where the kernel declines them."""
    code = stepper.begin()
    if code != FINE:
        return code
    missing = stepper.counts[at.SAMPLES] == 0 or stepper.samples.t[stepper.counts[at.SAMPLES] - 1] < stepper.clock[at.T]
    last = stepper.session.blocks[-1]["t"][-1] if stepper.session.blocks else -np.inf
    if missing and last < stepper.clock[at.T] and stepper.limits.every == 0.0:
        stepper.work.q[:] = stepper.now.q
        stepper.write(stepper.clock[at.TRIED])
    stepper.session.extra["by_kkt"] = stepper.session.extra.get("by_kkt", 0) + 1
    return stepper.careful(loop.advance, *arguments, 1)


def reason_in_rows(system: Any, q: Array, v: Array, times: Sequence[float]) -> str:
    """Say which rows contradict each other, or what moves no mass, at the first of some times where that is so."""
    for t in times:
        with suppress(DalembertError):
            diagnosis = system.diagnose(q, v, t)
            when = "" if t == times[0] else f", at t = {t:.9g} s"
            if diagnosis.conflict is not None:
                return f"constraints contradict each other{when}; {diagnosis.conflict.describe(diagnosis.names)}"
            if diagnosis.massless.size:
                return f"nothing resists the motion {', '.join(diagnosis.massless_motions)}{when}"
    return "accelerations do not exist or are not unique here"
