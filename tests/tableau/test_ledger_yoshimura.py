"""Seed 003, line by line: figures entry by entry, matching, reduced forms, corrector formulas."""

from itertools import pairwise

import casadi as ca
import numpy as np
import pytest

from dalembert.tableau import (
    DiracStructure,
    NewtonStep,
    Tableau,
    connection_split,
    implicit_lagrangian,
    sparse_tableau_method,
)
from dalembert.tableau.structure.sample_points import sample_jacobian, sample_points
from tests.model.lagrangians import SYSTEMS
from tests.tableau.seed_system import FREE, GROUPS, M_ROWS, connection, mass, other_forces, seed_tableau

ALPHA_OVER_H = -1.5 / 0.01
"""alpha_0 / h of the seed's (11), which has a minus: x' = -(alpha_0 x + ...) / h."""

SIZES = {"q°": M_ROWS, "v°": M_ROWS, "v*": FREE, "Q°": M_ROWS, "Q*": FREE, "tau": FREE}
ROWS = {"G1": M_ROWS, "G2": FREE, "G3": M_ROWS, "G4": FREE, "G5": M_ROWS, "G6": FREE}


def places(sizes: dict[str, int]) -> dict[str, slice]:
    """Return the slice of every group."""
    ends = np.cumsum(list(sizes.values()))
    return {name: slice(int(end - sizes[name]), int(end)) for name, end in zip(sizes, ends, strict=True)}


def at_a_point() -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """Return Fig. 3's matrix at a random point, and the values of x there by group."""
    tableau = seed_tableau()
    values = sample_jacobian(tableau, 1, -ALPHA_OVER_H)[0]
    x = sample_points(tableau, 1, None)[0][0]
    return tableau.pattern.matrix(values).toarray(), {name: x[at] for name, at in places(SIZES).items()}


def derivative(expression, *inputs: tuple[ca.SX, np.ndarray], by: int) -> np.ndarray:
    """Return d expression / d inputs[by], numbers."""
    symbols, values = zip(*inputs, strict=True)
    f = ca.Function("f", list(symbols), [ca.jacobian(expression, symbols[by])])
    return np.array(f(*values))


def test_Y7_jacobian_is_figure_3_entry_by_entry():
    J, x = at_a_point()
    q, v, v_free, Q = ca.SX.sym("q", 3), ca.SX.sym("v", 3), ca.SX.sym("w", 2), ca.SX.sym("Q", 3)
    state = (q, x["q°"]), (v, x["v°"])
    connected = np.array(ca.Function("J", [q], [connection(q)])(x["q°"]))
    moving = derivative(connection(q) @ v_free, (q, x["q°"]), (v_free, x["v*"]), by=0)
    dual = derivative(connection(q).T @ Q, (q, x["q°"]), (Q, x["Q°"]), by=0)
    f = other_forces(q, v)
    eye_m, eye_f = np.eye(M_ROWS), np.eye(FREE)
    expected = {
        ("G1", "q°"): -ALPHA_OVER_H * eye_m,
        ("G1", "v°"): -eye_m,
        ("G2", "v*"): -eye_f,
        ("G3", "q°"): -moving,
        ("G3", "v°"): eye_m,
        ("G3", "v*"): -connected,
        ("G4", "q°"): dual,
        ("G4", "Q°"): connected.T,
        ("G4", "Q*"): eye_f,
        ("G5", "q°"): -derivative(f, *state, by=0),
        ("G5", "v°"): ALPHA_OVER_H * np.array(mass()) - derivative(f, *state, by=1),
        ("G5", "Q°"): eye_m,
        ("G6", "Q*"): eye_f,
        ("G6", "tau"): -eye_f,
    }
    for equation, rows in places(ROWS).items():
        for group, cols in places(SIZES).items():
            block = expected.get((equation, group), np.zeros((ROWS[equation], SIZES[group])))
            np.testing.assert_allclose(J[rows, cols], block, rtol=1e-14, atol=1e-14, err_msg=f"{equation} {group}")


