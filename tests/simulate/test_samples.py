"""Samples at the times that were asked for, zeros of events, pulses of forces and limits of steps, in every stepper."""

from __future__ import annotations

from functools import cache

import casadi as ca
import numpy as np
import pytest

import dalembert as da
from dalembert.simulate.contact import Contact, Sphere
from dalembert.simulate.events.asked import Event
from dalembert.simulate.steppers.explicit import pair_of
from tests.simulate.linkages import bricard, pendulum

SMOOTH = {
    "dop853": {},
    "dopri5": {"rtol": 1e-8},
    "bdf": {},
    "radau": {},
    "variational": {"step": 1e-3},
}
"""Methods for mechanisms without contacts, with what they need."""

FAR = [Contact(Sphere("wheel", radius=0.1))]


@cache
def wheel(height=100.0):
    """A wheel on a hinge, far above the ground."""
    b = da.Builder("wheel", gravity=(0, 0, 0))
    b.body("wheel", mass=1.0, inertia=(1, 1, 1))
    b.joint("hinge", "revolute", parent="world", child="wheel", axis=(0, 0, 1), position=(0, 0, height))
    return b.build()


def function(expression, n=1):
    t, q, v = ca.SX.sym("t"), ca.SX.sym("q", n), ca.SX.sym("v", n)
    return ca.Function("g", [t, q, v], [expression(t, q, v)])


@cache
def oscillator():
    """x'' = -x, as a Lagrangian."""
    x, v = ca.SX.sym("x"), ca.SX.sym("v")
    return da.Lagrangian(x, v, kinetic=0.5 * v**2, potential=0.5 * x**2)


@cache
def mass():
    """x'' = 0, as a Lagrangian."""
    x, v = ca.SX.sym("x"), ca.SX.sym("v")
    return da.Lagrangian(x, v, kinetic=0.5 * v**2)


def wanted(start, duration, every):
    """Return start + k every, in exact arithmetic, rounded; what rounds to the end is the end."""
    end, times, k = start + duration, [], 0
    while start + k * every < end - 1e-12 * (abs(start) + duration):
        times.append(start + k * every)
        k += 1
    return [*times, end]


SPANS = [(0.0, 1.0, 0.1), (0.0, 0.3, 0.1), (0.0, 1.0, 0.3), (0.7, 0.9, 0.1), (0.0, 0.7, 5.0), (1e3, 0.5, 0.05)]
"""Start, duration, every: multiples and none, rounding of 0.1 k, longer than the run, far from t = 0."""


@pytest.mark.parametrize("span", SPANS)
@pytest.mark.parametrize("method", SMOOTH)
def test_samples_are_exactly_where_they_were_asked_for(method, span):
    start, duration, every = span
    run = da.simulate(pendulum(), duration, [0.3], t=start, method=method, every=every, **SMOOTH[method])
    assert run.t.tolist() == wanted(*span)
    fine = da.simulate(pendulum(), duration, [0.3], t=start, rtol=1e-12, atol=1e-12, every=every)
    np.testing.assert_allclose(run.q, fine.q, atol=1e-6)


@pytest.mark.parametrize("span", SPANS)
@pytest.mark.parametrize("method", ["hybrid", "moreau"])
def test_samples_of_runs_with_contacts(method, span):
    start, duration, every = span
    run = da.simulate(wheel(), duration, [0.3], [1.0], t=start, method=method, every=every, contacts=FAR)
    assert run.t.tolist() == wanted(*span)
    np.testing.assert_allclose(run.q[:, 0], 0.3 + (run.t - start), atol=1e-12)


@pytest.mark.parametrize("span", SPANS)
@pytest.mark.parametrize(
    "options",
    [{}, {"method": "dopri5"}, {"method": "rk4", "step": 0.007}, {"method": "radau"}, {"method": "bdf"}],
)
def test_samples_of_lagrangians(options, span):
    start, duration, every = span
    run = da.simulate(oscillator(), duration, [1.0], [0.0], t=start, every=every, **options)
    assert run.t.tolist() == wanted(*span)
    np.testing.assert_allclose(run.q[:, 0], np.cos(run.t - start), atol=1e-7)


