"""Newton's method on a tableau: what is no answer is NaN with its reason, by name; conditions; starts and probes."""

import casadi as ca
import numpy as np
import pytest

import dalembert as da
from dalembert.errors import ModelError, SolvabilityError
from dalembert.model import Placement
from dalembert.status import Status
from dalembert.tableau import Tableau, body_positions, maximal, newton_euler, reduce_index, redundant_rows, without_rows

x, y, u, w = (ca.SX.sym(name) for name in "xyuw")


def arm() -> Tableau:
    """Velocities of a planar arm of two links for a given velocity of its tip: singular where it is stretched."""
    q1, q2, v1, v2, a, b = (ca.SX.sym(name) for name in ("q1", "q2", "v1", "v2", "a", "b"))
    rows = {
        "tip x": -ca.sin(q1) * v1 - ca.sin(q1 + q2) * (v1 + v2) - a,
        "tip y": ca.cos(q1) * v1 + ca.cos(q1 + q2) * (v1 + v2) - b,
    }
    return Tableau(rows, [q1, q2, v1, v2, a, b], known=["q1", "q2", "a", "b"])


def test_samples_without_an_answer_are_marked_alone():
    """NaN, singular and sound samples in one batch; the Jacobian of the arm is its oracle."""
    q2 = np.array([0.5, np.nan, 0.0, 1.0])
    found = arm().solve({"q1": 0.3, "q2": q2, "a": 1.0, "b": 2.0})
    ends = [Status.CONVERGED, Status.NONFINITE, Status.SINGULAR, Status.CONVERGED]
    assert found.status.tolist() == ends
    assert np.isnan(found.x[[1, 2]]).all()
    for k in (0, 3):
        s, c = np.sin([0.3, 0.3 + q2[k]]), np.cos([0.3, 0.3 + q2[k]])
        exact = np.linalg.solve([[-s.sum(), -s[1]], [c.sum(), c[1]]], [1.0, 2.0])
        np.testing.assert_allclose(found.x[k], exact, rtol=1e-12)
    assert np.isfinite(found.error[[0, 3]]).all()
    assert "2 CONVERGED, 1 SINGULAR, 1 NONFINITE" in str(found)


@pytest.mark.parametrize(("q1", "q2"), [(0.3, 0.0), (0.3, np.pi), (np.pi / 2, 0.0), (np.pi / 2, np.pi), (0.0, 0.0)])
def test_singular_configurations_are_named(q1, q2):
    """Stretched and folded: exact zeros, rounding in place of zero, and rows that are dependent."""
    tableau = arm()
    assert not tableau.rank(values={"q1": q1, "q2": q2}).full
    with pytest.raises(SolvabilityError, match=r"singular.*'tip [xy]'.*'v[12]'"):
        tableau.solve({"q1": q1, "q2": q2, "a": 1.0, "b": 2.0})


@pytest.mark.parametrize("gap", [1e-3, 1e-6, 1e-9])
def test_near_singular_configurations_are_solved_and_say_how_well(gap):
    """v = (b c12 + a s12 ...) / sin(gap): digits are lost in proportion, and `error` tells."""
    found = arm().solve({"q1": 0.3, "q2": gap, "a": 1.0, "b": 2.0})
    s, c = np.sin(0.3 + gap), np.cos(0.3 + gap)
    exact = (c * 1.0 + s * 2.0) / np.sin(gap)
    off = abs(found["v1"] - exact)
    assert off <= max(10 * found.error[0], 1e-9 * abs(exact))
    assert 1e-18 / gap <= found.error[0] / abs(exact) <= 1e-13 / gap


def test_coefficients_that_all_but_vanish_are_said():
    tableau = Tableau({"drive": ca.cos(u) * x - w, "copy": y - x}, [x, y, u, w], known=["u", "w"])
    assert tableau.solve({"u": 1.0, "w": 1.0}).vanishing == ()
    assert tableau.solve({"u": np.pi / 2, "w": 1.0}).vanishing == ("drive",)
    assert not tableau.rank(values={"u": np.pi / 2}).full
    folded = {"q1": 0.0, "q2": np.pi}
    assert not arm().rank(values=folded).full
    assert arm().solve({**folded, "a": 1.0, "b": 2.0}).vanishing == ("tip x", "v1")


