"""The steppers: against IDA and SciPy, compiled against plain; events, dense output, ensembles, what may go wrong."""

import os
import signal
import subprocess
import sys
import textwrap
import threading
from functools import cache
from importlib.util import find_spec

import casadi as ca
import numpy as np
import pytest
from benchmarks.dae_problems import PROBLEMS
from scipy.integrate import solve_ivp

import dalembert as da
from dalembert.errors import ModelError, ShapeError, UnsupportedError
from dalembert.simulate import Event, Problem, from_expressions, integrate
from dalembert.simulate.settings import IMPLICIT as METHODS
from dalembert.simulate.steppers.radau import radau

NO_IDA = find_spec("sksundae") is None
PERIOD = 2.367841947576237449303295


@cache
def pendulum():
    return PROBLEMS["pendulum"].build()


def swing(t_end=1.0, **options):
    return integrate(pendulum(), (0, t_end), [-1.0, 0.0], [0.0, 0.0], **options)


def ode(rate, x0, t_end=1.0, events=(), **options):
    """Integrate x' = rate(t, x)."""
    x, r, t = ca.SX.sym("x", len(x0)), ca.SX.sym("r", len(x0)), ca.SX.sym("t")
    dae = from_expressions(x, r, ca.vertcat(*ca.vertsplit(r)) - rate(t, x), time=t)
    return Problem(dae, events=events(x) if callable(events) else events).integrate((0, t_end), x0, **options)


@pytest.mark.parametrize("method", METHODS)
def test_steppers_agree_with_scipy_on_robertsons_kinetics(method):
    """A stiff standard, to t = 40: each method against SciPy's Radau on the ODE."""
    if method == "ida":
        pytest.importorskip("sksundae")

    def rate(t, x):
        slow, fast = 0.04 * x[0] - 1e4 * x[1] * x[2], 3e7 * x[1] ** 2
        return ca.vertcat(-slow, slow - fast, fast)

    run = ode(rate, [1.0, 0.0, 0.0], 40.0, rtol=1e-7, atol=1e-10, method=method)
    twin = solve_ivp(
        lambda t, x: [
            -0.04 * x[0] + 1e4 * x[1] * x[2],
            0.04 * x[0] - 1e4 * x[1] * x[2] - 3e7 * x[1] ** 2,
            3e7 * x[1] ** 2,
        ],
        (0, 40),
        [1.0, 0.0, 0.0],
        method="Radau",
        rtol=1e-10,
        atol=1e-13,
    )
    assert run.success
    assert run.y[:, -1] == pytest.approx(twin.y[:, -1], rel=2e-5)


@pytest.mark.parametrize("formulation", ["stabilised", "index2", "index1"])
def test_own_stepper_agrees_with_ida(formulation):
    pytest.importorskip("sksundae")
    options = {"formulation": formulation, "rtol": 1e-8, "atol": 1e-8}
    own, other = swing(2.0, **options), swing(2.0, method="ida", **options)
    assert own.success
    assert other.success
    assert np.abs(own.y[:4, -1] - other.y[:4, -1]).max() < 1e-5
    assert own["lam[rod]"][-1] == pytest.approx(other["lam[rod]"][-1], rel=1e-4)


def test_compiled_loop_equals_its_plain_twin():
    """The same source, interpreted: every step, order and number agree."""
    code = """
        import numpy as np
        from benchmarks.dae_problems.pendulums import system
        from dalembert.simulate import Problem, Event
        s = system()
        problem = Problem(s, events=[Event(s.symbols.q[0])])
        for method in ("bdf", "radau"):
            r = problem.integrate((0, 0.3), [-1.0, 0.0], rtol=1e-6, atol=1e-6, method=method)
            print(r.statistics.steps, r.statistics.newton_iterations, *(float(x).hex() for x in r.y[:, -1]))
    """
    outputs = []
    for disable in ("0", "1"):
        environment = {**os.environ, "NUMBA_DISABLE_JIT": disable}
        command = [sys.executable, "-c", textwrap.dedent(code)]
        outputs.append(
            subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout.split()
        )
    compiled, plain = outputs
    assert len(compiled) == len(plain) == 16
    for a, b in zip(compiled, plain, strict=True):
        if "x" in a:
            assert float.fromhex(a) == pytest.approx(float.fromhex(b), rel=1e-11, abs=1e-12)
        else:
            assert a == b


