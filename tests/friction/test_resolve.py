"""O6, O7, O8: index sets, the flowchart, and the exact solution of bounded friction."""

from __future__ import annotations

import clarabel
import numpy as np
import pytest
import scipy.sparse as sps
from hypothesis import given
from hypothesis import strategies as st

from dalembert.errors import ModelError, ShapeError, SolvabilityError, UnsupportedError
from dalembert.friction import METHODS, Dry, Hyperbolic, Reacting, StaticKinetic, resolve, resolve_batch
from dalembert.friction.bounded.box import least_norm, solve_box
from dalembert.status import Status
from tests.friction.problems import bounded
from tests.reference.box import solve_box_plain

W = np.array([[1.0, 0.0, 1.0], [0.0, 1.0, -1.0]])
M = np.diag([4.0, 7.0])
LIMITS = [4.0, 7.0, 5.0]
NAMES = ("belt 1", "belt 2", "between")
seeds = st.integers(0, 2**32 - 1)


def conditions(M, f, W, limits, r):
    """Return how far the answer is from motion and laws, relative, written down without the library's own residual."""
    a, T = r.acceleration, r.forces
    motion = np.abs(M @ a - f - W @ T).max() / (np.abs(f) + np.abs(W) @ np.abs(T) + 1e-300).max()
    inverse = np.diag(1.0 / np.diag(M))
    size = np.abs(W.T @ inverse) @ (np.abs(f) + np.abs(W) @ np.abs(T)) + 1e-300
    xi = W.T @ (inverse @ (f + W @ T))
    over = np.max(np.abs(T) - limits, initial=0.0)
    inside = np.abs(T) < limits * (1.0 - 1e-9)
    stick = np.max((np.abs(xi) / size)[inside], initial=0.0)
    against = np.max((xi * np.sign(T) / size)[~inside], initial=0.0)
    return max(motion, over, stick, against)


@given(seeds)
def test_O8_optimality_conditions_of_exact(seed):
    M, f, W, limits = bounded(np.random.default_rng(seed))
    r = resolve(M, f, W, np.zeros(W.shape[1]), list(limits))
    assert r.ok
    assert r.certificate.optimality <= 1e-12
    assert conditions(M, f, W, limits, r) <= 1e-10
    assert r.report.accelerations_unique
    assert r.report.exists


def test_O8_acceleration_belongs_to_the_forces_where_a_heavy_coordinate_is_lost_in_rounding():
    """Masses from 1e-4 to 1e4: all contacts seem to stick to 1e-11 of their terms, yet the heavy coordinates move."""
    mass, limits = (
        np.array([0.0479, 8680.0, 1.1e-4, 1230.0, 1.76e-4]),
        np.array([2.74, 1, 2.74, 1, 1, 0, 0, 1, 0, 2.74]),
    )
    f = np.array([-2.84, -0.515, -3.24, 1.34, -2.87])
    W = np.array([[-1, 2, 0, 3, 0, -4, -3, 1, -2, -1], [-3, 1, 2, -1, -1, -1, 1, 5, 0, -1],
                  [6, -1, 2, 0, 3, 2, 1, 4, 2, 5], [3, -2, -3, -1, 2, 0, -2, -3, 0, 2],
                  [4, 8, 4, 5, 2, 2, 3, 5, 2, 1]], dtype=float)  # fmt: skip
    r = resolve(np.diag(mass), f, W, np.zeros(10), list(limits))
    assert r.ok
    np.testing.assert_allclose(mass * r.acceleration, f + W @ r.forces, atol=1e-10 * np.abs(f).max())
    assert conditions(np.diag(mass), f, W, limits, r) <= 1e-10


@given(seeds)
def test_O8_compiled_and_plain_box_solvers_agree(seed):
    M, f, W, limits = bounded(np.random.default_rng(seed), spread=1.0)
    G, g = W.T @ np.linalg.solve(M, W), W.T @ np.linalg.solve(M, f)
    x = np.zeros(g.size)
    solve_box(G, g, -limits, limits, x)
    y, _ = solve_box_plain(G, g, -limits, limits)
    np.testing.assert_allclose(W @ x, W @ y, atol=1e-11 * (np.abs(f).max() + np.abs(W @ limits).max()))