def test_messages_of_newton_name_equations_and_unknowns():
    circle = Tableau({"circle": x**2 + y**2 - 1, "line": x + y - u}, [x, y, u], known=["u"])
    with pytest.raises(SolvabilityError, match=r"singular matrix at iteration 1.*'circle'.*'x', 'y'"):
        circle.solve({"u": 1.0})
    with pytest.raises(SolvabilityError, match=r"did not converge in 7 iterations.*'circle'.*largest steps: '[xy]'"):
        circle.solve({"u": 5.0}, guess=[1.0, 2.0], limit=7)
    root = Tableau({"root": ca.sqrt(x) - u}, [x, u], known=["u"])
    with pytest.raises(SolvabilityError, match=r"NaN or infinity in equation\(s\) 'root'"):
        root.solve({"u": 0.5}, guess=1.0)
    assert np.isnan(root.solve({"u": [0.5, 1.5]}, guess=1.0).x).tolist() == [[True], [False]]


def test_conditions_on_known_data_are_checked_and_said():
    tableau = Tableau({"rule": u - 1, "copy": x - u}, [x, u], known=["u"])
    assert "fulfilled: 'rule'" in str(tableau.solve({"u": 1.0}))
    with pytest.raises(SolvabilityError, match=r"contradict.*'rule' by 5\.0e-01"):
        tableau.solve({"u": 2.0})
    many = tableau.solve({"u": [1.0, 2.0]})
    assert many.status.tolist() == [Status.CONVERGED, Status.INCONSISTENT]
    assert many.conditions["rule"].tolist() == [0.0, 0.5]
    assert tableau.solve({"u": 2.0}, conditions=False)["x"] == 2.0


def test_several_guesses_find_several_solutions():
    tableau = Tableau({"square": x**2 - u, "copy": y - x}, [x, y, u], known=["u"])
    found = tableau.solve({"u": 4.0}, guess=[[1.0, 0.0], [-1.0, 0.0], [9.0, 0.0]])
    np.testing.assert_allclose(found.x, [[2, 2], [-2, -2], [2, 2]], rtol=1e-12)


def test_small_unknowns_are_found_to_all_digits():
    """1 is no scale: the root is 1e-15."""
    assert Tableau({"square": x**2 - 1e-30}, [x]).solve({}, guess=1e-10)["x"] == pytest.approx(1e-15, rel=1e-9)


def test_pivots_are_probed_where_the_user_says():
    """log is finite at few random points, the root of x - 10 at none."""
    log = Tableau({"log": ca.log(x) - u}, [x, u], known=["u"])
    assert log.solve({"u": 1.0}, guess=2.0)["x"] == pytest.approx(np.e)
    far = Tableau({"far": ca.sqrt(x - 10) - u}, [x, u], known=["u"])
    with pytest.raises(ModelError, match="finite"):
        far.solve({"u": 1.0}, guess=12.0)
    assert far.solve({"u": 1.0}, guess=12.0, values={"x": 12.0})["x"] == pytest.approx(11.0)
    with pytest.raises(ModelError, match="values= or newton="):
        far.solve({"u": 1.0}, newton=far.newton({"x": 12.0}), values={"x": 12.0})


def test_index_reduction_is_the_same_in_any_units():
    """Rows of the pendulum times 1e12 and 1e-3."""
    names = ("x", "y", "a", "b", "lam")
    q = dict(zip(names, (ca.SX.sym(n) for n in names), strict=True))
    rates = {n: ca.SX.sym(f"d{n}") for n in names[:4]}
    for big, small in ((1.0, 1.0), (1e12, 1e-3), (1e-12, 1e9)):
        rows = {
            "rx": rates["x"] - q["a"],
            "ry": rates["y"] - q["b"],
            "fx": big * (rates["a"] + q["lam"] * q["x"]),
            "fy": rates["b"] + q["lam"] * q["y"] + 9.81,
            "rod": small * (q["x"] ** 2 + q["y"] ** 2 - 1),
        }
        reduced = reduce_index(Tableau(rows, q, rates), {"x": 0.6, "y": -0.8})
        assert len(reduced.states) == 2
        assert set(reduced.states) == {"x", "x'"} or set(reduced.states) == {"x", "a"}
        with pytest.raises(SolvabilityError, match="'rod'"):
            reduce_index(Tableau(rows, q, rates), {"x": 0.0, "y": 0.0})


