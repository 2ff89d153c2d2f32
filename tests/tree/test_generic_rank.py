"""Statuses of closed mechanisms: next to singular configurations, in any unit, in single precision.

The oracle keeps as many singular values of the rows, in the metric of the mass, as the mechanism's rank.
"""

from dataclasses import replace

import numpy as np
import pytest

import dalembert as da
from dalembert.tree.block import constrained
from dalembert.tree.block.conditioning import closed_configurations, needs_of
from dalembert.tree.block.constrained import inverse
from dalembert.tree.routes.route_table import ROUTES
from tests.tree.robots import URDFS, robot

SOLVED = (da.Status.UNIQUE, da.Status.REDUNDANT)
AXIS = (0, 0, 1)
HALF = 2.0**-26  # half of the digits

FLAT = {
    "line": lambda **at: da.PointOnLine("end", "post", axis=AXIS, **at),
    "point": lambda **at: da.Point("end", "post", **at),
    "revolute": lambda **at: da.Revolute("end", "post", axis=AXIS, **at),
}

KINDS = FLAT | {
    "weld": lambda **at: da.Weld("end", "post", **at),
    "prismatic": lambda **at: da.Prismatic("end", "post", axis=AXIS, **at),
    "cylindrical": lambda **at: da.Cylindrical("end", "post", axis=AXIS, **at),
    "planar": lambda **at: da.Planar("end", "post", axis=AXIS, **at),
    "plane": lambda **at: da.PointInPlane("end", "post", **at),
    "universal": lambda **at: da.Universal("end", "post", axis=(1, 0, 0), axis2=(0, 1, 0), **at),
}

ASKED = {
    "forward": constrained.forward,
    "inverse": inverse,
    "impact": constrained.impact,
    "project_velocity": constrained.project_velocity,
}


def parallelogram(kind):
    """Return two cranks under a coupler, flat where all angles are zero: rank 2, of as many rows as the loop has."""
    b = da.Builder("parallelogram", gravity=(0, -9.81, 0))
    for name, length in (("left", 1.0), ("coupler", 2.0), ("right", 1.0)):
        b.body(name, mass=1.0, center=(length / 2, 0, 0), inertia=(0.001, 0.08, 0.08))
    b.joint("one", "revolute", parent="world", child="left", axis=AXIS)
    b.joint("two", "revolute", parent="left", child="coupler", axis=AXIS, position=(1, 0, 0))
    b.joint("three", "revolute", parent="world", child="right", axis=AXIS, position=(2, 0, 0))
    b.frame("end", "coupler", position=(2, 0, 0))
    b.frame("post", "right", position=(1, 0, 0))
    return b.build().constrain(FLAT[kind]())


def nearly_flat(count, seed=0):
    """Return angles at log-uniform distances, with configurations, velocities and torques."""
    rng = np.random.default_rng(seed)
    theta, speed = 10.0 ** rng.uniform(-12, 0, count), rng.standard_normal(count)
    pattern = np.array([1.0, -1.0, 1.0])
    return theta, theta[:, None] * pattern, speed[:, None] * pattern, rng.standard_normal((count, 3))


class Oracle:
    """What r rows in the metric of the mass say at one configuration."""

    def __init__(self, mechanism, q, r):
        self.m, self.q = mechanism, q
        self.M, self.A = np.atleast_2d(mechanism.mass_matrix(q)), np.asarray(mechanism.jacobian(q))
        self.L = np.linalg.cholesky(self.M)
        B = np.linalg.solve(self.L, self.A.T).T
        norms = np.linalg.norm(B, axis=1)
        self.D = np.where(norms > 0, 1 / np.where(norms > 0, norms, 1.0), 0.0)
        U, s, Vt = np.linalg.svd(self.D[:, None] * B, full_matrices=False)
        self.U, self.s, self.Vt = U[:, :r], s[:r], Vt[:r]

    @property
    def distance(self):
        return self.s[-1] / self.s[0]

    def taken(self, y):
        return np.linalg.solve(self.L.T, self.Vt.T @ ((self.U.T @ (self.D * y)) / self.s))

    def acceleration(self, v, tau):
        free = np.linalg.solve(self.M, tau - self.m.bias(self.q, v))
        return free - self.taken(self.A @ free + self.m.drift(self.q, v))

    def impact(self, v, e):
        return v - self.taken((1 + e) * (self.A @ v))

    def least_forces(self, v, a):
        b = self.M @ a + self.m.bias(self.q, v)
        Vt = np.linalg.svd(self.D[:, None] * self.A, full_matrices=False)[2][: len(self.s)]
        return b - Vt.T @ (Vt @ b)


def numbers(function, *inputs):
    """Return the outputs of a traced function at many states."""
    found = [[np.array(x).ravel() for x in function(*each)] for each in zip(*inputs, strict=True)]
    return [np.array([each[k] for each in found]) for k in range(3)]