@given(seeds)
def test_O8_clarabel_agrees(seed):
    M, f, W, limits = bounded(np.random.default_rng(seed), spread=1.0)
    G, g = W.T @ np.linalg.solve(M, W), W.T @ np.linalg.solve(M, f)
    m = g.size
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-11
    A = sps.csc_matrix(np.vstack([np.eye(m), -np.eye(m)]))
    cones = [clarabel.NonnegativeConeT(2 * m)]
    both = np.concatenate([limits, limits])
    best = np.array(clarabel.DefaultSolver(sps.csc_matrix(np.triu(G)), g, A, both, cones, settings).solve().x)
    r = resolve(M, f, W, np.zeros(m), list(limits))
    cost = [0.5 * x @ G @ x + g @ x for x in (r.forces, best)]
    assert cost[0] <= cost[1] + 1e-7 * (1.0 + abs(cost[1]))
    np.testing.assert_allclose(
        M @ r.acceleration, f + W @ best, atol=2e-5 * (np.abs(f).max() + np.abs(W @ limits).max() + 1e-9)
    )


@given(seeds)
def test_O8_forces_are_the_least_norm_ones(seed):
    """No direction of the family shortens them."""
    rng = np.random.default_rng(seed)
    M, f, W, limits = bounded(rng, spread=1.0)
    G, g = W.T @ np.linalg.solve(M, W), W.T @ np.linalg.solve(M, f)
    x = np.zeros(g.size)
    solve_box(G, g, -limits, limits, x)
    z = x.copy()
    least_norm(W, G, g, -limits, limits, z)
    np.testing.assert_allclose(W @ z, W @ x, atol=1e-12 * (np.abs(W) @ np.abs(x) + 1e-3).max())
    assert np.all(np.abs(z) <= limits * (1 + 1e-14))
    for _ in range(20):
        null = np.linalg.svd(W)[2][np.linalg.matrix_rank(W) :]
        if not len(null):
            break
        d = rng.normal(size=len(null)) @ null
        fixed = np.abs(G @ z + g) > 1e-9 * (np.abs(G) @ np.abs(z) + np.abs(g))
        if np.any(np.abs(d[fixed]) > 1e-12):
            continue
        other = z + 1e-3 * d
        if np.all(np.abs(other) <= limits):
            assert other @ other >= z @ z - 1e-12


@pytest.mark.parametrize("method", METHODS)
def test_every_method_answers_the_belt_in_one_contract(method):
    for elastic in (2.0, 6.3, 9.5, 20.0):
        r = resolve(M, [-elastic, 0.0], W, np.zeros(3), LIMITS, method, names=NAMES)
        assert r.acceleration.shape == (2,)
        assert set(r.sets.sliding) | set(r.sets.sticking) | set(r.sets.about_to_slip) == set(NAMES)
        assert r.certificate.method == method
        assert r.certificate.iterations >= 1
        exact = resolve(M, [-elastic, 0.0], W, np.zeros(3), LIMITS)
        if method == "regularised":
            assert r.status is Status.NOT_OPTIMAL
        else:
            assert r.ok
            np.testing.assert_allclose(r.acceleration, exact.acceleration, atol=1e-14)
        np.testing.assert_allclose(M @ r.acceleration, [-elastic, 0.0] + W @ r.forces, atol=1e-12)


@pytest.mark.parametrize(("speed", "obeys"), [(2.8e-3, False), (0.1, True)])
def test_O11_a_slope_in_place_of_the_law_is_no_answer_near_rest(speed, obeys):
    r = resolve([[1.0]], [-0.4], [[1.0]], [speed], [0.2], "regularised")
    assert r.ok is obeys  # 0.7 % of the force are missing at 2.8 widths
    assert r.certificate.optimality == pytest.approx(1.0 - np.tanh(speed / 1e-3), abs=1e-15)
    assert r.status is (Status.SOLVED if obeys else Status.NOT_OPTIMAL)


def test_O6_index_sets_of_the_belt():
    r = resolve(M, [-9.5, 0.0], W, [0.0, 0.0, 0.0], LIMITS, names=NAMES)
    assert r.sets.sticking == ("belt 2",)
    assert dict(r.sets.about_to_slip) == {"belt 1": -1.0, "between": -1.0}
    assert r.sets.at_rest == ("belt 2", "belt 1", "between")
    assert r.contact_acceleration[1] == 0.0
    r = resolve(M, [-9.5, 0.0], W, [-0.1, 0.0, -0.1], [Hyperbolic(x) for x in LIMITS], names=NAMES)
    assert r.sets.sliding == ("belt 1", "between")
    assert r.forces[0] == pytest.approx(4.0 / 1.3)
    assert r.forces[2] == pytest.approx(5.0 / 1.3)
    assert "sliding: belt 1, between" in str(r)