def four_bar(axis, turned: np.ndarray) -> da.Mechanism:
    """A planar four-bar linkage whose plane is turned in space."""
    b = da.Builder("four-bar")
    at = [turned @ np.array([length, 0.0, 0.0]) for length in (0.0, 1.0, 1.2, 0.9, 2.0)]
    for i, name in enumerate("abc"):
        b.body(name, mass=1.0, center=at[i + 1] / 2, inertia=(0.1, 0.1, 0.1))
        b.joint(f"j{i}", "revolute", parent="abc"[i - 1] if i else "world", child=name, axis=axis, position=at[i])
    b.loop("pin", "revolute", "c", "world", Placement(np.eye(3), at[3]), Placement(np.eye(3), at[4]), axis=axis)
    return b.build()


TURNS = {
    "flat": ((0.0, 0.0, 1.0), np.eye(3)),
    "turned": ((0.0, -0.6, 0.8), np.array([[1.0, 0.0, 0.0], [0.0, 0.8, 0.6], [0.0, -0.6, 0.8]])),
}


@pytest.mark.parametrize("kind", TURNS)
def test_planar_loops_in_joint_coordinates(kind):
    """Rows 0 = 0 are left out, rows that follow from others are named; accelerations are those of the mechanism."""
    mechanism = four_bar(*TURNS[kind])
    q, v = mechanism.project(np.array([1.0, -0.8, -1.2]), np.array([1.0, 0.0, 0.0]))
    tau = np.array([1.0, 0.5, 0.0])
    forward = newton_euler(mechanism).with_known(["q", "qd", "tau"])
    rows = redundant_rows(forward, {"q": q})
    assert redundant_rows(newton_euler(mechanism), {"q": q}) == rows
    lean = without_rows(forward, rows)
    assert len([name for name in lean.equations if name.startswith("row ")]) == 2
    a = mechanism.forward(q, v, tau).acceleration
    found = lean.solve({"q": q, "qd": v, "tau": tau})
    np.testing.assert_allclose(found["qdd"], a, rtol=1e-9, atol=1e-9)
    inverse = newton_euler(mechanism)
    multipliers = {name: 0.0 for name in inverse.known if name.startswith("lam ")}
    inverse.solve({"q": q, "qd": v, "qdd": a, **multipliers})
    with pytest.raises(SolvabilityError, match=r"contradict.*'row loop pin"):
        inverse.solve({"q": q, "qd": v, "qdd": a + np.array([1.0, 0.0, 0.0]), **multipliers})


@pytest.mark.parametrize("kind", TURNS)
def test_the_recipe_for_redundant_rows_takes_positions_as_they_come(kind):
    mechanism = four_bar(*TURNS[kind])
    q, _ = mechanism.project(np.array([1.0, -0.8, -1.2]), np.array([1.0, 0.0, 0.0]))
    tableau = maximal(mechanism)
    rows = redundant_rows(tableau, body_positions(mechanism, q))
    assert len(rows) == 3
    assert not redundant_rows(without_rows(tableau, rows), body_positions(mechanism, q))
    with pytest.raises(ModelError, match="'q j9'"):
        redundant_rows(tableau, {**body_positions(mechanism, q), "q j9": 1.0})


def test_parts_that_can_never_meet_are_refused():
    b = da.Builder("apart")
    b.body("rod", mass=1.0, inertia=(0.1, 0.1, 0.1))
    b.joint("hinge", "revolute", parent="world", child="rod", axis=(0, 0, 1))
    b.loop("pin", "revolute", "rod", "world", (1.0, 0, 0), (1.0, 0, 0.5), axis=(0, 0, 1))
    with pytest.raises(ModelError, match=r"'loop pin z' is 0\.5 = 0 in every configuration"):
        newton_euler(b.build())


def test_messages_name_what_was_given_and_what_vanishes():
    with pytest.raises(SolvabilityError, match="is given for known 'u'"):
        Tableau({"a": x + y - u, "b": x - y}, [x, y, u], known=["u"]).solve({"u": np.nan})
    with pytest.raises(SolvabilityError, match="all coefficients of equation 'a' vanish, and 'x' is not determined"):
        Tableau({"a": x**2 + 1}, [x]).solve({})
