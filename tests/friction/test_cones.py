"""O8: Coulomb cones, the associated problem, what is not unique, and what does not exist."""

from __future__ import annotations

from pathlib import Path

import clarabel
import numpy as np
import pytest
import scipy.sparse as sps
from hypothesis import given, settings
from hypothesis import strategies as st

from dalembert.errors import ModelError
from dalembert.friction import Reacting, resolve
from dalembert.friction.cones.solver import solve_contacts
from dalembert.friction.cones.sweeps import ASSOCIATED, COULOMB
from dalembert.status import Status
from tests.friction.problems import cone

FCLIB = Path(__file__).parents[3] / "shared" / "benchmarks" / "fclib"
seeds = st.integers(0, 2**32 - 1)


def solved(G, g, mu, law, tolerance=1e-13):
    k = mu.size
    r = np.zeros(3 * k)
    residual, _, _ = solve_contacts(
        G, g, np.arange(0, 3 * k + 1, 3), mu, law, np.zeros(k, np.int64), np.zeros(k, np.bool_), np.zeros(3 * k), r,
        tolerance, 12, 400,
    )  # fmt: skip
    return r, residual


def de_saxce(G, g, mu, r):
    """Return the residual of De Saxce's form, written down for its own sake."""
    u = (G @ r + g).reshape(-1, 3)
    r = r.reshape(-1, 3)
    rho = 1.0 / np.array([np.trace(G[i : i + 3, i : i + 3]) for i in range(0, len(G), 3)])
    y = r - rho[:, None] * u
    y[:, 0] -= rho * mu * np.linalg.norm(u[:, 1:], axis=1)
    n, t = y[:, 0], np.linalg.norm(y[:, 1:], axis=1)
    scale = np.where(mu * t <= -n, 0.0, (n + mu * t) / (1 + mu**2))
    P = np.column_stack([scale, (mu * scale / np.where(t > 0, t, 1))[:, None] * y[:, 1:]])
    P[t <= mu * n] = y[t <= mu * n]
    return np.abs(r - P).max() / (np.abs(r).max() + np.abs(rho[:, None] * u).max())


@pytest.mark.parametrize("contacts", [1, 2, 5, 20, 60])
def test_coulomb_cones_satisfy_de_saxces_form(contacts):
    G, g, mu = cone(np.random.default_rng(contacts), contacts)
    r, residual = solved(G, g, mu, COULOMB)
    assert residual <= 1e-12
    assert de_saxce(G, g, mu, r) <= 1e-10
    u = (G @ r + g).reshape(-1, 3)
    assert u[:, 0].min() >= -1e-10 * np.abs(g).max()  # no penetration, and no lift-off by sliding:
    assert np.abs(u[:, 0] * r.reshape(-1, 3)[:, 0]).max() <= 1e-10 * np.abs(g @ r)


@settings(max_examples=15)
@given(seeds, st.integers(1, 8))
def test_associated_problem_against_clarabel(seed, k):
    G, g, mu = cone(np.random.default_rng(seed), k)
    r, residual = solved(G, g, mu, ASSOCIATED)
    assert residual <= 1e-12
    options = clarabel.DefaultSettings()
    options.verbose = False
    options.tol_gap_abs = options.tol_gap_rel = options.tol_feas = 1e-11
    A = sps.csc_matrix(-np.diag(np.tile([mu[0], 1.0, 1.0], k)))
    cones = [clarabel.SecondOrderConeT(3)] * k
    best = np.array(clarabel.DefaultSolver(sps.csc_matrix(np.triu(G)), g, A, np.zeros(3 * k), cones, options).solve().x)
    cost = [0.5 * x @ G @ x + g @ x for x in (r, best)]
    assert cost[0] <= cost[1] + 1e-9 * (1 + abs(cost[1]))
    np.testing.assert_allclose(G @ r, G @ best, atol=1e-4 * np.abs(g).max())


