"""Extrema, means and root mean squares of runs: of the motion, by every method, whatever the samples are."""

from __future__ import annotations

from functools import cache

import casadi as ca
import numpy as np
import pytest
from scipy.integrate import quad
from scipy.interpolate import PPoly

import dalembert as da
from dalembert.friction import Bounded, StaticKinetic
from dalembert.simulate.reductions import Polynomials, integral, largest
from dalembert.simulate.time_methods import METHODS

T = 2.0
SMOOTH = {
    "dop853": {}, "dopri5": {}, "rk4": {"step": 5e-3}, "bdf": {"rtol": 1e-10, "atol": 1e-12}, "radau": {},
    "ida": {"rtol": 1e-10, "atol": 1e-12}, "variational": {"step": 2e-4},
}  # fmt: skip
"""Methods for smooth motions, with steps and tolerances that leave less than 1e-6."""


def test_all_methods_are_looked_at():
    assert {*SMOOTH, "hybrid", "moreau", "fixed", "penalty"} == set(METHODS)  # the last steps by one of these


@cache
def oscillator():
    q, v = ca.SX.sym("q"), ca.SX.sym("v")
    return da.Lagrangian(q, v, kinetic=v**2 / 2, potential=2.0 * q**2, coordinates=["x"])


def mean(f):
    return quad(f, 0.0, T, epsabs=1e-13)[0] / T


@pytest.mark.parametrize("every", [None, 0.25])
@pytest.mark.parametrize("method", SMOOTH)
def test_an_oscillator_by_every_method(method, every):
    """x = cos 2t + sin 2t / 4: amplitude sqrt(17) / 4, kinetic energy between 0 and 17 / 8."""
    run = da.simulate(oscillator(), T, [1.0], [0.5], method=method, every=every, **SMOOTH[method])
    x, v = (lambda t: np.cos(2 * t) + np.sin(2 * t) / 4), (lambda t: np.cos(2 * t) / 2 - 2 * np.sin(2 * t))
    amplitude = np.sqrt(17.0) / 4.0
    found = {
        run.maximum("x").item(): amplitude, run.minimum("x").item(): -amplitude, run.mean("x").item(): mean(x),
        run.rms("x.v").item(): np.sqrt(mean(lambda t: v(t) ** 2)), run.range("kinetic").item(): 2 * amplitude**2,
        run.mean("x.a").item(): (v(T) - v(0.0)) / T, run.mean("energy").item(): 17.0 / 8.0,
    }  # fmt: skip
    for value, exact in found.items():
        assert abs(value - exact) < 5e-6 if method == "variational" else abs(value - exact) < 1e-6


@cache
def ball():
    b = da.Builder("ball")
    b.body("ball", mass=2.0)
    b.joint("z", "prismatic", "world", "ball", axis=(0, 0, 1))
    return b.build()


def floor(restitution=0.5):
    return [da.Contact(da.Sphere("ball", radius=0.1), da.Plane(), restitution=restitution, name="floor")]


def thrown():
    """Height of a ball from 1.1 m at 4 m/s over a floor that it leaves with half of its speed, as pieces in time."""
    g, pieces, begins, t, z, v = 9.81, [], [0.0], 0.0, 1.0, 4.0
    while t < T:
        flight = min((v + np.sqrt(v * v + 2 * g * z)) / g, T - t)
        pieces.append([-g / 2, v, z])
        t, z, v = t + flight, 0.0, (g * flight - v) / 2
        begins.append(t)
    return PPoly(np.array(pieces).T, np.array(begins))