@pytest.mark.parametrize("route", ["caba", "efpa", "pv", "matrix", "aba"])
@pytest.mark.parametrize("kind", FLAT)
def test_next_to_flat_accelerations_are_right_or_declined(kind, route):
    """Below 1e-7 rad a row of the mechanism's rank was dropped as redundant, with accelerations wrong by their size."""
    mechanism = parallelogram(kind)
    setting = constrained.Tracing.of(mechanism)
    assert sum(not each for each in setting.needs.implied) == 2
    theta, q, v, tau = nearly_flat(60)
    a, _, status = numbers(constrained.forward_by(setting, ROUTES[route]), q, v, tau, np.zeros(60))
    expected = da.Status.UNIQUE if kind == "line" else da.Status.REDUNDANT
    assert set(status.ravel()) <= {expected, da.Status.DECLINED}
    assert (status[theta > 1e-6] == expected).all()
    for k in np.flatnonzero(status == expected):
        oracle = Oracle(mechanism, q[k], 2)
        truth = oracle.acceleration(v[k], tau[k])
        allowed = HALF + 100 * np.finfo(float).eps / oracle.distance
        assert np.abs(a[k] - truth).max() <= allowed * (np.abs(truth).max() + np.abs(tau[k]).max())


@pytest.mark.parametrize("kind", FLAT)
def test_next_to_flat_impacts_and_least_forces_are_right_or_declined(kind):
    mechanism = parallelogram(kind)
    m = len(mechanism.names)
    theta, q, v, tau = nearly_flat(60, seed=1)
    e = np.full((60, m), 0.3)
    after, _, struck = numbers(constrained.impact(mechanism), q, tau, e, np.zeros(60))
    oracles = [Oracle(mechanism, each, 2) for each in q]
    a = np.array([each.acceleration(*state) for each, *state in zip(oracles, v, tau, strict=True)])
    forces, _, pulled = numbers(inverse(mechanism), q, v, a, np.zeros(60))
    expected = da.Status.UNIQUE if kind == "line" else da.Status.REDUNDANT
    for status, known in ((struck, expected), (pulled, da.Status.REDUNDANT)):  # all joints pull: a family
        assert set(status.ravel()) <= {known, da.Status.DECLINED}
        assert (status[theta > 1e-6] == known).all()
    for k, oracle in enumerate(oracles):
        allowed = HALF + 100 * np.finfo(float).eps / oracle.distance
        if struck[k] == expected:
            assert np.abs(after[k] - oracle.impact(tau[k], 0.3)).max() <= 10 * allowed
        if pulled[k] == da.Status.REDUNDANT:
            truth = oracle.least_forces(v[k], a[k])
            assert np.abs(forces[k] - truth).max() <= 10 * allowed * np.abs(mechanism.bias(q[k], v[k])).max()


@pytest.mark.parametrize("kind", FLAT)
def test_forward_is_right_all_the_way_to_flat(kind):
    """What the kernel declines `KKT` solves under the same rank: errors grow as eps over the distance."""
    mechanism = parallelogram(kind)
    _, q, v, tau = nearly_flat(100, seed=2)
    a, _, status = mechanism.forward(q, v, tau)
    assert (status == (da.Status.UNIQUE if kind == "line" else da.Status.REDUNDANT)).all()
    for k in range(100):
        oracle = Oracle(mechanism, q[k], 2)
        truth = oracle.acceleration(v[k], tau[k])
        allowed = HALF + 100 * np.finfo(float).eps / oracle.distance
        assert np.abs(a[k] - truth).max() <= allowed * (np.abs(truth).max() + np.abs(tau[k]).max())


@pytest.mark.parametrize("kind", FLAT)
def test_solve_is_right_all_the_way_to_flat(kind):
    """`PointOnLine` lost a row below 5e-9 rad and was wrong by its size; the others spoke of NaN in the data."""
    mechanism = parallelogram(kind)
    for k, angle in enumerate((-3e-12, 5e-11, 4e-10, -2e-9, 3e-8, 0.02)):
        q, v = angle * np.array([1.0, -1.0, 1.0]), 0.7 * np.array([1.0, -1.0, 1.0])
        tau = np.random.default_rng(k).standard_normal(3)
        solution = mechanism.solve(q, v, tau)
        assert solution.status == (da.Status.UNIQUE if kind == "line" else da.Status.REDUNDANT)
        speedup = (tau[0] - tau[1] + tau[2] - 2 * 9.81 * np.cos(angle)) / (2 * (0.08 + 0.25) + 1.0)  # one coordinate
        assert np.abs(solution.acceleration - speedup * np.array([1.0, -1.0, 1.0])).max() < 1e-9 + 1e-14 / abs(angle)


