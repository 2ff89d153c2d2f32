"""One `da.simulate` for every kind of system: one signature, one trajectory, refusals by name."""

from __future__ import annotations

from inspect import isfunction, signature
from pydoc import plaintext, render_doc

import casadi as ca
import numpy as np
import pytest

import dalembert as da
from dalembert.model import Matrices
from dalembert.simulate import Event, from_expressions
from dalembert.simulate.equations import codes, lagrangian_system
from tests.simulate.linkages import crank_rocker


def test_the_signature_is_that_of_the_decision():
    names = list(signature(da.simulate).parameters)
    assert names[:4] == ["system", "duration", "q", "v"]
    wanted = {"t", "force", "contacts", "known", "events", "method", "rtol", "atol", "step", "max_step", "every",
              "event_tolerance", "on_step", "file", "progress", "options"}  # fmt: skip
    assert wanted <= set(names)
    assert signature(da.simulate).parameters["rtol"].default == 1e-8
    assert signature(da.simulate).parameters["atol"].default == 1e-10
    assert isfunction(da.simulate)  # also after its room, which has the same name, was imported
    assert "simulate(system" in render_doc(da.simulate, renderer=plaintext)


def decay():
    """x' = -y, y = 2 x: a DAE of index 1."""
    x, y, dx, dy, t = (ca.SX.sym(name) for name in ("x", "y", "dx", "dy", "t"))
    return from_expressions(
        ca.vertcat(x, y), ca.vertcat(dx, dy), ca.vertcat(dx + y, y - 2 * x), time=t, unknowns=("x", "y")
    )


@pytest.mark.parametrize("method", ["auto", "bdf", "radau"])
def test_a_dae_goes_the_same_way(method):
    run = da.simulate(decay(), 2.0, [1.0, 2.0], [-2.0, -4.0], method=method, every=0.5)
    assert run.ok, str(run)
    np.testing.assert_array_equal(run.t, np.arange(5) * 0.5)
    np.testing.assert_allclose(run["x"], np.exp(-2 * run.t), atol=1e-6)
    np.testing.assert_allclose(run.x[:, 1], 2 * run["x"], atol=1e-6)
    assert run.unknowns == ("x", "y")
    assert run.reason
    np.testing.assert_allclose(run.solution(0.25)[0], np.exp(-0.5), atol=1e-6)
    dataset = run.to_xarray()
    np.testing.assert_array_equal(dataset["x"], run.x)
    assert run.plot() is not None


def test_events_of_a_dae_are_named_and_end_the_run():
    run = da.simulate(decay(), 2.0, [1.0, 2.0], [-2.0, -4.0], events={"half": Event(lambda t, x: x[0] - 0.5, True)})
    assert run.status == "event"
    assert run.events[0].contact == "half"
    assert run.events[0].new == "falling"
    assert run.events[0].time == pytest.approx(np.log(2) / 2, abs=1e-7)


def test_a_tableau_goes_the_same_way():
    """A mass on a spring, its force known: named equations."""
    x, v, a, f, dx, dv = (ca.SX.sym(name) for name in ("x", "v", "a", "f", "dx", "dv"))
    tableau = da.Tableau(
        {"rate": dx - v, "motion": dv - a, "balance": a + x - f}, {"x": x, "v": v, "a": a, "f": f}, {"x": dx, "v": dv}
    )
    run = da.simulate(tableau.with_known("f"), 3.0, {"x": 1.0, "v": 0.0, "a": -1.0}, known={"f": 0.0}, every=0.5)
    assert run.ok, str(run)
    np.testing.assert_allclose(run["x"], np.cos(run.t), atol=1e-6)


SPRING, MASS, PUSH = 3.0, 2.0, 1.5
"""A mass on a spring, pushed: x = (push / spring) (1 - cos omega t)."""