@pytest.mark.parametrize("method", ["dop853", "dopri5"])
def test_no_sample_of_a_redundant_loop_is_lost(method):
    run = da.simulate(bricard(), 2.0, method=method, rtol=1e-10, atol=1e-10, every=0.1)
    assert run.t.tolist() == wanted(0.0, 2.0, 0.1)


@pytest.mark.parametrize("method", SMOOTH)
def test_samples_and_events_together_and_up_to_a_terminal_one(method):
    end = Event(function(lambda t, q, v: t - 0.777), True, name="end")
    events = {"level": function(lambda t, q, v: ca.sin(q[0])), "end": end}
    run = da.simulate(wheel(), 1.0, [0.5], [20.0], method=method, events=events, every=0.05, **SMOOTH[method])
    zeros = [(k * np.pi - 0.5) / 20.0 for k in range(1, 6)]
    assert run.status == "event"
    assert [e.contact for e in run.events] == ["level"] * 5 + ["end"]
    np.testing.assert_allclose([e.time for e in run.events], [*zeros, 0.777], atol=1e-9)
    np.testing.assert_allclose(run.t, np.sort([*(0.05 * np.arange(16)), *zeros, 0.777]), atol=1e-9)
    assert set(0.05 * np.arange(16)) <= set(run.t)
    np.testing.assert_allclose(run.q[:, 0], 0.5 + 20.0 * run.t, atol=1e-8)


@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize("method", [*SMOOTH, "hybrid"])
def test_all_zeros_of_a_fast_wheel_are_found(method, compiled):
    g = function(lambda t, q, v: ca.sin(q[0])) if compiled else lambda t, q, v: np.sin(q[0])
    options = {"contacts": FAR} if method == "hybrid" else SMOOTH[method]
    run = da.simulate(wheel(), 1.0, [0.5], [100.0], method=method, events={"level": g}, **options)
    np.testing.assert_allclose([e.time for e in run.events], (np.arange(1, 32) * np.pi - 0.5) / 100.0, atol=1e-11)
    assert [e.new for e in run.events] == ["falling", "rising"] * 15 + ["falling"]


@pytest.mark.parametrize("method", [*SMOOTH, "hybrid"])
def test_start_end_direction_count_and_simultaneous_events(method):
    options = {"contacts": FAR} if method == "hybrid" else SMOOTH[method]
    events = {
        "start": function(lambda t, q, v: q[0]),
        "start falling": Event(function(lambda t, q, v: q[0]), False, -1),
        "both": function(lambda t, q, v: t - 0.5),
        "too": function(lambda t, q, v: 0.5 - t),
        "third": Event(function(lambda t, q, v: ca.cos(30 * q[0])), 3, -1),
        "end": function(lambda t, q, v: t - 1.0),
    }
    run = da.simulate(wheel(), 1.0, [0.0], [1.0], method=method, events=events, **options)
    found = [(e.contact, e.new, round(e.time, 9)) for e in run.events]
    falls = [round((2 * k + 0.5) * np.pi / 30, 9) for k in range(3)]
    assert run.status == "event"
    assert run.t[-1] == pytest.approx(falls[2], abs=1e-8)
    assert found == [("start", "rising", 0.0), *[("third", "falling", t) for t in falls]]
    del events["third"]
    run = da.simulate(wheel(), 1.0, [0.0], [1.0], method=method, events=events, **options)
    found = sorted((round(e.time, 9), e.contact, e.new) for e in run.events)
    assert found == [(0.0, "start", "rising"), (0.5, "both", "rising"), (0.5, "too", "falling"), (1.0, "end", "rising")]
    assert [e.time for e in run.events] == sorted(e.time for e in run.events)


@pytest.mark.parametrize("method", [*SMOOTH, "hybrid"])
def test_a_terminal_zero_at_the_start_ends_the_run_there(method):
    options = {"contacts": FAR} if method == "hybrid" else SMOOTH[method]
    stop = Event(function(lambda t, q, v: q[0]), True, 1, "stop")
    run = da.simulate(wheel(), 1.0, [0.0], [1.0], method=method, events={"stop": stop}, **options)
    assert (run.status, run.t[-1], len(run.events)) == ("event", 0.0, 1)
    run = da.simulate(wheel(), 1.0, [0.0], [-1.0], method=method, events={"stop": stop}, **options)
    assert (run.status, run.events) == ("completed", ())