def test_Y7_jacobian_equals_finite_differences():
    """With x' = shift x, so that the matrix is the derivative of G(x, shift x)."""
    tableau, shift = seed_tableau(), 3.0
    x, _, u, _, _ = (p[0] for p in sample_points(tableau, 1, None))
    G = tableau.residual_function()
    J = tableau.pattern.matrix(sample_jacobian(tableau, 1, shift)[0]).toarray()

    def residual(z):
        return np.array(G(z, shift * z[list(tableau.differential)], u, [], [])).ravel()

    step = 1e-6
    columns = [(residual(x + step * e) - residual(x - step * e)) / (2 * step) for e in np.eye(len(x))]
    x_dot = sample_points(tableau, 1, None)[1][0]
    assert len(x_dot) == len(tableau.differential) == 6
    np.testing.assert_allclose(J, np.array(columns).T, atol=2e-7)


def test_Y8_causal_matrix_is_figure_4_entry_by_entry():
    causal = seed_tableau().causal_matrix().toarray()
    full = {
        ("G3", "q°"): (M_ROWS, M_ROWS),
        ("G3", "v*"): (M_ROWS, FREE),
        ("G4", "q°"): (FREE, M_ROWS),
        ("G4", "Q°"): (FREE, M_ROWS),
        ("G5", "q°"): (M_ROWS, M_ROWS),
        ("G5", "v°"): (M_ROWS, M_ROWS),
    }
    outputs = {"G1": "q°", "G2": "v*", "G3": "v°", "G4": "Q*", "G5": "Q°", "G6": "tau"}
    inputs = {("G1", "v°"): M_ROWS, ("G6", "Q*"): FREE}
    for equation, rows in places(ROWS).items():
        for group, cols in places(SIZES).items():
            block = np.zeros((ROWS[equation], SIZES[group]), int)
            if outputs[equation] == group:
                block = np.eye(ROWS[equation], dtype=int)
            elif (equation, group) in full:
                block = -np.ones(full[equation, group], int)
            elif (equation, group) in inputs:
                block = -np.eye(inputs[equation, group], dtype=int)
            np.testing.assert_array_equal(causal[rows, cols], block, err_msg=f"{equation} {group}")


def test_Y9_arcs_point_from_inputs_to_equations_and_on_to_outputs():
    tableau = seed_tableau()
    arcs = tableau.arcs()
    assert len(arcs) == tableau.pattern.entries
    assert ("v°[0]", "G1[0]") in arcs
    assert ("G1[0]", "q°[0]") in arcs
    out = [arc for arc in arcs if arc[0] in tableau.equations]
    assert len(out) == len(tableau.equations)
    assert len({arc[1] for arc in out}) == len(tableau.unknowns)


def test_Y10_matching_is_figure_6_with_its_misprint_corrected():
    """The seed lists (x4, G5) and (x6, G5); the second must be (x6, G6): tau stands in G6 alone."""
    tableau = seed_tableau()
    pairs = {(unknown.split("[")[0], equation.split("[")[0]) for equation, unknown in tableau.matching.pairs().items()}
    names = dict(zip(GROUPS, ("x1", "x2", "x3", "x4", "x5", "x6"), strict=True))
    matched = {(names[group], equation) for group, equation in pairs}
    assert matched == {("x1", "G1"), ("x2", "G3"), ("x3", "G2"), ("x4", "G5"), ("x5", "G4"), ("x6", "G6")}
    contains_tau = {
        e.split("[")[0]
        for e, row in zip(tableau.equations, tableau.causal_matrix().toarray(), strict=True)
        if row[places(SIZES)["tau"]].any()
    }
    assert contains_tau == {"G6"}


ORDER_ROWS, ORDER_COLS = ("G2", "G3", "G1", "G5", "G4", "G6"), ("v*", "v°", "q°", "Q°", "Q*", "tau")


