"""Five systems that everybody knows, written as Lagrangians."""

from __future__ import annotations

import casadi as ca

from dalembert.model import Lagrangian

GRAVITY = 9.81


def symbols(*names: str) -> list[ca.SX]:
    return [ca.SX.sym(name) for name in names]


def pendulum() -> Lagrangian:
    """A point on a rod, in Cartesian coordinates; parameters mass and length."""
    q, v, (mass, length) = ca.SX.sym("q", 2), ca.SX.sym("v", 2), symbols("mass", "length")
    return Lagrangian(
        q,
        v,
        kinetic=mass * ca.sumsqr(v) / 2,
        potential=mass * GRAVITY * q[1],
        constraints={"rod": (ca.sumsqr(q) - length**2) / 2},
        parameters={"mass": (mass, 1.0), "length": (length, 1.0)},
        coordinates=("x", "y"),
    )


def double_pendulum() -> Lagrangian:
    """Absolute angles from the vertical; no constraints."""
    q, v = ca.SX.sym("theta", 2), ca.SX.sym("omega", 2)
    m1, m2, l1, l2 = symbols("m1", "m2", "l1", "l2")
    first = l1 * ca.vertcat(ca.sin(q[0]), -ca.cos(q[0]))
    second = first + l2 * ca.vertcat(ca.sin(q[1]), -ca.cos(q[1]))
    kinetic = sum(m / 2 * ca.sumsqr(ca.jtimes(x, q, v)) for m, x in ((m1, first), (m2, second)))
    potential = GRAVITY * (m1 * first[1] + m2 * second[1])
    return Lagrangian(q, v, kinetic, potential, parameters=[m1, m2, l1, l2])


def slider_crank() -> Lagrangian:
    """The crank of `crank_slider`, its rod of mass `rod` (zero by default), theta2 clockwise, a motor on the crank."""
    q, v, (rod, torque) = ca.SX.sym("q", 2), ca.SX.sym("v", 2), symbols("rod", "torque")
    turn, (l1, l2) = q[0] - q[1], (1.1, 0.8)
    middle = l1 / 2 * ca.vertcat(ca.cos(q[0]), ca.sin(q[0]))
    centre = 2 * middle + l2 / 2 * ca.vertcat(ca.cos(turn), ca.sin(turn))
    kinetic = (3 * ca.sumsqr(ca.jtimes(middle, q, v)) + 0.25 * v[0] ** 2) / 2
    kinetic += rod / 2 * (ca.sumsqr(ca.jtimes(centre, q, v)) + l2**2 / 12 * (v[0] - v[1]) ** 2)
    return Lagrangian(
        q,
        v,
        kinetic,
        potential=GRAVITY * (3 * middle[1] + rod * centre[1]),
        forces=ca.vertcat(torque, 0),
        constraints=[("slider", l1 * ca.sin(q[0]) + l2 * ca.sin(turn))],
        parameters={"rod": (rod, 0.0)},
        controls=torque,
        coordinates=("theta1", "theta2"),
    )


def sleigh() -> Lagrangian:
    """Chaplygin's sleigh: the blade stands at (x, y), the centre of mass a distance `offset` ahead of it."""
    q, v, (offset, mass, inertia) = ca.SX.sym("q", 3), ca.SX.sym("v", 3), symbols("offset", "mass", "inertia")
    across = ca.vertcat(-ca.sin(q[2]), ca.cos(q[2]))
    centre = v[:2] + offset * v[2] * across
    return Lagrangian(
        q,
        v,
        kinetic=mass / 2 * ca.sumsqr(centre) + inertia / 2 * v[2] ** 2,
        constraints={"blade": ca.dot(across, v[:2])},
        parameters={"offset": (offset, 0.4), "mass": (mass, 2.0), "inertia": (inertia, 0.3)},
        coordinates=("x", "y", "angle"),
    )


def bead() -> Lagrangian:
    """A bead on a straight wire that turns at a constant rate, in Cartesian coordinates."""
    q, v, (rate, t) = ca.SX.sym("q", 2), ca.SX.sym("v", 2), symbols("rate", "t")
    return Lagrangian(
        q,
        v,
        kinetic=ca.sumsqr(v) / 2,
        constraints={"wire": ca.cos(rate * t) * q[1] - ca.sin(rate * t) * q[0]},
        parameters={"rate": (rate, 1.5)},
        time=t,
        coordinates=("x", "y"),
    )


SYSTEMS = (pendulum, double_pendulum, slider_crank, sleigh, bead)
