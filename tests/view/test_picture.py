"""Scenes: where bodies, arrows and markers are, against mechanics worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest

import dalembert as da
from dalembert.view.body_shapes import generated
from dalembert.view.picture import picture_of
from dalembert.view.plane import drawn

G = 9.81

PIXEL = 1.5e-3
"""Metres that a pixel shows of a mechanism of 1.5 m, drawn 1000 pixels wide."""


def four_bar() -> da.Mechanism:
    b = da.Builder("four-bar")
    parent, x = "world", 0.0
    for name, length, mass in (("crank", 0.4, 1.0), ("coupler", 1.0, 2.0), ("rocker", 0.8, 1.5)):
        moment = mass * length**2 / 12
        b.body(name, mass=mass, center=(length / 2, 0, 0), inertia=(0.001, moment, moment))
        b.joint(f"{name}_hinge", "revolute", parent=parent, child=name, axis=(0, 1, 0), position=(x, 0, 0))
        parent, x = name, length
    pin = da.Revolute("rocker", at=(1.1, 0, 0), placement=(0.8, 0, 0), axis=(0, 1, 0), name="pin")
    return b.build().constrain(pin)


@pytest.fixture(scope="module")
def run() -> da.Trajectory:
    m = four_bar()
    start = m.assemble([-1.0, 0.7, 1.5], hold=["crank_hinge"])
    return da.simulate(m, 1.0, start.q, start.v)


def test_poses_and_anchors(run):
    scene = picture_of(run)
    assert scene.t.size == 51
    q, _ = run.at(scene.t)
    np.testing.assert_allclose(scene.positions, run.mechanism.kinematics(q)[1], atol=PIXEL / 10)
    np.testing.assert_allclose(sorted(place[0] for place in scene.anchors), (0.0, 1.1))
    assert scene.up.tolist() == [0, 0, 1]
    assert abs(scene.view[1]) > 3 * abs(scene.view[0])  # one looks across the plane of motion


def test_reactions_are_forces_in_world_axes(run):
    """The arrow at the pin is the reaction of its rows; components that are zero and not unique have none."""
    m, scene = run.mechanism, picture_of(run)
    (pin,) = scene.forces
    assert pin.kind == "unique"  # x and z are; y is not, and is zero: it has no arrow
    k = int(np.argmin(np.abs(run.t - 0.5)))
    at = picture_of(run, rate=1000.0)
    frame = int(np.argmin(np.abs(at.t - run.t[k])))
    expected = [run.reactions[f"pin {axis}"][k] for axis in "xyz"]
    np.testing.assert_allclose(at.forces[0].vectors[frame], expected, rtol=0.02, atol=0.05)
    np.testing.assert_allclose(at.forces[0].points[frame], (1.1, 0, 0), atol=1e-6)
    assert not scene.rings[0].unique.any()  # rows across the plane are redundant
    assert m.name == scene.title


def test_a_hung_weight():
    """A Point whose second frame is turned: the force still points up, m g."""
    b = da.Builder("weight")
    b.body("w", mass=2.0, inertia=(0.1, 0.1, 0.1))
    b.frame("hook", "world", rpy=(1.0, 0.5, -0.3))
    m = b.build("floating").constrain(da.Point("w", "hook"))
    scene = picture_of(da.simulate(m, 0.1, m.neutral()))
    np.testing.assert_allclose(scene.forces[0].vectors[-1], (0, 0, 2 * G), atol=1e-6)


def test_forces_that_are_not_unique_are_other_arrows():
    """A beam on two hinges: the sum along it is shared in any way; across, each force is unique."""
    b = da.Builder("beam")
    b.body("beam", mass=3.0, inertia=(0.1, 1.0, 1.0))
    m = b.build("floating").constrain(
        da.Point("beam", at=(-1, 0, 0), placement=(-1, 0, 0), name="left"),
        da.Point("beam", at=(1, 0, 0), placement=(1, 0, 0), name="right"),
    )
    scene = picture_of(da.simulate(m, 0.1, m.neutral(), force=[5.0, 0, 0, 0, 0, 0]))
    kinds = {(force.name, force.kind): force.vectors[-1] for force in scene.forces}
    np.testing.assert_allclose(kinds["left", "unique"], (0, 0, 1.5 * G), atol=1e-6)
    np.testing.assert_allclose(kinds["left", "family"], (-2.5, 0, 0), atol=1e-6)


def test_contact_forces_carry_the_weight():
    b = da.Builder("box")
    b.body("box", mass=2.0, inertia=(0.02, 0.02, 0.02))
    m = b.build("floating")
    q = m.neutral()
    q[2] = 0.1
    contact = da.Contact(da.Box("box", (0.4, 0.3, 0.2)), da.Plane(), friction=0.5)
    scene = picture_of(da.simulate(m, 0.05, q, contacts=[contact], method="moreau", step=1e-3))
    assert {force.kind for force in scene.forces} == {"contact"}
    np.testing.assert_allclose(sum(force.vectors[-1] for force in scene.forces), (0, 0, 2 * G), atol=1e-6)
    touching = [force for force in scene.forces if np.linalg.norm(force.vectors[-1]) > 1e-6]
    np.testing.assert_allclose([force.points[-1][2] for force in touching], 0.0, atol=1e-4)
    assert [shape.kind for shape in scene.drawing.bodies[0]] == ["box"]
    assert scene.floor == 0.0


def test_massless_links_are_see_through():
    b = da.Builder("rod")
    b.body("rod")
    b.joint("hinge", "revolute", "world", "rod", axis=(0, 1, 0))
    b.body("bob", mass=1.0)
    b.joint("pin", "revolute", "rod", "bob", axis=(0, 1, 0), position=(0, 0, -1))
    rod, _ = generated(b.build(), 1.0)
    assert rod[0].kind == "capsule"
    assert rod[0].opacity < 1.0
    assert rod[0].size[1] == pytest.approx(1.0)


def test_generated_shapes_stand_in_for_meshes_that_are_missing(tmp_path):
    moments = '<inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/>'
    link = f'<link name="{{0}}"><inertial><mass value="1"/>{moments}</inertial>'
    link += "<visual><geometry>{1}</geometry></visual></link>"
    joint = '<joint name="j" type="revolute"><origin xyz="1 0 0"/><parent link="a"/><child link="b"/>'
    joint += '<axis xyz="0 1 0"/></joint>'
    parts = link.format("a", '<sphere radius="0.1"/>') + link.format("b", '<mesh filename="lost.stl"/>') + joint
    (tmp_path / "r.urdf").write_text(f'<robot name="r">{parts}</robot>')
    a, b = picture_of(da.load(tmp_path / "r.urdf")).drawing.bodies
    assert [shape.kind for shape in a] == ["sphere"]
    assert "cylinder" in [shape.kind for shape in b]  # its hinge


def test_forces_of_joints():
    """A hung bar: its hinge carries the weight."""
    b = da.Builder("bar")
    b.body("bar", mass=2.0, center=(0, 0, -0.5), inertia=(0.1, 0.1, 0.01))
    b.joint("hinge", "revolute", "world", "bar", axis=(0, 1, 0), position=(0.3, 0, 0))
    run = da.simulate(b.build(), 0.1, [0.0])
    (hinge,) = picture_of(run, forces="joints").forces
    np.testing.assert_allclose(hinge.vectors[-1], (0, 0, 2 * G), atol=1e-6)
    np.testing.assert_allclose(hinge.points[-1], (0.3, 0, 0), atol=1e-9)
    assert hinge.kind == "unique"
    assert not picture_of(run).forces
    with pytest.raises(da.ModelError, match="True, False or 'joints'"):
        picture_of(run, forces="all")


def test_overlay_and_lines(run):
    scene = picture_of(run, overlay=[run], lines=["crank_hinge", "pin"])
    np.testing.assert_allclose(scene.ghosts[0][1], scene.positions)
    assert list(scene.lines) == ["crank_hinge", "pin"]
    np.testing.assert_allclose(scene.lines["crank_hinge"][[0, -1]], run["crank_hinge"][[0, -1]])
    with pytest.raises(da.ModelError, match="did you mean 'crank_hinge'"):
        picture_of(run, lines=["crank_hingee"])
    with pytest.raises(da.ModelError, match="one number for each"):
        picture_of(run, lines={"x": [1.0, 2.0]})
    with pytest.raises(da.ModelError, match="direction from which one looks"):
        picture_of(run, view=(0, 0, 0))


def test_systems_without_bodies_say_so():
    run = da.simulate(da.examples.crank_slider(), 0.1, [0.5, 1.0], [0.0, 0.0])
    with pytest.raises(da.UnsupportedError, match="no bodies that could be drawn"):
        run.animate("never.html")
    assert "<pre>completed" in run._repr_html_()


def test_fast_turns_have_frames_enough():
    """Poses between frames are blended: a wheel of 40 rad/s has 80 frames a second, not 50."""
    b = da.Builder("wheel", gravity=(0, 0, 0))
    b.body("wheel", mass=1.0, inertia=(0.1, 0.1, 0.1))
    b.joint("axle", "revolute", parent="world", child="wheel", axis=(0, 1, 0))
    run = da.simulate(b.build(), 2.0, [0.0], [40.0])
    assert np.diff(picture_of(run).t).max() * 40.0 <= 0.5 + 1e-9


def test_lines_have_the_peaks_between_frames():
    """A loop force whose peak is 20 ms wide: the line reaches the peak of 2,000 samples, frames alone do not."""
    run = da.scene("four_bar").run(progress=False)
    picture = picture_of(run, rate=20.0)
    peak = np.linalg.norm(run.refined().joint_forces["loop"].force, axis=1).max()
    np.testing.assert_allclose(picture.lines["|loop| (N)"].max(), peak, rtol=1e-3)
    assert np.linalg.norm(picture.forces[0].vectors, axis=1).max() < 0.98 * peak


def test_springs_and_arrows_stay_in_the_picture():
    """A slider on a spring: every end of the spring and every tip of an arrow lies in the drawing at all times."""
    run = da.scene("crank_slider").run()
    picture = picture_of(run)
    drawing = drawn(picture)
    lines = [item for item in drawing.items if item.kind == "line"]
    assert picture.links
    assert picture.forces
    points = np.concatenate([item.points.reshape(-1, 2) for item in lines if np.asarray(item.points).size])
    assert points.min() >= 0.0
    assert (points <= [drawing.width, drawing.height]).all()
    low, high = picture.outline.min(axis=0), picture.outline.max(axis=0)
    tips = picture.forces[0].points + picture.arrow_unit * picture.forces[0].vectors
    assert (tips >= low - 0.01 * picture.size).all()
    assert (tips <= high + 0.01 * picture.size).all()
    assert high[0] >= 2.0  # where the spring is tied to the wall
