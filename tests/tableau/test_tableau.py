"""Tableaus written by a user: known and unknown, index, reduction, bad input; pictures."""

import xml.etree.ElementTree as ET

import casadi as ca
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dalembert.errors import ModelError, ShapeError, SolvabilityError, UnsupportedError
from dalembert.examples import stanford_arm
from dalembert.tableau import (
    Tableau,
    connection_split,
    implicit_lagrangian,
    make_plan,
    newton_euler,
    reduce_index,
    signature,
)
from dalembert.tableau.structure.index_reduction import signature_matrix
from tests.model.lagrangians import bead, pendulum, slider_crank
from tests.tableau.seed_system import seed_tableau


def symbols(names: str) -> list[ca.SX]:
    return [ca.SX.sym(name) for name in names.split()]


def network(known=("u",)) -> Tableau:
    """Two resistors in series: voltages a, b; current i; source u."""
    a, b, i, u = symbols("a b i u")
    return Tableau({"first": a - 2 * i, "second": b - 3 * i, "loop": a + b - u}, [a, b, i, u], known=known)


def test_the_same_equations_are_solved_for_anything():
    assert network().solve({"u": 10.0})["i"] == pytest.approx(2.0)
    assert network(known=("i",)).solve({"i": 2.0})["u"] == pytest.approx(10.0)
    assert network(known=("b",)).solve({"b": 6.0})["a"] == pytest.approx(4.0)
    many = network().solve({"u": np.array([5.0, 10.0, 0.0])})
    np.testing.assert_allclose(many["i"], [1.0, 2.0, 0.0])
    assert many.converged.all()


def test_nonlinear_systems_with_parameters_and_time():
    x, y, t, k = symbols("x y t k")
    circle = Tableau(
        {"circle": x**2 + y**2 - k**2, "ray": y - ca.tan(t) * x}, [x, y], time=t, parameters={"k": (k, 2.0)}
    )
    found = circle.solve({}, t=0.3, guess=[1.0, 0.5])
    np.testing.assert_allclose(found.x, [2 * np.cos(0.3), 2 * np.sin(0.3)], rtol=1e-12)
    other = circle.solve({}, t=0.3, guess=[1.0, 0.5], parameters={"k": 5.0})
    np.testing.assert_allclose(other.x, 2.5 * found.x, rtol=1e-12)
    with pytest.raises(SolvabilityError):
        circle.solve({}, t=0.3, guess=[0.0, 0.0])  # the circle's row vanishes there


def test_conditions_on_known_data_are_listed():
    tableau = network(known=("a", "i"))
    assert "first" in tableau.conditions
    assert tableau.equations == ("second", "loop")
    assert tableau.unknowns == ("b", "u")


def test_rates_of_known_variables_are_inputs_or_left_out_at_an_instant():
    x, v, dx = symbols("x v dx")
    tableau = Tableau({"rate": dx - v}, [x, v], {"x": dx}, known=("x",))
    assert list(tableau.inputs) == ["x", "x'"]
    assert tableau.solve({"x": 1.0, "x'": 3.0})["v"] == pytest.approx(3.0)
    at = tableau.with_known(("x", "v"), instant=True)
    assert at.equations == ()
    assert list(at.conditions) == ["rate"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (lambda x, y: ({"e": x + y}, [x]), "contains 'y'"),
        (lambda x, y: ({"e": x + y, "zero": ca.SX(3)}, [x, y]), "contains no variable"),
        (lambda x, y: ({"e": x}, [x, x]), "two variables are called 'x'"),
        (lambda x, y: ({"e": x}, {"a": x, "b": x}), "stands for two variables"),
        (lambda x, y: ({"e": x * np.nan + y}, [x, y]), "NaN or infinity"),
        (lambda x, y: ([x, y], [x, y]), "mapping"),
        (lambda x, y: ({"e": ca.vertcat(x, y), "e[0]": x}, [x, y]), r"two equations are called 'e\[0\]'"),
        (lambda x, y: ({"e": x}, [x + y]), "SX symbols"),
        (lambda x, y: ({"e": x}, [x], {"y": y}), "rates of unknown variables: 'y'"),
        (lambda x, y: ({"e": x}, [x], None, ("xx",)), "did you mean 'x'"),
    ],
)
def test_bad_descriptions_are_refused(arguments, words):
    x, y = symbols("x y")
    with pytest.raises(ModelError, match=words):
        Tableau(*arguments(x, y))


