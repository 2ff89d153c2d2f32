"""Inputs at their limits: jumps, ranges of tables, numbers of every kind, events at the start and of what is known."""

import os
import signal
import threading
from fractions import Fraction

import casadi as ca
import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.interpolate import PPoly

import dalembert as da
from dalembert.simulate import FORMULATIONS, Event, Problem, Table, integrate
from dalembert.simulate.settings import IMPLICIT as METHODS

T, Q, V, U = ca.SX.sym("t"), ca.SX.sym("q", 2), ca.SX.sym("v", 2), ca.SX.sym("u")
START = [np.sin(0.5), -np.cos(0.5)]
TOL = {"rtol": 1e-8, "atol": 1e-8}


def pendulum(**more):
    rows = {"rod": ca.sumsqr(Q) - 1, **more}
    return da.Lagrangian(
        Q,
        V,
        kinetic=ca.sumsqr(V) / 2,
        potential=9.81 * Q[1],
        forces=ca.vertcat(U, 0),
        controls=U,
        constraints=rows,
        coordinates=["x", "y"],
    )


JUMPS = {
    "right continuous": lambda t: 5.0 if t >= 1.0 else 0.0,
    "left continuous": lambda t: 5.0 if t > 1.0 else 0.0,
    "expression": ca.if_else(T >= 1, 5.0, 0.0),
    "held": Table([0, 1, 2], [0, 5, 5], "previous"),
    "ppoly": PPoly(np.array([[0.0, 5.0]]), np.array([0.0, 1, 2])),
}


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("kind", JUMPS)
def test_at_a_declared_jump_inputs_have_their_limits_from_both_sides(kind, method):
    """The tension before and behind the jump is that of the force before and behind it, forward and backward."""
    problem = Problem(pendulum(), known={"u": JUMPS[kind]}, time=T)
    run = problem.integrate((0, 2), START, stop_times=[1.0], method=method, **TOL)
    (k,) = np.flatnonzero(np.diff(run.t) == 0)
    for row, force in ((k, 0.0), (k + 1, 5.0)):
        x, y, vx, vy = run.y[:4, row]
        tension = (vx**2 + vy**2 - 9.81 * y + force * x) / 2
        assert run.y[4, row] == pytest.approx(tension, abs=1e-5)
        assert run["lam[rod]"][row] == pytest.approx(tension, abs=1e-9)
        assert run["u"][row] == force
    back = problem.integrate((2, 0), run.y[:2, -1], run.y[2:4, -1], stop_times=[1.0], method=method, **TOL)
    np.testing.assert_allclose(back.y[:2, -1], START, atol=1e-6)


def test_tables_are_not_continued_silently():
    table = Table([0, 1], [0.0, 1.0], "linear")
    for span in ((0, 2), (-1, 1), (2, 0)):
        with pytest.raises(da.ModelError, match=r"'u' is a table from t = 0 to 1; the run goes from"):
            integrate(pendulum(), span, START, known={"u": table})
        with pytest.raises(da.ModelError, match="extrapolate=True"):
            Problem(pendulum(), known={"u": table}).integrate_many(span, [START])
    beyond = Table([0, 1], [0.0, 1.0], "linear", extrapolate=True)
    twin = integrate(pendulum(), (0, 2), START, known={"u": T}, time=T, **TOL)
    run = integrate(pendulum(), (0, 2), START, known={"u": beyond}, **TOL)
    assert run["x"][-1] == pytest.approx(twin["x"][-1], abs=1e-6)
    held = integrate(pendulum(), (0, 3), START, known={"u": Table([0, 1], [0.0, 1.0], "previous")})
    assert held.success
    assert held["u"][-1] == 1.0


@pytest.mark.parametrize(
    "number", [ca.SX(0.5), ca.DM(0.5), np.array(0.5), np.array([0.5]), Fraction(1, 2), np.float32(0.5)]
)
def test_numbers_of_every_kind_are_known(number):
    assert integrate(pendulum(), (0, 0.1), START, known={"u": number})["u"][-1] == 0.5


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"known": {"u": np.nan}}, "finite number"),
        ({"known": {"u": ca.DM([1, 2])}}, "known 'u' is DM"),
        ({"known": {"u": Table(["a", "b"], [1, 2])}}, "times of a table"),
        ({"known": {"u": lambda t: 1 / 0}}, "known u raised ZeroDivisionError at t = 0"),
        ({"events": Event(Q[0], "yes")}, "terminal='yes'"),
        ({"events": Event(Q[0], True, "up")}, "direction='up'"),
        ({"events": Event("text")}, "not str"),
        ({"events": ca.SX.sym("z")}, "what is known and time; it has z"),
        ({"method": ["bdf"]}, "is not one of"),
        ({"formulation": ["index3"]}, "is not one of"),
    ],
)
def test_misuse_is_told_in_our_words(options, words):
    with pytest.raises(da.DalembertError, match=words):
        integrate(pendulum(), (0, 1), START, **options)