@pytest.mark.parametrize("every", [None, 0.3])
@pytest.mark.parametrize("method", ["hybrid", "dopri5", "radau", "moreau"])
def test_a_ball_that_bounces_by_every_method(method, every):
    run = da.simulate(
        ball(), T, [1.1], [4.0], contacts=floor(), method=method, every=every,
        **({"step": 2e-4} if method == "moreau" else {}),
    )  # fmt: skip
    z, near = thrown(), 5e-4 if method == "moreau" else 1e-8
    v = z.derivative()
    square = PPoly.construct_fast(np.array([np.convolve(c, c) for c in v.c.T]).T, v.x)
    assert abs(run.maximum("z") - (1.1 + 16.0 / (2 * 9.81))) < near
    assert abs(run.minimum("z") - 0.1) < near
    assert abs(run.mean("z") - 0.1 - z.integrate(0.0, T) / T) < near
    assert abs(run.rms("z.v") - np.sqrt(square.integrate(0.0, T) / T)) < near
    heat = 16.0 + 19.62 - (square.integrate(0.0, T) + 19.62 * z.integrate(0.0, T)) / T
    if method != "moreau":
        assert abs(run.mean("heat") - heat) < 1e-6


def test_reactions_have_the_impulse_of_what_they_carry():
    """A ball that rests: mean of the reaction m g; two that slide: friction takes (v - u) m away."""
    run = da.simulate(ball(), 0.5, [0.1], [0.0], contacts=floor(0.0))
    np.testing.assert_allclose(run.mean("floor"), [0.0, 0.0, 2.0 * 9.81], atol=1e-9)
    q, v = ca.SX.sym("q"), ca.SX.sym("v")
    law = [Bounded("belt", v - 0.3, StaticKinetic(1.0, 0.5))]
    belt = da.Lagrangian(q, v, kinetic=v**2 / 2, potential=q**2 / 2, friction=law, coordinates=["x"])
    run = da.simulate(belt, 10.0, [0.0], [0.3])
    assert {event.new for event in run.events} >= {"stick"}
    assert abs(run.mean("belt") - (run.v[-1, 0] - 0.3 + 10.0 * run.mean("x")) / 10.0) < 1e-7
    fine = da.simulate(belt, 10.0, [0.0], [0.3], every=1e-3)
    for name in ("x", "belt", "x.v"):
        assert run.maximum(name) >= fine[name].max() - 1e-9
        assert run.maximum(name) - fine[name].max() < 1e-6


@pytest.mark.parametrize("contacts", [None, floor(0.0)])
@pytest.mark.parametrize("method", ["dop853", "bdf", "radau"])
def test_forces_that_jump_end_pieces(method, contacts):
    """A force 0, then 30 N from 0.37 s on: means of acceleration and force are those of the two pieces."""
    if contacts and method == "bdf":
        return
    force = lambda t, q, v: np.array([30.0 if t > 0.37 else 0.0])  # noqa: E731
    run = da.simulate(ball(), 0.5, [1.1], [0.0], force=force, breaks=[0.37], method=method, contacts=contacts)
    assert not run.message
    assert abs(run.mean("z.a") - (-9.81 + 15.0 * 0.13 / 0.5)) < 1e-8
    assert abs(run.maximum("z.a") - (15.0 - 9.81)) < 1e-9
    assert abs(run.rms("z.a") - np.sqrt((9.81**2 * 0.37 + (15.0 - 9.81) ** 2 * 0.13) / 0.5)) < 1e-8


def test_events_cut_a_run_and_its_means():
    for method in ("dop853", "bdf", "radau"):
        x = lambda t, q, v: q[0]  # noqa: E731
        run = da.simulate(oscillator(), T, [1.0], [0.0], method=method, events={"zero": da.Event(x, terminal=True)})
        assert run.status == "event"
        assert abs(run.t[-1] - np.pi / 4) < 1e-7
        assert abs(run.mean("x") - 2.0 / np.pi) < 1e-6
        run = da.simulate(oscillator(), T, [1.0], [0.0], method=method, events={"zero": x})
        assert abs(run.mean("x") - np.sin(2 * T) / (2 * T)) < 1e-6
        assert abs(run.minimum("x") + 1.0) < 1e-6


