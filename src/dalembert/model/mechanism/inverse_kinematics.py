"""Inverse kinematics: a configuration that brings frames to places, loops held exactly, joint limits kept.

Symbols: e residual of the tasks, J its Jacobian, A rows of loops and constraints, Z a basis of null(A), x tangent step,
l <= q <= u limits of joints with one velocity, mu damping.

    least |J x + e|^2 + mu |x|^2   with   x = Z y,   l - q <= x <= u - q;      then q * x is projected onto the loops

so that loops are closed at every iterate (`project.py`); no task bends them. With priorities a later task moves
only along what leaves the earlier ones as they are. Where tasks cannot be met, the balance of what is left,

    J^T e + A^T lam + (forces of limits) = 0

says who stands against whom: loops and limits with a force, tasks that pull against each other.

A step is a least-distance problem, solved exactly by nonnegative least squares. Source: Lawson & Hanson, "Solving Least
Squares Problems", SIAM 1995, ch. 23 (LDP); Sugihara, "Solvability-unconcerned inverse kinematics by the
Levenberg-Marquardt method", IEEE Trans. Robotics 27 (2011) 984-991 (damping by the residual).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.optimize import nnls

from dalembert.checks import floats
from dalembert.errors import ModelError, SolvabilityError
from dalembert.model.joints import KINDS
from dalembert.model.mechanism.placement import Placement
from dalembert.model.mechanism.precision import digits_of
from dalembert.names import lookup
from dalembert.types import Array

if TYPE_CHECKING:
    from dalembert.model.mechanism.mechanism import Mechanism

CENTER_OF_MASS = "com"
"""The task that is the centre of mass, where no frame has that name."""

MET = 1e-10
"""Residuals of tasks, as parts of the model's size or radians, from which on they are met."""

STEPS, LONGEST = 200, 0.5
"""Steps at most, and the longest one in radians or parts of the model's size."""

FIRST_DAMPING, LEAST_DAMPING, MOST_DAMPING = 1e-3, 1e-12, 1e8
"""Damping beside the residual, as parts of J^T J."""

AT_REST = 1e-12
"""Part of the residual by which a step must shorten it; less is a place where nothing is gained."""

SADDLES = 5
"""How many saddles of the residual a search leaves."""

BENT, ASIDE = 1e-3, 0.1
"""Radians, or parts of the model's size, by which curvature is measured, and by which a saddle is left."""

CURVED = 1e-4
"""Curvature of |e|^2, as a part of it per radian squared, from which on it falls: above what BENT makes of rounding
and of loops that are closed to 1e-11."""

ORTHONORMAL = 1e-9
"""By how much the columns of a target's rotation may miss being orthonormal."""

INDEPENDENT, SEEN = 1e-12, 1e-10
"""Singular values, as parts of the largest, from which on rows hold a motion, and motions move a task."""

AT_LIMIT = 1e-7
"""Distance from a limit, metres or radians, from which on a joint is at it."""

PULLS = 1e-6
"""Part of the largest force in the balance, the task's pull among them, from which on who pulls is named."""


@dataclass(frozen=True, eq=False)
class InverseKinematics:
    """A configuration, and how far the tasks are met.

    Attributes
    ----------
    q
        The configuration, (nq,): loops closed, limits kept.
    residuals
        Of every task: (3,) metres of a position, (6,) metres and radians of a pose, in world axes.
    conflicts
        Of tasks that are not met: what stands against them: rows of loops, "limit of <joint>", other tasks. Empty
        where a task is out of reach by itself.
    gap
        Largest residual of loops and constraints, metres or radians.
    steps
        Steps that were taken.
    met
        Whether each task is met.
    """

    q: Array
    residuals: dict[str, Array] = field(repr=False)
    conflicts: dict[str, tuple[str, ...]]
    gap: float
    steps: int
    met: dict[str, bool]

    @property
    def ok(self) -> bool:
        """True where all tasks are met."""
        return all(self.met.values())

    def __str__(self) -> str:
        if self.ok:
            return f"all tasks are met, in {self.steps} steps; loops are closed to {self.gap:.1e}"
        lines = []
        for name, met in self.met.items():
            if not met:
                against = ", ".join(self.conflicts.get(name, ())) or "nothing but its reach"
                lines.append(f"{name!r} is missed by {np.abs(self.residuals[name]).max():.3g}; against it: {against}")
        return "\n".join(lines)


