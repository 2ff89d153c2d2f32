"""One problem of contacts: intervals, disks, cones as sets; one state is a batch of one, singular masses included."""

from __future__ import annotations

import numpy as np
import pytest

from dalembert.errors import ModelError
from dalembert.friction import Limited, Reacting, StaticKinetic, resolve, resolve_batch
from dalembert.friction.bounded.answer import unheld
from dalembert.friction.bounded.methods import IntervalProblem
from dalembert.friction.cones.contact_rows import ConeProblem
from dalembert.friction.contact_problem import BILATERAL, FIXED, UNILATERAL, problem_at, problem_over
from dalembert.status import Status

LAWS = [Reacting(0.3, "floor", directions=2), 4.0, Limited(StaticKinetic(2.0, 1.0)), Reacting(0.5, 2, unilateral=False)]
"""A cone in a plane, an interval, a disk, a double cone in a line: six columns of W, eight rows."""

ROWS = ["rod", "floor", "wall"]


def mixed(rng, moving):
    """Return the arguments of one state: 5 coordinates, 3 constraint rows."""
    state = np.zeros(6)
    state[list(moving)] = rng.normal(size=len(moving))
    root = rng.normal(size=(5, 5))
    return {
        "M": root @ root.T + np.eye(5), "f": rng.normal(size=5), "W": rng.normal(size=(5, 6)), "state": state,
        "laws": LAWS, "A": rng.normal(size=(3, 5)), "drift": rng.normal(size=3), "contact_drift": rng.normal(size=6),
        "loads": [1.0, 2.0, 3.0, 1.0], "names": ["foot", "brake", "pad", "guide"], "rows": ROWS,
    }  # fmt: skip


def test_contacts_are_sets_of_reactions_by_kind():
    sets = problem_at(**mixed(np.random.default_rng(0), [])).contacts
    assert sets.kind.tolist() == [UNILATERAL, FIXED, FIXED, BILATERAL]
    assert sets.first.tolist() == [0, 3, 4, 6, 8]
    assert sets.source.tolist() == [-2, 0, 1, 2, 3, 4, -3, 5]  # row 1 of A, columns, row 2 of A, a column
    assert sets.others.tolist() == [0]
    assert sets.column_names == ("foot[0]", "foot[1]", "brake", "pad[0]", "pad[1]", "guide")
    assert sets.mu.tolist() == [[0.3, 8.0, 6.0, 0.5]]
    assert not sets.intervals


def test_limits_in_motion_are_loads_and_cones_in_motion_have_a_direction():
    state = mixed(np.random.default_rng(1), [0, 1, 2, 3, 4])
    problem = problem_at(**state)
    sets, v = problem.contacts, state["state"]
    assert sets.sliding.tolist() == [[True, True, True, False]]
    np.testing.assert_allclose(sets.direction[0, 1:3], v[:2] / np.linalg.norm(v[:2]))
    assert sets.known[0, 2] == -8.0 * np.sign(v[2])
    np.testing.assert_allclose(sets.known[0, 3:5], -3.0 * v[3:5] / np.linalg.norm(v[3:5]))
    cones = ConeProblem.of(problem)
    assert cones.names == ("foot", "guide")
    assert cones.moving == ("brake", "pad")
    assert cones.columns.tolist() == [1, 2, -1, -1, -1, 4]


@pytest.mark.parametrize("moving", [(), (0, 1), (2,), (3, 4), (0, 1, 2, 3, 4, 5)])
def test_one_state_is_a_batch_of_one(moving):
    one = mixed(np.random.default_rng(2), moving)
    many = {name: np.stack([one[name]] * 2) for name in ("f", "state", "drift", "contact_drift")}
    alone, among = problem_at(**one).contacts, problem_over(**one | many).contacts
    for name in ("kind", "first", "source", "others"):
        np.testing.assert_array_equal(getattr(alone, name), getattr(among, name))
    for name in ("mu", "sliding", "direction", "known"):
        np.testing.assert_array_equal(getattr(alone, name)[0], getattr(among, name)[1])
    r, b = resolve(**one), resolve_batch(**one | many)
    assert r.status == b.status[1]
    np.testing.assert_allclose(b.acceleration[1], r.acceleration, rtol=1e-9)
    np.testing.assert_allclose(b.contact_acceleration[1], r.contact_acceleration, rtol=1e-8, atol=1e-10)


def test_intervals_alone_are_a_box_whatever_they_are_called():
    common = {"M": np.eye(2), "f": [3.0, 1.0], "W": [[1.0, 1.0], [0.0, 0.0]], "state": [0.0, 0.0]}
    plain = resolve(**common, laws=[4.0, 5.0])
    named = resolve(**common, laws=[Limited(4.0, directions=1), 5.0])
    np.testing.assert_array_equal(named.forces, plain.forces)
    assert named.certificate.method == plain.certificate.method == "exact"


def test_a_disk_in_motion_has_a_relative_acceleration():
    r = resolve(np.eye(2), [3.0, 4.0], np.eye(2), [1.0, 0.0], [Limited(2.0)], contact_drift=[0.5, 0.0])
    assert r.contact_acceleration == pytest.approx([3.0 - 2.0 + 0.5, 4.0])


def test_laws_that_need_the_state_are_refused_in_batches(monkeypatch):
    monkeypatch.setattr(StaticKinetic, "needs_state", property(lambda law: True))
    with pytest.raises(ModelError, match=r"'contact 0'.*one by one"):
        resolve_batch(np.eye(1), np.zeros((2, 1)), [[1.0]], np.zeros((2, 1)), [StaticKinetic(2.0, 1.0)])


