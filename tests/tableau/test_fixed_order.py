"""Y6, Y13: backward differentiation formulas as published, their order and stability; the sparse tableau method."""

from fractions import Fraction
from functools import cache

import casadi as ca
import numpy as np
import pytest

from dalembert.errors import ModelError, ShapeError, SolvabilityError
from dalembert.examples import stanford_arm
from dalembert.model import Lagrangian
from dalembert.status import Status
from dalembert.tableau import Tableau, implicit_lagrangian, newton_euler, sparse_tableau_method
from dalembert.tableau.fixed_order import (
    alpha,
    error_constant,
    gamma,
    spectral_radius,
    stability_boundary,
    stability_sector,
)

ORDERS = range(1, 7)

# Ascher & Petzold 1998, table 5.3: h x'_n = sum (...) / beta_0
PUBLISHED = {
    1: ((1, -1), 1),
    2: ((1, Fraction(-4, 3), Fraction(1, 3)), Fraction(2, 3)),
    3: ((1, Fraction(-18, 11), Fraction(9, 11), Fraction(-2, 11)), Fraction(6, 11)),
    6: (
        tuple(Fraction(c, 147) for c in (147, -360, 450, -400, 225, -72, 10)),
        Fraction(60, 147),
    ),
}


@pytest.mark.parametrize("k", PUBLISHED)
def test_Y6_coefficients_are_the_published_ones(k):
    coefficients, leading = PUBLISHED[k]
    assert tuple(-a * leading for a in alpha(k)) == coefficients


@pytest.mark.parametrize("k", ORDERS)
def test_Y6_formula_is_exact_to_degree_k_and_no_further(k):
    """Eq. (11) differentiates t^p exactly for p <= k; at p = k + 1 the error is (k + 1)! / (k + 1) h^k."""
    h = Fraction(1, 7)
    for p in range(k + 2):
        points = [(1 - i * h) ** p for i in range(k + 1)]
        found = -sum(a * x for a, x in zip(alpha(k), points, strict=True)) / h
        left = found - p
        factorial = int(np.prod(range(1, k + 2)))
        assert left == (0 if p <= k else -error_constant(k) * factorial * h**k)


@pytest.mark.parametrize("k", ORDERS)
def test_Y6_predictor_extrapolates_polynomials_of_degree_below_k(k):
    for p in range(k):
        points = [Fraction(5 - i) ** p for i in range(1, k + 1)]
        assert -sum(g * x for g, x in zip(gamma(k), points, strict=True)) == Fraction(5) ** p


@pytest.mark.parametrize("k", ORDERS)
def test_Y6_formulas_up_to_six_are_zero_stable(k):
    roots = np.sort(np.abs(np.roots([-float(a) for a in alpha(k)])))
    assert roots[-1] == pytest.approx(1.0, abs=1e-9)
    assert (roots[:-1] < 0.9).all()


def test_Y13_sectors_of_stability():
    """Hairer & Wanner II, table V.2.1: 90, 90, 86.03, 73.35, 51.84, 17.84 degrees."""
    expected = [90, 90, 86.03, 73.35, 51.84, 17.84]
    assert [stability_sector(k) for k in ORDERS] == pytest.approx(expected, abs=0.01)


@pytest.mark.parametrize("k", ORDERS)
def test_Y6_boundary_separates_stable_from_unstable(k):
    z = stability_boundary(k, 181)[45]
    outward = z - 0.05 * abs(z), z + 0.05 * abs(z)
    radii = [spectral_radius(k, x) for x in outward]
    assert min(radii) <= 1.0 + 1e-9
    assert spectral_radius(k, -1e6) < 1.0  # L-stable at infinity on the negative axis
    assert spectral_radius(k, 0.5) > 1.0


@pytest.mark.parametrize("k", ORDERS)
def test_Y13_runs_decay_inside_the_region_of_stability_and_grow_outside(k):
    """x' = L x at step 1, for eigenvalues on both sides of a point of the boundary."""
    edge = stability_boundary(k, 721)[60]
    radii = []
    for eigen in (edge - 0.1 * abs(edge), edge + 0.1 * abs(edge)):
        run = sparse_tableau_method(rotation(eigen), np.random.default_rng(0).standard_normal((k, 2)), 1.0, 400, k)
        sizes = np.linalg.norm(run.x, axis=1)
        radii.append(spectral_radius(k, eigen))
        assert (sizes[-1] / sizes[100]) ** (1 / (len(sizes) - 101)) == pytest.approx(radii[-1], rel=2e-2)
    assert min(radii) < 1.0 < max(radii)


def rotation(eigen: complex) -> Tableau:
    """x' = L x with eigenvalues `eigen` and its conjugate."""
    x, r = ca.SX.sym("x", 2), ca.SX.sym("r", 2)
    L = ca.DM([[eigen.real, -eigen.imag], [eigen.imag, eigen.real]])
    return Tableau({"motion": r - ca.mtimes(L, x)}, {"x": x}, {"x": r})


