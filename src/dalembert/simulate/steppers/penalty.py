"""`method="penalty"`: joints and loops held by springs and dampers, for comparison with exact rows (seed 001, sec. 1).

Symbols: phi residuals of rows (zero for those on velocities), psi = A v + offset their rates, k stiffnesses, d
dampings. In place of multipliers, which make A a + drift = 0, every row has the force of a spring and a damper:

    M a = tau - bias - A^T lam        lam = k phi + d psi        M_row = 1 / (A M^-1 A^T)_ii,   d = 2 zeta sqrt(k M_row)

Rows then drift by lam / k, the motion has frequencies sqrt(k / M_row) that no one asked for, which explicit steps must
follow, and dampers take energy: drift falls as 1 / k while cost grows as sqrt(k), or as k where dampers are strong.
Redundant rows are never in each other's way: that is what the method is popular for.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import casadi as ca
import numpy as np

from dalembert.errors import ModelError, UnsupportedError
from dalembert.kkt.limits import EPS
from dalembert.names import near_matches
from dalembert.simulate.equations.codes import form_of
from dalembert.simulate.equations.controller import Controller, controller
from dalembert.simulate.equations.lagrangian_system import LagrangianSystem
from dalembert.simulate.session import Session
from dalembert.types import Array

STEPPERS = ("dop853", "dopri5", "rk4", "radau", "bdf")
"""Methods that step the open system."""


def run_penalty(session: Session, stiffness: Any = None, damping: Any = 1.0, stepper: str = "dop853") -> None:
    """Integrate the system with springs and dampers in place of its rows.

    Parameters
    ----------
    stiffness
        k in N/m or N m/rad: a number, or one of every row.
    damping
        zeta, part of the critical damping of each row at the start: a number, or one of every row.
    stepper
        One of `STEPPERS`.

    Notes
    -----
    `run.reactions` are the forces of the springs, `run.position_residual` the drift; the energy that springs hold and
    dampers take is what `run.energy_residual` misses; where other forces act, their work is not known.
    """
    if stiffness is None:
        raise ModelError(
            'method="penalty" needs stiffness=, in N/m or N m/rad: a number, or one for each row; rows drift by '
            "x under a force F where the spring is F / x"
        )
    _refuse(session, stepper)
    m, s = session.system, session.settings
    k, zeta = (_of_rows(m, value, name) for value, name in ((stiffness, "stiffness"), (damping, "damping")))
    d = 2.0 * zeta * np.sqrt(k * row_masses(m, session.q, s.start))
    lam, law = penalty_force(m, session.controller, k, d)
    inner = Session(_open(m), replace(s, method=stepper), controller(_open(m), law), session.q, session.v)
    _stepper(stepper)(inner)
    session.status, session.message = inner.status, inner.message
    session.steps, session.rejected, session.evaluations = inner.steps, inner.rejected, inner.evaluations
    for block in inner.blocks:
        forces = np.array(lam.map(len(block["t"]))(block["t"], block["q"].T, block["v"].T)).T
        work = np.zeros(len(block["t"])) if session.controller.kind == "none" else np.full(len(block["t"]), np.nan)
        session.add(block | {"multipliers": forces.reshape(len(block["t"]), len(m.names)), "work": work}, {})


def row_masses(system: Any, q: Array, t: float) -> Array:
    """Return 1 / (A M^-1 A^T)_ii, (m,): what a row moves where it alone acts; zero of one that moves nothing."""
    M, A = np.asarray(system.mass_matrix(q)), np.asarray(system.jacobian(q, t))
    try:
        G = np.einsum("ij,ij->i", A, np.linalg.solve(M, A.T).T)
    except np.linalg.LinAlgError:
        G = np.full(len(A), np.nan)
    if not np.isfinite(G).all():
        raise UnsupportedError(
            'method="penalty" needs mass in every motion: a spring on what weighs nothing has no finite frequency; '
            "other methods take it"
        )
    moves = EPS * G.max(initial=0.0) < G
    return np.where(moves, 1.0 / np.where(moves, G, 1.0), 0.0)


def penalty_force(system: Any, given: Controller, k: Array, d: Array) -> tuple[ca.Function, ca.Function]:
    """Return t, q, v -> lam = k phi + d psi, and the force tau - A^T lam of the open system."""
    form = form_of(system)
    t, q, v = ca.SX.sym("t"), ca.SX.sym("q", system.nq), ca.SX.sym("v", system.nv)
    p = ca.SX(ca.DM(form.values))
    held = np.array(system.holonomic, dtype=bool)
    phi = ca.SX.zeros(len(held))
    if held.any():
        phi[np.flatnonzero(held).tolist()] = form.at("constraint", q, v, t, p)
    lam = ca.DM(k) * phi + ca.DM(d) * form.at("rate", q, v, t, p)
    tau = ca.Function("tau", [given.t, given.q, given.v], [given.tau])(t, q, v)
    force = tau - form.at("jacobian", q, v, t, p).T @ lam
    return (ca.Function("lam", [t, q, v], [ca.densify(lam)]), ca.Function("force", [t, q, v], [ca.densify(force)]))


def _open(system: Any) -> Any:
    """Return the system without its rows."""
    if not isinstance(system, LagrangianSystem):
        return system.open_tree()
    given, e = system.lagrangian, system.lagrangian.expressions
    none = replace(
        e, constraint=ca.SX(0, 1), rate=ca.SX(0, 1), jacobian=ca.SX(0, system.nv), drift=ca.SX(0, 1), names=(),
        holonomic=(),
    )  # fmt: skip
    free = type(given).from_expressions(given.symbols, none, system.coordinates, ())
    free.parameters = given.parameters
    return LagrangianSystem(free)


def _stepper(name: str) -> Any:
    """Return what steps the open system."""
    if name in ("radau", "bdf"):
        from dalembert.simulate.steppers.stiff import run_stiff

        return run_stiff
    from dalembert.simulate.steppers.explicit import run_explicit

    return run_explicit


def _of_rows(system: Any, value: Any, name: str) -> Array:
    """Return a positive number for each row."""
    try:
        numbers = np.broadcast_to(np.asarray(value, dtype=float), (len(system.names),))
    except (TypeError, ValueError):
        numbers = np.empty(0)
    if numbers.size != len(system.names) or not (np.isfinite(numbers) & (numbers >= 0.0)).all():
        raise ModelError(f"{name}={value!r} is a number >= 0, or {len(system.names)} of them, one for each row")
    return numbers


def _refuse(session: Session, stepper: str) -> None:
    """Refuse what a method for comparison does without."""
    m = session.system
    if not getattr(m, "compiled", True) or not m.names:
        what = "Matrices are Python functions" if m.names else "the system has none"
        raise UnsupportedError(f'method="penalty" puts springs in the place of constraint rows, and {what}')
    if stepper not in STEPPERS:
        raise ModelError(f"stepper={stepper!r} is not one of {', '.join(map(repr, STEPPERS))}",
                         near=near_matches(str(stepper), STEPPERS))  # fmt: skip
    asked = {
        "events=": bool(session.watches), "on_step=": session.on_step is not None, "file=": session.sink is not None,
        "a force that is a table or a Python function": bool(session.controller.symbols.numel()),
    }  # fmt: skip
    for what, given in asked.items():
        if given:
            raise UnsupportedError(f'method="penalty" is for comparison with exact rows and takes no {what}')
