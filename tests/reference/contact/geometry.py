"""Gaps, directions and their rates at a state in NumPy: a twin of the terms that compiled contacts read.

Symbols: c centre of a sphere, J, Jw its Jacobians (world axes), n normal, t1, t2 tangents; rows W (3 pairs, nv):

    u_N = n . (c' ...)  rate of the gap          u_T = t . velocity of the touching point, relative to the other side
    u' = W a + drift

The touching point of a sphere on the ground is c - r n; n is taken as constant there (planes), and turns with the
line of centres between spheres.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import casadi as ca
import numpy as np

from dalembert.kernel import Kernel
from dalembert.simulate.contact.geometry import asked, tangents
from dalembert.simulate.contact.shapes import ContactPair, Plane, Sphere
from dalembert.simulate.equations.codes import _kernel, _traced
from dalembert.types import Array

if TYPE_CHECKING:
    from dalembert.model.mechanism.mechanism import Mechanism


@dataclass(frozen=True, eq=False)
class State:
    """A mechanism with its contacts at one state.

    Attributes
    ----------
    M, bias, A, drift
        Mass matrix (nv, nv), bias (nv,), constraint rows (m, nv) and their drift.
    gaps, W, contact_drift
        Gaps (k,); rows (3 k, nv) normal, tangent, tangent per pair; what remains of their rates at a = 0.
    axes
        Normal and tangents of every pair in world axes, (k, 3, 3), by rows.
    """

    M: Array
    bias: Array
    A: Array
    drift: Array
    gaps: Array
    W: Array
    contact_drift: Array
    axes: Array


class Geometry:
    """Evaluates the pairs of a mechanism."""

    def __init__(self, mechanism: Mechanism, pairs: tuple[ContactPair, ...]) -> None:
        self.mechanism, self.pairs = mechanism, pairs
        self.frames = tuple(dict.fromkeys(ball.frame for pair in pairs for ball in (pair.ball, pair.other) if ball))
        key = ("simulate", mechanism.content(), "contacts", *self.frames)
        self.kernel: Kernel = _kernel(key, lambda: trace_contacts(mechanism, self.frames), mechanism.cacheable)
        self.rows = len(mechanism.names)
        self.planes = _Planes(
            [(i, pair) for i, pair in enumerate(pairs) if isinstance(pair.ground, Plane)], self.frames
        )
        self.others = [(i, pair) for i, pair in enumerate(pairs) if not isinstance(pair.ground, Plane)]

    def state(self, q: Array, v: Array, t: float = 0.0) -> State:
        """Evaluate everything at a state."""
        n = self.mechanism.nv
        outputs = dict(zip((port.name for port in self.kernel.outputs), self._call(q, v, t), strict=True))
        frames = outputs.get("frames", np.zeros(0)).reshape(len(self.frames), 18 + 6 * n)
        k = len(self.pairs)
        gaps, W, drift, axes = np.zeros(k), np.zeros((3 * k, n)), np.zeros(3 * k), np.zeros((k, 3, 3))
        if self.planes.index.size:
            self.planes.fill(frames, v, gaps, W, drift, axes)
        moving = {name: _Frame(row, n, v) for name, row in zip(self.frames, frames, strict=True)} if self.others else {}
        for i, pair in self.others:
            part = slice(3 * i, 3 * i + 3)
            if pair.ball is None:
                gaps[i] = pair.sign * (q[pair.coordinate[0]] - pair.bound)
                W[3 * i, pair.coordinate[1]] = pair.sign
                axes[i] = np.eye(3)
            elif pair.other is not None:
                gaps[i], W[part], drift[part], axes[i] = _two_spheres(pair, moving, n)
            else:
                gaps[i], W[part], drift[part], axes[i] = _on_ground(pair, moving[pair.ball.frame])
        A = outputs.get("A", np.zeros(0)).reshape(self.rows, n)
        return State(
            outputs["M"].reshape(n, n), outputs["bias"], A, outputs.get("drift", np.zeros(0)), gaps, W, drift, axes
        )

    def _call(self, q: Array, v: Array, t: float) -> tuple[Array, ...]:
        outputs = self.kernel(q, v, np.array([t]))
        return outputs if isinstance(outputs, tuple) else (outputs,)

    def foot(self, q: Array, i: int) -> Array:
        """Return the place (3,) on the heightfield of pair i that its touching point is over."""
        field: Any = self.pairs[i].ground
        ball: Any = self.pairs[i].ball
        frame = self._moving(q, np.zeros(self.mechanism.nv))[ball.frame]
        return field.below(frame.p + frame.R @ np.array(ball.at), ball.radius)[2]

    def spins(self, q: Array, v: Array) -> Array:
        """Return r omega of the spheres of every pair, both sides added, (k, 3)."""
        moving = self._moving(q, v) if self.frames else {}
        balls = [[ball for ball in (pair.ball, pair.other) if ball is not None] for pair in self.pairs]
        turns = [sum((b.radius * moving[b.frame].w for b in spheres), np.zeros(3)) for spheres in balls]
        return np.array(turns).reshape(len(self.pairs), 3)

    def _moving(self, q: Array, v: Array) -> dict[str, _Frame]:
        outputs = dict(zip((port.name for port in self.kernel.outputs), self._call(q, v, 0.0), strict=True))
        rows = outputs["frames"].reshape(len(self.frames), -1)
        return {name: _Frame(row, v.size, v) for name, row in zip(self.frames, rows, strict=True)}

    def gaps(self, q: Array) -> Array:
        """Return the gaps alone."""
        return self.state(q, np.zeros(self.mechanism.nv)).gaps


class _Frame:
    """A frame in motion: R, p, Jacobians and their drift in world axes."""

    def __init__(self, row: Array, n: int, v: Array) -> None:
        self.R, self.p = row[:9].reshape(3, 3), row[9:12]
        self.J, self.Jw = row[18 : 18 + 3 * n].reshape(3, n), row[18 + 3 * n :].reshape(3, n)
        self.drift, self.w_drift = row[12:15], row[15:18]
        self.w = self.Jw @ v
        self.v = v

    def centre(self, ball: Sphere) -> tuple[Array, Array, Array, Array]:
        """Return centre, its Jacobian, its velocity and its acceleration at a = 0."""
        d = self.R @ np.array(ball.at)
        J = self.J - _skew(d) @ self.Jw
        drift = self.drift + np.cross(self.w_drift, d) + np.cross(self.w, np.cross(self.w, d))
        return self.p + d, J, J @ self.v, drift


class _Planes:
    """All spheres over planes at once: one array operation for all of them."""

    def __init__(self, pairs: list[tuple[int, ContactPair]], frames: tuple[str, ...]) -> None:
        balls: list[Any] = [pair.ball for _, pair in pairs]
        grounds: list[Any] = [pair.ground for _, pair in pairs]
        self.index = np.array([i for i, _ in pairs], dtype=int)
        self.rows = (3 * self.index[:, None] + np.arange(3)).ravel()
        self.frame = np.array([frames.index(ball.frame) for ball in balls], dtype=int)
        self.at = np.array([ball.at for ball in balls], dtype=float).reshape(-1, 3)
        self.radius = np.array([ball.radius for ball in balls], dtype=float)
        self.normal = np.array([ground.normal for ground in grounds], dtype=float).reshape(-1, 3)
        self.offset = np.array([ground.offset for ground in grounds], dtype=float)
        self.axes = np.array([tangents(normal) for normal in self.normal]).reshape(-1, 3, 3)

    def fill(self, frames: Array, v: Array, gaps: Array, W: Array, drift: Array, axes: Array) -> None:
        """Write gaps, rows, drift and axes of these pairs."""
        part = frames[self.frame]
        n = v.size
        R, J, Jw = (
            part[:, :9].reshape(-1, 3, 3),
            part[:, 18 : 18 + 3 * n].reshape(-1, 3, n),
            part[:, 18 + 3 * n :].reshape(-1, 3, n),
        )
        d = np.einsum("kij,kj->ki", R, self.at)
        arm = d - self.radius[:, None] * self.normal
        gaps[self.index] = np.einsum("ki,ki->k", self.normal, part[:, 9:12] + d) - self.offset - self.radius
        W[self.rows] = (self.axes @ (J - _skews(arm) @ Jw)).reshape(-1, n)
        w = Jw @ v
        turned = np.einsum("kij,kj->ki", _skews(w), d)
        acceleration = part[:, 12:15] + np.einsum("kij,kj->ki", _skews(part[:, 15:18]), arm)
        acceleration += np.einsum("kij,kj->ki", _skews(w), turned)
        drift[self.rows] = np.einsum("kij,kj->ki", self.axes, acceleration).ravel()
        axes[self.index] = self.axes


def _skews(x: Array) -> Array:
    """Return the cross-product matrices (k, 3, 3) of vectors (k, 3)."""
    S = np.zeros((len(x), 3, 3))
    S[:, 0, 1], S[:, 0, 2], S[:, 1, 2] = -x[:, 2], x[:, 1], -x[:, 0]
    S[:, 1, 0], S[:, 2, 0], S[:, 2, 1] = x[:, 2], -x[:, 1], x[:, 0]
    return S


def _on_ground(pair: ContactPair, frame: _Frame) -> tuple[float, Array, Array, Array]:
    """Return gap, rows, drift and axes over a heightfield."""
    ball: Any = pair.ball
    field: Any = pair.ground
    c, J, speed, drift = frame.centre(ball)
    gap, n, foot = field.below(c, ball.radius)
    if pair.slot >= 0:
        distance, normals, places = field.nearest(c, ball.radius)
        gap, n, foot = float(distance[pair.slot]) - ball.radius, normals[pair.slot], places[pair.slot]
    if not n.any():  # nothing within reach
        return gap, np.zeros(J.shape), np.zeros(3), np.zeros((3, 3))
    axes = tangents(n)
    arm = -ball.radius * n
    rows = axes @ (J - _skew(arm) @ frame.Jw)
    rates = axes @ (drift + np.cross(frame.w_drift, arm))
    rates[0] -= 2.0 * n[2] * field.twist(foot) * speed[0] * speed[1]
    return gap, rows, rates, axes


def _two_spheres(pair: ContactPair, moving: dict[str, _Frame], n: int) -> tuple[float, Array, Array, Array]:
    ball: Any = pair.ball
    other: Any = pair.other
    a, b = moving[ball.frame], moving[other.frame]
    (c1, J1, v1, d1), (c2, J2, v2, d2) = a.centre(ball), b.centre(other)
    line = c1 - c2
    distance = float(np.linalg.norm(line))
    normal = line / distance if distance > 0.0 else np.array([0.0, 0.0, 1.0])
    axes = tangents(normal)
    relative = v1 - v2
    turning = (relative - (normal @ relative) * normal) / max(distance, np.finfo(float).tiny)
    arm1, arm2 = -ball.radius * normal, other.radius * normal
    rows = axes @ (J1 - _skew(arm1) @ a.Jw - J2 + _skew(arm2) @ b.Jw)
    drift = d1 - d2 + np.cross(a.w_drift, arm1) - np.cross(b.w_drift, arm2)
    drift = drift - ball.radius * np.cross(a.w, turning) - other.radius * np.cross(b.w, turning)
    rates = axes @ drift
    rates[0] = normal @ (d1 - d2) + distance * (turning @ turning)
    return distance - ball.radius - other.radius, rows, rates, axes


def _skew(x: Array) -> Array:
    return np.array([[0.0, -x[2], x[1]], [x[2], 0.0, -x[0]], [-x[1], x[0], 0.0]])


def trace_contacts(mechanism: Mechanism, frames: tuple[str, ...]) -> ca.Function:
    """Return q, v, t -> M, bias, A, drift and per frame R, p, J_dot v, J: one function for a step."""
    q, v, t = ca.SX.sym("q", mechanism.nq), ca.SX.sym("v", mechanism.nv), ca.SX.sym("t")
    outputs = {"M": ca.vec(_traced(mechanism, "mass_matrix")(q)), "bias": _traced(mechanism, "bias")(q, v)}
    if mechanism.names:
        A = ca.reshape(_traced(mechanism, "constraint_jacobian")(q, t), len(mechanism.names), mechanism.nv)
        outputs |= {"A": ca.vec(A.T), "drift": _traced(mechanism, "constraint_drift")(q, v, t)}
    rows = []
    for frame in frames:
        R, p = asked(mechanism, "kinematics", frame=frame)(q)
        J = asked(mechanism, "jacobian", frame=frame, reference="local_world_aligned")(q)
        drift = asked(mechanism, "jacobian_drift", frame=frame, reference="local_world_aligned")(q, v)
        J = ca.reshape(J, 6, mechanism.nv)
        rows.append(ca.vertcat(ca.vec(ca.reshape(R, 3, 3).T), ca.vec(p), ca.vec(drift), ca.vec(J.T)))
    if rows:
        outputs["frames"] = ca.vertcat(*rows)
    return ca.Function("contacts", [q, v, t], [ca.densify(e) for e in outputs.values()], ["q", "v", "t"], list(outputs))