def test_O6_a_contact_at_its_limit_that_still_holds_sticks():
    r = resolve(M, [-9.0, 0.0], W, np.zeros(3), LIMITS, names=NAMES)
    assert r.sets.sticking == NAMES
    assert set(r.sets.at_limit) == {"belt 1", "between"}
    np.testing.assert_allclose(r.forces, [4.0, 5.0, 5.0], rtol=1e-14)
    assert r.report.undetermined == ()  # the only forces that hold


def test_O9_redundant_forces_sum_to_the_elastic_force():
    r = resolve(M, [-6.3, 0.0], W, np.zeros(3), LIMITS, names=NAMES)
    np.testing.assert_allclose(W @ r.forces, [6.3, 0.0], rtol=3e-16, atol=1e-15)
    assert r.report.undetermined == NAMES
    assert not r.report.forces_unique


def test_O7_flowchart_terminates_and_agrees_or_says_where_not():
    rng = np.random.default_rng(5)
    agree = differ = 0
    for _ in range(300):
        M, f, W, limits = bounded(rng, spread=1.0)
        r = resolve(M, f, W, np.zeros(W.shape[1]), list(limits), "flowchart")
        e = resolve(M, f, W, np.zeros(W.shape[1]), list(limits))
        assert r.certificate.iterations <= W.shape[1] + 1
        same = np.abs(M @ (r.acceleration - e.acceleration)).max() <= 1e-9 * (
            np.abs(f).max() + np.abs(W @ limits).max()
        )
        if r.ok:
            assert same
            agree += 1
        else:
            assert r.status is Status.NOT_OPTIMAL
            differ += 1
    assert agree > 200
    assert differ > 5


def test_O7_released_contacts_may_cycle_and_the_cycle_is_reported():
    rng = np.random.default_rng(5)
    found = set()
    for _ in range(600):
        M, f, W, limits = bounded(rng, spread=1.0)
        r = resolve(M, f, W, np.zeros(W.shape[1]), list(limits), "flowchart", release=True)
        found.add(r.status)
        if r.status is Status.CYCLE:
            assert "released and clamped again" in r.certificate.note
    assert Status.CYCLE in found
    assert Status.SOLVED in found


def test_O7_short_form_declines_with_the_residual_where_only_the_blocks_stick():
    r = resolve(M, [-6.3, 0.0], W, [0.1, 0.1, 0.0], LIMITS, "flowchart", form="short")
    assert r.status is Status.DECLINED
    assert "range condition" in r.certificate.note
    assert np.isnan(r.acceleration).all()
    full = resolve(M, [-6.3, 0.0], W, np.zeros(3), LIMITS, "flowchart", form="short")
    assert full.ok


def test_O15_flowchart_by_the_gram_matrix():
    """The same forces as by W^+, and the same refusal."""
    full, other = (
        resolve(M, [-6.3, 0.0], W, np.zeros(3), LIMITS, "flowchart", form=form) for form in ("short", "gram")
    )
    np.testing.assert_allclose(other.forces, full.forces, atol=1e-14)
    refused = resolve(M, [-6.3, 0.0], W, [0.1, 0.1, 0.0], LIMITS, "flowchart", form="gram")
    assert refused.status is Status.DECLINED
    assert "range condition" in refused.certificate.note


def test_static_limit_above_kinetic_force():
    law = StaticKinetic(5.0, 3.0)
    held = resolve([[2.0]], [4.9], [[1.0]], [0.0], [law])
    assert held.sets.sticking
    assert held.acceleration[0] == 0.0
    torn = resolve([[2.0]], [5.1], [[1.0]], [0.0], [law])
    assert torn.forces[0] == -5.0  # eq. (20): at the very moment the force is at its static limit
    assert dict(torn.sets.about_to_slip) == {"contact 0": 1.0}
    assert resolve([[2.0]], [5.1], [[1.0]], [1e-9], [law]).forces[0] == -3.0


