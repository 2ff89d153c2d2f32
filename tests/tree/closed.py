"""Small closed mechanisms for tests, and what solves them by other means: minimal coordinates, null spaces."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import casadi as ca
import numpy as np

import dalembert as da
from dalembert.tree.block import constrained
from dalembert.tree.block.conditioning import closed_configurations
from dalembert.tree.requests import CONSTRAINT_REQUESTS, REQUESTS, SOLVES
from dalembert.tree.routes.route_table import ROUTES

TRACES = {request.name: request.trace for request in (*REQUESTS, *SOLVES, *CONSTRAINT_REQUESTS)}
Z = (0.0, 0.0, 1.0)
DOWN = (0.0, -9.81, 0.0)
"""Gravity of mechanisms in the x-y plane."""


def routes(mechanism: da.Mechanism, **options: Any) -> dict[str, Any]:
    """Return forward dynamics by every route, as functions of numbers: q, v, tau, t -> a, lam, status."""
    return {name: numeric(constrained.forward(mechanism, name, **options)) for name in ROUTES}


def closed_configuration(mechanism: da.Mechanism) -> Any:
    """Return a random configuration that meets the constraints."""
    return np.array(closed_configurations(mechanism))[0]


def numeric(function: ca.Function) -> Any:
    def call(*inputs: Any) -> tuple[Any, ...]:
        *outputs, status = (np.array(x).ravel() for x in function(*inputs))
        return *outputs, da.Status(int(status[0]))

    return call


class Traced:
    """Quantities of a mechanism from its traced functions, without machine code: quick for one state."""

    def __init__(self, mechanism: da.Mechanism) -> None:
        self.mechanism = mechanism

    @cached_property
    def functions(self) -> dict[str, Any]:
        return {}

    def __call__(self, what: str, *inputs: Any, **options: Any) -> Any:
        key = (what, *options.items())
        if key not in self.functions:
            self.functions[key] = TRACES[what](self.mechanism, **options)
        found = [np.array(ca.densify(x)) for x in self.functions[key].call([ca.DM(np.asarray(x)) for x in inputs])]
        found = [
            x.ravel() if x.shape[1] == 1 and what not in ("mass_matrix", "constraint_jacobian") else x for x in found
        ]
        return found[0] if len(found) == 1 else found

    def M(self, q: Any) -> Any:
        return self("mass_matrix", q)

    def A(self, q: Any, t: float = 0.0) -> Any:
        return self("constraint_jacobian", q, t)

    def system(self, q: Any, t: float = 0.0, metric: Any = None) -> da.KKT:
        """Return the block matrix, for the dense answers of `kkt`."""
        names = self.mechanism.names, self.mechanism.coordinates
        return da.KKT(self.M(q), self.A(q, t), *names, None if metric is None else np.diag(metric))

    def force(self, q: Any, v: Any, tau: Any) -> Any:
        return tau - self("bias", q, v)

    def drift(self, q: Any, v: Any, t: float = 0.0) -> Any:
        return self("constraint_drift", q, v, t)

    def solve(self, q: Any, v: Any, tau: Any, t: float = 0.0, metric: Any = None, **options: Any) -> da.Solution:
        return self.system(q, t, metric).solve(self.force(q, v, tau), self.drift(q, v, t), **options)


def bar(builder: da.Builder, name: str, length: float, mass: float) -> None:
    """Add a slender bar along x with its end as a frame."""
    moment = mass * length**2 / 12
    builder.body(name, mass=mass, center=(length / 2, 0, 0), inertia=(1e-3 * moment, moment, moment))
    builder.frame(f"{name} end", name, position=(length, 0, 0))


def four_bar(loop: Any = da.Point, **options: Any) -> da.Mechanism:
    """Return crank 0.5, coupler 1, rocker 0.8 on a ground of 1.1; the loop is where coupler and rocker meet."""
    b = da.Builder("four-bar", gravity=DOWN)
    for name, length, mass in (("crank", 0.5, 1.0), ("coupler", 1.0, 2.0), ("rocker", 0.8, 1.5)):
        bar(b, name, length, mass)
    b.joint("A", "revolute", parent="world", child="crank", axis=Z)
    b.joint("B", "revolute", parent="crank", child="coupler", axis=Z, position=(0.5, 0, 0))
    b.joint("D", "revolute", parent="world", child="rocker", axis=Z, position=(1.1, 0, 0))
    return b.build().constrain(loop("coupler end", "rocker end", name="pin", **options))


def four_bar_angles(theta: Any) -> list[Any]:
    """Return the absolute angles of crank, coupler and rocker by intersecting two circles."""
    x, y = 1.1 - 0.5 * ca.cos(theta), -0.5 * ca.sin(theta)
    s = ca.sqrt(x * x + y * y)
    phi = ca.atan2(y, x) + ca.acos((1.0 + s * s - 0.8**2) / (2 * s))
    end = ca.cos(phi) - x, ca.sin(phi) - y
    return [theta, phi, ca.atan2(end[1], end[0])]


def slider_crank() -> da.Mechanism:
    """Return crank 0.3, rod 0.9, and a block of 2 kg on the x axis."""
    b = da.Builder("slider-crank", gravity=DOWN)
    bar(b, "crank", 0.3, 1.0)
    bar(b, "rod", 0.9, 1.2)
    b.body("block", mass=2.0, inertia=(0.1, 0.1, 0.1))
    b.joint("A", "revolute", parent="world", child="crank", axis=Z)
    b.joint("B", "revolute", parent="crank", child="rod", axis=Z, position=(0.3, 0, 0))
    b.joint("slide", "prismatic", parent="world", child="block", axis=(1, 0, 0))
    return b.build().constrain(da.Revolute("rod end", "block", axis=Z, name="wrist pin"))


def parallelogram() -> da.Mechanism:
    """Return three parallel cranks of length 1 under one coupler: one crank more than moves and holds it."""
    b = da.Builder("parallelogram", gravity=DOWN)
    for name, mass in (("left", 1.0), ("middle", 1.5), ("right", 2.0)):
        bar(b, name, 1.0, mass)
    bar(b, "coupler", 2.0, 3.0)
    b.frame("halfway", "coupler", position=(1, 0, 0))
    for i, name in enumerate(("left", "middle", "right")):
        b.joint(name + " hinge", "revolute", parent="world", child=name, axis=Z, position=(i, 0, 0))
    b.joint("top", "revolute", parent="left", child="coupler", axis=Z, position=(1, 0, 0))
    return b.build().constrain(
        da.Point("halfway", "middle end", name="second"), da.Point("coupler end", "right end", name="third")
    )


def door(heights: tuple[float, float, float] = (0.2, 1.0, 1.8), gravity: Any = (0, 2.0, -9.81)) -> da.Mechanism:
    """Return a door of 20 kg: the lowest hinge carries it, the others only keep it on the line."""
    b = da.Builder("door", gravity=gravity)
    b.body("door", mass=20.0, center=(0.5, 0, 1), inertia=(7, 8.5, 1.7))
    for name, z in zip(("low", "middle", "high"), heights, strict=True):
        b.frame(name, "door", position=(0, 0, z))
    at = {name: (0, 0, z) for name, z in zip(("low", "middle", "high"), heights, strict=True)}
    lines = [da.PointOnLine(name, at=at[name], axis=Z) for name in ("middle", "high")]
    return b.build(base="floating").constrain(da.Point("low", at=at["low"]), *lines)


def hopper(leg: float) -> da.Mechanism:
    """Return a torso that flies, on two leg links of the given mass; their inertias vanish with it."""
    b = da.Builder("hopper")
    b.body("torso", mass=5.0, center=(0.05, 0, 0.2), inertia=(0.2, 0.3, 0.15))
    for name in ("thigh", "shank"):
        b.body(name, mass=leg, center=(0, 0, -0.2), inertia=(0.02 * leg, 0.02 * leg, 0.01 * leg))
    b.joint("hip", "revolute", parent="torso", child="thigh", axis=(0, 1, 0))
    b.joint("knee", "revolute", parent="thigh", child="shank", axis=(0, 1, 0), position=(0, 0, -0.4))
    b.frame("foot", "shank", position=(0, 0, -0.4))
    return b.build(base="floating")


def branched() -> da.Mechanism:
    """Return a flying tree with joints of many kinds; between "f3" and "f5" lie eight degrees of freedom."""
    b, rng = da.Builder("branched"), np.random.default_rng(7)
    kinds = ("free", "prismatic", "continuous", "spherical", "universal", "revolute")
    for i, (kind, parent) in enumerate(zip(kinds, ("world", "b0", "b1", "b2", "b0", "b4"), strict=True)):
        b.body(f"b{i}", mass=rng.uniform(0.5, 2), center=rng.uniform(-0.3, 0.3, 3), inertia=rng.uniform(0.5, 1, 3))
        place = {"position": rng.uniform(-1, 1, 3), "rotation": rng.standard_normal(4)}
        b.joint(f"j{i}", kind, parent=parent, child=f"b{i}", axis=rng.standard_normal(3), axis2=(0.1, 1, 0.2), **place)
        b.frame(f"f{i}", f"b{i}", position=rng.uniform(-1, 1, 3), rotation=rng.standard_normal(4))
    return b.build()


CORNERS = ((0.1, 0.05, 0.0), (0.1, -0.05, 0.0), (-0.08, 0.05, 0.0), (-0.08, -0.05, 0.0))


def walker() -> da.Mechanism:
    """Return a body on a leg with a foot that has four corners."""
    b = da.Builder("walker")
    b.body("trunk", mass=10.0, center=(0.02, 0.01, 0.3), inertia=(0.5, 0.6, 0.3))
    b.body("leg", mass=2.0, center=(0, 0, -0.2), inertia=(0.03, 0.03, 0.01))
    b.body("foot", mass=1.0, center=(0.01, 0, 0.02), inertia=(0.004, 0.006, 0.007))
    b.joint("hip", "spherical", parent="trunk", child="leg")
    b.joint("ankle", "universal", parent="leg", child="foot", position=(0, 0, -0.45))
    for i, corner in enumerate(CORNERS):
        b.frame(f"corner {i}", "foot", position=corner)
    return b.build(base="floating")


def stewart() -> tuple[da.Mechanism, da.Mechanism]:
    """Return a platform on six legs (cardan joint, slider, ball) with its loops; and the same with sliders driven."""
    b = da.Builder("stewart")
    b.body("platform", mass=30.0, center=(0.02, -0.01, 0.05), inertia=(1.0, 1.2, 2.0))
    b.joint("flying", "free", parent="world", child="platform")
    loops = []
    for i in range(6):
        base, top = np.deg2rad(60 * (i // 2) * 2 + (20 if i % 2 else -20)), np.deg2rad(60 * i + (25 if i % 2 else -25))
        b.frame(f"ball {i}", "platform", position=(0.4 * np.cos(top), 0.4 * np.sin(top), 0))
        for part, mass in (("sleeve", 2.0), ("rod", 1.0)):
            b.body(f"{part} {i}", mass=mass, center=(0, 0, 0.2), inertia=(0.05, 0.05, 0.01))
        position = (np.cos(base), np.sin(base), 0)
        b.joint(f"cardan {i}", "universal", parent="world", child=f"sleeve {i}", position=position)
        b.joint(f"slider {i}", "prismatic", parent=f"sleeve {i}", child=f"rod {i}", axis=Z, position=(0, 0, 0.5))
        b.frame(f"end {i}", f"rod {i}", position=(0, 0, 0.4))
        loops.append(da.Point(f"end {i}", f"ball {i}"))
    mechanism = b.build().constrain(*loops)
    return mechanism, mechanism.constrain(*[da.Servo(f"slider {i}", 0.05 * (i % 3)) for i in range(6)])


def minimal_acceleration(coordinates: Any, positions: Any, bodies: Any, theta: float, omega: float) -> Any:
    """Return the coordinates of a planar mechanism with one degree of freedom, their velocities and accelerations.

    Parameters
    ----------
    coordinates
        theta -> list of expressions.
    positions
        theta -> per body its centre of mass (x, y) and its angle.
    bodies
        Mass and moment of inertia of each.

    Lagrange's equation for T = I(theta) omega^2 / 2 and V(theta) = 9.81 sum m y: I theta'' + I' omega^2 / 2 + V' = 0.
    """
    x, w = ca.SX.sym("theta"), ca.SX.sym("omega")
    kinetic, height = ca.SX(0), ca.SX(0)
    for (mass, moment), place in zip(bodies, positions(x), strict=True):
        rate = ca.jacobian(ca.vertcat(*place), x)
        kinetic += mass * (rate[0] ** 2 + rate[1] ** 2) + moment * rate[2] ** 2
        height += mass * place[1]
    slope = ca.jacobian(kinetic, x) * w**2 / 2 + 9.81 * ca.jacobian(height, x)
    value = ca.vertcat(*coordinates(x))
    speed = ca.jacobian(value, x) * w
    acceleration = ca.jacobian(value, x) * (-slope / kinetic) + ca.jacobian(speed, x) * w
    return [
        np.array(each).ravel() for each in ca.Function("minimal", [x, w], [value, speed, acceleration])(theta, omega)
    ]


def least_norm(A: Any, needed: Any, metric: Any = None) -> Any:
    """Return the lam of least lam^T W lam with A^T lam = needed, by NumPy's pseudo-inverse."""
    root = np.ones(len(A)) if metric is None else np.sqrt(np.asarray(metric))
    return np.linalg.pinv(A.T / root, rcond=1e-10) @ needed / root


def reduced(mechanism: da.Mechanism, q: Any, v: Any, tau: Any, t: float = 0.0) -> Any:
    """Return a = a0 + N z by the null space N of A: N^T M N z = N^T (tau - bias - M a0)."""
    M, A = mechanism.mass_matrix(q), mechanism.jacobian(q, t)
    force = tau - mechanism.bias(q, v)
    a0 = -np.linalg.pinv(A, rcond=1e-10) @ mechanism.drift(q, v, t)
    _, s, Vt = np.linalg.svd(A)
    N = Vt[np.count_nonzero(s > 1e-10 * s.max()) :].T
    return a0 + N @ np.linalg.solve(N.T @ M @ N, N.T @ (force - M @ a0)) if N.size else a0