def test_orders_rise_to_what_is_allowed_and_no_further():
    for top in (1, 3, 6):
        run = swing(rtol=1e-6, atol=1e-6, max_order=top)
        assert run.success
        assert max(run.statistics.orders) <= top
    assert max(swing(rtol=1e-9, atol=1e-9).statistics.orders) == 5


def test_radau_coefficients_are_those_of_the_method():
    """Row sums, quadrature of degree 4, and the eigenvalues of Hairer & Wanner II, p. 121."""
    r = radau()
    A = np.linalg.inv(r.W)
    assert A.sum(axis=1) == pytest.approx(r.c)
    assert [A[2] @ r.c**p for p in range(5)] == pytest.approx([1 / (p + 1) for p in range(5)])
    block = np.zeros((3, 3))
    block[0, 0], block[1:, 1:] = r.gamma, [[r.a, -r.b], [r.b, r.a]]
    assert r.T @ block @ r.T_inverse == pytest.approx(r.W, abs=1e-12)
    assert (r.gamma, r.a, r.b) == pytest.approx((3.6378342527, 2.6810828736, 3.0504301992))


EVERY_METHOD = pytest.mark.parametrize(
    "method",
    [m if m != "ida" else pytest.param(m, marks=pytest.mark.skipif(NO_IDA, reason="extra sundials")) for m in METHODS],
)
"""Events, stop times and dense output are one contract."""


@EVERY_METHOD
def test_dense_output_is_as_good_as_the_steps(method):
    """Interpolation adds at most five tolerances to the errors of the steps."""
    run = swing(PERIOD, rtol=1e-9, atol=1e-9, method=method)
    at = np.linspace(0, PERIOD, 333)
    fine = swing(PERIOD, rtol=1e-12, atol=1e-12)
    at_steps = np.abs(run.y[:2] - fine.sol(run.t)[:2]).max()
    assert np.abs(run.sol(at)[:2] - fine.sol(at)[:2]).max() < at_steps + 5 * 1e-9
    assert run.sol(run.t[7]) == pytest.approx(run.y[:, 7], abs=1e-12)
    assert run.sol(0.1).shape == (len(run.names),)
    half = swing(PERIOD, rtol=1e-9, atol=1e-9, method=method, t_eval=[0.0, 0.5])
    assert half.y == pytest.approx(run.sol([0.0, 0.5]), abs=1e-12)
    assert half.rates[:2] == pytest.approx(half.y[2:4], abs=1e-6)


@EVERY_METHOD
def test_events_are_located_counted_and_filtered(method):
    s = pendulum()
    problem = Problem(
        s, events=[Event(s.symbols.q[0], terminal=3, direction=1), Event(s.symbols.q[0]), Event(s.symbols.v[1])]
    )
    run = problem.integrate((0, 10), [-1.0, 0.0], rtol=1e-10, atol=1e-10, method=method)
    assert run.status == 1
    assert run.t_events[0] == pytest.approx(PERIOD * (np.arange(3) + 0.25), abs=1e-7)
    assert run.t_events[1] == pytest.approx(PERIOD * (np.arange(5) / 2 + 0.25), abs=1e-7)
    # the vertical speed is zero at the start, which counts as in SciPy, at the lowest and at the turning points
    assert run.t_events[2][:8] == pytest.approx(PERIOD * np.arange(8) / 4, abs=1e-6)
    assert run.t[-1] == run.t_events[0][-1]
    assert run["x"][-1] == pytest.approx(0.0, abs=1e-12)
    assert run.y_events[1].shape == (5, len(run.names))
    again = problem.integrate((0, 1), [-1.0, 0.0], rtol=1e-8, method=method)
    assert again.status == 0
    assert len(again.t_events[0]) == 1