def spring_mass(kind):
    """Return it as a mechanism, a Lagrangian, matrices or a tableau, and its start."""
    x, v, u, dx, dv = (ca.SX.sym(name) for name in ("x", "v", "u", "dx", "dv"))
    if kind == "Lagrangian":
        return da.Lagrangian(x, v, MASS * v**2 / 2, SPRING * x**2 / 2, coordinates=["x"]), [0.0], [0.0]
    if kind == "Matrices":
        return da.Matrices([[MASS]], force=lambda q, v, t: -SPRING * q, coordinates=("x",)), [0.0], [0.0]
    if kind == "Tableau":
        rows = {"rate": dx - v, "balance": MASS * dv + SPRING * x - u}
        return da.Tableau(rows, [x, v, u], {"x": dx, "v": dv}, known=["u"]), {"x": 0.0}, None
    builder = da.Builder("mass on a spring", gravity=(0, 0, 0))
    builder.body("mass", MASS, inertia=np.eye(3))
    builder.joint("x", "prismatic", "world", "mass", stiffness=SPRING)
    return builder.build(), [0.0], [0.0]


@pytest.mark.parametrize("kind", ["Mechanism", "Lagrangian", "Matrices", "Tableau"])
@pytest.mark.parametrize("form", ["number", "by name", "table", "casadi", "python"])
def test_a_force_is_given_in_the_same_forms_for_all_systems(kind, form):
    system, q, v = spring_mass(kind)
    t, state = ca.SX.sym("t"), [ca.SX.sym("q"), ca.SX.sym("v")]
    name, times = "u" if kind == "Tableau" else "x", np.linspace(0.0, 2.0, 5)
    force = {
        "number": PUSH,
        "by name": {name: PUSH},
        "table": (times, np.full(5, PUSH)),
        "casadi": ca.Function("push", [t, *state], [ca.SX(PUSH)]),
        "python": lambda t, q, v: [PUSH],
    }[form]
    if kind == "Tableau" and form != "by name":
        with pytest.raises(da.ModelError, match="by name of its signals"):
            da.simulate(system, 1.5, q, v, force=force)
        force = {name: force if form in ("number", "table") else PUSH}
    run = da.simulate(system, 1.5, q, v, force=force)
    assert run.ok, str(run)
    wanted = PUSH / SPRING * (1 - np.cos(np.sqrt(SPRING / MASS) * run.t[-1]))
    assert run["x"][-1] == pytest.approx(wanted, abs=1e-7)


def test_a_force_beside_a_joint_whose_motion_is_known():
    """Two masses in a row: the first is moved by t^2, the second is pushed along it."""
    builder = da.Builder("two masses", gravity=(0, 0, 0))
    for body, parent in (("first", "world"), ("second", "first")):
        builder.body(body, MASS, inertia=np.eye(3))
        builder.joint(f"along {body}", "prismatic", parent, body)
    m, t = builder.build(), ca.SX.sym("t")
    given = {"known": {"along first": t**2}, "time": t}
    for force in ({"along second": PUSH}, [0.0, PUSH], ([0.0, 1.0], [[0.0, PUSH]] * 2)):
        run = da.simulate(m, 1.0, force=force, **given)
        assert run["along second"][-1] == pytest.approx(-1.0 + PUSH / MASS / 2, abs=1e-7)
        assert run["tau along first"][-1] == pytest.approx(2 * MASS + PUSH, abs=1e-6)
    with pytest.raises(da.ModelError, match="its force is part of the answer"):
        da.simulate(m, 1.0, force={"along first": 1.0}, **given)
    with pytest.raises(da.ModelError, match="no functions of the state"):
        da.simulate(m, 1.0, force=lambda t, q, v: [0.0, PUSH], **given)


def test_a_mechanism_of_which_a_joint_is_known_gives_its_torque():
    m, q, _ = crank_rocker()
    t = ca.SX.sym("t")
    run = da.simulate(m, 1.0, q, None, known={"drive": q[0] + t**2}, time=t, every=0.25)
    assert run.ok, str(run)
    np.testing.assert_allclose(run["drive"], q[0] + run.t**2, atol=1e-12)
    a, tau = run.acceleration[2], np.zeros(m.nv)
    tau[m.index_v("drive")] = run["tau drive"][2]
    found = m.forward(run.q[2], run.v[2], tau)
    np.testing.assert_allclose(found.acceleration, a, atol=1e-4)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"force": [1.0]}, "force= in implicit form.*by name"),
        ({"force": {"u": 1.0}, "known": {"u": 0.0}}, "given twice"),
        ({"step": 0.1}, "step= is not taken"),
        ({"method": "dop853"}, "does not solve F"),
        ({"method": "bfd"}, "did you mean 'bdf'"),
        ({"formulaton": "index3"}, "did you mean 'formulation'"),
        ({"duration": -1.0}, "duration=-1.0"),
        ({"t": np.nan}, "t=nan"),
    ],
)
def test_what_a_run_in_implicit_form_does_not_take_is_said(options, words):
    given = {"duration": 1.0} | options
    with pytest.raises(da.ModelError, match=words):
        da.simulate(decay(), given.pop("duration"), [1.0, 2.0], **given)