def pulse(start, length, size):
    """A force of `size` from `start` on, for a time, with its break points declared."""

    def force(t, q, v):
        return np.array([size if start <= t < start + length else 0.0])

    force.breaks = [start, start + length]
    return force


@pytest.mark.parametrize("method", [*SMOOTH, "hybrid", "moreau"])
def test_pulses_with_declared_break_points_act_in_full(method):
    options = {"contacts": FAR} if method in ("hybrid", "moreau") else SMOOTH[method]
    run = da.simulate(wheel(), 1.0, [0.0], method=method, force=pulse(0.4, 1e-3, 1e3), **options)
    assert run.v[-1, 0] == pytest.approx(1.0, abs=1e-9)
    assert run.q[-1, 0] == pytest.approx(1e-3 / 2 + 0.599, abs=1e-9 if method != "moreau" else 1e-3)
    assert run.work[-1] == pytest.approx(0.5, abs=1e-8 if method != "moreau" else 1e-3)


@pytest.mark.parametrize("method", [*SMOOTH, "hybrid", "moreau"])
def test_pulses_of_expressions_with_breaks_and_of_held_tables(method):
    options = {"contacts": FAR} if method in ("hybrid", "moreau") else SMOOTH[method]
    torque = function(lambda t, q, v: ca.if_else(ca.logic_and(t >= 0.4, t < 0.401), 1e3, 0.0))
    table = {"hinge": (np.array([0.0, 0.4, 0.401]), np.array([0.0, 1e3, 0.0]), "previous")}
    for given in ({"force": torque, "breaks": [0.4, 0.401]}, {"force": table}):
        run = da.simulate(wheel(), 1.0, [0.0], method=method, **given, **options)
        assert run.v[-1, 0] == pytest.approx(1.0, abs=1e-9)


@pytest.mark.parametrize("options", [{}, {"method": "dopri5"}, {"method": "radau"}, {"method": "rk4", "step": 1e-3}])
def test_pulses_on_lagrangians(options):
    free = mass()
    force = pulse(0.4, 1e-3, 1e3)
    run = da.simulate(free, 1.0, [0.0], [0.0], force=force, **options)
    assert run.v[-1, 0] == pytest.approx(1.0, abs=1e-9)
    run = da.simulate(free, 1.0, [0.0], [0.0], force=lambda t, q, v: force(t, q, v), breaks=force.breaks, **options)
    assert run.v[-1, 0] == pytest.approx(1.0, abs=1e-9)


@pytest.mark.parametrize("method", ["dop853", "dopri5", "bdf", "radau", "hybrid", "moreau"])
def test_the_longest_step_is_kept_and_shows_a_pulse(method):
    options = {"contacts": FAR} if method in ("hybrid", "moreau") else SMOOTH[method]
    run = da.simulate(wheel(), 0.5, [0.0], [1.0], method=method, max_step=2e-4, **options)
    assert np.diff(run.t).max() <= 2e-4 * (1 + 1e-9)

    def hidden(t, q, v):
        return [1e2 if 0.2 <= t < 0.201 else 0.0]

    run = da.simulate(wheel(), 0.5, [0.0], method=method, force=hidden, max_step=2e-4, **options)
    assert run.v[-1, 0] == pytest.approx(0.1, rel=0.3 if method == "moreau" else 1e-3)


def test_the_longest_step_of_systems_with_friction():
    run = da.simulate(oscillator(), 1.0, [1.0], [0.0], max_step=1e-3)
    assert np.diff(run.t).max() <= 1e-3 * (1 + 1e-9)