@dataclass(frozen=True, eq=False)
class Task:
    """A frame, or the centre of mass, that should be somewhere: position (3,), and rotation (3, 3) where it counts."""

    name: str
    position: Array
    rotation: Array | None

    @classmethod
    def of(cls, mechanism: Mechanism, name: str, target: Any) -> Task:
        """Check a target: a position, a pair (rotation, position), a `Placement` or a 4 x 4 matrix."""
        if name != CENTER_OF_MASS or any(frame.name == name for frame in mechanism.frames):
            mechanism.frame(name)
        if isinstance(target, Placement):
            return cls(name, np.asarray(target.position, float), np.asarray(target.rotation, float))
        if isinstance(target, tuple) and len(target) == 2:  # what `kinematics` returns
            R, p = (floats(part, f"target of {name!r}") for part in target)
            if R.shape != (3, 3) or p.shape != (3,):
                raise ModelError(f"the target of {name!r} is a pair of a rotation (3, 3) and a position (3,)")
            target = np.block([[R, p[:, None]], [np.zeros((1, 3)), np.ones((1, 1))]])
        x = floats(target, f"target of {name!r}")
        if not np.isfinite(x).all() or x.shape not in ((3,), (4, 4)):
            raise ModelError(
                f"the target of {name!r} is a position (3,), a pair (rotation, position), a Placement or a 4 x 4 pose, "
                f"of finite numbers; got shape {x.shape}"
            )
        if x.shape == (3,):
            return cls(name, x, None)
        R = x[:3, :3]
        if not np.allclose(R @ R.T, np.eye(3), atol=ORTHONORMAL) or np.linalg.det(R) < 0:
            raise ModelError(f"the target of {name!r} holds no rotation: its columns must be orthonormal, right-handed")
        return cls(name, x[:3, 3], R)

    def at(self, mechanism: Mechanism, q: Array) -> tuple[Array, Array]:
        """Return residual and Jacobian, in world axes."""
        if self.name == CENTER_OF_MASS and all(frame.name != self.name for frame in mechanism.frames):
            if self.rotation is not None:
                raise ModelError("the centre of mass has a position, no pose: its target has three numbers")
            J = np.array(
                [mechanism.compile("center_of_mass_velocity")(q, unit) for unit in np.eye(mechanism.nv)]
            ).T.reshape(3, -1)
            return np.asarray(mechanism.center_of_mass(q)) - self.position, J
        R, p = mechanism.compile("kinematics", frame=self.name)(q)
        J = mechanism.compile("jacobian", frame=self.name, reference="local_world_aligned")(q).reshape(6, -1)
        e = p - self.position
        if self.rotation is None:
            return e, J[:3]
        return np.concatenate([e, rotation_vector(R @ self.rotation.T)]), J


def rotation_vector(R: Array) -> Array:
    """Return the vector of a rotation, angle times axis, up to half a turn."""
    from scipy.spatial.transform import Rotation

    return Rotation.from_matrix(R).as_rotvec()


def inverse_kinematics(
    mechanism: Mechanism, q0: Any, tasks: Mapping[str, Any], limits: bool, priority: Sequence[str] | None, t: float
) -> InverseKinematics:
    """Return a configuration near q0 that meets the tasks as far as possible; see `Mechanism.inverse_kinematics`."""
    if not isinstance(tasks, Mapping) or not tasks:
        raise ModelError(
            "tasks are targets by frame, after q0, where the search begins: "
            'inverse_kinematics(q0, {"hand": position, "foot": (rotation, position)})'
        )
    goals = {name: Task.of(mechanism, name, target) for name, target in tasks.items()}
    for name in priority or ():
        lookup(name, goals, "task")
    order = [[name] for name in priority or ()]
    rest = [name for name in goals if name not in (priority or ())]
    levels = [*order, rest] if rest else order
    search = Search(mechanism, limits, t)
    q = search.start(q0)
    conflicts: dict[str, tuple[str, ...]] = {}
    earlier: list[Task] = []
    steps = 0
    for level in levels:
        now = [goals[name] for name in level]
        q, taken = search.least(q, now, earlier)
        steps += taken
        conflicts |= search.conflicts(q, now, earlier)
        earlier += now
    residuals = {name: task.at(mechanism, q)[0] for name, task in goals.items()}
    met = {name: bool(search.size(e) <= MET) for name, e in residuals.items()}
    gap = float(np.abs(np.asarray(mechanism.constraint(q, t))).max(initial=0.0)) if any(mechanism.holonomic) else 0.0
    shown = {name: rows for name, rows in conflicts.items() if not met[name]}
    return InverseKinematics(q, residuals, shown, gap, steps, met)