@EVERY_METHOD
def test_events_may_be_callables(method):
    def low(t, x):
        return x[1] + 0.5

    low.terminal, low.direction = True, -1.0
    run = integrate(pendulum(), (0, 10), [-1.0, 0.0], events=low, rtol=1e-9, atol=1e-9, method=method)
    assert run.status == 1
    assert run["y"][-1] == pytest.approx(-0.5, abs=1e-9)
    assert "event" in run.message


@EVERY_METHOD
def test_backwards_in_time_returns_to_the_start(method):
    ahead = swing(1.0, rtol=1e-10, atol=1e-10, method=method)
    back = integrate(pendulum(), (1, 0), ahead.y[:2, -1], ahead.y[2:4, -1], rtol=1e-10, atol=1e-10, method=method)
    assert back.t[-1] == 0.0
    assert back.y[:4, -1] == pytest.approx([-1, 0, 0, 0], abs=1e-7)
    assert back.sol(0.5) == pytest.approx(ahead.sol(0.5), abs=1e-5)


@EVERY_METHOD
def test_horizon_of_no_length_returns_the_start(method):
    run = integrate(pendulum(), (3, 3), [-1.0, 0.0], method=method)
    assert run.success
    assert run.t.tolist() == [3.0]
    assert run["lam[rod]"][0] == pytest.approx(0.0, abs=1e-12)
    assert run.sol(3.0).shape == (len(run.names),)


@EVERY_METHOD
def test_maximum_step_stop_times_and_first_step_are_kept(method):
    run = swing(1.0, rtol=1e-3, atol=1e-3, max_step=0.01, stop_times=[0.333], first_step=1e-5, method=method)
    assert np.diff(run.t).max() <= 0.01 * (1 + 1e-12)
    assert 0.333 in run.t
    assert run.t[1] == pytest.approx(1e-5)
    assert run.statistics.restarts == 1


def test_result_has_scipys_names_and_the_tableaus():
    run = swing()
    assert {"t", "y", "sol", "t_events", "status", "message", "success", "nfev", "njev", "nlu"} <= set(dir(run))
    assert run.y.shape == (len(run.names), len(run.t))
    assert run["x"] is not None
    assert run.nfev >= run.statistics.steps
    assert "steps" in str(run.statistics)
    assert "status 0" in repr(run)
    with pytest.raises(ModelError, match="lam"):
        run["lam[rood]"]


def test_ensemble_gives_what_single_runs_give():
    angles = np.linspace(-3.0, -0.2, 7)
    starts = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    problem = Problem(pendulum())
    single = [problem.integrate((0, 2), q, rtol=1e-7) for q in starts]
    for threads in (1, 3):
        many = problem.integrate_many((0, 2), starts, threads=threads, rtol=1e-7)
        for one, other in zip(single, many, strict=True):
            assert np.array_equal(one.t, other.t)
            assert np.array_equal(one.y, other.y)
    assert len({len(run.t) for run in single}) > 1  # each with its own steps


def test_the_loop_runs_without_the_interpreter_lock():
    """While a long run is under way in one thread, Python code goes on in another."""
    problem = Problem(pendulum())
    problem.integrate((0, 0.1), [-1.0, 0.0])
    worker = threading.Thread(
        target=problem.integrate, args=((0, 200), [-1.0, 0.0]), kwargs={"rtol": 1e-10, "atol": 1e-10}
    )
    worker.start()
    turns = 0
    while worker.is_alive():
        turns += 1
    assert turns > 1000  # the run takes seconds; with the lock held there would be a handful


def test_ensemble_goes_on_where_one_start_is_bad():
    starts = np.array([[np.nan, 0.0], [1.0, 0.0], [0.0, 0.0]])  # at the centre no direction leads to the circle
    good = Problem(pendulum()).integrate_many((0, 0.1), starts, threads=2)
    assert [run.success for run in good] == [False, True, False]
    assert "not finite" in good[0].message
    assert "rod" in good[2].message
    with pytest.raises(ShapeError, match="3 starts q and 2"):
        Problem(pendulum()).integrate_many((0, 1), starts, np.zeros((2, 2)))
    assert Problem(pendulum()).integrate_many((0, 1), np.zeros((0, 2)), np.zeros((0, 2))) == []