@cache
def oscillator() -> Tableau:
    """x' = y, y' = -x + (z - sin^2), algebraic z = x^2: solution sin, cos, sin^2."""
    x, y, z, x_rate, y_rate, t = (ca.SX.sym(name) for name in ("x", "y", "z", "x'", "y'", "t"))
    equations = {"x": x_rate - y, "y": y_rate + x - (z - ca.sin(t) ** 2), "z": z - x**2}
    return Tableau(equations, {"x": x, "y": y, "z": z}, {"x": x_rate, "y": y_rate}, time=t)


def exact(t):
    return np.stack([np.sin(t), np.cos(t), np.sin(t) ** 2], axis=-1)


@pytest.mark.parametrize("given", ["points", "one point"])
@pytest.mark.parametrize("k", ORDERS)
def test_Y13_order_of_convergence_measured(k, given):
    errors, steps = [], (40, 60, 90)
    for n in steps:
        h = 2.0 / n
        first = exact(h * np.arange(k)) if given == "points" else exact(0.0)
        run = sparse_tableau_method(oscillator(), first, h, n - k + 1, k)
        assert run.iterations.max() <= 4
        errors.append(np.abs(run.x[-1] - exact(run.t[-1])).max())
    slope = np.polyfit(np.log([1 / n for n in steps]), np.log(errors), 1)[0]
    assert slope == pytest.approx(k, abs=0.25)


NAMES = [f"q{i + 1}" for i in range(6)]
RATES = 0.2 + 0.04 * np.arange(6)


def swing(t):
    """A smooth motion of all joints of the Stanford arm, with its derivatives."""
    t = np.asarray(t, dtype=float)[..., None]
    start = np.array([0.3, -0.7, 0.5, 0.4, -0.9, 0.6])
    return start + RATES * (1 - np.cos(2 * t)), 2 * RATES * np.sin(2 * t), 4 * RATES * np.cos(2 * t)


def test_Y13_inverse_dynamics_of_the_stanford_arm():
    """Known q*(t) alone, as in the seed's section 3: velocities, accelerations and torques by order k."""
    arm = stanford_arm()
    tableau = newton_euler(arm, "essential", known=("q",), instant=False)
    guess = tableau.with_known(("q", "qd", "qdd"), instant=True)
    newton = guess.newton(engine="loop")
    errors = {}
    for k, n in ((2, 20), (2, 40), (4, 20), (4, 40)):
        h = 0.5 / n
        q, v, a = swing(h * np.arange(k))
        found = guess.solve({"q": q, "qd": v, "qdd": a}, newton=newton)
        given = {f"{name}[{i}]": x for name, rows in (("qd", v), ("qdd", a)) for i, x in enumerate(rows.T)}
        first = np.stack([given[u] if u in given else found[u] for u in tableau.unknowns], axis=-1)
        run = sparse_tableau_method(tableau, first, h, n - k + 1, k, {"q": lambda t: swing(t)[0]}, engine="loop")
        expected = arm.inverse(*swing(run.t)).tau
        errors[k, n] = np.abs(run["tau"][-1] - expected[-1]).max()
    assert errors[2, 20] / errors[2, 40] == pytest.approx(4, rel=0.3)
    assert errors[4, 20] / errors[4, 40] == pytest.approx(16, rel=0.4)


def test_Y13_forward_dynamics_of_the_stanford_arm_returns_the_motion():
    """The torques of a motion drive the arm along it: the same tableau with tau known."""
    arm = stanford_arm()
    tableau = newton_euler(arm, "essential", known=("tau",), instant=False)
    at_rest = tableau.with_known(("q", "qd", "qdd"), instant=True)
    q, v, a = swing(0.0)
    found = at_rest.solve({"q": q, "qd": v, "qdd": a}, newton=at_rest.newton(engine="loop"))
    values = {f"{name}[{i}]": x for name, row in (("q", q), ("qd", v), ("qdd", a)) for i, x in enumerate(row)}
    first = np.array([values[u] if u in values else found[u] for u in tableau.unknowns])
    errors = []
    for n in (20, 40):
        drive = {"tau": lambda t: arm.inverse(*swing(t)).tau}
        run = sparse_tableau_method(tableau, first, 0.5 / n, n - 2, 3, drive, engine="loop")
        errors.append(np.abs(run["q"][-1] - swing(run.t[-1])[0]).max())
    assert errors[0] / errors[1] == pytest.approx(8, rel=0.4)
    assert errors[1] < 1e-4


