"""The discrete Lagrangian of a mechanism at the midpoint, its momenta, and the equations of one step, as expressions.

Symbols: q0, q1 = q0 * x configurations, d0, d1 variations of both in the body's axes, r = r(x, d0, d1) the way from
one to
the other, h step, L = v^T M(q) v / 2 - V(q):

    L_d(q0, q1) = h L(middle, r / h)         p0 = -D1 L_d - h F / 2 + A(q0)^T lam
                                             p1 =  D2 L_d + h F / 2 - A(q1)^T mu,   phi(q1) = 0,   A(q1) M^-1 p1 = 0

Rotations: r = log(exp(-d0) exp(x) exp(d1)), middle = q0 exp(d0) exp(r / 2). Symplectic and of second order, holonomic
rows
exactly on the manifold (RATTLE). Sources: J. Marsden, M. West, "Discrete mechanics and variational integrators", Acta
Numerica 2001, secs. 1-3; Hairer, Lubich, Wanner, "Geometric Numerical Integration", secs. VI.6, VII.1.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import casadi as ca

from dalembert.simulate.smooth.chart import _cross, _product, _spherical, _turned, chart
from dalembert.simulate.smooth.codes import _traced
from dalembert.simulate.smooth.controller import Controller

if TYPE_CHECKING:
    from dalembert.model.mechanism import Mechanism

Scalar = Any

SMALL = 1e-4
"""Squares of sines below this go through a series."""


def trace_step(mechanism: Mechanism, controller: Controller) -> ca.Function:
    """Return base, x, p, lam, h, environment -> the discrete equations.

    Outputs: residual, its Jacobian in (x, lam) by rows, momentum at the end; configuration and velocity in the
    middle, at which joint forces act, and their power.
    """
    n, rows = mechanism.nv, len(mechanism.names)
    base, x, p = ca.SX.sym("base", mechanism.nq), ca.SX.sym("x", n), ca.SX.sym("p", n)
    lam, h = ca.SX.sym("lam", rows), ca.SX.sym("h")
    environment = ca.SX.sym("environment", 2 + controller.symbols.numel())
    t = environment[0]
    d0, d1 = ca.SX.sym("d0", n), ca.SX.sym("d1", n)
    middle, way = _middle(mechanism, base, x, d0, d1, h)
    v = way / h
    M = _traced(mechanism, "mass_matrix")(middle)
    potential = _traced(mechanism, "energy")(middle, ca.SX.zeros(n))[1]
    action = h * (ca.dot(v, M @ v) / 2 - potential)
    zero = ca.SX.zeros(2 * n)
    slopes = ca.substitute(ca.gradient(action, ca.vertcat(d0, d1)), ca.vertcat(d0, d1), zero)
    still = [ca.substitute(each, ca.vertcat(d0, d1), zero) for each in (middle, v)]
    tau, force = _forces(mechanism, controller, still[0], still[1], t + h / 2, environment[2:])
    residual = p + slopes[:n] + h / 2 * force
    end, _ = chart(mechanism, base, x, ca.SX.zeros(n))
    if rows:
        A = ca.reshape(_traced(mechanism, "constraint_jacobian")(base, t), rows, n)
        phi = _traced(mechanism, "constraint")(end, t + h)
        residual = ca.vertcat(residual - A.T @ lam, phi)
    jacobian = ca.jacobian(residual, ca.vertcat(x, lam))
    outputs = [residual, ca.vec(ca.densify(jacobian).T), slopes[n:] + h / 2 * force, *still, ca.dot(tau, still[1])]
    inputs = {"base": base, "x": x, "p": p, "lam": lam, "h": h, "environment": environment}
    inputs = {name: each for name, each in inputs.items() if each.numel()}
    return ca.Function("variational", list(inputs.values()), [ca.densify(e) for e in outputs], list(inputs),
                       ["residual", "jacobian", "momentum", "middle", "speed", "power"])  # fmt: skip


def trace_mass(mechanism: Mechanism) -> ca.Function:
    """Return q -> M, row after row."""
    q = ca.SX.sym("q", mechanism.nq)
    return ca.Function("mass", [q], [ca.vec(ca.densify(_traced(mechanism, "mass_matrix")(q)))], ["q"], ["M"])


def _forces(
    mechanism: Mechanism, controller: Controller, q: ca.SX, v: ca.SX, t: ca.SX, signals: ca.SX
) -> tuple[ca.SX, ca.SX]:
    """Return the joint forces, and all that has no potential: joint forces and dampers."""
    law = ca.Function("tau", [controller.t, controller.q, controller.v, controller.symbols], [controller.tau])
    tau = law(t, q, v, signals)
    if not mechanism.passive:
        return tau, tau
    bare, still = mechanism.with_passive(False), ca.SX.zeros(mechanism.nv)
    both, none = _traced(mechanism, "bias"), _traced(bare, "bias")
    return tau, tau - ((both(q, v) - none(q, v)) - (both(q, still) - none(q, still)))


def _middle(mechanism: Mechanism, base: ca.SX, x: ca.SX, d0: ca.SX, d1: ca.SX, h: ca.SX) -> tuple[ca.SX, ca.SX]:
    """Return the configuration half way, and the way in the axes of the middle."""
    m = mechanism.manifold
    middle: list[Scalar] = []
    way: list[Scalar] = []
    for i, joint in enumerate(mechanism.joints):
        iq, iv = range(m.q_start[i], m.q_start[i + 1]), range(m.v_start[i], m.v_start[i + 1])
        parts = [[column[j] for j in place] for column, place in ((base, iq), (x, iv), (d0, iv), (d1, iv))]
        half, path = _KINDS.get(joint.kind, _vector)(*parts)
        middle += half
        way += path
    return ca.vertcat(*middle, ca.SX(0, 1)), ca.vertcat(*way, ca.SX(0, 1))


def _vector(q: list[Scalar], x: list[Scalar], d0: list[Scalar], d1: list[Scalar]) -> tuple[list[Scalar], list[Scalar]]:
    way = [x[i] + d1[i] - d0[i] for i in range(len(x))]
    return [q[i] + d0[i] + way[i] / 2 for i in range(len(x))], way


def _continuous(
    q: list[Scalar], x: list[Scalar], d0: list[Scalar], d1: list[Scalar]
) -> tuple[list[Scalar], list[Scalar]]:
    way = x[0] + d1[0] - d0[0]
    return _turned(q, d0[0] + way / 2), [way]


def _planar(q: list[Scalar], x: list[Scalar], d0: list[Scalar], d1: list[Scalar]) -> tuple[list[Scalar], list[Scalar]]:
    turn = x[2] + d1[2] - d0[2]
    half = _turned(q[2:], d0[2] + turn / 2)
    end = _turned(q[2:], x[2])
    first, last = _rotated2(q[2:], d0[:2]), _rotated2(end, d1[:2])
    path = [x[k] + last[k] - first[k] for k in range(2)]
    place = [q[k] + first[k] + path[k] / 2 for k in range(2)]
    return [*place, *half], [*_rotated2([half[0], -half[1]], path), turn]


def _rotated2(turn: list[Scalar], x: list[Scalar]) -> list[Scalar]:
    return [turn[0] * x[0] - turn[1] * x[1], turn[1] * x[0] + turn[0] * x[1]]


def _spherical_middle(
    q: list[Scalar], x: list[Scalar], d0: list[Scalar], d1: list[Scalar]
) -> tuple[list[Scalar], list[Scalar]]:
    """Variations enter to first order, which is all that is differentiated."""
    turn, _ = _spherical([0.0, 0.0, 0.0, 1.0], x, [0.0, 0.0, 0.0])
    before = [-d0[0] / 2, -d0[1] / 2, -d0[2] / 2, 1.0]
    after = [d1[0] / 2, d1[1] / 2, d1[2] / 2, 1.0]
    way = _logarithm(_product(_product(before, turn), after))
    half, _ = _spherical([0.0, 0.0, 0.0, 1.0], [each / 2 for each in way], [0.0, 0.0, 0.0])
    start = _product(q, [d0[0] / 2, d0[1] / 2, d0[2] / 2, 1.0])
    return _product(start, half), way


def _logarithm(a: list[Scalar]) -> list[Scalar]:
    """Return the rotation vector of a quaternion with w > 0."""
    s = a[0] * a[0] + a[1] * a[1] + a[2] * a[2]
    small = s < SMALL
    n = ca.sqrt(ca.if_else(small, 1.0, s))
    w2 = a[3] * a[3]
    u = s / w2
    series = 2 / a[3] * (1 - u / 3 * (1 - u * 3 / 5 * (1 - u * 5 / 7 * (1 - u * 7 / 9))))
    factor = ca.if_else(small, series, 2 * ca.atan2(n, a[3]) / n)
    return [factor * a[0], factor * a[1], factor * a[2]]


def _free(q: list[Scalar], x: list[Scalar], d0: list[Scalar], d1: list[Scalar]) -> tuple[list[Scalar], list[Scalar]]:
    half, turn = _spherical_middle(q[3:], x[3:], d0[3:], d1[3:])
    end, _ = _spherical(q[3:], x[3:], [0.0, 0.0, 0.0])
    first, last = _rotated(q[3:], d0[:3]), _rotated(end, d1[:3])
    path = [x[k] + last[k] - first[k] for k in range(3)]
    place = [q[k] + first[k] + path[k] / 2 for k in range(3)]
    back = [-half[0], -half[1], -half[2], half[3]]
    return [*place, *half], [*_rotated(back, path), *turn]


def _rotated(a: list[Scalar], x: list[Scalar]) -> list[Scalar]:
    twice = [2 * each for each in _cross(a[:3], x)]
    again = _cross(a[:3], twice)
    return [x[i] + a[3] * twice[i] + again[i] for i in range(3)]


_KINDS = {"continuous": _continuous, "planar": _planar, "spherical": _spherical_middle, "free": _free}

__all__ = ["trace_mass", "trace_step"]
