"""Repair of samples that a plan did not solve soundly: refine, plan again, SuperLU.

First the answer is judged once more: straight-line code takes the residual row by row, which is too strict where a row
of |A| |x| is itself only rounding; the compiled loop then asks what the residual does to each unknown
(`accuracy.py`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cached_property

import numpy as np
from jaxtyping import Float, Int

from dalembert.errors import SolvabilityError
from dalembert.kkt.limits import ACCEPTED_ERROR, CLEARED, SINGULAR_CONDITION
from dalembert.tableau.elimination.accuracy import ScaledFactors
from dalembert.tableau.elimination.engines import LoopEngine, Outcome, SolveCounts, errors_of, sound, trusted
from dalembert.tableau.elimination.plan import Plan, make_plan
from dalembert.tableau.elimination.scaling import equilibrate
from dalembert.types import Array

Run = Callable[[Array, Array], tuple[Array, Array]]

SPARE_PLANS = 4
"""Plans kept from earlier repairs: troubles tend to come back. At most this many new ones per call."""

LAST_STEPS = 3
"""Steps of refinement with SuperLU's factors, at most."""


class Repair:
    """Repairs samples in place; keeps the plans it made."""

    def __init__(self, plan: Plan, statistics: SolveCounts) -> None:
        self.plan = plan
        self.statistics = statistics
        self.spares: list[LoopEngine] = []

    @cached_property
    def loop(self) -> LoopEngine:
        """The plan itself, looped."""
        return LoopEngine(self.plan)

    def __call__(
        self,
        run: Run,
        data: Float[Array, "N entries"],
        b: Float[Array, "N n"],
        bad: Int[Array, " bad"],
        x: Float[Array, "N n"],
        checks: Float[Array, "N three"],
        status: Int[Array, " N"],
    ) -> None:
        """Work through the ways, cheapest first."""
        if not isinstance(run, LoopEngine):
            bad = self._try(self.loop, data, b, bad, x, checks, status, Outcome.PLANNED)
        bad = self._refine(run if isinstance(run, LoopEngine) else self.loop, data, b, bad, x, checks, status)
        for spare in list(self.spares):
            bad = self._try(spare, data, b, bad, x, checks, status)
        paired = self.plan.paired
        for _ in range(SPARE_PLANS):
            if not bad.size:
                return
            spare = self._replan(data[bad[0]], paired)
            if spare is None:
                break
            rest = self._try(spare, data, b, bad, x, checks, status)
            failed = bool(rest.size) and rest[0] == bad[0]
            if failed and not paired:
                break
            bad, paired = rest, paired and not failed
        for sample in bad:
            x[sample], checks[sample], status[sample] = self._superlu(data[sample], b[sample])

    def _refine(
        self, loop: LoopEngine, data: Array, b: Array, bad: Array, x: Array, checks: Array, status: Array
    ) -> Int[Array, " left"]:
        """Take two steps of iterative refinement where the pivots are sound; return the samples that are left."""
        worth = bad[trusted(x[bad], checks[bad])]
        if not worth.size:
            return bad
        better, checked = loop.refine(data[worth], b[worth], x[worth])
        good = sound(better, checked)
        done = worth[good]
        x[done], checks[done], status[done] = better[good], checked[good], Outcome.REFINED
        return np.setdiff1d(bad, done)

    def _try(
        self,
        loop: LoopEngine,
        data: Array,
        b: Array,
        bad: Array,
        x: Array,
        checks: Array,
        status: Array,
        outcome: Outcome = Outcome.REPLANNED,
    ) -> Int[Array, " left"]:
        """Solve with a looped plan; keep what is sound, of another plan also after refinement."""
        if not bad.size:
            return bad
        other, checked = loop(data[bad], b[bad])
        again = np.flatnonzero(trusted(other, checked) & ~sound(other, checked))
        if again.size and outcome != Outcome.PLANNED:
            other[again], checked[again] = loop.refine(data[bad[again]], b[bad[again]], other[again])
        good = sound(other, checked)
        done = bad[good]
        x[done], checks[done], status[done] = other[good], checked[good], outcome
        return bad[~good]

    def _replan(self, values: Array, paired: bool) -> LoopEngine | None:
        """Plan anew with the values of a sample that failed, scaled; exact zeros are no pivots."""
        pattern = self.plan.pattern
        row, col = equilibrate(pattern.matrix(values))
        scaled = values * row[pattern.rows] * col[pattern.indices]
        try:
            plan = make_plan(pattern, values=scaled, paired=paired)
        except SolvabilityError:
            return None
        plan = replace(plan, probe=plan.probe / row[plan.rows] / col[plan.cols])
        self.statistics.plans += 1
        spare = LoopEngine(plan)
        self.spares = [*self.spares[-(SPARE_PLANS - 1) :], spare]
        return spare

    def _superlu(self, values: Array, b: Array) -> tuple[Array, Array, int]:
        """Solve with partial pivoting at run time; singular if no digit is certain."""
        nothing = np.full(len(b), np.nan), np.array([np.nan, 0.0, np.nan]), int(Outcome.SINGULAR)
        factors = ScaledFactors.of(self.plan.pattern.matrix(values))
        if factors is None:
            return nothing
        with np.errstate(all="ignore"):
            if not factors.condition() < SINGULAR_CONDITION:
                return nothing
            x, error = np.zeros(len(b)), np.inf
            for _ in range(1 + LAST_STEPS):
                x, error = self._closer(factors, values, b, x)
                if error <= ACCEPTED_ERROR:
                    break
            else:
                error = min(error, factors.errors(b, x)[0])
        if not error <= 10 * ACCEPTED_ERROR:
            return nothing
        growth = max(1.0, np.abs(factors.factors.U.data).max())
        return x, np.array([error, 1.0, growth]), int(Outcome.SUPERLU)

    def _closer(self, factors: ScaledFactors, values: Array, b: Array, x: Array) -> tuple[Array, float]:
        """Return x after a step of refinement, zeros in place of rounding where sound and no worse, and its error."""
        plain = x + factors.solve(b - factors.A @ x)
        cleared = np.where((np.abs(plain) <= CLEARED * np.abs(x)) | (x == 0.0), 0.0, plain)
        both = np.stack([cleared, plain])
        errors = errors_of(self.plan, np.stack([values] * 2), np.stack([b] * 2), both)
        best = 0 if errors[0] <= min(errors[1], ACCEPTED_ERROR) else 1
        return both[best], float(errors[best])
