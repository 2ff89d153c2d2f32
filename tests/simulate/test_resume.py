"""Runs that were killed go on bit for bit: every stepper, contacts, friction, equations, and what a file holds of them.

What a killed process leaves is the file as it is after one of its blocks: a copy is taken there while the run goes on.
"""

import importlib.util
import shutil

import casadi as ca
import numpy as np
import pytest

import dalembert as da
from dalembert.examples import two_blocks
from dalembert.friction import ExpressionLaw
from dalembert.simulate import from_expressions, implicit
from dalembert.simulate.contact import engine, hybrid
from dalembert.simulate.runge_kutta import METHODS as BETWEEN_EVENTS
from dalembert.simulate.settings import IMPLICIT
from dalembert.simulate.steppers import explicit, fixed, moreau, stiff, variational
from dalembert.simulate.storage import sink
from dalembert.simulate.time_methods import METHODS
from tests.simulate.contact_cases import vertical_ball

pytest.importorskip("h5py")

SMALL = 12
"""Steps or samples of a block here: short runs have several."""

NO_IDA = importlib.util.find_spec("sksundae") is None


def pendulum():
    """Return a double pendulum."""
    b = da.Builder("double pendulum", gravity=(0, -9.81, 0))
    for k, parent in enumerate(("world", "link 0")):
        b.body(f"link {k}", mass=1.0, center=(0.5, 0, 0), inertia=(1e-3, 0.1, 0.1))
        b.joint(f"joint {k}", "revolute", parent=parent, child=f"link {k}", axis=(0, 0, 1), position=(k, 0, 0))
    return b.build()


def smooth(method):
    """Return a motion without contacts."""
    one_size = {"step": 0.01} if method in ("rk4", "variational") else {}
    loose = {"rtol": 1e-6, "atol": 1e-8} if method in ("bdf", "radau", "ida", "dopri5") else {}
    return (pendulum(), 1.5, [0.3, 0.1], [0.0, 0.0]), {"method": method} | one_size | loose


def bouncing(method):
    """Return a ball that bounces, located or by time stepping."""
    contact = da.Contact(da.Sphere("ball", 0.1), restitution=0.8)
    one_size = {"step": 2e-3} if method in ("rk4", "moreau") else {}
    return (vertical_ball(), 3.0, [1.0], [0.0]), {"method": method, "contacts": [contact]} | one_size


def belt(method):
    """Return a mass on a belt that hits a stop, a Lagrangian: a law in expressions, a gap, a belt that gets faster."""
    q, v, t, s = ca.SX.sym("q"), ca.SX.sym("v"), ca.SX.sym("t"), ca.SX.sym("s")
    rubs = da.Bounded("belt", v, ExpressionLaw(s, 1.5 / (1.0 + 2.0 * s), 2.0), surface=0.5 + 0.1 * t)
    stop = da.Unilateral("stop", gap=0.25 - q, restitution=0.5)
    system = da.Lagrangian(q, v, v**2 / 2, 5 * q**2, time=t, friction=[rubs], unilateral=[stop])
    return (system, 4.0, [0.0], [0.0]), {"method": method} | ({"step": 5e-3} if method == "rk4" else {})


def scheme(method):
    """Return two blocks by the friction scheme of the seed, in steps of one size."""
    return (two_blocks(), 4.0, [0.0, 0.0], [0.3, 0.3]), {"method": method, "step": 0.05, "stepper": "rk4"}


def equations(method):
    """Return a pendulum in Cartesian coordinates as F(t, x, x') = 0 of index 2."""
    x, rates = ca.SX.sym("x", 5), ca.SX.sym("rates", 5)
    p, u = x[:2], x[2:4]
    F = ca.vertcat(rates[:2] - u, rates[2:4] + p * x[4] + ca.DM([0.0, 9.81]), ca.dot(p, u))
    dae = from_expressions(x, rates, F, unknowns=("x", "y", "u", "w", "pull"))
    return (dae, 1.5, [1.0, 0, 0, 0, 0], [0, 0, 0, -9.81, 0]), {"method": method, "rtol": 1e-6, "atol": 1e-8}


def driven(method):
    """Return a pendulum of which a torque is known."""
    known = {"tau joint 0": 0.5, "tau joint 1": 0.0}
    return (pendulum(), 1.5, [0.3, 0.1], [0.0, 0.0]), {"method": method, "rtol": 1e-6, "atol": 1e-8, "known": known}


def named(method):
    """Return a mass on a spring as named equations, pushed by a table."""
    x, w, push, dx, dw = (ca.SX.sym(name) for name in ("x", "w", "push", "dx", "dw"))
    rows = {"rate": dx - w, "balance": dw + 9 * x - push}
    tableau = da.Tableau(rows, {"x": x, "w": w, "push": push}, {"x": dx, "w": dw}, known=["push"])
    known = {"push": ([0.0, 1.0, 2.5], [0.0, 3.0, -1.0], "linear")}
    return (tableau, 2.0, {"x": 0.3}, None), {"method": method, "rtol": 1e-6, "atol": 1e-8, "known": known}