@settings(max_examples=20)
@given(seeds, st.floats(0.1, 1.5))
def test_one_contact_against_brute_force(seed, mu):
    """Open, stick, or slip: the direction of slip by a fine search, the normal by its equation."""
    rng = np.random.default_rng(seed)
    G, g, _ = cone(rng, 1)
    r, residual = solved(G, g, np.array([mu]), COULOMB)
    assert residual <= 1e-12
    if g[0] >= 0.0:
        np.testing.assert_array_equal(r, 0.0)
        return
    stick = np.linalg.solve(G, -g)
    if np.hypot(*stick[1:]) <= mu * stick[0]:
        np.testing.assert_allclose(r, stick, rtol=1e-9)
        return
    best, answers = np.inf, None
    for angle in np.linspace(0.0, 2.0 * np.pi, 20001):
        d = np.array([1.0, mu * np.cos(angle), mu * np.sin(angle)])
        normal = -g[0] / (G[0] @ d)
        if normal < 0.0:
            continue
        u = G @ d * normal + g
        miss = abs(u[1] * d[2] - u[2] * d[1]) / (np.hypot(*u[1:]) * mu) if np.hypot(*u[1:]) > 0 else 0.0
        if u[1:] @ d[1:] < 0.0 and miss < best:
            best, answers = miss, normal * d
    np.testing.assert_allclose(r, answers, atol=2e-3 * np.abs(answers).max())


def box(push, height, mu=0.5, corners=4):
    """Return a box of mass 1 on its corners (half sides 1, 1), pushed at a height above its centre."""
    points = np.array([[1, 1], [1, -1], [-1, 1], [-1, -1]], dtype=float)[:corners]
    A, W, names = [], [], []
    for i, (x, y) in enumerate(points):
        p = np.array([x, y, -0.5])
        turn = np.array([[0, p[2], -p[1]], [-p[2], 0, p[0]], [p[1], -p[0], 0]])
        rows = np.hstack([np.eye(3), turn])
        A.append(rows[2])
        W += [rows[0], rows[1]]
        names.append(f"corner {i}")
    f = np.array([push, 0.0, -9.81, 0.0, push * height, 0.0])
    laws = [Reacting(mu, i, directions=2) for i in range(corners)]
    M = np.diag([1.0, 1.0, 1.0, 0.4, 0.4, 0.6])
    return resolve(M, f, np.array(W).T, np.zeros(2 * corners), laws, A=np.array(A), names=names)


def test_box_on_four_corners_stays_slides_and_tips():
    still = box(4.0, 0.0)
    assert still.ok
    np.testing.assert_allclose(still.acceleration, 0.0, atol=1e-12)
    assert set(still.sets.sticking) == {f"corner {i}" for i in range(4)}
    slides = box(6.0, 0.0)
    assert slides.ok
    assert slides.acceleration[0] == pytest.approx(6.0 - 0.5 * 9.81, rel=1e-10)
    np.testing.assert_allclose(slides.acceleration[1:], 0.0, atol=1e-10)
    assert len(slides.sets.about_to_slip) == 4
    tips = box(4.5, 2.2)  # 4.5 N at 2.7 m above the ground turns 9.81 N at 1 m
    assert tips.ok
    assert tips.acceleration[4] > 1e-3
    rear = -tips.multipliers[2:]
    np.testing.assert_allclose(rear, 0.0, atol=1e-12)


def test_box_reactions_are_open_and_the_acceleration_is_not():
    report = box(4.0, 0.0).report
    assert report.exists
    assert set(report.undetermined) == {f"corner {i}" for i in range(4)}


def test_chain_of_blocks():
    """Blocks on each other, the lowest pulled: all slip above the weakest joint."""
    masses = [1.0, 2.0, 3.0]
    mu = [0.1, 0.4, 0.6]  # top to middle, middle to bottom, bottom to ground
    n = 3
    f = np.concatenate([[0.0, 0.0, 0.0], -9.81 * np.array(masses)])
    f[2] = 80.0
    A, W = np.zeros((3, 6)), np.zeros((6, 3))
    A[0, 3], A[0, 4], W[0, 0], W[1, 0] = 1, -1, 1, -1
    A[1, 4], A[1, 5], W[1, 1], W[2, 1] = 1, -1, 1, -1
    A[2, 5], W[2, 2] = 1, 1
    M = np.diag(masses + masses)
    r = resolve(M, f, W, np.zeros(n), [Reacting(mu[i], i) for i in range(3)], A=A)
    g = 9.81
    a_top = 0.1 * g
    a_middle = (0.4 * 3 * g - 0.1 * g) / 2
    a_bottom = (80.0 - 0.6 * 6 * g - 0.4 * 3 * g) / 3
    np.testing.assert_allclose(r.acceleration[:3], [a_top, a_middle, a_bottom], rtol=1e-11)
    np.testing.assert_allclose(r.acceleration[3:], 0.0, atol=1e-12)
    assert r.report.accelerations_unique


