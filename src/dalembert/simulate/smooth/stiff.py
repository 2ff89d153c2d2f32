"""`method="bdf"`, `"radau"`: a mechanism handed to the tableau's implicit steppers, in the stabilised form of index 2.

The mechanism becomes a system in q with q' = v: joints of lengths and angles (a continuous joint by its angle).
Positions and
velocities of the constraints hold at every step; multipliers are unknowns. See `dalembert.tableau.time`.
"""

from __future__ import annotations

from functools import cached_property
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import casadi as ca
import numpy as np

from dalembert.errors import UnsupportedError
from dalembert.simulate.smooth.chart import chart
from dalembert.simulate.smooth.codes import _traced
from dalembert.simulate.smooth.controller import Controller
from dalembert.simulate.smooth.session import Session
from dalembert.tableau.time import Problem

if TYPE_CHECKING:
    from dalembert.model.mechanism import Mechanism

Array = np.ndarray

ANGLES_AND_LENGTHS = ("revolute", "prismatic", "helical", "universal", "fixed", "continuous")
"""Kinds of joints whose velocities are rates of coordinates."""


class ImplicitSystem:
    """A mechanism as `tableau.time.Problem` reads systems: symbols, expressions, names."""

    def __init__(self, mechanism: Mechanism, controller: Controller, start: Array) -> None:
        n = mechanism.nv
        self.mechanism, self.controller = mechanism, controller
        self.coordinates, self.names, self.holonomic = mechanism.coordinates, mechanism.names, mechanism.holonomic
        q, v, t = ca.SX.sym("q", n), ca.SX.sym("v", n), controller.t
        empty = SimpleNamespace(column=ca.SX(0, 1))
        # controls need names that no coordinate has
        names = [f"input {k}" for k in range(controller.symbols.numel())]
        u = ca.vertcat(*(ca.SX.sym(name) for name in names), ca.SX(0, 1))
        self.symbols = SimpleNamespace(q=q, v=v, u=u, t=t, parameters=empty)
        self.parameters = SimpleNamespace(pack=lambda given: np.zeros(0))
        self.base = start

    @cached_property
    def expressions(self) -> Any:
        """M, bias with the joint forces in it, A, drift, phi and psi."""
        m, c, s = self.mechanism, self.controller, self.symbols
        rows = len(m.names)
        place, _ = chart(m, ca.SX(ca.DM(self.base)), s.q, s.v)
        tau = ca.substitute(c.tau, ca.vertcat(c.q, c.v, c.symbols), ca.vertcat(place, s.v, s.u))
        empty = ca.SX(0, 1)
        asked = {
            "jacobian": ("constraint_jacobian", (place, s.t)),
            "drift": ("constraint_drift", (place, s.v, s.t)),
            "constraint": ("constraint", (place, s.t)),
            "rate": ("constraint_velocity", (place, s.v, s.t)),
        }
        found = {name: _traced(m, what)(*given) if rows else empty for name, (what, given) in asked.items()}
        found["jacobian"] = ca.reshape(found["jacobian"], rows, m.nv) if rows else ca.SX(0, m.nv)
        mass = _traced(m, "mass_matrix")(place)
        bias = _traced(m, "bias")(place, s.v) - tau
        return SimpleNamespace(mass=mass, bias=bias, holonomic=m.holonomic, **found)

    def known(self) -> dict[str, Any]:
        """Return the controller's tables by the names of their symbols."""
        return {str(self.symbols.u[k]): p for k, p in self.controller.signals.polynomials.items()}


def run_stiff(session: Session) -> None:
    """Integrate a session by an implicit method of the tableau."""
    m, s = session.mechanism, session.settings
    refuse(session)
    base = m.neutral()
    system = ImplicitSystem(m, session.controller, base)
    problem = Problem(system, known=system.known())
    options: dict[str, Any] = {"rtol": s.rtol, "atol": s.atol, "method": s.method, "max_step": s.largest_step}
    options["stop_times"] = session.controller.stops(s.start, s.end)
    if s.every is not None:
        count = int(np.floor(s.duration / s.every * (1 + 1e-12)))
        times = s.start + s.every * np.arange(count + 1)
        options["t_eval"] = times if times[-1] >= s.end - 1e-12 * s.duration else np.append(times, s.end)
    result = problem.integrate((s.start, s.end), m.difference(base, session.q), session.v, **options)
    if not result.success:
        session.stop("no solution", result.message)
    session.steps, session.rejected = result.statistics.steps, result.statistics.rejections
    session.evaluations = result.statistics.evaluations
    _hand_over(session, base, result)


def _hand_over(session: Session, base: Array, result: Any) -> None:
    """Turn the tableau's unknowns into samples."""
    m, n = session.mechanism, session.mechanism.nv
    x, v, a = result.y[:n].T, result.y[n : 2 * n].T, result.rates[n : 2 * n].T
    count = result.t.size
    rows = [result[f"lam[{name}]"] for name in m.names]
    q = m.integrate(np.broadcast_to(base, (count, m.nq)), x)
    block = {
        "t": np.asarray(result.t, dtype=float), "q": q, "v": v.copy(), "acceleration": a.copy(),
        "multipliers": np.array(rows).T.reshape(count, len(rows)), "work": _work(session, result.t, q, v),
        "step": np.diff(result.t, prepend=result.t[0]),
    }  # fmt: skip
    session.add(block, {"q": q[-1].copy(), "v": v[-1].copy()})


def _work(session: Session, t: Array, q: Array, v: Array) -> Array:
    """Return the work of the joint forces by the trapezoidal rule over the samples."""
    from dalembert.simulate.contact.forces import Forces

    tau = Forces(session.controller)
    power = np.array([float(tau(float(t[k]), q[k], v[k]) @ v[k]) for k in range(t.size)])
    return np.concatenate([[0.0], np.cumsum(0.5 * np.diff(t) * (power[1:] + power[:-1]))])


def suits(session_mechanism: Mechanism, controller: Controller) -> bool:
    """Return whether the implicit steppers take a mechanism and its joint forces."""
    kinds = {joint.kind for joint in session_mechanism.joints}
    return kinds <= set(ANGLES_AND_LENGTHS) and controller.function is None


def refuse(session: Session) -> None:
    """Refuse what the implicit steppers do not take."""
    method = session.settings.method
    others = sorted({joint.kind for joint in session.mechanism.joints} - set(ANGLES_AND_LENGTHS))
    if others:
        raise UnsupportedError(f'method="{method}" takes joints of angles and lengths, not {", ".join(others)} ones')
    if session.controller.function is not None:
        raise UnsupportedError(
            f'method="{method}" needs derivatives of the joint forces: give numbers, tables or a casadi.Function'
        )
    if session.watches or session.on_step is not None or session.settings.step is not None:
        raise UnsupportedError(f'method="{method}" chooses its steps, locates no events and calls nothing back')
    if session.checkpoint is not None:
        raise UnsupportedError(f'runs of method="{method}" are stored when they end: there is nothing to continue')