@pytest.mark.parametrize("method", ["dop853", "bdf", "variational"])
def test_a_resumed_run_has_all_samples_and_events(method, tmp_path):
    events = {"level": function(lambda t, q, v: ca.sin(q[0]))}
    options = {"method": method, "events": events, "every": 0.1, **SMOOTH[method]}
    whole = da.simulate(wheel(), 1.0, [0.5], [20.0], **options)
    da.simulate(wheel(), 0.45, [0.5], [20.0], file=tmp_path / "run.nc", **options)
    run = da.resume(tmp_path / "run.nc", duration=1.0)
    assert set(whole.t) <= set(run.t) | {t for t in whole.t if np.abs(run.t - t).min() < 1e-9}
    assert set(wanted(0.0, 1.0, 0.1)) <= set(run.t)
    np.testing.assert_allclose([e.time for e in run.events], [e.time for e in whole.events], atol=1e-9)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"max_step": 0.0}, "max_step=0.0"),
        ({"max_step": "a"}, "max_step='a'"),
        ({"step": 0.1, "max_step": 0.01}, "longer than max_step"),
        ({"every": 1e-12}, "samples in"),
        ({"breaks": ["a"]}, "breaks"),
        ({"breaks": [np.nan]}, "finite times"),
        ({"progress": "yes"}, "progress='yes'"),
        ({"method": "bdf", "step": 0.1}, "chooses its steps"),
        ({"method": "variational"}, "give step="),
        ({"method": "variational", "step": 0.1, "every": 0.25}, "no multiple"),
        ({"method": "variational", "step": 0.1, "breaks": [0.25]}, "no end of a step"),
        ({"method": "moreau", "contacts": FAR, "step": 0.1, "every": 0.25}, "no multiple"),
        ({"method": "moreau", "contacts": FAR, "step": 0.1, "breaks": [0.25]}, "no end of a step"),
        ({"method": "moreau", "contacts": FAR, "events": lambda t, q, v: 1.0}, "locates no events"),
        ({"max_steps": 1}, "max_step"),
        ({"events": Event(3, name="a")}, "'a' is int"),
        ({"events": Event(lambda t, q, v: 1.0, "yes", name="a")}, "terminal='yes'"),
        ({"events": Event(lambda t, q, v: 1.0, True, "up", "a")}, "direction='up'"),
    ],
)
def test_misuse_is_named(options, words):
    with pytest.raises(da.DalembertError, match=words):
        da.simulate(wheel(), 1.0, [0.0], **options)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"max_step": -1.0}, "max_step=-1.0"),
        ({"method": "rk4", "step": 0.1, "max_step": 0.01}, "longer than max_step"),
        ({"every": 1e-12}, "samples in"),
        ({"breaks": "soon"}, "breaks"),
        ({"method": "variational", "step": 0.1, "breaks": [0.25]}, "no end of a step"),
        ({"events": [1]}, "'event 0' is int"),
        ({"method": "rk4"}, "give step="),
        ({"stepper": "rk4"}, "no option 'stepper'"),
    ],
)
def test_misuse_with_lagrangians_is_named(options, words):
    with pytest.raises(da.DalembertError, match=words):
        da.simulate(oscillator(), 1.0, [1.0], [0.0], **options)


def test_what_cannot_be_followed_is_said():
    run = da.simulate(wheel(), 1.0, [0.0], [1.0], events={"noise": lambda t, q, v: 1.5 + np.sin(1e7 * t)})
    assert run.status == "completed"
    assert "max_step" in run.message


@pytest.mark.parametrize(("name", "error"), [("dop853", 1e-11), ("dopri5", 1e-6)])
def test_continuous_extensions_join_their_steps(name, error):
    """y' = i y over a step of 0.2: between the ends as good as the formulas promise, orders 7 and 4."""
    p, h = pair_of(name), 0.2
    K = np.zeros(p.dense.shape[0], complex)
    K[0] = 1j
    for i in range(1, p.b.size):
        K[i] = 1j * (1 + h * p.a[i, :i] @ K[:i])
    for i in range(p.more_c.size):
        row = p.b.size + i
        K[row] = 1j * (1 + h * p.more_a[i, :row] @ K[:row])
    s = np.linspace(0.0, 1.0, 51)
    y = 1 + h * (s[:, None] ** np.arange(1, p.dense.shape[1] + 1)) @ (p.dense.T @ K)
    np.testing.assert_allclose(y, np.exp(1j * h * s), atol=error)
    np.testing.assert_allclose(p.dense.sum(axis=1)[: p.b.size], p.b, atol=1e-13)


def test_samples_that_fill_a_block_leave_room_for_the_end():
    """4096 samples before the end are a block of the loop; the last one was written behind it, and lost."""
    q, v = ca.SX.sym("q"), ca.SX.sym("v")
    for count in (4095, 4096, 4097, 8192):
        run = da.simulate(da.Lagrangian(q, v, v**2 / 2, q**2 / 2), 1.0, [1.0], [0.0], every=1.0 / count)
        assert run.t.size == count + 1
        assert run.t[-1] == 1.0
        np.testing.assert_allclose(run.q[:, 0], np.cos(run.t), atol=1e-7)