@pytest.mark.parametrize("kind", FLAT)
def test_solve_of_a_batch_is_right_all_the_way_to_flat(kind):
    """Rows of samples within 2.5e-9 rad were dropped, and the answers wrong by their size, called redundant."""
    mechanism, way = parallelogram(kind), np.array([1.0, -1.0, 1.0])
    angles = np.array([-3e-12, 5e-11, 4e-10, -2e-9, 3e-8, 0.02])
    tau = np.random.default_rng(0).standard_normal((6, 3))
    solution = mechanism.solve(angles[:, None] * way, np.tile(0.7 * way, (6, 1)), tau)
    assert set(solution.status) == {da.Status.UNIQUE if kind == "line" else da.Status.REDUNDANT}
    speedup = (tau @ way - 2 * 9.81 * np.cos(angles)) / (2 * (0.08 + 0.25) + 1.0)  # one coordinate
    error = np.abs(solution.acceleration - speedup[:, None] * way).max(axis=1)
    assert (error < 1e-9 + 1e-14 / np.abs(angles)).all()
    with pytest.raises(da.ModelError, match="sample 1 is a singular configuration, sample 0 is next to one"):
        mechanism.solve([4e-10 * way, 0.0 * way], np.zeros((2, 3)), np.zeros((2, 3)))


def held_chain(kind, unit, twice=False, plane=False):
    """Return a chain of hinges with its end at a post, lengths in multiples of `unit`."""
    rng = np.random.default_rng(0)
    b = da.Builder("chain", gravity=(0.3 * unit, -2 * unit, -9.81 * unit))
    parent = "world"
    for i in range(5 if plane else 7):
        axis = np.array(AXIS) if plane else rng.standard_normal(3)
        place = unit * rng.uniform([0.5, -0.3, -0.3], [1.0, 0.3, 0.3]) * (1, 1, not plane)
        b.body(f"b{i}", mass=1.0, center=tuple(0.2 * unit * rng.standard_normal(3)), inertia=(unit**2 * 0.1,) * 3)
        b.joint(f"j{i}", "revolute", parent=parent, child=f"b{i}", axis=tuple(axis), position=tuple(place * (i > 0)))
        parent = f"b{i}"
    b.frame("end", parent, position=(0.4 * unit, 0, 0))
    b.frame("post", "world", position=(0.9 * unit, 0.7 * unit, 0.0 if plane else 0.4 * unit))
    loop = KINDS[kind]()
    return b.build().constrain(*([loop, replace(loop, name="again")] if twice else [loop]))


@pytest.mark.parametrize("plane", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_units_change_neither_statuses_nor_answers(kind, plane):
    """`inverse` said MASSLESS for links of a millimetre: rows of lengths and of angles shared one scale."""
    found = {}
    for unit in (1.0, 1e-6, 1e3) if plane else (1.0, 1e-3, 1e6):
        mechanism = held_chain(kind, unit, plane=plane)
        if not found:
            q = np.array(closed_configurations(mechanism))[:3]
            rng = np.random.default_rng(1)
            v, tau = rng.standard_normal((2, len(q), mechanism.nv))
            t, e = np.zeros(len(q)), np.full((len(q), len(mechanism.names)), 0.3)
        asked = {
            "forward": (q, v, unit**2 * tau, t),
            "inverse": (q, v, tau, t),
            "impact": (q, v, e, t),
            "project_velocity": (q, v, t),
        }
        for what, inputs in asked.items():
            answer, _, status = numbers(ASKED[what](mechanism), *inputs)
            assert np.isin(status, SOLVED).all()
            answer = answer / unit**2 if what == "inverse" else answer
            first, said = found.setdefault(what, (answer, status))
            assert np.array_equal(status, said), (what, unit)
            assert np.abs(answer - first).max() <= 1e-9 * max(np.abs(first).max(), np.abs(v).max()), (what, unit)


@pytest.mark.parametrize("unit", [1e-6, 1.0, 1e6])
def test_the_rank_of_rows_that_hold_twice_is_that_of_once(unit):
    needs = needs_of(held_chain("revolute", unit, twice=True))
    assert needs.implied == (False,) * 5 + (True,) * 5
    assert all(parts for parts in needs.sums[5:])


ROBOTS = {
    "go2": ("go2.urdf", ("FL_foot", "FR_foot", "RL_foot", "RR_foot"), da.Point, 0.9),
    "talos": ("talos_reduced.urdf", ("left_sole_link", "right_sole_link"), da.Weld, 1.0),
}


@pytest.mark.parametrize("name", ROBOTS)
def test_single_precision_answers_what_it_has_digits_for(name):
    """All states of Talos on two welds were declined, with accelerations right to 1e-7."""
    file, frames, kind, least = ROBOTS[name]
    path = next(path for path in URDFS if path.endswith(f"/{file}"))
    mechanism = robot(path, "floating")[0].with_passive(False).open_tree().constrain(*[kind(frame) for frame in frames])
    rng = np.random.default_rng(0)
    q = mechanism.random(rng, 256).astype(np.float32)
    v, tau = (size * rng.standard_normal((256, mechanism.nv)).astype(np.float32) for size in (1, 10))
    t = np.zeros((256, 1), np.float32)
    a, _, status = mechanism.compile("forward", backend="numpy", dtype="float32")(q, v, tau, t)
    truth, _, _ = mechanism.compile("forward", backend="numpy")(*(x.astype(float) for x in (q, v, tau, t)))
    ok = status[:, 0] == da.Status.UNIQUE
    assert ok.mean() >= least
    error = np.abs(a - truth).max(axis=1) / np.abs(truth).max(axis=1)
    assert error[ok].max() < np.finfo(np.float32).eps ** 0.5