def ordered() -> tuple[np.ndarray, dict[str, slice], dict[str, slice]]:
    """Return the matrix of Fig. 7 and the places of its block rows and columns."""
    J, _ = at_a_point()
    rows = np.concatenate([np.arange(J.shape[0])[places(ROWS)[r]] for r in ORDER_ROWS])
    cols = np.concatenate([np.arange(J.shape[0])[places(SIZES)[c]] for c in ORDER_COLS])
    return (
        J[rows][:, cols],
        places({r: ROWS[r] for r in ORDER_ROWS}),
        places({c: SIZES[c] for c in ORDER_COLS}),
    )


def test_Y11_blocks_are_those_of_figure_7():
    """-I, then (v°, q°) coupled by A2 and -I, then Q°, Q*, tau one by one; zero above the block diagonal."""
    J, rows, cols = ordered()
    np.testing.assert_array_equal(J[rows["G2"], cols["v*"]], -np.eye(FREE))
    np.testing.assert_array_equal(J[rows["G1"], cols["v°"]], -np.eye(M_ROWS))
    np.testing.assert_array_equal(J[rows["G5"], cols["Q°"]], np.eye(M_ROWS))
    np.testing.assert_array_equal(J[rows["G6"], cols["tau"]], -np.eye(FREE))
    bounds = [0, 2, 8, 11, 13, 15]
    for first, last in pairwise(bounds):
        assert not J[first:last, last:].any()
    found = seed_tableau().structure().blocks
    assert sorted(found.sizes.tolist()) == [1] * 9 + [2 * M_ROWS]
    groups = [seed_tableau().unknowns[j].split("[")[0] for j in found.cols]
    rank = [ORDER_COLS.index(g) for g in groups]
    big = np.flatnonzero(found.sizes == 6)[0]
    assert set(groups[found.begins[big] : found.begins[big + 1]]) == {"v°", "q°"}
    assert set(rank[: found.begins[big]]) <= {0}
    assert rank.index(3) > found.begins[big]


def test_Y11_corrector_formulas_equal_lapack():
    """Figs. 7, 8 and the formulas after them.

    Two readings are needed: the seed prints dq° = -A2(2)/G3(2), which is upside down (it is -(A3(2))^-1 G3(2)), and in
    dv° = -(G2(2) - A2(1) G3(2)) the row of q° must already be divided by its pivot block.
    """
    J, r, c = ordered()
    G = np.random.default_rng(5).standard_normal(J.shape[0])
    A1, A2, A3 = J[r["G3"], c["v*"]], J[r["G3"], c["q°"]], J[r["G1"], c["q°"]]
    A4, A5 = J[r["G5"], c["v°"]], J[r["G5"], c["q°"]]
    A6, A7 = J[r["G4"], c["q°"]], J[r["G4"], c["Q°"]]
    G1, G2, G3, G4, G5, G6 = (G[r[name]] for name in ORDER_ROWS)
    dv_free = G1
    G2 = G2 + A1 @ dv_free
    A3, G3 = A3 + A2, G3 + G2
    G3 = np.linalg.solve(A3, G3)
    dq = -G3
    dv = -(G2 - A2 @ G3)
    dQ = -(G4 + A4 @ dv + A5 @ dq)
    dQ_free = -(G5 + A6 @ dq + A7 @ dQ)
    dtau = G6 + dQ_free
    found = np.concatenate([dv_free, dv, dq, dQ, dQ_free, dtau])
    np.testing.assert_allclose(found, np.linalg.solve(J, -G), rtol=1e-10, atol=1e-10)


def test_Y11_generated_step_equals_lapack():
    tableau = seed_tableau()
    newton = tableau.newton()
    x, x_dot, u, _, _ = sample_points(tableau, 4, None)
    shift = np.full((4, 1), 150.0)
    found = newton.step(x, x_dot, shift, u)
    G = tableau.residual_function()
    for k in range(4):
        J = tableau.pattern.matrix(np.array(newton.entries(x[k], x_dot[k], shift[k], u[k])[0])).toarray()
        residual = np.array(G(x[k], x_dot[k], u[k], [], [])).ravel()
        np.testing.assert_allclose(found.residual[k], residual, rtol=1e-13, atol=1e-13)
        np.testing.assert_allclose(found.step[k], np.linalg.solve(J, -residual), rtol=1e-9, atol=1e-9)
    assert found.linear.ok.all()
    assert isinstance(newton, NewtonStep)


