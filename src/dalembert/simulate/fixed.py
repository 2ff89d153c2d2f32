"""`method="fixed"`: the seed's own way, the friction scheme inside a fixed-step integrator (seed 001, sec. 3.1).

At every stage of a step the contacts at rest are resolved (Fig. 2, or another method of `friction`); nothing is
located. A contact whose relative velocity changes its sign in a step comes to rest at the end of it, which is the
seed's test for the set of potentially sticking contacts; those that stick are put back on their manifold. Event times
are therefore off by a step, and forces jump at the next step only. First order at events, whatever the stepper.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from dalembert.errors import ModelError, SolvabilityError
from dalembert.friction import METHODS, resolve
from dalembert.friction.status import FrictionStatus
from dalembert.simulate.event import MODES, Event
from dalembert.simulate.manifold import on_manifold

if TYPE_CHECKING:
    from dalembert.simulate.events import Run

Array = np.ndarray


def run_fixed(run: Run, resolver: str = "flowchart", **options: Any) -> None:
    """Integrate with run.options.step to the end; `resolver` is a method of `dalembert.friction.resolve`."""
    if resolver not in METHODS:
        raise ModelError(f"resolver={resolver!r} is not one of {', '.join(map(repr, METHODS))}")
    o, d = run.options, run.dynamics
    size = o.step or o.duration
    count = int(np.ceil(o.duration / size * (1.0 - 1e-12)))
    start, n = run.t, d.n
    creeps = resolver == "regularised"
    rate = _Rate(run, resolver, options)
    for k in range(count):
        h = min(start + o.duration, start + (k + 1) * size) - run.t
        before = d.terms(run.y[:n], run.y[n : 2 * n], run.t).velocity
        rate.rest = run.mode == 0
        try:
            y, _ = o.stepper.step(rate, run.t, run.y, h, rate(run.t, run.y), o.atol + o.rtol * np.abs(run.y))
        except SolvabilityError as refused:
            run.status, run.message = "no solution", str(refused)
            return
        run.t = start + (k + 1) * size if k + 1 < count else start + o.duration
        after = d.terms(y[:n], y[n : 2 * n], run.t).velocity
        mode = _sets(run.mode, rate.stuck, before, after, creeps)
        if not creeps:
            y[:n], y[n : 2 * n] = on_manifold(d, y[:n], y[n : 2 * n], run.t, mode)
        run.y = y
        run.record.steps += 1
        _note(run, mode)
        run.record.add(run.t, run.y, run.mode)


def _sets(mode: Array, stuck: Array, before: Array, after: Array, creeps: bool) -> Array:
    """Return the modes at the end of a step."""
    if creeps:
        return np.where(after == 0.0, mode, np.sign(after)).astype(int)
    crossed = (mode != 0) & (before * after < 0.0)
    new = np.where(stuck | crossed | (after == 0.0), 0, np.sign(after))
    return new.astype(int)


def _note(run: Run, mode: Array) -> None:
    for i in np.flatnonzero(mode != run.mode):
        run.events.append(
            Event(float(run.t), run.dynamics.names[i], int(i), MODES[int(run.mode[i])], MODES[int(mode[i])])
        )
    run.mode = mode


class _Rate:
    """y' with the friction scheme at every stage; `stuck` are the contacts that stuck at the last one."""

    def __init__(self, run: Run, resolver: str, options: dict[str, Any]) -> None:
        self.run, self.resolver, self.options = run, resolver, options
        self.rest = run.mode == 0
        self.stuck = self.rest.copy()

    def __call__(self, t: float, y: Array) -> Array:
        d = self.run.dynamics
        q, v = y[: d.n], y[d.n : 2 * d.n]
        x = d.terms(q, v, t)
        mode = self.run.mode
        sliding = mode * np.maximum(mode * x.velocity, np.finfo(float).tiny)
        speed = x.velocity if self.resolver == "regularised" else np.where(self.rest, 0.0, sliding)
        answer = resolve(
            x.M, x.f, x.rows.T, speed, d.limits, self.resolver, A=x.A, drift=x.drift, contact_drift=x.contact_drift,
            names=d.names, loads=x.loads, state_of_system=(q, v, t), **self.options,
        )  # fmt: skip
        if answer.status >= FrictionStatus.DECLINED:
            raise SolvabilityError(f"at t = {t:.6g}: {answer.status.message}; {answer.certificate.note}", answer.report)
        self.stuck = np.array([name in answer.sets.sticking for name in d.names], dtype=bool)
        heat = -float(np.sum(np.where(self.stuck, 0.0, answer.forces * x.velocity)))
        return np.concatenate([v, answer.acceleration, [float(v @ (x.rows.T @ answer.forces)), heat]])