def test_bad_values_are_refused():
    tableau = network()
    with pytest.raises(ModelError, match="no value for the known 'u'"):
        tableau.solve({})
    with pytest.raises(ModelError, match="'a' is not known"):
        tableau.solve({"u": 1.0, "a": 2.0})
    with pytest.raises(ShapeError):
        tableau.solve({"u": np.ones((2, 3))})
    with pytest.raises(ModelError, match="known, not a result"):
        tableau.solve({"u": 1.0})["u"]
    with pytest.raises(UnsupportedError, match="rates of unknowns"):
        seed_tableau().solve({"q*": np.ones(2)})
    a, b = symbols("a b")
    with pytest.raises(ModelError, match="outputs: no equation is called 'G9'"):
        Tableau({"G": a - b}, [a, b], known=("b",), outputs={"G9": "a"})


def test_unsolvable_tableaus_are_explained_with_known_variables():
    a, b, i, u = symbols("a b i u")
    system = {"first": a - 2 * i + b, "second": b - 3 * i, "loop": a + b - u}
    wrong = Tableau(system, [a, b, i, u], known=("a", "i"))
    with pytest.raises(SolvabilityError, match="make one of the known 'a', 'i' unknown"):
        wrong.newton()


def test_a_matching_is_not_enough():
    """x + y and 2x + 2y match perfectly and are singular for every value: the numbers say so, by name."""
    x, y, u = symbols("x y u")
    tableau = Tableau({"one": x + y - u, "two": 2 * x + 2 * y, "three": u - 1}, [x, y, u])
    assert tableau.structure().solvable
    report = tableau.rank()
    assert report.always
    assert report.found[0].equations == (("one", "two"),)
    assert set(report.found[0].unknowns[0]) == {"x", "y"}


def pendulum_tableau() -> Tableau:
    x, y, u, v, lam = symbols("x y u v lam")
    dx, dy, du, dv = symbols("dx dy du dv")
    equations = {"x'": dx - u, "y'": dy - v, "u'": du + lam * x, "v'": dv + lam * y + 9.81, "rod": x**2 + y**2 - 1}
    return Tableau(equations, [x, y, u, v, lam], {"x": dx, "y": dy, "u": du, "v": dv})


def test_structural_index_of_textbook_systems():
    """Index 3 of the pendulum, 2 of its velocity form, 1 with an algebraic variable, 0 of an ordinary equation."""
    assert signature(pendulum_tableau()).index == 3
    assert signature(pendulum_tableau()).freedom == 2
    assert signature(pendulum_tableau()).hidden == {"x'": 1, "y'": 1, "rod": 2}
    x, y, dx = symbols("x y dx")
    assert signature(Tableau({"ode": dx + x}, [x], {"x": dx})).index == 0
    assert signature(Tableau({"ode": dx + x * y, "algebraic": y - x}, [x, y], {"x": dx})).index == 1
    assert signature(implicit_lagrangian(pendulum(), level="velocity")).index == 2
    assert "differentiate 2 time(s): 'rod'" in str(signature(pendulum_tableau()))