@pytest.mark.parametrize(("off", "sticks"), [(-1e-9, True), (1e-9, False)])
def test_brick_on_a_slope_at_the_friction_angle(off, sticks):
    mu = 0.37
    angle = np.arctan(mu) + off
    f = 9.81 * np.array([np.sin(angle), -np.cos(angle)])
    r = resolve(np.eye(2), f, [[1.0], [0.0]], [0.0], [Reacting(mu, 0)], A=[[0.0, 1.0]], names=["brick"])
    assert (r.sets.sticking == ("brick",)) is sticks
    assert (r.acceleration[0] > 0.0) is not sticks


def painleve(omega, mu=2.2, angle=1.0, sense=-1.0):
    """A rod whose lower end slides on the ground (Painleve 1895): m = 1, half length 1."""
    c, s = np.cos(angle), np.sin(angle)
    M, A, W = np.diag([1.0, 1.0, 1 / 3]), [[0.0, 1.0, -c]], [[1.0], [0.0], [s]]
    drift, shift = [s * omega**2], [c * omega**2]
    laws = [Reacting(mu, 0)]
    return resolve(M, [0, -9.81, 0], W, [sense], laws, A=A, drift=drift, contact_drift=shift, names=["tip"])


def test_painleve_no_solution_is_said_with_the_contact():
    r = painleve(0.0)
    assert r.status is Status.NO_SOLUTION
    assert r.report.exists is False
    assert r.report.undetermined == ("tip",)
    assert "tip" in r.report.reason
    assert np.isnan(r.acceleration).all()


def test_painleve_two_solutions_are_said():
    r = painleve(5.0)
    assert r.ok
    assert r.report.accelerations_unique is False
    assert len(r.report.alternatives) >= 1
    assert "tip" in r.report.undetermined


def test_painleve_the_other_way_is_harmless():
    r = painleve(0.0, sense=1.0)
    assert r.ok
    assert r.report.accelerations_unique


def test_redundant_guides_with_friction_leave_the_acceleration_open():
    """Two bilateral guides share a load in any way; unequal coefficients make the acceleration depend on how."""
    A = np.array([[0.0, 1.0], [0.0, 1.0]])
    W = np.array([[1.0, 1.0], [0.0, 0.0]])
    laws = [Reacting(0.1, 0, unilateral=False), Reacting(0.5, 1, unilateral=False)]
    r = resolve(np.eye(2), [0.0, -10.0], W, [1.0, 1.0], laws, A=A, names=["left", "right"])
    assert r.ok
    assert r.report.accelerations_unique is False
    assert set(r.report.undetermined) == {"left", "right"}
    equal = [Reacting(0.3, 0), Reacting(0.3, 1)]
    r = resolve(np.eye(2), [0.0, -10.0], W, [1.0, 1.0], equal, A=A, names=["left", "right"])
    assert r.report.accelerations_unique  # equal coefficients, pushing only: the sum is all that counts
    assert r.acceleration[0] == pytest.approx(-3.0)


def test_bilateral_guide_pulls_and_rubs():
    r = resolve(np.eye(2), [5.0, 10.0], [[1.0], [0.0]], [2.0], [Reacting(0.3, 0, unilateral=False)], A=[[0.0, 1.0]])
    assert r.multipliers[0] == pytest.approx(10.0)
    assert r.acceleration[0] == pytest.approx(5.0 - 3.0)


def test_bounded_and_reacting_contacts_together():
    A, W = [[0.0, 1.0]], [[1.0, 1.0], [0.0, 0.0]]
    r = resolve(np.eye(2), [6.0, -10.0], W, [0.0, 0.0], [Reacting(0.3, 0), 2.0], A=A, names=["ground", "brake"])
    assert r.acceleration[0] == pytest.approx(6.0 - 3.0 - 2.0)
    assert set(r.sets.about_to_slip) == {"ground", "brake"}
    assert resolve(np.eye(2), [4.9, -10.0], W, [0.0, 0.0], [Reacting(0.3, 0), 2.0], A=A).sets.at_rest == (
        "contact 0",
        "contact 1",
    )


def test_associated_on_request_lifts_a_sliding_contact():
    common = {"A": [[0.0, 1.0]], "names": ["brick"]}
    true = resolve(np.eye(2), [6.0, -10.0], [[1.0], [0.0]], [0.0], [Reacting(0.3, 0)], **common)
    convex = resolve(np.eye(2), [6.0, -10.0], [[1.0], [0.0]], [0.0], [Reacting(0.3, 0)], associated=True, **common)
    assert true.acceleration[1] == pytest.approx(0.0, abs=1e-12)
    assert convex.acceleration[1] == pytest.approx(0.3 * convex.acceleration[0])  # the normal cone's price
    assert convex.certificate.method == "exact, associated"