def test_massless_block_held_by_a_sticking_contact():
    """Massless block 2: solvable as long as a contact holds it, through the block matrix."""
    r = resolve(np.diag([4.0, 0.0]), [-6.3, 1.0], W, np.zeros(3), LIMITS, names=NAMES)
    assert r.ok
    np.testing.assert_allclose(W @ r.forces, [6.3, -1.0], atol=1e-14)
    np.testing.assert_array_equal(r.acceleration, [0.0, 0.0])
    heavy = resolve(np.diag([4.0, 1e-9]), [-20.0, 1.0], W, np.zeros(3), LIMITS)
    light = resolve(np.diag([4.0, 0.0]), [-20.0, 1.0], W, np.zeros(3), LIMITS)
    np.testing.assert_allclose(light.acceleration, heavy.acceleration, atol=1e-8)
    gone = resolve(np.diag([4.0, 0.0]), [0.0, 30.0], W, np.zeros(3), LIMITS)
    assert gone.status is Status.MASSLESS
    assert np.isnan(gone.acceleration).all()
    assert resolve(np.diag([4.0, 0.0]), [0.0, 1.0], W, np.zeros(3), LIMITS, "flowchart").status is Status.DECLINED


def test_with_constraint_rows():
    """Two blocks on a rigid rod, one rubbing: the rod's force and the friction together."""
    r = resolve(np.diag([1.0, 3.0]), [6.0, 0.0], [[0.0], [1.0]], [0.0], [2.0], A=[[1.0, -1.0]], rows=["rod"])
    np.testing.assert_allclose(r.acceleration, [1.0, 1.0], rtol=1e-14)
    assert r.forces[0] == -2.0
    assert r.multipliers[0] == pytest.approx(5.0)


@given(seeds)
def test_batch_equals_one_by_one(seed):
    rng = np.random.default_rng(seed)
    M, _, W, limits = bounded(rng, spread=1.0)
    n, m = W.shape
    f, velocity = rng.normal(size=(6, n)) * 5, rng.normal(size=(6, m)) * (rng.random((6, m)) < 0.5)
    many = resolve_batch(M, f, W, velocity, [Hyperbolic(x) for x in limits])
    for s in range(6):
        one = resolve(M, f[s], W, velocity[s], [Hyperbolic(x) for x in limits])
        assert many.status[s] == one.status
        scale = np.abs(f).max() + np.abs(W @ limits).max()
        np.testing.assert_allclose(M @ many.acceleration[s], M @ one.acceleration, atol=1e-11 * scale)
        np.testing.assert_allclose(many.forces[s], one.forces, atol=1e-9 * (1 + limits.max()))
        assert {one.names[i] for i in np.flatnonzero(many.sets[s] == 1)} == set(one.sets.sliding)


@given(seeds, st.integers(1, 3), st.booleans())
def test_batch_with_constraint_rows_equals_one_by_one(seed, k, common):
    """Also redundant rows (the last is a sum of the others), per sample or common; lam least-norm."""
    rng = np.random.default_rng(seed)
    n, m, N = int(rng.integers(k + 1, 7)), int(rng.integers(1, 6)), 4
    root = rng.normal(size=(N, n, n))
    M = root @ root.transpose(0, 2, 1) + np.eye(n)
    W, A = rng.normal(size=(N, n, m)), rng.normal(size=(N, k, n))
    if k == 3:
        A[:, 2] = A[:, 0] + A[:, 1]
    if common:
        M, W, A = M[:1], W[:1], A[:1]
    f, drift, shift = rng.normal(size=(N, n)) * 3, rng.normal(size=(N, k)), rng.normal(size=(N, m))
    if k == 3:
        drift[:, 2] = drift[:, 0] + drift[:, 1]
    velocity, limits = rng.normal(size=(N, m)) * (rng.random((N, m)) < 0.3), rng.choice([0.0, 0.7, 2.0], m)
    many = resolve_batch(M, f, W, velocity, list(limits), A=A, drift=drift, contact_drift=shift)
    assert many.ok.all()
    for s in range(N):
        t = 0 if common else s
        one = resolve(M[t], f[s], W[t], velocity[s], list(limits), A=A[t], drift=drift[s], contact_drift=shift[s])
        scale = np.abs(one.acceleration).max() + 1.0
        np.testing.assert_allclose(many.acceleration[s], one.acceleration, atol=1e-8 * scale)
        np.testing.assert_allclose(many.forces[s], one.forces, atol=1e-7)
        np.testing.assert_allclose(A[t] @ many.acceleration[s], -drift[s], atol=1e-9 * scale)
        left = M[t] @ many.acceleration[s] + A[t].T @ many.multipliers[s] - f[s] - W[t] @ many.forces[s]
        np.testing.assert_allclose(left, 0.0, atol=1e-8 * scale * np.abs(M[t]).max())
        np.testing.assert_allclose(
            many.multipliers[s], one.multipliers, atol=1e-6 * (np.abs(one.multipliers).max() + 1)
        )