def test_Y5_forward_inverse_and_mixed_are_one_tableau_matched_anew():
    """Forward: tau known, q* unknown with its rate. Mixed: one of each. A wrong mixture is named."""
    inverse, forward = seed_tableau(), seed_tableau(known=("tau",))
    mixed = seed_tableau(known=("tau[0]", "q*[1]"))
    for tableau in (inverse, forward, mixed):
        assert tableau.structure().solvable
        assert len(tableau.unknowns) == len(tableau.equations) == 15
        assert tableau.rank().full
    assert "q*[0]'" in inverse.inputs
    assert "q*[0]'" not in forward.inputs
    wrong = seed_tableau(known=("tau", "q*"))
    assert not wrong.structure().solvable
    over = wrong.structure().over_determined[0]
    assert set(over.known) & {"tau[0]", "tau[1]"}
    assert set(over.known) & {"q*[0]'", "q*[1]'"}
    assert "make one of the known" in str(over)


@pytest.mark.parametrize("rows", [0, 1, 3, 5])
def test_Y1_representations_coincide_and_the_structure_is_its_own_complement(rows):
    rng = np.random.default_rng(rows)
    N = rng.standard_normal((rows, 5))
    D = DiracStructure.of(N)
    assert all(value < 1e-12 for value in D.checks().values())
    basis = D.basis()
    assert basis.shape == (20, 10)
    for coefficients in rng.standard_normal((5, 10)):
        point = np.split(basis @ coefficients, 4)
        first, lam = D.residual_I(*point)
        assert first < 1e-12
        assert D.residual_II(*point) < 1e-12
        np.testing.assert_allclose(N.T @ lam, point[2] + point[1], atol=1e-12)
    outside = rng.standard_normal(20)
    assert np.abs(D.pairing(basis, outside[:, None])).max() > 1e-3
    if rows:
        assert D.residual_I(*np.split(outside, 4))[0] > 1e-3
        assert D.residual_II(*np.split(outside, 4)) > 1e-3


def test_Y1_power_balance():
    """<alpha, q_dot> + <w, p_dot> = 0 for every point of D: constraint forces do no work."""
    D = DiracStructure.of(np.random.default_rng(1).standard_normal((2, 6)))
    for point in D.basis().T:
        q_dot, p_dot, alpha, w = np.split(point, 4)
        assert abs(alpha @ q_dot + w @ p_dot) < 1e-13
        assert D.power(q_dot, p_dot, alpha, w) == alpha @ q_dot + w @ p_dot
    assert D.checks()["power"] < 1e-13
    assert D.power(np.ones(6), np.ones(6), np.ones(6), np.ones(6)) == 12.0


def test_Y1_redundant_rows_span_the_same_structure():
    N = np.random.default_rng(2).standard_normal((2, 5))
    D = DiracStructure.of(np.vstack([N, N[0] - 3 * N[1], np.zeros(5)]))
    assert all(value < 1e-12 for value in D.checks().values())
    assert D.split.J.shape == (2, 3)


def test_Y2_split_is_well_conditioned_and_dual():
    """Column pivoting avoids the nearly dependent pair of columns; the dual relation annihilates N^T lam."""
    N = np.array([[1.0, 1.0 + 1e-9, 0.3, 2.0], [1.0, 1.0, 5.0, -1.0]])
    split = connection_split(N)
    assert split.condition < 10
    assert set(split.dependent.tolist()) != {0, 1}
    assert np.abs(split.B.T @ N.T).max() < 1e-14
    lam = np.array([2.0, -3.0])
    assert np.abs(split.dual(N.T @ lam)).max() < 1e-13
    v_free = np.array([0.7, -0.2])
    np.testing.assert_allclose(N @ (split.B @ v_free), 0.0, atol=1e-14)
    fixed = connection_split(N, independent=[1, 3])
    assert fixed.independent.tolist() == [1, 3]
    np.testing.assert_allclose(fixed.J, -np.linalg.solve(N[:, [0, 2]], N[:, [1, 3]]), rtol=1e-12, atol=1e-14)