def test_unknowns_that_are_not_there_are_said():
    run = da.simulate(decay(), 0.1, [1.0, 2.0], [-2.0, -4.0])
    with pytest.raises(da.ModelError, match="no coordinate, joint"):
        run["z"]


@pytest.mark.parametrize("method", ["bdf", "radau", "ida"])
def test_runs_in_implicit_form_are_repeated_bit_for_bit(method):
    run = da.simulate(decay(), 0.5, [1.0, 2.0], [-2.0, -4.0], method=method, every=0.1)
    again = run.repeat()
    np.testing.assert_array_equal(again.x, run.x)
    np.testing.assert_array_equal(again.repeat(every=0.25).t, [0.0, 0.25, 0.5])
    assert run.repeat(method="radau").method == "radau"


def test_matrices_by_hand_with_redundant_rows_move_as_the_lagrangian():
    """Two masses held together twice, on a spring: x = cos(sqrt(1/2) t)."""
    system = Matrices(
        {"a": 1.0, "b": 1.0}, {"rod": [1.0, -1.0], "again": [10.0, -10.0]}, force=lambda q, v, t: np.array([-q[0], 0.0])
    )
    run = da.simulate(system, 3.0, [1.0, 1.0], [0.0, 0.0], every=0.5)
    assert run.ok, str(run)
    np.testing.assert_allclose(run["a"], np.cos(np.sqrt(0.5) * run.t), atol=1e-8)
    assert run.velocity_residual.max() < 1e-13
    with pytest.raises(da.ModelError, match="misses 'rod'"):
        da.simulate(system, 1.0, [0.0, 0.0], [1.0, 0.0])


def massless_rod():
    """A mass on a spring that pulls through a rod without mass: y has no mass of its own, a row holds it."""
    q, v = ca.SX.sym("q", 2), ca.SX.sym("v", 2)
    return da.Lagrangian(q, v, kinetic=v[0] ** 2 / 2, potential=q[1] ** 2 / 2, constraints={"rod": q[0] - q[1]})


@pytest.mark.parametrize("method", ["dop853", "dopri5", "bdf"])
def test_a_coordinate_without_mass_moves_with_its_row(method):
    run = da.simulate(massless_rod(), 2.0, [1.0, 1.0], [0.0, 0.0], method=method, every=0.25)
    assert run.ok, str(run)
    np.testing.assert_allclose(run.q, np.cos(run.t)[:, None] * [1, 1], atol=1e-6)


def test_a_slider_crank_passes_its_dead_centre():
    """Crank and rod of one length: at half a turn the slider is at the hinge, rows lose a rank, and the motion goes on.

    The branch of the motion is y = -x of the two angles; energy and the constraint hold throughout.
    """
    q, v = ca.SX.sym("q", 2), ca.SX.sym("v", 2)
    height = ca.sin(q[0]) + ca.sin(q[1])
    place = ca.cos(q[0]) + ca.cos(q[1])
    slider = ca.jtimes(place, q, v)
    system = da.Lagrangian(
        q, v, kinetic=v[0] ** 2 / 2 + v[1] ** 2 / 6 + slider**2 / 2, constraints={"slide": height},
        coordinates=("crank", "rod"),
    )  # fmt: skip
    run = da.simulate(system, 3.0, [0.3, -0.3], [2.0, -2.0], rtol=1e-9, atol=1e-10)
    assert run.ok, str(run)
    assert run["crank"][-1] > np.pi
    np.testing.assert_allclose(run["rod"], -run["crank"], atol=1e-6)
    assert np.ptp(run.energy.total) < 1e-6


