"""A concrete system of the seed's form (10): m = 3 dependent, n - m = 2 independent velocities, curved constraints."""

from __future__ import annotations

import casadi as ca

from dalembert.tableau import Tableau

M_ROWS, FREE = 3, 2
GROUPS = ("q°", "v°", "v*", "Q°", "Q*", "tau")
"""x1 ... x6 of the seed, in its order."""


def connection(q: ca.SX) -> ca.SX:
    """J(q°), 3 x 2, no entry zero."""
    return ca.vertcat(
        ca.horzcat(ca.sin(q[0]) + 2, q[1] * q[2] + 1),
        ca.horzcat(ca.cos(q[1]) + q[2] + 2, q[0] + q[2] + 3),
        ca.horzcat(q[0] * q[1] - 2, ca.exp(-q[2]) + q[0] * q[1]),
    )


def mass() -> ca.DM:
    return ca.DM([[2.0, 0.3, 0.1], [0.3, 1.5, 0.2], [0.1, 0.2, 1.0]])


def other_forces(q: ca.SX, v: ca.SX) -> ca.SX:
    """f(q°, v°) and the gradient of U(q°), together."""
    return ca.vertcat(
        v[0] * v[1] * q[2] + ca.sin(q[0] + q[1]) * v[2],
        v[2] ** 2 * q[0] + q[1] * q[2] * v[0] + v[1],
        v[0] * v[2] + q[0] * q[1] * q[2] + v[1] * v[2],
    )


def seed_tableau(known=("q*",)) -> Tableau:
    """Equation (10); inverse dynamics (q* known) unless told otherwise."""
    q, v, Q = (ca.SX.sym(name, M_ROWS) for name in ("q°", "v°", "Q°"))
    q_free, v_free, Q_free, tau = (ca.SX.sym(name, FREE) for name in ("q*", "v*", "Q*", "tau"))
    rates = {name: ca.SX.sym(f"{name}'", size) for name, size in (("q°", M_ROWS), ("q*", FREE), ("v°", M_ROWS))}
    J = connection(q)
    equations = {
        "G1": rates["q°"] - v,
        "G2": rates["q*"] - v_free,
        "G3": v - ca.mtimes(J, v_free),
        "G4": ca.mtimes(J.T, Q) + Q_free,
        "G5": Q - ca.mtimes(mass(), rates["v°"]) - other_forces(q, v),
        "G6": Q_free - tau,
    }
    variables = {"q°": q, "v°": v, "v*": v_free, "Q°": Q, "Q*": Q_free, "tau": tau, "q*": q_free}
    outputs = {"G1": "q°", "G2": "v*", "G3": "v°", "G4": "Q*", "G5": "Q°", "G6": "tau"}
    return Tableau(equations, variables, rates, known, outputs)