class Search:
    """The descent onto tasks, with what a mechanism allows."""

    def __init__(self, mechanism: Mechanism, limits: bool, t: float) -> None:
        self.mechanism, self.t = mechanism, t
        self.reach = float(mechanism.reach) or 1.0
        n = mechanism.nv
        self.lower, self.upper, self.places = np.full(n, -np.inf), np.full(n, np.inf), np.zeros(n, int)
        self.bounded: list[int] = []
        for joint in mechanism.joints if limits else ():
            if KINDS[joint.kind].nv == 1 and KINDS[joint.kind].nq == 1:
                k = mechanism.index_v(joint.name).start
                low, high = float(mechanism.lower[k]), float(mechanism.upper[k])
                if np.isfinite(low) or np.isfinite(high):
                    self.bounded.append(k)
                    self.lower[k], self.upper[k] = low, high
                    self.places[k] = mechanism.index_q(joint.name).start

    def start(self, q0: Any) -> Array:
        """Return q0 within its limits, on the loops."""
        q = np.array(self.mechanism.manifold.configuration(q0), dtype=float)
        if q.ndim != 1:
            raise ModelError(f"q0 is one configuration of {self.mechanism.nq} numbers")
        if not np.isfinite(q).all():
            raise ModelError("q0 holds NaN or infinity: the search begins nowhere")
        for k in self.bounded:
            q[self.places[k]] = np.clip(q[self.places[k]], self.lower[k], self.upper[k])
        return self.onto(q)

    def onto(self, q: Array) -> Array:
        """Return the nearest configuration with closed loops."""
        return self.mechanism.project(q, t=self.t) if any(self.mechanism.holonomic) else q

    def size(self, e: Array) -> float:
        """Return the largest residual, positions as parts of the model's size."""
        return float(max(np.abs(e[:3]).max() / self.reach, np.abs(e[3:]).max(initial=0.0)))

    def rows(self, q: Array) -> Array:
        """Return the rows that a motion must obey, (m, nv)."""
        m = self.mechanism
        return np.asarray(m.jacobian(q, self.t)).reshape(len(m.names), m.nv) if m.names else np.zeros((0, m.nv))

    def weighed(self, q: Array, tasks: Sequence[Task]) -> tuple[Array, Array]:
        """Return e and J of some tasks, positions as parts of the model's size."""
        if not tasks:
            return np.zeros(0), np.zeros((0, self.mechanism.nv))
        parts = [task.at(self.mechanism, q) for task in tasks]
        scales = [np.where(np.arange(len(e)) < 3, 1.0 / self.reach, 1.0) for e, _ in parts]
        e = np.concatenate([s * e for s, (e, _) in zip(scales, parts, strict=True)])
        return e, np.vstack([s[:, None] * J for s, (_, J) in zip(scales, parts, strict=True)])

    def free(self, held: Array) -> Array:
        """Return an orthonormal basis of null(held); rows of redundant loops may be dependent."""
        if not len(held):
            return np.eye(self.mechanism.nv)
        sizes = np.linalg.norm(held, axis=1)
        _, s, Vt = np.linalg.svd(held / np.where(sizes > 0, sizes, 1.0)[:, None])
        return Vt[int((s > max(digits_of(self.mechanism), INDEPENDENT) * s[:1]).sum()) :].T

    def least(self, q: Array, tasks: Sequence[Task], earlier: Sequence[Task]) -> tuple[Array, int]:
        """Return where the residual of the tasks is least, from q, and the steps that were taken; saddles are left."""
        q, steps = self.descend(q, tasks, earlier)
        for _ in range(SADDLES):
            e, residual = self.weighed(q, tasks)[0], self.weighed(q, earlier)[0]
            fall = None if np.abs(e).max(initial=0.0) <= MET else self.falling(q, tasks, earlier)
            for way in () if fall is None else (ASIDE * fall, -ASIDE * fall):
                trial = self.corrected(q, way, earlier, residual)
                if trial is not None and (after := self.weighed(trial, tasks)[0]) @ after < e @ e:
                    q, more = self.descend(trial, tasks, earlier)
                    steps += more
                    break
            else:
                break
        return q, steps

    def falling(self, q: Array, tasks: Sequence[Task], earlier: Sequence[Task]) -> Array | None:
        """Return a motion that shortens the residual in second order alone, as that of a straight arm's elbow does.

        Among motions that leave tasks in place in first order, the one of most negative curvature of |e|^2; None where
        there is none, and where one of these leaves what loops and limits allow.
        """
        e, J = self.weighed(q, tasks)
        residual, slopes = self.weighed(q, earlier)
        pulling = J[np.linalg.norm(J, axis=1) > SEEN * np.linalg.norm(J)]
        sizes = self.mechanism.velocity_sizes
        still = sizes[:, None] * self.free(np.vstack([self.rows(q), slopes, pulling]) * sizes)
        count = still.shape[1]

        def bend(x: Array) -> float:
            ends = [self.corrected(q, sign * BENT * x, earlier, residual) for sign in (1.0, -1.0)]
            if any(end is None for end in ends):
                return np.nan
            squares = [float(y @ y) for y in (self.weighed(end, tasks)[0] for end in ends if end is not None)]
            return (sum(squares) - 2 * float(e @ e)) / BENT**2

        bends = [bend(x) for x in still.T]
        H = np.diag(bends)
        for i in range(count):
            for j in range(i):
                H[i, j] = H[j, i] = 0.5 * (bend(still[:, i] + still[:, j]) - bends[i] - bends[j])
        if not count or not np.isfinite(H).all():
            return None
        curvatures, motions = np.linalg.eigh(H)
        return still @ motions[:, 0] if curvatures[0] < -CURVED * float(e @ e) else None

    def descend(self, q: Array, tasks: Sequence[Task], earlier: Sequence[Task]) -> tuple[Array, int]:
        """Return where steps end that shorten the residual of the tasks in first order, and their number."""
        damping = FIRST_DAMPING
        e, J = self.weighed(q, tasks)
        weighed = self.weighed(q, earlier)[0]
        for count in range(STEPS):
            if np.abs(e).max(initial=0.0) <= 0.1 * MET:
                return q, count
            Z = self.free(np.vstack([self.rows(q), self.weighed(q, earlier)[1]]))
            if not Z.shape[1]:
                return q, count
            moved = False
            for _ in range(14):
                x = self.step(q, Z, J, e, damping)
                trial = self.corrected(q, x, earlier, weighed)
                if trial is not None:
                    new, slope = self.weighed(trial, tasks)
                    gain = e @ e - new @ new
                    if gain > 0.0:
                        moved = gain > AT_REST * (e @ e)
                        q, e, J, damping = trial, new, slope, max(damping / 8.0, LEAST_DAMPING)
                        break
                damping = min(8.0 * damping, MOST_DAMPING)
            if not moved:
                return q, count
        return q, STEPS

    def step(self, q: Array, Z: Array, J: Array, e: Array, damping: float) -> Array:
        """Return the step x = Z y of least |J x + e|^2 + mu |x|^2 within the limits."""
        B = J @ Z
        scale = float((B * B).sum(axis=0).max(initial=0.0)) or 1.0
        H = B.T @ B + (damping * min(1.0, float(e @ e)) + LEAST_DAMPING) * scale * np.eye(B.shape[1])
        g = B.T @ e
        k = self.bounded
        if k:
            G = np.vstack([Z[k], -Z[k]])
            place = q[self.places[k]]
            h = np.concatenate([self.upper[k] - place, place - self.lower[k]])
            some = np.isfinite(h)
            y = least_distance(H, g, G[some], np.maximum(h[some], 0.0))
        else:
            y = -np.linalg.solve(H, g)
        x = Z @ y
        longest = np.abs(x / self.mechanism.velocity_sizes).max(initial=0.0)
        return x * min(1.0, LONGEST / longest) if longest > 0 else x

    def corrected(self, q: Array, x: Array, earlier: Sequence[Task], kept: Array) -> Array | None:
        """Return q * x, loops closed and earlier tasks as they were; None where that fails, or leaves the limits."""
        try:
            q = self.onto(self.mechanism.integrate(q, x))
            for _ in range(20 if earlier else 0):
                e, J = self.weighed(q, earlier)
                if np.abs(e - kept).max() <= 0.1 * MET:
                    break
                Z = self.free(self.rows(q))
                back = Z @ np.linalg.lstsq(J @ Z, kept - e, rcond=SEEN)[0]
                q = self.onto(self.mechanism.integrate(q, back))
            else:
                if earlier:
                    return None
        except SolvabilityError:
            return None
        for k in self.bounded:
            place = q[self.places[k]]
            slack = MET * max(1.0, abs(place))
            if not self.lower[k] - slack <= place <= self.upper[k] + slack:
                return None
        return q

    def conflicts(self, q: Array, tasks: Sequence[Task], earlier: Sequence[Task]) -> dict[str, tuple[str, ...]]:
        """Return, for tasks that are not met, who balances their pull."""
        missed = [task for task in tasks if self.size(task.at(self.mechanism, q)[0]) > MET]
        if not missed:
            return {}
        A = self.rows(q)
        names = list(self.mechanism.names)
        rows, labels = [*A], [*names]
        for k in self.bounded:
            place = q[self.places[k]]
            if place >= self.upper[k] - AT_LIMIT or place <= self.lower[k] + AT_LIMIT:
                rows.append(np.eye(self.mechanism.nv)[k])
                labels.append(f"limit of {self.mechanism.coordinates[k]}")
        for task in earlier:
            J = self.weighed(q, [task])[1]
            rows += [*J]
            labels += [task.name] * len(J)
        result = {}
        for task in missed:
            e, J = self.weighed(q, [task])
            pull = J.T @ e
            more = []
            for other in tasks:
                if other is not task:
                    residual, slope = self.weighed(q, [other])
                    more.append((other.name, slope.T @ residual))
            against = [name for name, other in more if np.abs(other).max(initial=0.0) > PULLS * np.abs(e).max()]
            if rows:
                B = np.array(rows)
                forces = np.linalg.lstsq(B.T, -pull, rcond=SEEN)[0]
                levels = np.abs(forces) * np.linalg.norm(B, axis=1)
                largest = float(np.abs(pull).max(initial=0.0))
                scale = max(largest, float(levels.max(initial=0.0)))  # beside the pull: rounding is no force
                held = levels > PULLS * scale
                if largest > PULLS * np.abs(e).max():
                    against += [label for label, is_held in zip(labels, held, strict=True) if is_held]
            result[task.name] = tuple(dict.fromkeys(against))
        return result


def least_distance(H: Array, g: Array, G: Array, h: Array) -> Array:
    """Return y of least y^T H y / 2 + g^T y with G y <= h, H positive definite, h >= 0: exactly, by `nnls`."""
    L = np.linalg.cholesky(H)
    free = -np.linalg.solve(H, g)
    if not len(G) or (G @ free <= h).all():
        return free
    B = -np.linalg.solve(L, G.T).T  # u = L^T (y - free): B u >= G free - h
    need = G @ free - h
    E = np.vstack([B.T, need])
    f = np.zeros(len(E))
    f[-1] = 1.0
    z, _ = nnls(E, f, maxiter=50 * len(G) + 50)
    r = E @ z - f
    if r[-1] == 0.0:
        return np.zeros_like(free)
    return free + np.linalg.solve(L.T, -r[:-1] / r[-1])