@given(st.integers(0, 10_000))
def test_offsets_are_valid_and_tight(seed):
    """d_j - c_i >= s_ij everywhere, equality on the transversal, some c_i = 0."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 6))
    x, dx = ca.SX.sym("x", n), ca.SX.sym("dx", n)
    rows = [
        x[i]
        + ca.dot(x, ca.DM((rng.random(n) < 0.3).astype(float)))
        + ca.dot(dx, ca.DM((rng.random(n) < 0.4).astype(float)))
        for i in range(n)
    ]
    tableau = Tableau({f"e{i}": row for i, row in enumerate(rows)}, {"x": x}, {"x": dx})
    found, orders = signature(tableau), signature_matrix(tableau)
    row = np.repeat(np.arange(n), np.diff(orders.indptr))
    slack = found.unknown_offsets[orders.indices] - found.equation_offsets[row] - orders.data
    assert (slack >= 0).all()
    assert (slack[orders.indices == found.transversal[row]] == 0).all()
    assert found.equation_offsets.min() == 0


@pytest.mark.parametrize("make", [pendulum, slider_crank, bead])
def test_reduced_systems_have_the_accelerations_of_the_block_system(make):
    """Dummy derivatives at a consistent state: the same answer as `Lagrangian.solve`, massless rod included."""
    system = make()
    n = len(system.coordinates)
    q = {"pendulum": [0.6, -0.8], "slider_crank": [0.4, 0.0], "bead": [1.3, 0.0]}[make.__name__]
    q = np.array(q)
    if make is slider_crank:
        q[1] = q[0] + np.arcsin(1.1 * np.sin(q[0]) / 0.8)
    A, rate = system.jacobian(q), system.constraint_velocity(q, np.zeros(n))
    split = connection_split(A)
    v = np.zeros(n)
    v[split.independent] = 0.7
    v[split.dependent] = split.J @ v[split.independent] - np.linalg.solve(A[:, split.dependent], rate)
    assert np.abs(system.constraint_velocity(q, v)).max() < 1e-14
    tableau = implicit_lagrangian(system)
    values = {f"q {c}": q[i] for i, c in enumerate(system.coordinates)}
    values |= {f"v {c}": v[i] for i, c in enumerate(system.coordinates)}
    values |= dict.fromkeys(tableau.known, 0.0)
    reduced = reduce_index(tableau, {**values, "t": 0.0} if tableau.time.numel() else values)
    assert signature(reduced.tableau).index <= 1
    momenta = {f"p {c}": x for c, x in zip(system.coordinates, system.mass_matrix(q) @ v, strict=True)}
    values |= momenta
    at = reduced.tableau.with_known([*reduced.states, *reduced.tableau.known], instant=True)
    guess = [values.get(name, 0.0) for name in at.unknowns]
    found = at.solve({name: values[name] for name in (*reduced.states, *reduced.tableau.known)}, guess=guess)
    solved = system.solve(q, v)
    for i, c in enumerate(system.coordinates):
        assert found[f"v {c}'"] == pytest.approx(solved.acceleration[i], rel=1e-9, abs=1e-9)
    for i, r in enumerate(system.names):
        assert found[f"lam {r}"] == pytest.approx(solved.multipliers[i], rel=1e-9, abs=1e-9)


def test_reduction_refuses_an_index_that_only_looks_right():
    """The highest derivatives cancel: structure says index 1, the numbers say it is not."""
    x, y, dx, dy = symbols("x y dx dy")
    hidden = Tableau({"one": dx + dy + x, "two": dx + dy + y}, [x, y], {"x": dx, "y": dy})
    assert signature(hidden).index == 0
    with pytest.raises(SolvabilityError, match="'one', 'two'"):
        reduce_index(hidden)


def test_split_refuses_what_does_not_determine():
    N = np.array([[1.0, 2.0, 0.0], [0.0, 0.0, 1.0]])
    with pytest.raises(SolvabilityError, match="do not follow"):
        connection_split(N, independent=[2])
    with pytest.raises(ModelError, match="leaves 1 of 3"):
        connection_split(N, independent=[0, 1])
    with pytest.raises(ModelError, match="NaN"):
        connection_split([[np.nan, 1.0]])
    with pytest.raises(ModelError, match="distinct indices"):
        connection_split(N, independent=[7])


def test_split_form_refuses_redundant_rows_and_unknown_names():
    system = pendulum()
    with pytest.raises(ModelError, match="no coordinate is called 'z'"):
        implicit_lagrangian(system, "split", independent=["z"])
    with pytest.raises(ModelError, match="form"):
        implicit_lagrangian(system, "hamiltonian")
    with pytest.raises(ModelError, match="level"):
        implicit_lagrangian(system, level="jerk")
    chosen = implicit_lagrangian(system, "split", configuration=[0.6, 0.8], independent=["x"])
    assert "connection y" in chosen.equations


def test_Y9_graph_has_a_node_for_every_name_and_an_arc_for_every_entry():
    tableau = seed_tableau()
    root = ET.fromstring(tableau.picture())
    space = "{http://www.w3.org/2000/svg}"
    texts = {node.text for node in root.iter(f"{space}text")}
    assert set(tableau.equations) | set(tableau.unknowns) <= texts
    lines = list(root.iter(f"{space}line"))
    assert len(lines) == tableau.pattern.entries
    assert sum("stroke-dasharray" in line.attrib for line in lines) == len(tableau.equations)


def test_matrix_picture_shows_pivots_entries_and_fill():
    plan = make_plan(np.array([[4.0, 1, 1], [1, 4, 0], [1, 0, 4]]))
    root = ET.fromstring(plan.picture())
    hovered = [title.text for title in root.iter("{http://www.w3.org/2000/svg}title")]
    assert len(hovered) == 7 + 7
    assert hovered.count("equation 0, unknown 0") == 2
    assert "graph" in plan.explain() or "solving order" in plan.explain()
    assert ET.fromstring(plan.picture("graph")).tag.endswith("svg")


def test_pictures_that_nobody_can_read_are_refused():
    with pytest.raises(ModelError, match="matrix"):
        newton_euler(stanford_arm(), "products").picture("graph")
    with pytest.raises(ModelError, match="kind"):
        seed_tableau().picture("hologram")