def pendulum(mass: float = 1.0, rows: int = 1) -> Lagrangian:
    """A point on a rod of one metre, with a massless second point on it, and its row once or twice."""
    q, v = ca.SX.sym("q", 3), ca.SX.sym("v", 3)
    rod = {f"rod {i}": ca.sumsqr(q[:2]) - 1 for i in range(rows)} | {"slider": q[2] - 2 * q[0]}
    kinetic, potential = mass * ca.sumsqr(v[:2]) / 2, 9.81 * mass * q[1]
    return Lagrangian(q, v, kinetic, potential, constraints=rod)


def test_Y13_massless_coordinate_on_the_level_of_positions():
    """Index 3 with a singular mass matrix: order 2 in positions, against the pendulum's equation by SciPy."""
    from scipy.integrate import solve_ivp

    tableau = implicit_lagrangian(pendulum())
    angle = solve_ivp(lambda t, y: [y[1], -9.81 * np.sin(y[0])], (0, 0.5), [1.0, 0.0], rtol=1e-12, atol=1e-12,
                      dense_output=True)  # fmt: skip
    errors = []
    for n in (50, 100):
        h = 0.5 / n
        first = np.zeros((2, len(tableau.unknowns)))
        for i, t in enumerate((0.0, h)):
            s, w = angle.sol(t)
            x, y = np.sin(s), -np.cos(s)
            vx, vy = np.cos(s) * w, np.sin(s) * w
            values = {"q q_0": x, "q q_1": y, "q q_2": 2 * x, "v q_0": vx, "v q_1": vy, "v q_2": 2 * vx,
                      "p q_0": vx, "p q_1": vy}  # fmt: skip
            first[i] = [values.get(u, 0.0) for u in tableau.unknowns]
        still = {f"tau q_{i}": 0.0 for i in range(3)}
        run = sparse_tableau_method(tableau, first, h, n - 1, 2, still)
        errors.append(abs(run["q q_0"][-1] - np.sin(angle.sol(0.5)[0])))
        np.testing.assert_allclose(run["q q_2"], 2 * run["q q_0"], rtol=0, atol=1e-11)
    assert errors[0] / errors[1] == pytest.approx(4, rel=0.3)


def test_Y13_redundant_rows_are_named_not_integrated():
    tableau = implicit_lagrangian(pendulum(rows=2))
    first = np.zeros(len(tableau.unknowns))
    place = {u: k for k, u in enumerate(tableau.unknowns)}
    first[place["q q_1"]] = -1.0
    with pytest.raises(SolvabilityError, match=r"SINGULAR at t = 0.1 s.*rank"):
        sparse_tableau_method(tableau, first, 0.1, 3, 1, {f"tau q_{i}": 0.0 for i in range(3)})


def test_Y13_batches_have_a_status_per_sample():
    """sqrt(c - x) has no solution once x passes c; parameters differ by sample."""
    x, r, c = ca.SX.sym("x"), ca.SX.sym("r"), ca.SX.sym("c")
    y = ca.SX.sym("y")
    tableau = Tableau({"x": r - 1, "y": y**2 - (c - x)}, {"x": x, "y": y}, {"x": r}, parameters={"c": c})
    constants = np.array([[2.0], [0.55], [1.0 + 1e-9]])
    first = np.array([[[0.0, np.sqrt(value)]] for value in constants[:, 0]])
    run = sparse_tableau_method(tableau, first, 0.1, 10, 1, parameters=constants)
    assert run.x.shape == (3, 11, 2)
    assert run.status[0] == Status.CONVERGED
    assert run.status[1] != Status.CONVERGED
    assert np.isnan(run["x"][1, -1])
    np.testing.assert_allclose(run["x"][0], run.t, atol=1e-12)
    with pytest.raises(SolvabilityError, match=r"at t = 0.6 s"):
        sparse_tableau_method(tableau, first[1], 0.1, 10, 1, parameters=constants[1])


def test_wrong_orders_and_starts_are_refused():
    with pytest.raises(ModelError, match="orders 1 to 6"):
        alpha(7)
    with pytest.raises(ModelError, match="orders 1 to 6"):
        sparse_tableau_method(oscillator(), exact(0.0), 0.1, 5, 7)
    with pytest.raises(ShapeError, match=r"first 3 points, \(3, 3\)"):
        sparse_tableau_method(oscillator(), np.zeros((2, 3)), 0.1, 5, 3)
    x, u = ca.SX.sym("x"), ca.SX.sym("u")
    follower = Tableau({"x": x - u}, {"x": x, "u": u}, known={"u"})
    with pytest.raises(ShapeError, match="4 rows for a run of 6 points"):
        sparse_tableau_method(follower, [0.0], 0.1, 5, 1, {"u": np.zeros((4, 1))})
    with pytest.raises(ModelError, match="no value for the known 'u'"):
        sparse_tableau_method(follower, [0.0], 0.1, 5, 1)