def test_batch_with_constraint_rows_gives_bad_samples_their_status():
    A, drift = np.array([[1.0, -1.0], [2.0, -2.0]]), np.zeros((3, 2))
    drift[1, 1], drift[2, 0] = 1.0, np.nan  # the second row asks for what the first forbids
    r = resolve_batch(M, np.ones((3, 2)), W, np.zeros((3, 3)), LIMITS, A=A, drift=drift)
    assert [Status(int(x)).name for x in r.status] == ["SOLVED", "INCONSISTENT", "NONFINITE"]
    assert np.isnan(r.multipliers[1:]).all()
    assert np.isfinite(r.multipliers[0]).all()
    massless = resolve_batch(np.diag([4.0, 0.0]), np.ones((1, 2)), W, np.zeros((1, 3)), LIMITS, A=A)
    assert massless.ok.all()  # the rows hold the massless coordinate
    with pytest.raises(ShapeError, match="A must be"):
        resolve_batch(M, np.ones((3, 2)), W, np.zeros((3, 3)), LIMITS, A=np.ones((1, 3)))
    with pytest.raises(ShapeError, match="drift must be"):
        resolve_batch(M, np.ones((3, 2)), W, np.zeros((3, 3)), LIMITS, A=A, drift=np.ones(3))


def test_batch_gives_bad_samples_their_status():
    many = np.broadcast_to(M, (5, 2, 2)).copy()
    many[1, 1, 1], many[2, 0, 0] = 0.0, np.nan
    f = np.tile([-6.3, 0.5], (5, 1))
    f[3, 0] = np.inf
    r = resolve_batch(many, f, W, np.zeros((5, 3)), LIMITS)
    assert [Status(int(x)).name for x in r.status] == ["SOLVED", "SOLVED", "NONFINITE", "NONFINITE", "SOLVED"]
    assert np.isnan(r.acceleration[[2, 3]]).all()
    np.testing.assert_allclose(r.acceleration[[0, 4]], 0.0, atol=1e-15)
    assert "3 of 5 samples ok" in str(r)


def test_scales_of_units_change_nothing():
    for scale in (1e-12, 1e12):
        r = resolve(M * scale, np.array([-9.5, 0.0]) * scale, W, np.zeros(3), [x * scale for x in LIMITS])
        assert r.ok
        assert r.acceleration[0] == pytest.approx(-0.125, rel=1e-12)


def test_constraints_that_leave_no_motion():
    """Everything is held by the constraints: no friction is needed, and all of it is open."""
    r = resolve(M, [1.0, 2.0], W, np.zeros(3), LIMITS, A=np.eye(2), names=NAMES)
    assert r.ok
    assert not r.forces.any()
    assert not r.acceleration.any()
    assert r.report.undetermined == tuple(NAMES)


def test_no_contacts():
    r = resolve(M, [1.0, 2.0], np.zeros((2, 0)), [], [])
    np.testing.assert_allclose(r.acceleration, [0.25, 2 / 7])
    assert r.ok
    assert str(r.sets) == "no contacts"


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        ({"laws": [-1.0, 1.0, 1.0]}, ModelError, "'belt 1'.*-1"),
        ({"laws": [np.nan, 1.0, 1.0]}, ModelError, "'belt 1'.*nan"),
        ({"laws": [1.0, 1.0]}, ShapeError, "2 laws for 3 contacts"),
        ({"state": [0.0, np.nan, 0.0]}, ModelError, "belt 2"),
        ({"state": [0.0, 0.0]}, ShapeError, "state"),
        ({"f": [np.inf, 0.0]}, ModelError, "f\\[0\\] is inf"),
        ({"W": W.T}, ShapeError, "exchanged"),
        ({"W": W * np.nan}, ModelError, "nan"),
        ({"method": "exakt"}, ModelError, "did you mean 'exact'"),
        ({"names": ["a", "a", "b"]}, ModelError, "distinct"),
        ({"loads": [1.0, -1.0, 1.0]}, ModelError, "'belt 2'.*load"),
        ({"M": [[1.0, 2.0], [0.0, 1.0]]}, ModelError, "symmetric"),
        ({"method": ["exact"]}, ModelError, "not one of"),
        ({"at_rest": "a"}, ModelError, "at_rest='a'"),
        ({"at_rest": None}, ModelError, "at_rest=None"),
        ({"laws": [True, 1.0, 1.0]}, ModelError, "'belt 1'.*True"),
        ({"method": "regularised", "width": "a"}, ModelError, "width='a'"),
        ({"method": "switch", "slack": "a"}, ModelError, "slack='a'"),
    ],
)
def test_bad_input_is_named(change, error, words):
    data = {"M": M, "f": [-1.0, 0.0], "W": W, "state": np.zeros(3), "laws": LIMITS, "names": NAMES} | change
    with pytest.raises(error, match=words):
        resolve(**data)