def test_systems_too_large_for_loops_are_solved_by_kkt(monkeypatch):
    """Beyond the sizes of straight-line code and of dense loops Python calls `KKT`: here from one coordinate on."""
    monkeypatch.setattr(lagrangian_system, "LARGEST", 0)
    monkeypatch.setattr(codes, "LARGEST_CARRIED", 0)
    q, v = ca.SX.sym("q", 2), ca.SX.sym("v", 2)
    pendulum = da.Lagrangian(
        q, v, kinetic=ca.sumsqr(v) / 2, potential=9.81 * q[1], constraints={"rod": (ca.sumsqr(q) - 1) / 2}
    )
    run = da.simulate(pendulum, 0.5, [1.0, 0.0], [0.0, 0.0], method="dopri5", rtol=1e-7, atol=1e-9)
    monkeypatch.undo()
    exact = da.simulate(pendulum, 0.5, [1.0, 0.0], [0.0, 0.0], rtol=1e-11, atol=1e-12)
    assert run.ok, str(run)
    np.testing.assert_allclose(run.q[-1], exact.q[-1], atol=1e-6)
    assert run.position_residual.max() < 1e-12


def test_progress_is_a_word_and_nothing_is_shown_in_files(capsys):
    system = massless_rod()
    da.simulate(system, 0.5, [1.0, 1.0], [0.0, 0.0])
    assert capsys.readouterr().out == ""
    with pytest.raises(da.ModelError, match="progress="):
        da.simulate(system, 0.5, [1.0, 1.0], [0.0, 0.0], progress="yes")


@pytest.mark.parametrize("kind", ["PointInPlane", "PointOnLine", "Revolute", "Prismatic", "Cylindrical", "Planar"])
def test_directions_that_turn_with_a_held_frame_are_refused_in_time(kind):
    """At one instant they are those of the frame; in time nobody knows where they are fixed, and steps would crawl."""
    b = da.Builder("arm")
    b.body("upper", mass=1.0, center=(0.5, 0, 0), inertia=(0.01, 0.1, 0.1))
    b.joint("shoulder", "revolute", parent="world", child="upper", axis=(0, 1, 0))
    b.body("fore", mass=1.0, center=(0.5, 0, 0), inertia=(0.01, 0.1, 0.1))
    b.joint("elbow", "revolute", parent="upper", child="fore", axis=(0, 1, 0), position=(1, 0, 0))
    b.frame("hand", "fore", position=(1, 0, 0))
    m = b.build().constrain(getattr(da, kind)("hand"))
    assert m.solve([0.2, 0.3], [0.0, 0.0]).status.answered
    for run in (lambda: da.simulate(m, 0.1, [0.2, 0.3]), lambda: da.Problem(m)):
        with pytest.raises(da.DalembertError, match=r"'hand' .* turn with it.*at= .* or other="):
            run()
    placed = b.build().constrain(da.PointInPlane("hand", at=m.kinematics([0.2, 0.3], "hand")))
    assert da.simulate(placed, 0.1, [0.2, 0.3]).ok


@pytest.mark.parametrize("times", [{"breaks": [0.005]}, {"every": 0.015}, {"every": 0.004}])
def test_auto_takes_no_method_that_refuses_the_times_of_a_run(times):
    """Symplectic steps of one size have samples and break points at their ends alone."""
    system, _, v = spring_mass("Lagrangian")
    run = da.simulate(system, 100.0, [1.0], v, step=0.01, rtol=1e-5, atol=1e-7, **times)
    assert run.ok, str(run)
    assert run.method == "dop853"
    assert run.q[-1, 0] == pytest.approx(np.cos(100.0 * np.sqrt(SPRING / MASS)), abs=1e-4)


CORNERS = [(-1, -1), (-1, 1), (1, -1), (1, 1)]


def test_auto_takes_no_method_that_refuses_the_events_of_a_run():
    """Many contacts are stepped over, unless events are wanted: these are located."""
    b = da.Builder("cart")
    b.body("cart", 1.0, inertia=np.eye(3))
    b.joint("up", "prismatic", "world", "cart", axis=(0, 0, 1))
    for x, y in CORNERS:
        b.frame(f"foot {x} {y}", "cart", position=(x, y, 0))
    corners = [da.Contact(da.Sphere(f"foot {x} {y}", 0.1)) for x, y in CORNERS]
    falls = {"half": lambda _t, q, _v: q[0] - 0.5}
    run = da.simulate(b.build(), 0.4, [1.0], contacts=corners, events=falls)
    assert run.ok, str(run)
    assert run.method == "hybrid"
    assert run.events[0].time == pytest.approx(np.sqrt(1.0 / 9.81), abs=1e-10)