def test_blow_up_says_where_and_keeps_what_was_found():
    """x' = x^2 from 1 leaves every bound at t = 1."""
    run = ode(lambda t, x: x**2, [1.0], 2.0, rtol=1e-6)
    assert run.status == -1
    assert run.t[-1] == pytest.approx(1.0, abs=1e-3)
    assert "x" in run.message
    assert "t = 0.99" in run.message or "t = 1" in run.message
    assert run.y[0, 5] == pytest.approx(1 / (1 - run.t[5]), rel=1e-4)


def test_non_finite_residual_is_told_as_such():
    run = ode(lambda t, x: -ca.sqrt(x - 0.5), [1.0], 4.0, rtol=1e-6)
    assert run.status == -1
    assert "the residual is not finite" in run.message
    assert run.t[-1] == pytest.approx(2 * np.sqrt(0.5), abs=1e-2)
    with pytest.raises(ModelError, match="not finite at the start"):
        ode(lambda t, x: 1 / (x - 1.0), [1.0], 1.0)


def test_undeclared_jump_is_survived_by_error_control():
    run = ode(lambda t, x: ca.if_else(t > 0.5, 1.0, -1.0) + 0 * x, [0.0], 1.0, rtol=1e-6, atol=1e-9)
    assert run.success
    assert run.y[0, -1] == pytest.approx(0.0, abs=1e-5)
    assert run.statistics.rejections > 0


def test_callable_that_raises_is_reported_with_the_partial_trajectory():
    q, v, u = ca.SX.sym("x"), ca.SX.sym("y"), ca.SX.sym("u")
    mass = da.Lagrangian(q, v, kinetic=v**2 / 2, forces=u, controls=u)

    def force(t):
        if t > 0.5:
            raise RuntimeError("motor off")
        return 1.0

    run = integrate(mass, (0, 1), [0.0], [0.0], known={"u": force})
    assert run.status == -1
    assert "motor off" in run.message
    assert 0.2 < run.t[-1] <= 0.5


@EVERY_METHOD
def test_ctrl_c_returns_what_was_found(method):
    """A signal from the keyboard during a run of minutes ends it within a step."""
    problem = Problem(pendulum())
    problem.integrate((0, 0.1), [-1.0, 0.0], method=method)
    timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    run = problem.integrate((0, 1e5), [-1.0, 0.0], method=method, rtol=1e-9, atol=1e-9, max_steps=10**8)
    timer.cancel()
    assert run.status == -1
    assert "interrupted" in run.message
    assert 0 < run.t[-1] < 1e5
    assert run.statistics.steps == len(run.t) - 1


@EVERY_METHOD
def test_an_event_that_is_not_finite_or_raises_ends_the_run(method):
    def lost(t, x):
        return np.nan if t > 0.5 else 1.0

    def broken(t, x):
        if t > 0.5:
            raise RuntimeError("sensor off")
        return 1.0

    for event, words in ((lost, "event 0 is not finite"), (broken, "sensor off")):
        run = integrate(pendulum(), (0, 1), [-1.0, 0.0], events=event, method=method)
        assert run.status == -1
        assert words in run.message
        assert 0.5 < run.t[-1] < 0.7


