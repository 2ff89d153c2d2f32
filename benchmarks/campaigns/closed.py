"""Closed mechanisms in any unit, with any masses, at and near singular configurations, by every request and precision.

The oracle is a dense singular value decomposition of the rows in the metric of the mass, B = D A L^-T, M = L L^T, of
which the r largest singular values count, r the largest rank among closed configurations of the mechanism. It takes M,
A, bias and drift from the mechanism, and nothing else. Its own error is eps / s_r; a kernel promises half of its
digits of what the forces could cause (docs/constrained.md), which is what is allowed beside that. Of plane loops whose
axes are tilted by less than a model's digits, the oracle sees those with parallel axes.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
from scipy.linalg import solve_triangular

import dalembert as da

TITLE = "closed mechanisms in random units, with random masses, near singularities, against a dense SVD of generic rank"

Array = np.ndarray

UNITS = (1e-6, 1e-3, 1.0, 1e3, 1e6)
VARIANTS = 2  # of geometry, masses and unit, of each mechanism: to compile one takes seconds
POOL = 12  # closed configurations of each
DIGITS = 1e-9  # rank of built models
SAFETY = {"float64": 64.0, "float32": 64.0}

AXIS = (0.0, 0.0, 1.0)
KINDS = {
    "point": lambda u, **on: da.Point("end", **on),
    "weld": lambda u, **on: da.Weld("end", **on),
    "revolute": lambda u, **on: da.Revolute("end", axis=AXIS, **on),
    "prismatic": lambda u, **on: da.Prismatic("end", axis=AXIS, **on),
    "cylindrical": lambda u, **on: da.Cylindrical("end", axis=AXIS, **on),
    "planar": lambda u, **on: da.Planar("end", axis=AXIS, **on),
    "line": lambda u, **on: da.PointOnLine("end", axis=AXIS, **on),
    "plane": lambda u, **on: da.PointInPlane("end", **on),
    "universal": lambda u, **on: da.Universal("end", axis=(1, 0, 0), axis2=(0, 1, 0), **on),
    "distance": lambda u, **on: da.Distance("end", length=0.5 * u, **on),
}

SHAPES = (
    *(("flat", kind) for kind in ("point", "revolute", "line", "cylindrical")),
    *(("spatial", kind) for kind in KINDS),
    *(("twice", kind) for kind in ("point", "revolute", "weld")),
    *(("planar", kind) for kind in ("point", "revolute", "planar")),
    *(("tilted", kind) for kind in ("point", "revolute", "weld", "cylindrical", "universal")),
)


@dataclass(frozen=True, eq=False)
class Case:
    """A mechanism, closed configurations of it, the scales of its rows, and its rank."""

    mechanism: da.Mechanism
    q: Array
    scales: Array
    rank: int
    flat: bool
    unit: float
    plain: da.Mechanism  # what the oracle sees

    @cache  # noqa: B019 - cases live as long as the campaign
    def kernel(self, what: str, dtype: str, backend: str) -> Any:
        """Return a kernel, made once."""
        options = {} if backend == "looped" else {"dtype": dtype}
        return self.mechanism.compile(what, backend=backend, **options)


def trial(rng: np.random.Generator) -> tuple[str, str]:
    """Return what became of one state of one mechanism."""
    which, variant = int(rng.integers(len(SHAPES))), int(rng.integers(VARIANTS))
    shape, kind = SHAPES[which]
    unit = UNITS[(which + 2 * variant) % len(UNITS)]
    try:
        case = made(shape, kind, unit, variant)
        return judged(case, rng, f"{shape} {kind}, unit {unit:g} m")
    except (da.SolvabilityError, da.errors.ModelError, da.errors.UnsupportedError) as error:
        return "refused", type(error).__name__
    except Exception as error:
        return "foreign", f"{shape} {kind} {unit:g}: {type(error).__name__}: {error}"


def judged(case: Case, rng: np.random.Generator, about: str) -> tuple[str, str]:
    """Ask one request in one precision, and compare."""
    what = ("forward", "inverse", "impact")[rng.integers(3)]
    way = rng.choice(["float64", "float32", "looped", "method"], p=[0.5, 0.3, 0.1, 0.1])
    what = "forward" if way == "method" else what
    dtype = "float32" if way == "float32" else "float64"
    m, u = case.mechanism, case.unit
    q, theta = configuration(case, rng)
    q = q.astype(dtype).astype(float)
    state = State(case, q)
    v = state.admissible(rng.standard_normal(m.nv)) * 10.0 ** rng.uniform(-2, 1)
    v = v.astype(dtype).astype(float)
    if what == "forward":
        tau = (u**2 * rng.standard_normal(m.nv) * 10.0 ** rng.uniform(-2, 2)).astype(dtype).astype(float)
        truth, size = state.acceleration(v, tau)
        inputs: tuple[Array, ...] = (q, v, tau)
    elif what == "inverse":
        a = state.acceleration(v, u**2 * rng.standard_normal(m.nv))[0].astype(dtype).astype(float)
        truth, size = state.least_forces(v, a)
        inputs = (q, v, a)
    else:
        v = rng.standard_normal(m.nv).astype(dtype).astype(float)
        e = float(np.float32(rng.uniform(0, 1)))
        truth, size = state.impact(v, e)
        inputs = (q, v, np.full(len(m.names), e))
    if way == "method":
        answer, _, status = m.forward(*(x[None] for x in inputs))
        answer, status = answer[0], int(status[0])
    else:
        kernel = case.kernel(what, dtype, "looped" if way == "looped" else "numpy")
        answer, _, status = kernel(*(x.astype(dtype) for x in inputs), np.zeros(1, dtype))
        answer, status = np.asarray(answer, dtype=float).ravel(), int(np.ravel(status)[0])
    said = da.Status(status)
    if said not in (da.Status.UNIQUE, da.Status.REDUNDANT):
        return "refused", f"{what} {way}: {said.name}"
    eps = float(np.finfo(dtype).eps)
    error = state.measure(what, answer - truth) / size
    allowed = SAFETY[dtype] * (eps**0.5 + eps / state.distance)
    # inverse dynamics drives every joint, so that motors may strain the rows against each other
    sure = case.rank == len(m.names) and what != "inverse"
    expected = da.Status.UNIQUE if sure else da.Status.REDUNDANT
    words = f"{about}: {what} {way}, theta {theta:.1e}, s {state.distance:.1e}: {said.name}, error {error:.1e}"
    if not error <= allowed:
        return "wrong", f"{words} > {allowed:.1e}"
    return ("right", "") if said is expected else ("wrong", f"{words}, rank {case.rank} of {len(m.names)}")


def configuration(case: Case, rng: np.random.Generator) -> tuple[Array, float]:
    """Return a closed configuration; of a flat mechanism, one at a log-uniform distance from being so."""
    if not case.flat:
        return case.q[rng.integers(len(case.q))].copy(), 1.0
    theta = float(10.0 ** rng.uniform(-12, 0)) * rng.choice([-1.0, 1.0])
    return np.array([theta, -theta, theta]), theta


class State:
    """The oracle at one configuration."""

    def __init__(self, case: Case, q: Array) -> None:
        self.case, self.q, m = case, q, case.plain
        self.M, self.A = np.atleast_2d(m.mass_matrix(q)), np.asarray(m.jacobian(q))
        self.L = np.linalg.cholesky(self.M)
        B = case.scales[:, None] * solve_triangular(self.L, self.A.T, lower=True).T
        U, s, Vt = np.linalg.svd(B, full_matrices=False)
        r = case.rank
        self.U, self.s, self.Vt = U[:, :r], s[:r], Vt[:r]
        self.distance = float(s[r - 1] / s[0]) if r else 1.0

    def taken(self, y: Array) -> tuple[Array, float]:
        """Return the least motion, in the metric of the mass, that takes y out of the rows; and its size."""
        z = (self.U.T @ (self.case.scales * y)) / self.s
        return solve_triangular(self.L.T, self.Vt.T @ z, lower=False), float(np.linalg.norm(z))

    def admissible(self, v: Array) -> Array:
        """Return the velocity nearest to v that the rows allow."""
        return v - self.taken(self.A @ v)[0]

    def acceleration(self, v: Array, tau: Array) -> tuple[Array, float]:
        """Return the acceleration, and what forces and rows could cause."""
        m = self.case.plain
        load = tau - np.asarray(m.bias(self.q, v))
        free = np.linalg.solve(self.M, load)
        drift = np.asarray(m.drift(self.q, v))
        step, size = self.taken(self.A @ free + drift)
        return free - step, float(np.linalg.norm(np.linalg.solve(self.L, load))) + size

    def impact(self, v: Array, e: float) -> tuple[Array, float]:
        """Return the velocity after an impact, and the size of what it is made of."""
        step, size = self.taken((1.0 + e) * (self.A @ v))
        return v - step, float(np.linalg.norm(self.L.T @ v)) + size

    def least_forces(self, v: Array, a: Array) -> tuple[Array, float]:
        """Return tau = b + A^T lam of least norm: what b has outside the span of the rows."""
        b = self.M @ a + np.asarray(self.case.plain.bias(self.q, v))
        _, s, Vt = np.linalg.svd(self.case.scales[:, None] * self.A, full_matrices=False)
        V = Vt[: self.case.rank]
        if self.case.rank:
            self.distance = min(self.distance, float(s[self.case.rank - 1] / s[0]))
        return b - V.T @ (V @ b), float(np.linalg.norm(b))

    def measure(self, what: str, error: Array) -> float:
        """Return the size of an error: in the metric of the mass, or plain for forces."""
        return float(np.linalg.norm(error if what == "inverse" else self.L.T @ error))


@cache
def made(shape: str, kind: str, unit: float, variant: int) -> Case:
    """Return one of the mechanisms; the same for the same words."""
    rng = np.random.default_rng([variant, *shape.encode(), *kind.encode()])  # the same in all units
    masses = 10.0 ** rng.uniform(-4, 4, 7) if variant else np.ones(7)
    mechanism = flat(kind, unit, masses) if shape == "flat" else chain(shape, kind, unit, masses, rng)
    plain = mechanism
    if shape == "tilted":
        tilts = 10.0 ** np.random.default_rng(variant).uniform(-14, -9, (7, 2))
        again = np.random.default_rng([variant, *shape.encode(), *kind.encode()])
        masses = 10.0 ** again.uniform(-4, 4, 7) if variant else np.ones(7)
        mechanism = chain(shape, kind, unit, masses, again, tilts)
    q = np.array([[t, -t, t] for t in np.linspace(0.3, 2.5, POOL)]) if shape == "flat" else closed(plain, unit, rng)
    rows = []
    for each in q:
        L = np.linalg.cholesky(np.atleast_2d(plain.mass_matrix(each)))
        rows.append(solve_triangular(L, np.asarray(plain.jacobian(each)).T, lower=True).T)
    kinds = [(i, turns) for i, c in enumerate(mechanism.all_constraints) for turns in c.angular()]
    sizes = np.median(np.linalg.norm(rows, axis=2), axis=0)
    largest = np.array([max(s for s, other in zip(sizes, kinds, strict=True) if other == own) for own in kinds])
    scales = 1.0 / np.where(largest > 0, largest, 1.0)
    spectra = [np.linalg.svd(scales[:, None] * B, compute_uv=False) for B in rows]
    rank = max(int((s > DIGITS * s[0]).sum()) for s in spectra)
    return Case(mechanism, q, scales, rank, shape == "flat", unit, plain)


def flat(kind: str, u: float, masses: Array) -> da.Mechanism:
    """Return a parallelogram that is flat where all angles are zero."""
    b = da.Builder("flat", gravity=(0, -9.81 * u, 0))
    for name, length, mass in zip("abc", (1.0, 2.0, 1.0), masses, strict=False):
        inertia = mass * u**2 * np.array([0.01, 0.08, 0.08]) * length**2
        b.body(name, mass=mass, center=(length * u / 2, 0, 0), inertia=tuple(inertia))
    b.joint("left", "revolute", parent="world", child="a", axis=AXIS)
    b.joint("top", "revolute", parent="a", child="b", axis=AXIS, position=(u, 0, 0))
    b.joint("right", "revolute", parent="world", child="c", axis=AXIS, position=(2 * u, 0, 0))
    b.frame("end", "b", position=(2 * u, 0, 0))
    b.frame("post", "c", position=(u, 0, 0))
    return b.build().constrain(KINDS[kind](u, other="post"))


def chain(
    shape: str, kind: str, u: float, masses: Array, rng: np.random.Generator, tilts: Array | None = None
) -> da.Mechanism:
    """Return a chain of hinges, its end held once or twice at a post on the ground; all in a plane or not.

    Axes of a plane chain are tilted by `tilts` (7, 2), radians about x and y.
    """
    plane = shape in ("planar", "tilted")
    b = da.Builder("chain", gravity=tuple(u * np.array([0.4, -3.0, -9.0])))
    parent = "world"
    for i in range(5 if plane else 7):
        mass = masses[i]
        place = u * rng.uniform([0.4, -0.3, -0.3], [0.8, 0.3, 0.3])
        place[2] *= not plane
        axis = np.array(AXIS) if plane else rng.standard_normal(3)
        axis[:2] += 0.0 if tilts is None else tilts[i]
        inertia = mass * u**2 * rng.uniform(0.05, 0.09, 3)
        b.body(f"link {i}", mass=mass, center=tuple(0.3 * u * rng.uniform(-1, 1, 3)), inertia=tuple(inertia))
        b.joint(f"hinge {i}", "revolute", parent=parent, child=f"link {i}", axis=tuple(axis / np.linalg.norm(axis)),
                position=tuple(place) if i else (0, 0, 0))  # fmt: skip
        parent = f"link {i}"
    b.frame("end", parent, position=(0.3 * u, 0, 0))
    tree = b.build()
    R, p, *_ = tree.kinematics(rng.uniform(-1.2, 1.2, tree.nq), "end")
    if plane:
        R[2], R[:, 2], p[2] = AXIS, AXIS, 0.0
    p = p + (0.5 * u * R[:, 0] if kind == "distance" else 0.0)
    loops = [KINDS[kind](u, at=(R, p))]
    if shape == "twice":
        loops.append(replace(loops[0], name="again"))
    return tree.constrain(*loops)


def closed(mechanism: da.Mechanism, u: float, rng: np.random.Generator) -> Array:
    """Return configurations that meet the constraints to rounding, by damped Gauss-Newton steps."""
    turns = np.array([turn for c in mechanism.all_constraints for turn in c.angular()])
    sizes, found = np.where(turns, 1.0, u), []
    for _ in range(1000):
        q = rng.uniform(-2, 2, mechanism.nq)
        for _ in range(60):
            phi = np.asarray(mechanism.constraint(q)) / sizes
            if not np.abs(phi).max() > 2e-16:
                break
            step = np.linalg.lstsq(np.asarray(mechanism.jacobian(q)) / sizes[:, None], -phi, rcond=1e-9)[0]
            q = q + step * min(1.0, 0.5 / max(np.abs(step).max(), 1e-300))
        if np.abs(np.asarray(mechanism.constraint(q)) / sizes).max() < 1e-13:
            found.append(np.angle(np.exp(1j * q)))
        if len(found) == POOL:
            break
    return np.array(found)