@pytest.mark.parametrize("method", METHODS)
def test_a_zero_at_the_start_counts_as_in_scipy(method):
    """In the direction in which the function leaves zero; a terminal one ends the run where it began."""

    def run(event):
        return integrate(pendulum(), (0, 1), START, events=event, method=method)

    found = run([Event(V[0]), Event(V[0], direction=1), Event(V[0], direction=-1), Event(0 * V[0])])
    twin = solve_ivp(
        lambda t, y: [y[1], -9.81 * np.sin(y[0])], (0, 1), [0.5, 0.0], events=lambda t, y: y[1] * np.cos(y[0])
    )
    assert [len(t) for t in found.t_events] == [len(twin.t_events[0]), 0, 1, 0] == [1, 0, 1, 0]
    assert found.t_events[0][0] == 0.0
    ended = run(Event(V[0], terminal=True))
    assert (ended.status, ended.t.tolist()) == (1, [0.0])
    assert np.isfinite(ended.sol(0.0)).all()
    passed = run(Event(V[0], terminal=True, direction=1))
    assert passed.status == 0
    known = integrate(pendulum(), (0, 1), START, known={"u": T}, time=T, events=[U - 0.25, T - 0.5], method=method)
    np.testing.assert_allclose(np.concatenate(known.t_events), [0.25, 0.5], atol=1e-9)


@pytest.mark.parametrize("method", METHODS)
def test_a_zero_at_a_jump_is_counted_once(method):
    """Of time at a jump, and at the end; of an input that jumps through zero; a terminal one stops there."""
    events = [T - 1.0, U - 2.5, 2.0 - T]
    options = {"time": T, "known": {"u": JUMPS["held"]}, "stop_times": [1.0, 2.0], "method": method}
    run = integrate(pendulum(), (0, 2), START, events=events, **options)
    assert [t.tolist() for t in run.t_events] == [[1.0], [1.0], [2.0]]
    stopped = integrate(pendulum(), (0, 2), START, events=[Event(U - 2.5, terminal=True)], **options)
    assert (stopped.status, stopped.t[-1]) == (1, 1.0)
    assert np.isfinite(stopped.sol([0.5, 1.0])).all()


@pytest.mark.parametrize("method", ["bdf", "radau"])
def test_projection_takes_redundant_rows_and_known_coordinates(method):
    twin = integrate(pendulum(), (0, 2), START, **TOL)
    run = integrate(pendulum(more=2 * ca.sumsqr(Q) - 2), (0, 2), START, formulation="projection", method=method, **TOL)
    assert run["x"][-1] == pytest.approx(twin["x"][-1], abs=1e-6)
    assert abs(run["x"] ** 2 + run["y"] ** 2 - 1).max() < 1e-12
    assert 2 * run["lam[rod]"][-1] == pytest.approx(run["lam[more]"][-1], abs=1e-9)
    known = {"x": 0.5 + 0.2 * ca.sin(T)}
    runs = [integrate(pendulum(), (0, 1), START, known=known, time=T, formulation=f, **TOL) for f in FORMULATIONS]
    for each in runs:
        assert each["u"][-1] == pytest.approx(runs[0]["u"][-1], abs=1e-5)


def test_torques_and_multipliers_are_as_good_as_the_motion():
    """The closed form of inverse dynamics, at every step, the first ones included; in every form."""
    for formulation in FORMULATIONS:
        run = integrate(
            pendulum(), (0, 1), START, known={"x": 0.5 + 0.2 * ca.sin(T)}, time=T, formulation=formulation, **TOL
        )
        x, dx, ddx = 0.5 + 0.2 * np.sin(run.t), 0.2 * np.cos(run.t), -0.2 * np.sin(run.t)
        y = -np.sqrt(1 - x**2)
        dy = -x * dx / y
        ddy = -(dx**2 + x * ddx + dy**2) / y
        lam = -(ddy + 9.81) / (2 * y)
        loose = 100 if formulation in ("index3", "index2", "index1") else 1
        assert np.abs(run["lam[rod]"] - lam).max() < loose * 1e-6
        assert np.abs(run["u"] - ddx - 2 * x * lam).max() < loose * 1e-6


@pytest.mark.parametrize("links", [12, 60])
def test_projection_of_a_long_chain_is_looped(links):
    """A chain of points: the matrix of the projection has 3 rows a link."""
    q, v = ca.SX.sym("q", 2 * links), ca.SX.sym("v", 2 * links)
    ends = [ca.SX.zeros(2), *(q[2 * i : 2 * i + 2] for i in range(links))]
    rows = {f"r{i}": (ca.sumsqr(ends[i + 1] - ends[i]) - 1) / 2 for i in range(links)}
    chain = da.Lagrangian(q, v, kinetic=ca.sumsqr(v) / 2, potential=9.81 * ca.sum1(q[1::2]), constraints=rows)
    start = np.cumsum(np.tile([np.sin(0.3), -np.cos(0.3)], (links, 1)), axis=0).ravel()
    run = integrate(chain, (0, 0.05), start, formulation="projection", rtol=1e-6, atol=1e-6)
    twin = integrate(chain, (0, 0.05), start, rtol=1e-6, atol=1e-6)
    assert np.abs(chain.constraint(run.y[: 2 * links].T)).max() < 1e-12
    assert np.abs(run.y[: 2 * links, -1] - twin.y[: 2 * links, -1]).max() < 1e-4


def test_ctrl_c_ends_a_batch_and_keeps_its_results():
    problem = Problem(pendulum())
    problem.integrate((0, 0.1), START)
    threading.Timer(0.4, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
    found = problem.integrate_many((0, 2000.0), np.tile(START, (20, 1)), threads=2, **TOL)
    told = [run.message for run in found]
    assert len(found) == 20
    ended = sum("interrupted from the keyboard at t" in text for text in told)
    assert ended <= 2
    assert ended + sum("before it began" in text for text in told) >= 10
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    assert problem.integrate_many((0, 1), []) == problem.integrate_many((0, 1), np.zeros((0, 2))) == []