def test_too_few_steps_allowed():
    run = swing(10.0, max_steps=20)
    assert run.status == -1
    assert "max_steps = 20" in run.message
    assert len(run.t) == 21


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"rtol": 0.0}, "rtol=0.0"),
        ({"rtol": 2.0}, "rtol=2.0"),
        ({"atol": -1.0}, "atol must be positive"),
        ({"atol": {"z": 1.0}}, "no unknown is called 'z'"),
        ({"atol": [1e-6, 1e-6]}, "atol has shape"),
        ({"method": "euler"}, "'bdf', 'radau', 'ida'"),
        ({"max_order": 7}, "max_order=7"),
        ({"max_step": 0.0}, "max_step"),
        ({"t_eval": [5.0]}, "t_eval"),
        ({"rtool": 1e-3}, "did you mean 'rtol'"),
        ({"rtol": "fine"}, "rtol='fine': one real number"),
        ({"atol": "fine"}, "atol"),
        ({"max_order": 2.5}, "a whole number"),
        ({"max_steps": None}, "max_steps=None"),
        ({"stop_times": [np.nan]}, "stop_times must be finite"),
        ({"stop_times": "noon"}, "stop_times must be real numbers"),
        ({"t_eval": "noon"}, "t_eval must be real numbers"),
        ({"hold": 3}, "hold=3"),
        ({"formulation": "index4"}, "'index3'"),
    ],
)
def test_wrong_options_are_refused(options, words):
    with pytest.raises((ModelError, ShapeError), match=words):
        swing(**options)


@pytest.mark.parametrize("span", [(0,), (0, np.nan), (0, np.inf), "ab", None])
def test_wrong_spans_are_refused(span):
    with pytest.raises(ShapeError, match="t_span"):
        integrate(pendulum(), span, [-1.0, 0.0])


def test_wrong_systems_and_starts_are_refused():
    with pytest.raises(ModelError, match="not from int"):
        Problem(3)
    with pytest.raises(ShapeError, match="q has shape"):
        integrate(pendulum(), (0, 1), [1.0])
    with pytest.raises(ModelError, match="q is not finite for y"):
        integrate(pendulum(), (0, 1), [1.0, np.nan])
    with pytest.raises(ModelError, match="no coordinate is called 'z'"):
        integrate(pendulum(), (0, 1), {"z": 1.0})
    with pytest.raises(UnsupportedError, match="cannot project"):
        integrate(pendulum(), (0, 1), [-1.0, 0.0], method="ida", formulation="projection")
    with pytest.raises(ModelError, match="an event is"):
        Problem(pendulum(), events=[3])
    with pytest.raises(ModelError, match="before the first integration"):
        _ = Problem(pendulum()).compiled
    x = ca.SX.sym("x", 2)
    with pytest.raises(ShapeError, match="1 equations"):
        from_expressions(x, ca.SX.sym("r", 2), [x[0]])
    with pytest.raises(ModelError, match="contain z"):
        from_expressions(x, ca.SX.sym("r", 2), [x[0], x[1] * ca.SX.sym("z")])
    with pytest.raises(ModelError, match="terminal"):
        Problem(pendulum(), events=Event(pendulum().symbols.q[0], terminal=-1))
    with pytest.raises(ShapeError, match="q must be real numbers"):
        integrate(pendulum(), (0, 1), "up")
    with pytest.raises(ModelError, match="did you mean 'rtol'"):
        Problem(pendulum()).integrate_many((0, 1), np.zeros((2, 2)), rtool=1e-3)
    with pytest.raises(ModelError, match="different names"):
        from_expressions(x, ca.SX.sym("r", 2), [x[0], x[1]], unknowns=["a", "a"])


@pytest.mark.parametrize("method", ["bdf", "radau"])
def test_an_event_exactly_at_the_end_of_a_step_is_found_there(method):
    t, x, r = ca.SX.sym("t"), ca.SX.sym("x"), ca.SX.sym("r")
    run = integrate(from_expressions(x, r, r - 1, time=t), (0, 2), [0.0], events=Event(t - 2.0, True), method=method)
    assert run.t_events[0] == pytest.approx([2.0], abs=1e-14)


@pytest.mark.parametrize("method", ["bdf", "radau"])
def test_steps_may_be_tiny_beside_the_span_but_not_beside_the_time(method):
    x, r = ca.SX.sym("x"), ca.SX.sym("r")
    assert integrate(from_expressions(x, r, r + 1e6 * (x - 1)), (0, 1e10), [0.0], method=method).status == 0
    run = integrate(from_expressions(x, r, r - x**2), (0, 2), [1.0], method=method)
    assert run.status == -1
    assert (np.diff(run.t) > 0).all()
