"""Runs with collision shapes: boxes, cylinders and hulls that slide, roll, tip and rest, against closed forms."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

import dalembert as da

G = 9.81
STEPS = {"method": "moreau", "step": 1e-3}


@cache
def loose(kind, size, count=1, inertia=None, gravity=(0.0, 0.0, -G)):
    """Return bodies of 1 kg of one shape, free in space."""
    b = da.Builder("bodies", gravity=gravity)
    for i in range(count):
        b.body(f"b{i}", mass=1.0, inertia=inertia or (size[0] ** 2 / 6,) * 3)
        b.joint(f"f{i}", "free", parent="world", child=f"b{i}")
        b.collision_shape(f"b{i}", kind, size)
    return b.build()


def at(m, *places):
    """Return a configuration with bodies at these places, upright."""
    q = m.neutral()
    for i, place in enumerate(places):
        q[7 * i : 7 * i + 3] = place
    return q


def test_a_box_slides_until_coulomb_stops_it():
    m = loose("box", (0.2, 0.2, 0.2))
    q = at(m, (0, 0, 0.1))
    run = da.simulate(m, 1.0, q, [2.0, 0, 0, 0, 0, 0], contacts=m.contacts(friction=0.5), **STEPS)
    assert run.ok, run.message
    assert run.q[-1, 0] == pytest.approx(4.0 / (2 * 0.5 * G), abs=2e-3)
    assert np.abs(run.v[-1]).max() < 1e-13
    assert run.heat[-1] == pytest.approx(2.0, rel=1e-6)
    assert run.reactions["b0 on ground"][-1] == pytest.approx([0, 0, G], abs=1e-10)


@pytest.mark.parametrize("mu", [0.5, 0.2])
def test_a_box_on_a_slope_rests_or_slides(mu):
    """tan 20 degrees is 0.364."""
    a = np.deg2rad(20.0)
    m = loose("box", (0.2, 0.2, 0.2), gravity=(G * np.sin(a), 0.0, -G * np.cos(a)))
    run = da.simulate(m, 1.0, at(m, (0, 0, 0.1)), contacts=m.contacts(friction=mu), **STEPS)
    assert run.ok, run.message
    slides = max(np.sin(a) - mu * np.cos(a), 0.0) * G
    assert run.v[-1, 0] == pytest.approx(slides, abs=1e-10 if slides else 1e-13)


@pytest.mark.parametrize(("push", "tips"), [(0.45, False), (0.55, True)])
def test_a_tall_box_tips_where_its_weight_leaves_its_foot(push, tips):
    """A box twice as high as wide, its weight drawn aside by gravity: it tips from tan = 1 / 2 on, mu = 1."""
    m = loose("box", (0.1, 0.1, 0.2), inertia=(0.05 / 12, 0.05 / 12, 0.02 / 12), gravity=(push * G, 0.0, -G))
    run = da.simulate(m, 0.2, at(m, (0, 0, 0.1)), contacts=m.contacts(friction=1.0), **STEPS)
    assert run.ok, run.message
    assert (abs(run.v[-1, 4]) > 0.05) == tips


@pytest.mark.parametrize("kind", ["cylinder", "capsule", "sphere"])
def test_round_shapes_roll_down_a_slope(kind):
    """Acceleration g sin / (1 + I / m r^2); lying along y."""
    a, r, part = np.deg2rad(10.0), 0.1, 0.5
    b = da.Builder("roller", gravity=(G * np.sin(a), 0.0, -G * np.cos(a)))
    b.body("b0", mass=1.0, inertia=(part * r * r,) * 3)
    b.joint("f0", "free", parent="world", child="b0")
    lying = da.Placement([[1, 0, 0], [0, 0, 1], [0, -1, 0]], (0, 0, 0))
    b.collision_shape("b0", kind, (r,) if kind == "sphere" else (r, 0.3), placement=lying)
    m = b.build()
    run = da.simulate(m, 0.5, at(m, (0, 0, r)), contacts=m.contacts(friction=0.5), **STEPS)
    assert run.ok, run.message
    assert run.q[-1, 0] == pytest.approx(0.5**3 * G * np.sin(a) / (1 + part), rel=5e-3)
    assert run.q[-1, 2] == pytest.approx(r, abs=1e-6)


@pytest.mark.parametrize("count", [2, 5])
def test_a_stack_of_boxes_does_not_creep(count):
    m = loose("box", (0.2, 0.2, 0.2), count)
    q = at(m, *[(0, 0, 0.1 + 0.2 * i) for i in range(count)])
    run = da.simulate(m, 1.0, q, contacts=m.contacts(self=True, friction=0.5, q=q), every=0.1, **STEPS)
    assert run.ok, run.message
    assert np.abs(run.q - q).max() < 1e-13
    assert run.reactions["b0 on ground"][-1, 2] == pytest.approx(count * G, rel=1e-11)
    assert run.reactions["b1 on b0"][-1, 2] == pytest.approx((count - 1) * G, rel=1e-11)
    points = [x for x in run.contact_points(1.0) if x.pair == "b0 on ground"]
    assert len(points) == 4
    assert sorted(tuple(np.round(np.abs(x.place[:2]), 9)) for x in points) == [(0.1, 0.1)] * 4


def test_a_box_that_falls_on_a_corner_comes_to_rest():
    m = loose("box", (0.2, 0.15, 0.1))
    q = m.random(3)
    q[:3] = 0, 0, 0.4
    run = da.simulate(m, 2.0, q, contacts=m.contacts(friction=0.6), every=0.01, **STEPS)
    assert run.ok, run.message
    assert np.abs(run.v[-1]).max() < 1e-10
    assert run.samples["contact_residual"].max() < 1e-8
    total = run.energy.total
    assert total[-1] < total[0]
    assert np.diff(total).max() < 1e-6 * total[0]


def test_loads_of_joints_include_contacts_of_shapes():
    """A column welded to a foot that stands on the ground: the weld carries the column alone."""
    b = da.Builder("column")
    b.body("foot", mass=2.0, inertia=(0.1, 0.1, 0.1))
    b.joint("free", "free", parent="world", child="foot")
    b.body("column", mass=3.0, inertia=(0.1, 0.1, 0.1))
    b.joint("weld", "fixed", parent="foot", child="column", position=(0.02, 0, 0.3))
    b.collision_shape("foot", "box", (0.4, 0.4, 0.1))
    m = b.build()
    q = m.neutral()
    q[2] = 0.05
    run = da.simulate(m, 0.05, q, contacts=m.contacts(friction=0.5), **STEPS)
    assert run.ok, run.message
    loads = run.joint_forces
    assert loads["weld"].force[-1] == pytest.approx([0, 0, 3 * G], abs=1e-8)
    assert run.reactions["foot on ground"][-1, 2] == pytest.approx(5 * G, rel=1e-11)


def test_runs_with_shapes_are_stored_and_go_on_bit_for_bit(tmp_path):
    m = loose("box", (0.2, 0.15, 0.1))
    q = m.random(3)
    q[:3] = 0, 0, 0.4
    scene = m.contacts(friction=0.6)
    options = {"contacts": scene, "every": 0.01, **STEPS}
    whole = da.simulate(m, 0.6, q, **options)
    da.simulate(m, 0.3, q, file=tmp_path / "run.h5", **options)
    resumed = da.resume(tmp_path / "run.h5", duration=0.6, contacts=scene)
    np.testing.assert_array_equal(resumed.q, whole.q)
    np.testing.assert_array_equal(resumed.forces, whole.forces)


def test_what_a_scene_leaves_out_is_a_note_of_the_run():
    m = loose("box", (0.2, 0.2, 0.2), 2)
    q = at(m, (0, 0, 0.1), (0, 0, 0.3))
    run = da.simulate(m, 0.01, q, contacts=m.contacts(self=True), **STEPS)  # both are at the origin where it is neutral
    assert "left out: 1 pairs of shapes that overlap at the neutral configuration" in "".join(run.notes)
    run = da.simulate(m, 0.01, q, contacts=m.contacts(self=True, q=q), **STEPS)
    assert not run.notes


def test_what_cannot_be_done_with_shapes_is_refused_by_name():
    m = loose("box", (0.2, 0.2, 0.2))
    with pytest.raises(da.UnsupportedError, match="go in time steps"):
        da.simulate(m, 0.1, at(m, (0, 0, 0.1)), contacts=m.contacts(), method="hybrid")
    with pytest.raises(da.ModelError, match=r"interpenetrates.*b0 on ground.* by 0\.05"):
        da.simulate(m, 0.1, at(m, (0, 0, 0.05)), contacts="file")
    with pytest.raises(da.ModelError, match='is not "file"'):
        da.simulate(m, 0.1, at(m, (0, 0, 0.1)), contacts="floor")
    run = da.simulate(m, 0.01, at(m, (0, 0, 0.1)), contacts="file")
    assert run.method == "moreau"
    assert "rtol does not enter" in run.reason