def test_switch_refuses_too_many_combinations():
    with pytest.raises(UnsupportedError, match=r"3\^12"):
        resolve(np.eye(1), [1.0], np.ones((1, 12)), np.zeros(12), Dry(1.0), "switch")


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        ({"at_rest": -1.0}, ModelError, "at_rest=-1.0"),
        ({"foo": 1}, ModelError, "does not know the option 'foo'"),
        ({"associated": True}, ModelError, "given limits does not know the option 'associated'"),
        ({"warm": [1.0]}, ShapeError, "warm must be"),
        ({"warm": [np.nan, 0.0]}, ModelError, r"warm\[0\] is nan"),
        ({"M": -np.eye(2)}, SolvabilityError, "negative"),
        ({"laws": [Reacting(0.3, None), 1.0], "A": [[0.0, 1.0]]}, ModelError, "named or numbered"),
        ({"laws": [Reacting(0.3, 0), 1.0], "A": [[0.0, 1.0]], "tolerance": 1e-8}, ModelError, "option 'tolerance'"),
    ],
)
def test_misuse_of_options_is_named(change, error, words):
    given = {"M": np.eye(2), "f": [1.0, 0.0], "W": np.eye(2), "state": [0.0, 0.0], "laws": [1.0, 1.0]}
    with pytest.raises(error, match=words):
        resolve(**{**given, **change})


def test_one_reacting_law_needs_no_list():
    given = {"M": np.eye(2), "f": [1.0, -10.0], "W": [[1.0], [0.0]], "state": [0.0], "A": [[0.0, 1.0]]}
    r = resolve(**given, laws=Reacting(0.3, 0))
    assert r.sets.sticking == ("contact 0",)
    assert r.forces[0] == pytest.approx(-1.0)


def test_multipliers_belong_to_the_forces_returned():
    """The contact pushes along a constraint row: its force is open, the least is zero, and the row takes the load."""
    M, f, W, A = np.diag([0.01, 100.0]), np.array([1.0, -1.0]), np.array([[-1.0], [-1.0]]), np.array([[-1.0, -1.0]])
    r = resolve(M, f, W, [0.0], [1.0], A=A)
    assert r.ok
    np.testing.assert_allclose(r.forces, 0.0, atol=1e-12)
    np.testing.assert_allclose(M @ r.acceleration + A.T @ r.multipliers, f + W @ r.forces, atol=1e-12)
    assert r.report.undetermined == ("contact 0",)
    batch = resolve_batch(M, [f], W, [[0.0]], [1.0], A=A)
    np.testing.assert_allclose(batch.forces, 0.0, atol=1e-12)
    np.testing.assert_allclose(batch.multipliers[0], r.multipliers, atol=1e-12)


def test_the_equations_of_motion_hold_with_constraints():
    """Whole numbers: contacts along constraint rows, loads on constraints alone, drift; single and batch."""
    for seed in range(150):
        rng = np.random.default_rng(seed)
        n, m, k = int(rng.integers(1, 4)), int(rng.integers(1, 4)), int(rng.integers(1, 3))
        A, W = rng.integers(-1, 2, (k, n)).astype(float), rng.integers(-1, 2, (n, m)).astype(float)
        M, f = np.diag(10.0 ** rng.uniform(-2, 2, n)), rng.integers(-3, 4, n).astype(float)
        limits, drift = rng.choice([0.0, 0.5, 1.0, 2.0], m), A @ rng.integers(-2, 3, n)
        r = resolve(M, f, W, np.zeros(m), list(limits), A=A, drift=drift)
        assert r.ok, seed
        size = np.abs(f).max() + np.abs(M).max() * np.abs(r.acceleration).max() + limits.max()
        left = M @ r.acceleration + A.T @ r.multipliers - f - W @ r.forces
        np.testing.assert_allclose(left, 0.0, atol=1e-9 * size + 1e-300)
        batch = resolve_batch(M, [f], W, np.zeros((1, m)), list(limits), A=A, drift=[drift])
        assert batch.ok[0], seed
        np.testing.assert_allclose(batch.forces[0], r.forces, atol=1e-8)
