"""Mechanism: names, drawing, content, joint values, and the way from a request to a kernel."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import casadi as ca
import numpy as np
import pytest

import dalembert as da
from dalembert.model import requests as registry
from dalembert.model.mechanism.calls import call
from dalembert.model.mechanism.parts import Limits, Source
from tests.model.test_builder import arm


def robot():
    b = arm(gravity=(0, 0, -9.81))
    b.frame("tip", "fore", position=(0, 0, 0.8))
    b.frame("pillar", "world", position=(1, 0, 0))
    b.spring("muscle", "tip", "pillar", stiffness=100.0, rest=0.5)
    b.actuator("motor", "shoulder", gear=-50.0, rotor_inertia=1e-4, effort=10.0)
    b.couple("belt", {"shoulder": 1.0, "elbow": -2.0}, offset=0.1)
    b.loop("hook", "point", "fore", "world")
    b.note("a sensor was left out")
    return b.build()


def test_drawing():
    assert str(robot()) == "\n".join(
        [
            "arm: 2 bodies, nq 3, nv 2, 3 kg, fixed base, gravity (0, 0, -9.81)",
            "world  · pillar",
            "└─ shoulder: revolute y [-1, 1] ── upper (2 kg)",
            "   └─ elbow: continuous z ── fore (1 kg)  · tip",
            "couplings",
            "  belt: shoulder - 2 elbow = 0.1",
            "loops",
            "  hook: point between fore and world",
            "springs",
            "  muscle: tip to pillar, 100 N/m",
            "actuators",
            "  motor: shoulder, gear -50",
            "notes",
            "  a sensor was left out",
            "  coupling 'belt': the angle of the continuous joint 'elbow' counts within (-pi, pi], where the relation "
            "jumps; make it 'revolute', without limits, if it turns further",
        ]
    )


def test_branches_are_drawn_to_the_right_parent():
    b = da.Builder("hand")
    b.body("palm", mass=1.0)
    for finger in ("thumb", "index"):
        for k in range(2):
            b.body(f"{finger}{k}")
            b.joint(f"{finger}_{k}", "revolute", parent=f"{finger}{k - 1}" if k else "palm", child=f"{finger}{k}")
    lines = str(b.build(base="floating")).splitlines()
    assert lines[1:] == [
        "world",
        "└─ root_joint: free ── palm (1 kg)",
        "   ├─ thumb_0: revolute x ── thumb0 (massless)",
        "   │  └─ thumb_1: revolute x ── thumb1 (massless)",
        "   └─ index_0: revolute x ── index0 (massless)",
        "      └─ index_1: revolute x ── index1 (massless)",
    ]


def test_html_is_escaped_and_folds_the_notes():
    b = da.Builder("<script>")
    b.body("<b>", mass=1.0)
    b.note("<i>")
    html = b.build()._repr_html_()
    assert "<script>" not in html
    assert "<details>" in html
    assert "&lt;i&gt;" in html


def test_everything_is_found_by_name():
    r = robot()
    assert r.body("fore").inertia.mass == 1.0
    assert r.joint("elbow").child == "fore"
    assert r.frame("tip").body == "fore"
    assert r.frame("fore").placement.is_identity()
    assert r.frame("elbow").body == "fore"
    assert r.frame("world").body == "world"
    assert r.index_q("elbow") == slice(1, 3)
    assert r.index_v("elbow") == slice(1, 2)
    assert r.index_q("elbow.sin") == slice(2, 3)
    assert r.coordinates == ("shoulder", "elbow")
    assert r.configuration_names == ("shoulder", "elbow.cos", "elbow.sin")
    assert r.body_index("world") == -1


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda r: r.body("Fore"), "no body 'Fore'; did you mean 'fore'"),
        (lambda r: r.joint("elbw"), "no joint 'elbw'; did you mean 'elbow'"),
        (lambda r: r.frame("tipp"), "no frame 'tipp'; did you mean 'tip'"),
        (lambda r: r.index_q("elbow.cso"), "no joint or coordinate 'elbow.cso'; did you mean 'elbow.cos'"),
        (lambda r: r.frame("zzz"), "no frame 'zzz'; there is 'shoulder'"),
        (lambda r: r.body(None), "no body None"),
    ],
)
def test_near_matches(ask, message):
    with pytest.raises(da.ModelError, match=message) as caught:
        ask(robot())
    assert isinstance(caught.value.near, tuple)


def test_joint_values_and_actuation():
    r = robot()
    np.testing.assert_allclose(r.armature, [50**2 * 1e-4, 0])
    np.testing.assert_array_equal(r.actuation, [[-50], [0]])
    np.testing.assert_array_equal(r.torque([2.0]), [-100, 0])
    np.testing.assert_allclose(r.torque([[2.0], [0.1]], clip=True), [[-10, 0], [-5, 0]])
    np.testing.assert_array_equal(r.lower, [-1, -np.inf])
    np.testing.assert_array_equal(r.effort_limits, [np.inf, np.inf])
    with pytest.raises(ValueError, match="read-only"):
        r.armature[0] = 1.0
    with pytest.raises(da.ShapeError, match=r"one per actuator \(motor\)"):
        r.torque([1.0, 2.0])


def test_couplings_are_constraint_rows():
    r = robot()
    assert r.names == ("belt", "loop hook x", "loop hook y", "loop hook z")
    np.testing.assert_array_equal(r.jacobian(r.neutral())[0], [1, -2])
    assert r.jacobian(r.random(0, 5)).shape == (5, 4, 2)
    assert isinstance(r, da.System)
    assert r.open_tree().jacobian(r.random(0, 5)).shape == (5, 0, 2)
    assert r.open_tree().drift(r.neutral(), np.zeros(2)).shape == (0,)


def test_content_is_what_determines_the_numbers():
    first, second = robot(), robot()
    assert first == second
    assert hash(first) == hash(second)
    b = arm()
    b.body("x", source=Source("a.urdf", 1))
    b.joint("j", "fixed", parent="fore", child="x")
    with_source = b.build()
    c = arm()
    c.body("x", source=Source("b.urdf", 9))
    c.joint("j", "fixed", parent="fore", child="x")
    c.note("read elsewhere")
    assert with_source.content() == c.build().content()
    different = [
        first.with_gravity((0, 0, -1.62)),
        first.with_passive(False),
        first.open_tree(),
        with_source,
    ]
    assert len({x.content() for x in (first, *different)}) == 5
    assert first != "arm"


def test_content_is_the_same_in_every_process():
    """It is the key of the cache on disk: neither addresses nor the seed of Python's hashes may enter."""
    code = "from tests.model.test_builder import arm; print(arm().build().content())"
    runs = [
        subprocess.run(
            [sys.executable, "-c", code],
            cwd=Path(__file__).parents[2],
            env=os.environ | {"PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        )
        for seed in ("1", "2")
    ]
    assert {run.stdout.strip() for run in runs} == {arm().build().content()}


def test_immutable():
    r = robot()
    with pytest.raises(AttributeError):
        r.name = "other"
    assert r.with_gravity((0, 0, 0)).gravity == (0, 0, 0)
    assert r.gravity == (0, 0, -9.81)
    assert r.open_tree().couplings == ()


def test_parts_out_of_order_are_refused():
    r = robot()
    with pytest.raises(da.ModelError, match="must carry"):
        da.Mechanism("x", r.bodies[::-1], r.joints)


@pytest.fixture
def one_request(monkeypatch):
    """A table with a request of our own, that counts how often it is traced."""
    traced = []

    def trace(mechanism, frame=None, reference="local"):
        traced.append((frame, reference))
        q = ca.SX.sym("q", mechanism.nq)
        return ca.Function("norm", [q], [ca.sumsqr(q)], ["q"], ["norm"])

    monkeypatch.setattr(registry, "_TABLE", {})
    registry.register(registry.Request("norm", trace, "q -> |q|^2", {"frame": None, "reference": "local"}))
    return traced


def test_a_request_is_traced_once(one_request):
    r = robot()
    q = r.random(0)
    kernel = r.compile("norm")
    assert r.compile("norm") is kernel
    np.testing.assert_allclose(kernel(q), [q @ q])
    assert r.compile("norm", frame="tip", backend="numpy").backend == "numpy"
    assert one_request == [(None, "local"), ("tip", "local")]
    assert "norm" in registry.requests()


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        ({"what": "nrm"}, "no request 'nrm'; did you mean 'norm'"),
        ({"what": "norm", "frame": "tpi"}, "no frame 'tpi'; did you mean 'tip'"),
        ({"what": "norm", "reference": "wrld"}, "no reference 'wrld'; did you mean 'world'"),
        (
            {"what": "norm", "fram": "tip"},
            "'norm' has no option 'fram'; it takes frame, reference; did you mean 'frame'",
        ),
    ],
)
def test_wrong_requests(one_request, ask, message):
    with pytest.raises(da.ModelError, match=message):
        robot().compile(**ask)