def test_Y3_virtual_work_of_constraint_forces_vanishes():
    system = SYSTEMS[2]()
    D = DiracStructure.at(system, [0.4, 0.7])
    Q = D.N.T @ np.array([3.0])
    for v_free in (1.0, -2.5):
        assert abs(Q @ (D.B[:, 0] * v_free)) < 1e-14


@pytest.mark.parametrize("make", SYSTEMS, ids=lambda f: f.__name__)
def test_Y4_implicit_equations_hold_on_the_motion(make):
    """Accelerations and multipliers of the block system satisfy the tableau in both forms; massless rods too."""
    system = make().with_parameters(
        **{name: 1.3 for name in make().parameters.names if name not in make().parameters.defaults}
    )
    rng = np.random.default_rng(4)
    n = len(system.coordinates)
    q, v = rng.standard_normal(n), rng.standard_normal(n)
    solved = system.solve(q, v)
    for form in ("momenta", "split"):
        tableau = implicit_lagrangian(system, form, configuration=q)
        G = tableau.residual_function()
        e, s = system.expressions, system.symbols
        momentum = ca.gradient(e.kinetic, s.v)
        values = {f"q {c}": q[i] for i, c in enumerate(system.coordinates)}
        values |= {f"v {c}": v[i] for i, c in enumerate(system.coordinates)}
        given = [s.q, s.v, s.u, s.t, s.parameters.column]
        numbers = [q, v, np.zeros(s.u.numel()), np.zeros(s.t.numel()), system.parameters.pack()]
        p = np.array(ca.Function("p", given, [momentum])(*numbers)).ravel()
        p_rate = ca.jtimes(momentum, s.q, s.v)
        if s.t.numel():
            p_rate += ca.jacobian(momentum, s.t)
        drift = np.array(ca.Function("d", given, [p_rate])(*numbers)).ravel()
        mass_matrix = system.mass_matrix(q)
        p_dot = mass_matrix @ solved.acceleration + drift
        force = mass_matrix @ solved.acceleration + system.bias(q, v)
        values |= {f"p {c}": p[i] for i, c in enumerate(system.coordinates)}
        values |= {f"Q {c}": force[i] for i, c in enumerate(system.coordinates)}
        values |= {f"lam {r}": solved.multipliers[i] for i, r in enumerate(system.names)}
        rates = {f"q {c}": v[i] for i, c in enumerate(system.coordinates)}
        rates |= {f"v {c}": solved.acceleration[i] for i, c in enumerate(system.coordinates)}
        rates |= {f"p {c}": p_dot[i] for i, c in enumerate(system.coordinates)}
        x = [values[name] for name in tableau.unknowns]
        x_dot = [rates[tableau.unknowns[k]] for k in tableau.differential]
        found = np.array(G(x, x_dot, np.zeros(len(tableau.inputs)), numbers[3], numbers[4])).ravel()
        for name, gap in zip(tableau.equations, found, strict=True):
            if not name.startswith(("constraint", "connection")):  # the random state is not on the constraints
                assert abs(gap) < 1e-11, (form, name, gap)


# Y17: misprints ------------------------------------------------------------------------------------------------------


def mass_on_spring(sign: float) -> Tableau:
    """(10) for one dependent velocity v° = v*, M = 2, f = 0, U = 3 q^2 / 2, with a sign before dU/dq."""
    names = ("q", "v", "v*", "Q", "Q*", "tau")
    q, v, v_free, Q, Q_free, tau = (ca.SX.sym(name) for name in names)
    q_rate, v_rate = ca.SX.sym("q'"), ca.SX.sym("v'")
    equations = {
        "G1": q_rate - v,
        "G3": v - v_free,
        "G4": Q + Q_free,
        "G5": Q - 2 * v_rate - sign * 3 * q,
        "G6": Q_free - tau,
    }
    variables = dict(zip(names, (q, v, v_free, Q, Q_free, tau), strict=True))
    return Tableau(equations, variables, {"q": q_rate, "v": v_rate}, known={"tau"})


