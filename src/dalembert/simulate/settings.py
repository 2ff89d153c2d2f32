"""Settings of one integration, checked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from itertools import pairwise
from typing import Any

import numpy as np

from dalembert.checks import floats, one_number, whole_number
from dalembert.errors import ModelError, ShapeError
from dalembert.names import near_matches
from dalembert.simulate.equations.dae import DAE
from dalembert.simulate.limits import LEAST_RTOL
from dalembert.simulate.steppers.newton_loops import NEWTON_SHARE
from dalembert.types import Array

IMPLICIT = ("bdf", "radau", "ida")
"""Steppers of F(t, x, x') = 0; `time_methods.METHODS` has all."""

MOST_ORDER = 6
REALS = ("rtol", "max_step", "first_step", "newton")
WHOLES = ("max_order", "max_steps")


@dataclass(frozen=True, eq=False)
class Settings:
    """Settings of one integration.

    Attributes
    ----------
    rtol, atol
        Tolerances; atol is a number, or a mapping name -> number over a default under the key "", or an array (n,).
    method
        One of `IMPLICIT`.
    t_eval
        Times at which the result is wanted; None: every step.
    max_step, first_step, max_order, max_steps
        Limits; a first step of 0 is chosen by the stepper.
    stop_times
        Times that are steps exactly and at which the integration restarts, because an input jumps there.
    newton
        Share of the tolerance that Newton's method may leave.
    hold
        Coordinates that do not move when the start is made consistent.
    """

    t0: float
    t1: float
    atol_all: Array
    rtol: float = 1e-6
    atol: Any = 1e-9
    method: str = "bdf"
    t_eval: Any = None
    max_step: float = np.inf
    first_step: float = 0.0
    max_order: int = 5
    max_steps: int = 1_000_000
    stop_times: Sequence[float] = ()
    newton: float = NEWTON_SHARE
    hold: Sequence[str] = ()

    @classmethod
    def of(cls, t_span: Any, dae: DAE, options: Mapping[str, Any]) -> Settings:
        """Check what a user passes."""
        span = floats(t_span, "t_span")
        if span.shape != (2,) or not np.isfinite(span).all():
            raise ShapeError(f"t_span must be two finite times (start, end); got {t_span!r}")
        names = [f.name for f in fields(cls) if f.name not in ("t0", "t1", "atol_all")]
        for name in options:
            if name not in names:
                near = near_matches(name, names)
                raise ModelError(f"no option is called {name!r}" + (f"; did you mean {near[0]!r}?" if near else ""))
        numbers = dict(options)
        numbers |= {name: one_number(numbers[name], name) for name in REALS if name in numbers}
        numbers |= {name: whole_number(numbers[name], name) for name in WHOLES if name in numbers}
        if isinstance(numbers.get("hold"), str):
            numbers["hold"] = (numbers["hold"],)
        numbers["stop_times"] = tuple(floats(numbers.get("stop_times", ()), "stop_times").ravel().tolist())
        settings = cls(float(span[0]), float(span[1]), _absolute(numbers.get("atol", cls.atol), dae), **numbers)
        settings._check()
        return settings

    def _check(self) -> None:
        if not LEAST_RTOL <= self.rtol < 1.0:
            raise ModelError(f"rtol={self.rtol!r}: at least {LEAST_RTOL:g} (rounding) and less than 1 is needed")
        if not isinstance(self.method, str) or self.method not in IMPLICIT:
            raise ModelError(f"method={self.method!r} is not one of {', '.join(map(repr, IMPLICIT))}")
        if not 1 <= self.max_order <= MOST_ORDER:
            raise ModelError(
                f"max_order={self.max_order!r}: backward differentiation formulas have orders 1 to {MOST_ORDER}"
            )
        if not (self.max_step > 0 and self.first_step >= 0 and self.max_steps >= 1 and 0 < self.newton <= 1):
            raise ModelError("max_step, max_steps and newton must be positive, first_step not negative")
        if not np.isfinite(self.stop_times).all():
            raise ModelError(f"stop_times must be finite; got {self.stop_times}")
        if self.t_eval is not None:
            times = floats(self.t_eval, "t_eval")
            low, high = sorted((self.t0, self.t1))
            if times.ndim != 1 or not ((times >= low) & (times <= high)).all():
                raise ModelError(f"t_eval must be a list of times between {low:g} and {high:g}")

    def bounds(self, begin: float, end: float, jumps: Sequence[float]) -> tuple[float, float]:
        """Return the times between which inputs are evaluated from `begin` to `end`: inside ends that are jumps.

        The ends of the whole run are themselves evaluated, with what lies inside of a table.
        """
        declared = {*map(float, jumps), *self.stop_times}
        low, high = sorted((begin, end))
        outer = (self.t0, self.t1)
        least = low if low in outer else float(np.nextafter(low, high))
        most = high if high in outer else float(np.nextafter(high, low))
        return (least if low in declared else -np.inf), (most if high in declared else np.inf)

    def first(self, jumps: Sequence[float]) -> float:
        """Return the time at which the start is made consistent: t0, or before it where a run goes back from a jump."""
        back = self.t1 < self.t0 and self.t0 in {*map(float, jumps), *self.stop_times}
        return float(np.nextafter(self.t0, self.t1)) if back else self.t0

    def segments(self, jumps: Sequence[float]) -> list[tuple[float, float]]:
        """Return the intervals between jumps, in the order of integration; one of no length for a horizon of none."""
        low, high = sorted((self.t0, self.t1))
        inner = sorted({float(t) for t in (*jumps, *self.stop_times) if low < t < high})
        ends = [low, *inner, high]
        if self.t1 < self.t0:
            ends.reverse()
        return list(pairwise(ends))


def _absolute(atol: Any, dae: DAE) -> Array:
    """Return one absolute tolerance per unknown."""
    if isinstance(atol, Mapping):
        values = np.full(dae.n, one_number(atol.get("", Settings.atol), "atol"))
        for name, value in atol.items():
            if name:
                values[dae.place(name)] = one_number(value, f"atol of {name}")
    else:
        try:
            values = np.broadcast_to(floats(atol, "atol"), (dae.n,)).copy()
        except ValueError as error:
            raise ShapeError(f"atol has shape {np.shape(atol)}; expected a number or ({dae.n},)") from error
    if not (np.isfinite(values) & (values > 0)).all():
        raise ModelError("atol must be positive: an unknown that passes through zero has no relative accuracy")
    return values
