"""States between samples: the run continued from the sample before, with its own tolerances."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from dalembert.errors import ModelError, UnsupportedError
from dalembert.simulate.smooth.session import Session

Array = np.ndarray


NEXT_TO = 1e-14
"""Times that differ by this part of the time itself are told apart by rounding alone: no step leads from one to the
other."""


def states_between(run: Any, t: Any) -> tuple[Array, Array]:
    """Return q and v at the times t."""
    try:
        times = np.atleast_1d(np.asarray(t, dtype=float))
    except (TypeError, ValueError) as error:
        raise ModelError(f"t must be times in seconds, not {t!r}") from error
    first, last = float(run.t[0]), float(run.t[-1])
    if times.size and not ((times >= first) & (times <= last)).all():
        bad = times[~((times >= first) & (times <= last))][0]
        raise ModelError(f"t = {bad:g} s is outside of the run, which goes from {first:g} to {last:g} s")
    place = np.searchsorted(run.t, times, side="right") - 1
    q, v = run.q[place].copy(), run.v[place].copy()
    for k in np.flatnonzero(times > run.t[place]):
        q[k], v[k] = _continued(run, int(place[k]), float(times[k]))
    return (q[0], v[0]) if np.ndim(t) == 0 else (q, v)


def _continued(run: Any, i: int, t: float) -> tuple[Array, Array]:
    from dalembert.simulate.methods import METHODS, WITH_CONTACTS

    s: Session = run.session
    dt = t - float(run.t[i])
    if dt <= NEXT_TO * max(abs(t), abs(float(run.t[-1]))):
        return run.mechanism.integrate(run.q[i], dt * run.v[i]), run.v[i] + dt * run.acceleration[i]
    if s is None or s.settings.method in WITH_CONTACTS or s.extra.get("controller missing"):
        return _interpolated(run, i, t)
    settings = replace(s.settings, start=float(run.t[i]), duration=t - float(run.t[i]), every=None)
    short = Session(s.mechanism, settings, s.controller, run.q[i], run.v[i], rank=s.rank)
    METHODS[settings.method](short)
    if short.status != "completed":
        raise UnsupportedError(f"the run cannot be continued from t = {run.t[i]:g} s to {t:g} s: {short.message}")
    return short.blocks[-1]["q"][-1], short.blocks[-1]["v"][-1]


def _interpolated(run: Any, i: int, t: float) -> tuple[Array, Array]:
    """Return the cubic through both samples: where contacts may change between them, and for lost controllers."""
    m = run.mechanism
    if i + 1 >= run.t.size:
        return run.q[i], run.v[i]
    h = float(run.t[i + 1] - run.t[i])
    u = (t - float(run.t[i])) / h
    d = m.difference(run.q[i], run.q[i + 1])
    x = u * u * (3 - 2 * u) * d + h * u * (1 - u) * ((1 - u) * run.v[i] - u * run.v[i + 1])
    return m.integrate(run.q[i], x), (1 - u) * run.v[i] + u * run.v[i + 1]