@pytest.mark.parametrize(("sign", "end"), [(1.0, np.cos), (-1.0, np.cosh)], ids=["(10)", "(6)"])
def test_Y17_sign_of_the_potential_is_that_of_equation_10(sign, end):
    """A mass on a spring swings by (10); by (6) it would run away."""
    first = np.array([1.0, 0.0, 0.0, 0.0, 0.0])
    tableau = mass_on_spring(sign)
    assert tableau.unknowns == ("q", "v", "v*", "Q", "Q*")
    run = sparse_tableau_method(tableau, first, 0.005, 400, 2, {"tau": 0.0})
    np.testing.assert_allclose(run["q"], end(np.sqrt(1.5) * run.t), rtol=1e-3, atol=1e-3)


def test_Y17_external_forces_count_against_the_motion():
    """tau = 1 in (6), (10) accelerates the mass by -1/2: it is what the system exerts."""
    first = np.array([0.0, 0.0, 0.0, -1.0, 1.0])
    run = sparse_tableau_method(mass_on_spring(1.0), first, 1e-4, 10, 1, {"tau": 1.0})
    assert run["v"][-1] / run.t[-1] == pytest.approx(-0.5, rel=1e-3)


def test_Y17_figure_3_lacks_what_the_mass_and_the_potential_add():
    """The entry (G5, q°) with a mass that depends on q° and a potential apart from f."""
    q, v, rate = ca.SX.sym("q", 2), ca.SX.sym("v", 2), ca.SX.sym("v'", 2)
    M = ca.vertcat(ca.horzcat(2 + ca.cos(q[1]), q[0]), ca.horzcat(q[0], 3))
    f, slope = ca.vertcat(v[0] * q[1], v[1] ** 2), ca.gradient(q[0] ** 3 + q[0] * q[1] ** 2, q)
    Q = ca.SX.sym("Q", 2)
    tableau = Tableau({"G5": Q - M @ rate - f - slope}, {"q": q, "v": v, "Q": Q}, {"v": rate}, known={"Q", "v"})
    at = [np.array([0.3, -0.4]), np.array([0.2, 0.7]), np.array([1.1, -0.6])]
    entry = ca.Function("J", [q, v, rate], [tableau.jacobian()])(*at).full()
    printed = ca.Function("f", [q, v, rate], [-ca.jacobian(f, q)])(*at).full()
    added = ca.Function("a", [q, v, rate], [-ca.jacobian(M @ rate, q) - ca.jacobian(slope, q)])(*at).full()
    np.testing.assert_allclose(entry, printed + added, rtol=1e-14)
    assert np.abs(added).max() > 1.0


def test_Y17_printed_correctors_are_no_solution():
    """One dependent velocity, where dq° = -A2/G3 can be taken at its word: LAPACK has the reciprocal."""
    A1, A2, A3, G1, G2, G3 = 0.7, -1.3, 2.5, 0.4, 0.9, 0.6
    J = np.array([[-1, 0, 0], [A1, 1, A2], [0, -1, A3]])  # rows G1, G2, G3 of Fig. 7; columns v*, v°, q°
    _, dv, dq = np.linalg.solve(J, -np.array([G1, G2, G3]))
    reduced, pivot = G3 + G2 + A1 * G1, A3 + A2
    assert dq == pytest.approx(-reduced / pivot)
    assert abs(dq + pivot / reduced) > 0.1
    second = G2 + A1 * G1
    assert dv == pytest.approx(-(second - A2 * reduced / pivot))
    assert abs(dv + (second - A2 * reduced)) > 0.1


def test_Y17_a_perfect_matching_does_not_make_a_matrix_regular():
    x, y = ca.SX.sym("x"), ca.SX.sym("y")
    twice = Tableau({"one": x + y - 1, "two": 2 * x + 2 * y - 3}, {"x": x, "y": y})
    assert twice.matching.perfect
    assert not twice.rank().full