WITHOUT_CONTACTS = [
    name for name in METHODS if name not in ("hybrid", "moreau", "fixed", "penalty")
]  # the last has no files
CASES = [
    *[pytest.param(smooth, each, id=f"smooth {each}") for each in WITHOUT_CONTACTS if each != "ida"],
    pytest.param(smooth, "ida", id="smooth ida", marks=pytest.mark.skipif(NO_IDA, reason="extra sundials")),
    *[pytest.param(bouncing, each, id=f"bouncing {each}") for each in (*BETWEEN_EVENTS, "moreau")],
    *[pytest.param(belt, each, id=f"belt {each}") for each in BETWEEN_EVENTS],
    pytest.param(scheme, "fixed", id="scheme fixed"),
    *[pytest.param(equations, each, id=f"equations {each}") for each in IMPLICIT if each != "ida"],
    pytest.param(driven, "bdf", id="driven bdf"),
    pytest.param(named, "radau", id="named radau"),
]
"""Every stepper: smooth, with impacts of a mechanism, stick, slip and impacts of a Lagrangian, in implicit form."""


@pytest.mark.parametrize(("make", "method"), CASES)
def test_a_killed_run_goes_on_bit_for_bit(make, method, tmp_path, monkeypatch):
    for room in (explicit, fixed, moreau, stiff, variational, implicit):
        monkeypatch.setattr(room, "BLOCK", LONGER if method == "ida" else SMALL)
    monkeypatch.setattr(engine, "SAMPLES", 2 * SMALL)
    monkeypatch.setattr(hybrid, "MOST", 4)
    blocks, write = [], sink.FileSink._append

    def killed_after_two_blocks(self, *given):
        write(self, *given)
        blocks.append(len(given[0]["t"]))
        if len(blocks) == 2:
            shutil.copy(tmp_path / "run.h5", tmp_path / "killed.h5")

    monkeypatch.setattr(sink.FileSink, "_append", killed_after_two_blocks)
    (system, duration, q, v), options = make(method)
    whole = da.simulate(system, duration, q, v, file=tmp_path / "run.h5", **options)
    assert whole.ok, str(whole)
    assert len(blocks) > 2
    held = isinstance(system, da.Mechanism | da.Lagrangian)  # the others are code, or symbols
    again = {} if held else {"system": system}
    run = da.resume(tmp_path / "killed.h5", **again)
    assert run.status == whole.status
    for name, rows in whole.samples.items():
        np.testing.assert_array_equal(run.samples[name], rows, err_msg=name)
    assert run.events == whole.events
    assert run.steps == whole.steps


@pytest.mark.parametrize(("make", "method"), [(belt, "dop853"), (equations, "bdf"), (driven, "radau"), (named, "bdf")])
def test_runs_with_contacts_and_in_implicit_form_are_saved_and_repeat_themselves(make, method, tmp_path):
    (system, duration, q, v), options = make(method)
    run = da.simulate(system, duration, q, v, **options)
    run.save(tmp_path / "run.h5")
    read = da.Trajectory.load(tmp_path / "run.h5")
    assert (read.status, read.method, read.events, read.steps) == (run.status, run.method, run.events, run.steps)
    for name, rows in run.samples.items():
        np.testing.assert_array_equal(read.samples[name], rows, err_msg=name)
    for name in run.unknowns:
        np.testing.assert_array_equal(read[name], run[name])
    if make in (equations, named):
        with pytest.raises(da.ModelError, match="give it again: system="):
            read.repeat()
        np.testing.assert_allclose(read.solution(0.7), run.solution(0.7), atol=1e-4)
    again = read.repeat(system=system) if make in (equations, named) else read.repeat()
    for name, rows in run.samples.items():
        np.testing.assert_array_equal(again.samples[name], rows, err_msg=name)


@pytest.mark.parametrize(("method", "step"), [("moreau", None), ("moreau", 4e-3), ("variational", 4e-3)])
def test_a_run_that_ended_between_the_steps_of_a_longer_one_goes_on_from_there(method, step, tmp_path):
    """A throw for 10.5 ms, then to a second: time leapt to the next step of the longer run, and the throw did not."""
    far = {"contacts": [da.Contact(da.Sphere("ball", 0.1, at=(0, 0, 50.0)))]} if method == "moreau" else {}
    da.simulate(vertical_ball(), 0.0105, [0.0], [7.0], method=method, step=step, file=tmp_path / "run.h5", **far)
    run = da.resume(tmp_path / "run.h5", duration=1.0)
    assert run.t[-1] == 1.0
    assert run.v[-1, 0] == pytest.approx(7.0 - 9.81, abs=1e-11)
    assert run.q[-1, 0] == pytest.approx(7.0 - 0.5 * 9.81, abs=1e-11)
    np.testing.assert_allclose(run.v[:, 0], 7.0 - 9.81 * run.t, atol=1e-11)
    again = da.resume(tmp_path / "run.h5", duration=1.5)  # the steps in between lead there
    np.testing.assert_allclose(again.v[:, 0], 7.0 - 9.81 * again.t, atol=1e-11)


LONGER = 60
"""Steps of a block of IDA, which starts anew with every block, at order one and with small steps."""