def test_two_traces_of_one_name_are_refused(one_request):
    with pytest.raises(da.ModelError, match="registered twice"):
        registry.register(registry.Request("norm", lambda mechanism: None, ""))


def test_methods_check_the_manifold(one_request):
    r = robot()
    with pytest.raises(da.ModelError, match=r"q\[1:3\] of a continuous joint should have length one"):
        call(r, "norm", [0.0, 0.5, 0.0])


def test_every_request_has_loops():
    """Nothing is unrolled in silence: what can be compiled can be looped over, or is refused by its maker."""
    registry.requests()
    import_module("dalembert.large")  # rooms register what they have when they are first used
    assert set(registry._LOOPED) == set(registry.requests())


def test_the_velocity_of_a_frame_is_its_jacobian_times_v():
    robot = arm().build()
    q, v = robot.random(0), np.arange(1.0, robot.nv + 1)
    frame = robot.bodies[-1].name
    for reference in registry.REFERENCES:
        J = robot.frame_jacobian(q, frame, reference)
        np.testing.assert_allclose(robot.frame_velocity(q, v, frame, reference), J @ v, atol=1e-13)


def test_limits_of_speed_and_effort_are_by_velocity():
    b = da.Builder("limits")
    for i, limit in enumerate(({"limits": Limits(velocity=(3.0,), effort=(20.0,))}, {})):
        b.body(f"b{i}", mass=1.0, inertia=(0.1, 0.1, 0.1))
        b.joint(f"j{i}", "revolute", parent=f"b{i - 1}" if i else "world", child=f"b{i}", axis=(0, 0, 1), **limit)
    robot = b.build()
    np.testing.assert_array_equal(robot.velocity_limits, [3.0, np.inf])
    np.testing.assert_array_equal(robot.effort_limits, [20.0, np.inf])
