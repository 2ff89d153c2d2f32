"""Gaps, directions and their rates at a state: everything that contacts and dynamics need, from one compiled call.

Symbols: c centre of a sphere, J, Jw its Jacobians (world axes), n normal, t1, t2 tangents; rows W (3 pairs, nv):

    u_N = n . (c' ...)  rate of the gap          u_T = t . velocity of the touching point, relative to the other side
    u' = W a + drift

The touching point of a sphere on the ground is c - r n; n is taken as constant there (planes), and turns with the
line of centres between spheres.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import casadi as ca
import numpy as np

from dalembert.errors import ModelError
from dalembert.kernel import Kernel
from dalembert.model.joints import KINDS
from dalembert.model.requests import requests
from dalembert.simulate.contact.shapes import Contact, ContactPair, Heightfield, Plane, Sphere, pairs_of
from dalembert.simulate.equations.codes import _kernel, _traced
from dalembert.simulate.limits import DEEP, TOUCHING
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


def tangents(n: Array) -> Array:
    """Return normal and two tangents by rows: right-handed, continuous but where n is -z (Duff et al. 2017)."""
    sign = 1.0 if n[2] >= 0.0 else -1.0
    a = -1.0 / (sign + n[2])
    b = n[0] * n[1] * a
    return np.array([n, [1.0 + sign * n[0] ** 2 * a, sign * b, -sign * n[0]], [b, sign + n[1] ** 2 * a, -n[1]]])


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
        R, p = _asked(mechanism, "kinematics", frame=frame)(q)
        J = _asked(mechanism, "jacobian", frame=frame, reference="local_world_aligned")(q)
        drift = _asked(mechanism, "jacobian_drift", frame=frame, reference="local_world_aligned")(q, v)
        J = ca.reshape(J, 6, mechanism.nv)
        rows.append(ca.vertcat(ca.vec(ca.reshape(R, 3, 3).T), ca.vec(p), ca.vec(drift), ca.vec(J.T)))
    if rows:
        outputs["frames"] = ca.vertcat(*rows)
    return ca.Function("contacts", [q, v, t], [ca.densify(e) for e in outputs.values()], ["q", "v", "t"], list(outputs))


def _asked(mechanism: Mechanism, what: str, **options: Any) -> ca.Function:
    request = requests()[what]
    return request.trace(mechanism, **{**request.options, **options})


# ----------------------------------------------------------------------------------------------------------------------
# Chains of joints, for bounds on the motion of shapes within a step: speeds and accelerations of their centres.
#
# Symbols: along the chain from the ground to a shape, W angular speed, B angular acceleration of a link, l length of a
# piece that moves with it, x way of a sliding joint; w, b relative angular speed and acceleration of a joint, u, c
# relative linear ones; all are largest values within the step:
#
#     speed        += W l              acceleration += (B + W^2) l                of every rigid piece
#     speed        += W x + u          acceleration += (B + W^2) x + 2 W u + c    of every joint that slides
#     W += w,  B += b + W w                                                       of every joint that turns
#
# `gap_loops.ball_bounds` sums them up. The configuration does not enter but for the ways of sliding joints, so that a
# bar may turn many times in a step. The speeds of the joints themselves are what the stages of the step say
# (`gap_loops.gap_bounds`): between two stages they change by at most the acceleration times half of their distance, and
# accelerations are taken some times as large as any stage's (`between` of a method in `runge_kutta.py`).


class Chain:
    """Joints from the ground to a sphere, and the lengths between them."""

    def __init__(self, mechanism: Mechanism, ball: Sphere) -> None:
        m = mechanism.manifold
        carried = {joint.child: (i, joint) for i, joint in enumerate(mechanism.joints)}
        frame = mechanism.frame(ball.frame)
        at = np.asarray(frame.placement.position) + np.asarray(frame.placement.rotation) @ np.array(ball.at)
        self.end = float(np.linalg.norm(at))
        self.links: list[tuple[Any, slice, slice, float, float]] = []
        body = frame.body
        while body in carried:
            i, joint = carried[body]
            q, v = slice(int(m.q_start[i]), int(m.q_start[i + 1])), slice(int(m.v_start[i]), int(m.v_start[i + 1]))
            before, behind = (np.linalg.norm(p.position) for p in (joint.placement, joint.child_placement))
            self.links.insert(0, (joint, q, v, float(before), float(behind)))
            body = joint.parent


# ----------------------------------------------------------------------------------------------------------------------
# Initial states with contacts: nothing may begin inside of something else.


class Units(NamedTuple):
    """What lengths, rates and forces of a system are measured by, where contacts are told apart.

    Attributes
    ----------
    length
        Metres: the largest of links, shapes, places and gaps at the start; one where all of these are zero.
    rate
        1/s: that at which a body of this size falls, sqrt(g / length) as a part of what a metre does on the Earth;
        without gravity that of the velocities at the start, or one.
    force
        Newtons: all mass with the acceleration length rate^2.
    """

    length: float = 1.0
    rate: float = 1.0
    force: float = 1.0

    @classmethod
    def of(cls, mechanism: Any, contacts: Any, names: Sequence[str], gaps: Array, v: Array) -> Units:
        """Return the units of a mechanism with contacts of shapes; ones for others."""
        length = contact_size(mechanism, contacts, names, gaps)
        if not length > 0.0:
            return cls()
        g = float(np.linalg.norm(mechanism.gravity)) / EARTH
        sizes = np.where(np.array(mechanism.velocity_sizes) == mechanism.reach, length, 1.0)
        turns = [KINDS[joint.kind].angular for joint in mechanism.joints]
        sizes = np.where(np.concatenate([np.asarray(x, dtype=bool) for x in turns]), 1.0, length) if turns else sizes
        rate = (g / length) ** 0.5 or float(np.abs(v / sizes).max(initial=0.0)) or 1.0
        mass = sum(body.inertia.mass for body in mechanism.bodies) or 1.0
        return cls(length, rate, mass * length * rate**2)


EARTH = 9.81
"""Gravity under which limits of contacts are as they are named, for parts of one metre: m/s^2."""


def refuse_penetration(names: Sequence[str], gaps: Array, levers: Any = 1.0) -> None:
    """Refuse a start in which a gap is negative, as a part of the levers (k,), with names and depths."""
    deep = np.flatnonzero(gaps < -DEEP * np.broadcast_to(levers, gaps.shape))
    if deep.size:
        worst = deep[np.argsort(gaps[deep])][:3]
        depths = ", ".join(f"{names[i]!r} by {-gaps[i]:.3g}" for i in worst)
        words = "move what touches apart, and joints inside of their limits"
        raise ModelError(f"the start interpenetrates (metres, radians): {depths}; {words}", subject="q")


def contact_size(mechanism: Any, contacts: Any, names: Sequence[str], gaps: Array) -> float:
    """Return the largest of links, shapes, places and gaps at the start, metres; zero where none is known."""
    items = contacts if isinstance(contacts, Sequence) else [contacts]
    shapes = [contact for contact in items if isinstance(contact, Contact)]
    if not shapes:
        return 0.0
    pairs = pairs_of(mechanism, shapes)
    pair_names, balls = (
        {pair.name for pair in pairs},
        [ball for pair in pairs for ball in (pair.ball, pair.other) if ball],
    )
    lengths = [
        abs(float(gap)) for name, gap in zip(names, gaps, strict=False) if name in pair_names and np.isfinite(gap)
    ]
    lengths += [max(ball.radius, *map(abs, ball.at)) for ball in balls]
    lengths += [abs(pair.ground.offset) for pair in pairs if isinstance(pair.ground, Plane)]
    lengths += [float(np.abs(joint.placement.position).max()) for joint in mechanism.joints]
    # the ground is as large as one likes (a heightfield without heights is a plane), unless nothing else has a size
    fields = [pair.ground for pair in pairs if isinstance(pair.ground, Heightfield)]
    wide = max((float(np.ptp(x)) for field in fields for x in (field.x, field.y)), default=0.0)
    return max(lengths) if max(lengths) > TOUCHING * wide else wide


def refuse_small(mechanism: Any, contacts: Any, names: Sequence[str], gaps: Array, smallest: float) -> None:
    """Refuse parts so small that limits which are in metres are not small beside them."""
    size = contact_size(mechanism, contacts, names, gaps)
    if 0.0 < size < smallest:
        raise ModelError(
            f"the parts that touch are {size:.2g} m in size: this method tells contacts apart in parts of "
            f"{smallest:.0e} m and more. Give the model in another unit of length, micrometres, say: lengths, gravity "
            "and inertias in it",
            subject="contacts",
        )