def test_runs_in_implicit_form():
    """x' = v, v' = u - x with u = 0, of a tableau; of a mechanism what is known, and the force that it takes."""
    x, v, u, dx, dv = (ca.SX.sym(name) for name in ("x", "v", "u", "dx", "dv"))
    tableau = da.Tableau({"rate": dx - v, "force": dv + x - u}, [x, v, u], {"x": dx, "v": dv}, known=["u"])
    run = da.simulate(tableau, T, {"x": 1.0}, known={"u": 0.0}, rtol=1e-10, atol=1e-12)
    assert abs(run.mean("x") - np.sin(T) / T) < 1e-7
    assert abs(run.minimum("x") - np.cos(T)) < 1e-7
    assert abs(run.rms("v") - np.sqrt(0.5 - np.sin(2 * T) / (4 * T))) < 1e-7
    lift = (np.sin, np.cos, lambda t: -np.sin(t))
    run = da.simulate(ball(), T, [0.0], [1.0], known={"z": lift}, every=0.5)
    assert abs(run.maximum("z") - 1.0) < 1e-9
    assert abs(run.mean("tau z") - 2.0 * (9.81 - (1.0 - np.cos(T)) / T)) < 1e-7


def test_a_run_from_a_file(tmp_path):
    run = da.simulate(ball(), T, [1.1], [4.0], contacts=floor())
    run.save(tmp_path / "run.h5")
    again = da.Trajectory.load(tmp_path / "run.h5")
    for take in ("maximum", "minimum", "mean", "rms", "range"):
        assert getattr(again, take)("z") == getattr(run, take)("z")


def test_forces_with_a_memory_are_reduced_over_samples():
    """A second run would be another motion: what is there is reduced."""
    calls = []

    def force(t, q, v):
        calls.append(t)
        return np.array([0.0 if len(calls) < 10_000 else 50.0])

    run = da.simulate(ball(), 0.5, [1.1], [0.0], force=force, every=0.01)
    calls += [0.0] * 10_000
    assert run.maximum("z") == run["z"].max()
    assert abs(run.mean("z") - (1.1 - 9.81 * 0.25 / 6)) < 1e-4


def test_a_start_without_time_and_unknown_names():
    run = da.simulate(oscillator(), T, [1.0], [0.5])
    with pytest.raises(da.ModelError, match="no coordinate"):
        run.maximum("y")
    assert run.maximum("q").shape == (1,)
    assert run.maximum("x").shape == ()


# ----------------------------------------------------------------------------------------------------------------------
# Polynomials.


@pytest.mark.parametrize("n", [1, 4, 8])
def test_polynomials_against_their_roots(n):
    rng = np.random.default_rng(n)
    nodes = -np.cos(np.pi * np.arange(n + 1) / n)
    polynomials = [np.polynomial.Polynomial(rng.normal(size=n + 1)) for _ in range(40)]
    p = Polynomials(np.array([f(nodes) for f in polynomials])[:, :, None], False)
    for f, most, m1, m2 in zip(polynomials, largest(p), integral(p, 1), integral(p, 2), strict=True):
        roots = f.deriv().roots()
        inner = roots[np.isreal(roots)].real
        places = np.concatenate([[-1.0, 1.0], inner[np.abs(inner) < 1.0]])
        scale = np.abs(f.coef).sum()
        assert abs(most[0] - f(places).max()) < 1e-12 * scale
        assert abs(m1[0] - (f.integ()(1.0) - f.integ()(-1.0)) / 2) < 1e-13 * scale
        square = (f * f).integ()
        assert abs(m2[0] - (square(1.0) - square(-1.0)) / 2) < 1e-13 * scale**2


def test_lengths_of_vectors_that_pass_through_zero():
    """|(3, 4) (s - 0.3)|: mean, least and largest over [-1, 1]."""
    nodes = -np.cos(np.pi * np.arange(9) / 8)
    values = np.stack([3 * (nodes - 0.3), 4 * (nodes - 0.3)], axis=1)[None]
    p = Polynomials(values, True)
    assert abs(integral(p, 1)[0, 0] - 5 * (1.3**2 + 0.7**2) / 4) < 1e-10
    assert abs(largest(p)[0, 0] - 6.5) < 1e-12
