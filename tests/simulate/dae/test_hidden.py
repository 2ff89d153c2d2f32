"""Starts of general DAEs: hidden constraints found by structure, named, repaired with least change, or refused."""

import casadi as ca
import numpy as np
import pytest

import dalembert as da
from dalembert.simulate import Problem, Table, from_expressions, integrate
from dalembert.simulate.settings import IMPLICIT as METHODS

X, R, T, S = ca.SX.sym("x", 5), ca.SX.sym("r", 5), ca.SX.sym("t"), ca.SX.sym("s")
UP = [np.sin(0.5), -np.cos(0.5)]


def pendulum(length=1.0, **more):
    """Index 3, written by hand: positions, velocities, tension."""
    rows = [R[0] - X[2], R[1] - X[3], R[2] + 2 * X[0] * X[4], R[3] + 9.81 + 2 * X[1] * X[4]]
    rows.append(X[0] ** 2 + X[1] ** 2 - length**2)
    names = ["x", "y", "vx", "vy", "l"]
    return from_expressions(X, R, rows, unknowns=names, equations=[*names[:4], "rod"], **more)


def test_structure_says_what_index_each_unknown_has():
    assert pendulum().power.tolist() == [0, 0, 1, 1, 2]
    assert pendulum().tested.tolist() == [True, True, True, True, False]
    assert pendulum(index={"l": 3}).power.tolist() == [0, 0, 0, 0, 2]


@pytest.mark.parametrize(
    ("given", "violated", "fixed"),
    [
        ([*UP, 0, 0, 0], [], [0, 1, 2, 3]),
        ([*UP, 1, 1, 0], ["rate of rod (hidden)"], [0, 1]),
        ([2.0, 0, 0, 1, 0], ["rod"], [1, 2, 3]),
        ([0.5, -0.8, 0.3, 0, 0], ["rod", "rate of rod (hidden)"], []),
    ],
)
def test_hidden_constraints_are_named_and_repaired(given, violated, fixed):
    """x x' + y y' = 0 and its rate are nowhere in the equations; positions move only where they must."""
    run = Problem(pendulum()).integrate((0, 0.1), given, rtol=1e-8, atol=1e-8)
    x, y, vx, vy, lam = run.y[:, 0]
    assert run.success, run.message
    assert set(run.start.violated) == set(violated)
    assert run.start.hidden == ("rate of rod (hidden)", "second rate of rod (hidden)")
    assert abs(x**2 + y**2 - 1) < 1e-9
    assert abs(x * vx + y * vy) < 1e-9
    assert 2 * lam == pytest.approx(vx**2 + vy**2 - 9.81 * y, abs=1e-7)  # the second rate: the tension
    np.testing.assert_allclose(run.y[fixed, 0], np.array(given)[fixed], atol=1e-5)
    assert abs(run["x"] ** 2 + run["y"] ** 2 - 1).max() < 1e-7


def test_what_is_held_and_does_not_fit_is_refused_by_name():
    with pytest.raises(da.SolvabilityError, match=r"rate of rod \(hidden\).*held \(x, y, vx, vy\)"):
        integrate(pendulum(), (0, 1), [*UP, 1, 1, 0], hold=["x", "y", "vx", "vy"])
    with pytest.raises(da.ModelError, match="no unknown is called 'z'"):
        integrate(pendulum(), (0, 1), [*UP, 1, 1, 0], hold=["z"])
    x, r = ca.SX.sym("x", 2), ca.SX.sym("r", 2)
    never = from_expressions(x, r, [r[0] + x[1], x[0] ** 2 + 1], equations=["rate", "never"])
    with pytest.raises(da.SolvabilityError, match="never"):
        integrate(never, (0, 1), [2.0, 0.0])


@pytest.mark.parametrize("kind", ["expression", "table", "callable"])
def test_inputs_in_constraints_are_differentiated_or_the_report_says_not(kind):
    """x = s(t), x' = y: y is known by the rate of the input alone."""
    x, r = ca.SX.sym("x", 2), ca.SX.sym("r", 2)
    dae = from_expressions(x, r, [r[0] - x[1], x[0] - S], time=T, signals=S)
    times = np.linspace(-0.1, 1.1, 400)
    known = {"expression": ca.sin(3 * T), "table": Table(times, np.sin(3 * times)), "callable": lambda t: np.sin(3 * t)}
    run = integrate(dae, (0, 1), [0.3, 0.0], known={"s": known[kind]}, rtol=1e-8, atol=1e-8)
    if kind == "callable":
        assert "no derivatives" in run.start.unchecked
        assert "not checked" in str(run.start)
    else:
        assert run.start.violated
        np.testing.assert_allclose(run.y[:, 0], [0.0, 3.0], atol=1e-6)
    assert run.y[1, -1] == pytest.approx(3 * np.cos(3.0), abs=1e-4)


@pytest.mark.parametrize("method", METHODS)
def test_one_unknown(method):
    x, r = ca.SX.sym("x"), ca.SX.sym("r")
    run = integrate(from_expressions(x, r, r + x), (0, 2), [1.0], method=method)
    assert run.y[0, -1] == pytest.approx(np.exp(-2), abs=1e-5)


def test_signals_of_a_dae_are_given_by_name():
    x, r = ca.SX.sym("x", 2), ca.SX.sym("r", 2)
    dae = from_expressions(x, r, [r[0] + x[0] - S, x[1] - x[0] ** 2], time=T, signals=S)
    assert integrate(dae, (0, 1), [1.0, 1.0], known={"s": 1.0}).y[0, -1] == pytest.approx(1.0, abs=1e-6)
    for known, words in [({}, "missing are s"), ({"s": 1, "z": 2}, "no signal is called z"), ([1], "known is a list")]:
        with pytest.raises(da.ModelError, match=words):
            Problem(dae, known=known)
    with pytest.raises(da.ModelError, match="as it is written"):
        Problem(dae, known={"s": 1.0}, formulation="index3")
    for bad in ({"x": 3}, {"x": x, "rates": "no"}):
        with pytest.raises(da.ModelError):
            from_expressions(**({"x": x, "rates": r, "residual": x} | bad))
