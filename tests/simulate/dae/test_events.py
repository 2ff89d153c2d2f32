"""Zeros of event functions: all of them found, whatever the length of the steps; the search against dense sampling."""

from __future__ import annotations

import casadi as ca
import numpy as np
import pytest

from dalembert.simulate import Event, Problem, from_expressions
from dalembert.simulate.limits import LEAST_PIECE
from dalembert.simulate.steppers.explicit_events import pieces

METHODS = ("bdf", "radau")


def turning(speed, events, time=None):
    """A wheel at constant speed: steps of any length are exact."""
    x, r = ca.SX.sym("x"), ca.SX.sym("r")
    t = ca.SX.sym("t") if time is None else time
    return Problem(from_expressions(x, r, r - speed, time=t), events=events(t, x))


@pytest.mark.parametrize("method", METHODS)
def test_all_zeros_within_one_long_step_are_found(method):
    problem = turning(
        100.0, lambda t, x: [Event(ca.sin(x)), Event(ca.sin(x), direction=-1), Event(ca.cos(x), terminal=20)]
    )
    run = problem.integrate((0.0, 1.0), [0.5], [100.0], method=method)
    exact = (np.arange(1, 32) * np.pi - 0.5) / 100.0
    np.testing.assert_allclose(run.t_events[0], exact[exact <= run.t[-1]], atol=1e-12)
    np.testing.assert_allclose(run.t_events[1], exact[::2][exact[::2] <= run.t[-1]], atol=1e-12)
    assert run.status == 1
    assert len(run.t_events[2]) == 20
    assert run.t[-1] == pytest.approx(((20 - 0.5) * np.pi - 0.5) / 100.0, abs=1e-12)


@pytest.mark.parametrize("method", METHODS)
def test_events_of_time_alone_and_of_both_sides_of_a_narrow_dip(method):
    problem = turning(1.0, lambda t, x: [ca.sin(40 * t), ca.cos(t - 0.7) - 0.9999999])
    run = problem.integrate((0.0, 3.0), [0.0], [1.0], method=method)
    np.testing.assert_allclose(run.t_events[0], np.arange(39) * np.pi / 40, atol=1e-10)
    np.testing.assert_allclose(run.t_events[1], 0.7 + np.array([-1, 1]) * np.arccos(0.9999999), atol=1e-7)


@pytest.mark.parametrize("method", METHODS)
def test_what_cannot_be_followed_is_said(method):
    problem = turning(1.0, lambda t, x: [ca.sin(1e7 * t) + 1.5])
    run = problem.integrate((0.0, 3.0), [0.0], [1.0], method=method)
    assert run.success
    assert run.statistics.unresolved > 0
    assert "max_step" in run.message


def functions(rng):
    """Random functions on [0, 1] that look like events of a long step."""
    kind = rng.integers(5)
    a, b, w = rng.normal(size=6), rng.uniform(0, 2 * np.pi, 6), rng.uniform(0.1, 60.0)
    if kind == 0:
        return lambda s: np.sin(w * s + b[0])
    if kind == 1:
        return lambda s: sum(a[k] * np.sin(w * (k + 1) / 3 * s + b[k]) for k in range(6))
    if kind == 2:
        return lambda s: np.polynomial.polynomial.polyval(2 * np.asarray(s) - 1, a)
    if kind == 3:
        return lambda s: np.cos(w * (np.asarray(s) - 0.4)) - 1.0 + 1e-6
    return lambda s: np.sin(w * np.asarray(s) ** 2 + b[0]) * np.exp(-3.0 * np.asarray(s)) + 0.05


@pytest.mark.parametrize("seed", range(300))
def test_the_search_finds_what_dense_sampling_finds(seed):
    value = functions(np.random.default_rng(seed))
    dense = np.sign(value(np.linspace(0.0, 1.0, 200_001)))
    wanted = np.flatnonzero(dense[1:] * dense[:-1] < 0) / 200_000
    found = [
        (low, high)
        for low, high, g_low, g_high, certain in pieces(lambda s: np.array([value(s)]), LEAST_PIECE, 4000)
        if g_low[0] * g_high[0] < 0 and certain
    ]
    assert len(found) == len(wanted)
    for (low, high), place in zip(found, wanted, strict=True):
        assert low - 1e-5 <= place <= high + 1e-5


@pytest.mark.parametrize("periods", [8.72, 15.84, 21.15, 29.62, 30.95, 63.3, 63.86, 130.95, 131.65])
@pytest.mark.parametrize("growth", [0.0, 0.05, 0.26])
def test_no_zero_hides_where_a_piece_holds_a_whole_period(periods, growth):
    """Values a period apart are equal: they must not look as if they were far from zero."""
    rng = np.random.default_rng(int(100 * periods))
    for shift in rng.uniform(0.0, 2 * np.pi, 4):
        value = lambda s, b=shift: np.sin(2 * np.pi * periods * (s + growth * s**2) + b)  # noqa: E731
        first, last = shift / np.pi, 2 * periods * (1 + growth) + shift / np.pi
        found = sum(
            g_low[0] * g_high[0] < 0 and certain
            for _, _, g_low, g_high, certain in pieces(lambda s, v=value: np.array([v(s)]), LEAST_PIECE, 8000)
        )
        assert found == np.floor(last) - np.ceil(first) + 1