@pytest.mark.parametrize("associated", [False, True])
def test_a_contact_without_friction_never_pulls(associated):
    r = resolve(
        np.eye(2), [0.0, 10.0], [[1.0], [0.0]], [0.0], [Reacting(0.0, 0)], A=[[0.0, 1.0]], associated=associated
    )
    np.testing.assert_array_equal(r.multipliers, 0.0)
    np.testing.assert_allclose(r.acceleration, [0.0, 10.0])


@pytest.mark.parametrize(
    "name", ["Box_Stacks-i0122-82-5.hdf5", "CubeH8.hdf5", "LMGC_GlobalFrictionContactProblem00046.hdf5"]
)
def test_fclib_problems(name):
    """Problems of the FCLIB format from the Siconos project; the folder lies beside the project, or the test skips."""
    h5py = pytest.importorskip("h5py")
    if not (FCLIB / name).exists():
        pytest.skip("no FCLIB problems beside the project")
    with h5py.File(FCLIB / name) as file:
        G, g, mu = fclib(file)
    r, residual = solved(G, g, mu, COULOMB, 1e-12)
    assert residual <= 1e-10
    u = G @ r + g
    expected = {"Box": 2.110121419048e-03, "Cub": 0.0, "LMG": 0.0}[name[:3]]
    if not expected:  # all contacts stick: the forces that hold them are in their cones
        held = np.linalg.solve(G, -g).reshape(-1, 3)
        assert (np.linalg.norm(held[:, 1:], axis=1) < mu * held[:, 0]).all()
    assert np.linalg.norm(u) == pytest.approx(expected, rel=1e-8, abs=1e-9 * np.linalg.norm(g))


def fclib(file):
    def matrix(group):
        m, n, nz = (int(np.ravel(group[key])[0]) for key in ("m", "n", "nz"))
        p, i, x = (np.ravel(group[key]) for key in ("p", "i", "x"))
        if nz >= 0:
            return sps.coo_matrix((x, (i, p)), (m, n)).toarray()
        return (sps.csc_matrix if nz == -1 else sps.csr_matrix)((x, i, p), (m, n)).toarray()

    def mirrored(M):
        """Return a symmetric matrix of which the file may hold the upper triangle alone."""
        return M if np.tril(M, -1).any() else M + np.triu(M, 1).T

    if "fclib_global" in file:
        top = file["fclib_global"]
        M, H, f, w = mirrored(matrix(top["M"])), matrix(top["H"]), top["vectors/f"], top["vectors/w"]
        both = np.linalg.solve(M, np.column_stack([H, np.ravel(f)]))
        G, g = H.T @ both[:, :-1], H.T @ both[:, -1] + np.ravel(w)
    else:
        top = file["fclib_local"]
        G, g = mirrored(matrix(top["W"])), np.ravel(top["vectors/q"])
    if np.abs(G - G.T).max() > 1e-10 * np.abs(G).max():
        pytest.skip(f"W is not symmetric by {np.abs(G - G.T).max() / np.abs(G).max():.1e}: no Delassus matrix")
    return np.ascontiguousarray(0.5 * (G + G.T)), np.ascontiguousarray(g), np.ravel(top["vectors/mu"]).copy()


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        ({"laws": [Reacting(0.3, "floor")]}, ModelError, "no constraint row is called 'floor'"),
        ({"laws": [Reacting(0.3, 4)]}, ModelError, "no constraint row 4"),
        ({"laws": [Reacting(-0.3, 0)]}, ModelError, "'brick'.*-0.3"),
        ({"laws": [Reacting(0.3, 0, directions=3)]}, ModelError, "'brick'.*directions"),
        ({"method": "flowchart"}, ModelError, "need method='exact'"),
        ({"state": [np.nan]}, ModelError, "brick"),
    ],
)
def test_bad_input_is_named(change, error, words):
    data = {"M": np.eye(2), "f": [0.0, -1.0], "W": [[1.0], [0.0]], "state": [0.0], "laws": [Reacting(0.3, 0)]}
    data |= {"A": [[0.0, 1.0]], "names": ["brick"]} | change
    with pytest.raises(error, match=words):
        resolve(**data)