# ----------------------------------------------------------------------------------------------------------------------
# Singular masses and redundant rows, alone and in a batch.


def both(laws, **given):
    """Return one state resolved, and the second of two equal samples."""
    one = resolve(laws=laws, **given)
    many = {name: np.stack([x, x]) for name, x in given.items() if name in ("f", "state", "drift", "contact_drift")}
    return one, resolve_batch(laws=laws, **given | many)


def test_constraints_may_hold_what_has_no_mass():
    """Divided by the root of a mass of zero, which raised LinAlgError; a batch said MASSLESS."""
    r, b = both([Reacting(0.0, 0)], M=np.zeros((1, 1)), f=[-6.0], W=[[2.0]], state=[0.0], A=[[2.0], [1.0]],
                drift=[-1.0, 0.0])  # fmt: skip
    assert r.status == b.status[1] == Status.NO_SOLUTION
    assert dict(r.certificate.contradiction).keys() == {"contact 0", "row 1"}
    r, b = both([Reacting(0.5, 0), 1.0], M=np.diag([1.0, 1.0, 0.0]), f=[3.0, -10.0, 2.0], state=[0.0, 0.0],
                W=[[1.0, 0.0], [0.0, 0.0], [0.0, 1.0]], A=[[0, 1.0, 0], [1.0, 0, 1.0]], drift=[0.0, 1.0])  # fmt: skip
    assert r.ok
    assert b.ok.all()
    np.testing.assert_allclose(b.acceleration[1], r.acceleration, atol=1e-12)
    assert r.acceleration[0] + r.acceleration[2] == pytest.approx(-1.0)


def test_rows_that_agree_to_rounding_do_not_contradict_in_a_batch():
    """The drift of a repeated row is zero, and what the others imply for it is rounding: no measure of anything."""
    A = [[2.0, -2.0], [-2.0, 0.0], [2.0, -2.0]]
    r, b = both(
        [5.0], M=np.diag([2.0, 3.0]), f=[-3.0, 0.0], W=[[-2.0], [-2.0]], state=[0.0], A=A, drift=[0.0, 4.0, 0.0]
    )
    assert r.ok
    assert b.ok.all()
    np.testing.assert_allclose(b.acceleration, [[2.0, 2.0]] * 2, rtol=1e-12)
    clash = resolve_batch(np.diag([2.0, 3.0]), np.zeros((1, 2)), [[-2.0], [-2.0]], [[0.0]], [5.0], A=A,
                          drift=[[0.0, 4.0, 1e-6]])  # fmt: skip
    assert clash.status[0] == Status.INCONSISTENT


def test_a_light_force_moves_a_massless_coordinate_as_far_as_needed():
    """Proximal steps of 3 N over 200 kg went 0.01 at a time: called MASSLESS after 40 of them."""
    W = [[-2.0, -2.0, 2.0], [0.0, -1.0, 1.0]]
    r, b = both([0.5, 2.0, 2.0], M=np.diag([0.0, 200.0]), f=[-3.0, 0.0], W=W, state=[0.0] * 3,
                contact_drift=[0.0, -1.0, -1.0])  # fmt: skip
    assert r.ok
    assert b.ok.all()
    assert r.acceleration == pytest.approx([-0.5025, 0.005])
    assert r.sets.sticking == ("contact 1",)


@pytest.mark.parametrize(("load", "free"), [(1.9, False), (2.0, True), (2.1, True)])
def test_massless_means_that_no_contact_holds_the_motion(load, free):
    """A massless coordinate under a load, its contact limited to 2 N; at 2 N its acceleration is open."""
    problem = problem_at(np.zeros((1, 1)), [load], [[1.0]], [0.0], [2.0])
    assert unheld(IntervalProblem.of(problem)) is free
    r = resolve(np.zeros((1, 1)), [load], [[1.0]], [0.0], [2.0])
    assert r.status is (Status.MASSLESS if free else Status.SOLVED)


def test_a_negative_mass_is_not_called_a_contradiction():
    b = resolve_batch(-np.eye(2), np.ones((1, 2)), [[1.0], [0.0]], [[0.0]], [1.0])
    assert b.status[0] == Status.MASSLESS


def test_a_small_pivot_before_it_does_not_hide_a_motion_without_mass():
    """Rounding of a pivot of 5e-5 leaves 1e-13 where the mass of a motion is zero: answers balance with M itself."""
    rng = np.random.default_rng(3)
    told = set()
    for _ in range(20):
        B = rng.standard_normal((4, 3)) * np.array([1.0, 1.0, 10.0 ** rng.uniform(-5, 0)])
        M = B @ B.T
        f, W = rng.standard_normal((3, 4)), rng.standard_normal((4, 1))
        A = rng.standard_normal((1, 4))
        b = resolve_batch(M, f, W, np.zeros((3, 1)), [Reacting(0.5, 0)], A=A)
        told |= set(b.status.tolist())
        for i in np.flatnonzero(b.status == Status.SOLVED):
            a, lam, T = b.acceleration[i], b.multipliers[i], b.forces[i]
            np.testing.assert_allclose(M @ a + A.T @ lam, f[i] + W @ T, atol=1e-7 * (1.0 + np.abs(lam).max()))
            assert -lam[0] >= -1e-9
            assert abs(T[0]) <= 0.5 * max(-lam[0], 0.0) + 1e-9
            assert A[0] @ a >= -1e-6 * np.abs(a).max()
    assert told <= {
        Status.SOLVED,
        Status.NOT_CONVERGED,
        Status.MASSLESS,
        Status.INCONSISTENT,
    }
