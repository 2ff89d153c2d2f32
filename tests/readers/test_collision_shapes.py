"""Collision shapes of files: kinds, sizes, laws, rules; what makes no shape, or is not there, is said by name."""

from __future__ import annotations

import numpy as np
import pytest

import dalembert as da

TETRAHEDRON = """v 0 0 0
v 1 0 0
v 0 1 0
v 0 0 1
f 1 3 2
f 1 2 4
f 1 4 3
f 2 3 4
"""

LINK = (
    '<link name="{}"><inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>{}'
    "</link>"
)

URDF = (
    '<robot name="r">'
    + LINK.format(
        "a",
        '<collision name="foot"><origin xyz="0 0 1"/><geometry><box size="1 2 3"/></geometry></collision>'
        '<collision><geometry><mesh filename="m.obj" scale="2 2 2"/></geometry>'
        '<drake:proximity_properties><drake:mu_dynamic value="0.7"/></drake:proximity_properties></collision>'
        '<collision><geometry><cylinder radius="0" length="1"/></geometry></collision>'
        '<collision><geometry><mesh filename="package://p/lost.stl"/></geometry></collision>',
    )
    + LINK.format("b", '<collision><geometry><capsule radius="0.1" length="2"/></geometry></collision>')
    + LINK.format("c", '<collision><geometry><sphere radius="0.1"/></geometry></collision>')
    + '<joint name="j" type="revolute"><parent link="a"/><child link="b"/><axis xyz="0 0 1"/>'
    '<limit lower="-1" upper="1" effort="1" velocity="1"/></joint>'
    '<joint name="k" type="revolute"><parent link="b"/><child link="c"/><origin xyz="9 0 0"/><axis xyz="0 0 1"/>'
    '<limit lower="-1" upper="1" effort="1" velocity="1"/></joint></robot>'
)


@pytest.fixture
def urdf(tmp_path):
    text = URDF.replace("<robot ", '<robot xmlns:drake="http://drake.mit.edu" ')
    (tmp_path / "r.urdf").write_text(text)
    (tmp_path / "m.obj").write_text(TETRAHEDRON)
    return tmp_path / "r.urdf"


def test_urdf(urdf):
    m = da.load(urdf, base="floating")
    box, mesh, lost, capsule, sphere = m.collision_shapes
    assert (box.name, box.body, box.kind, box.size) == ("foot", "a", "box", (1.0, 2.0, 3.0))
    np.testing.assert_allclose(box.placement.position, (0, 0, 1))
    assert (mesh.name, mesh.file, mesh.friction) == ("a", str(urdf.parent / "m.obj"), 0.7)
    assert (capsule.kind, capsule.size, sphere.size) == ("capsule", (0.1, 2.0), (0.1,))
    notes = "\n".join(m.notes)
    assert "its cylinder has no extent: 0, 1" in notes
    assert lost.file == "package://p/lost.stl"
    assert "package://p/lost.stl (tried no package 'p' is declared)" in notes


def test_lost_meshes_are_refused_by_name_or_left_out(urdf):
    m = da.load(urdf, base="floating")
    with pytest.raises(da.ModelError, match=r"1 meshes .* 'a 2': package://p/lost.stl"):
        m.contacts()
    scene = m.contacts(missing="leave out")
    assert any("left out: 1 meshes" in note for note in scene.notes)
    q = m.on_ground()
    assert abs(scene.detect(q, 1e-9)[0][:, 6].min()) < 1e-15
    assert scene.friction[[scene.names(k) for k in range(len(scene.pairs))].index(("ground", "a"))] == 0.7


def test_srdf_leaves_pairs_out(urdf):
    both = da.load(urdf, base="floating").contacts(self=True, ground=False, missing="leave out")
    named = {frozenset(both.names(k)) for k in range(len(both.pairs))}
    assert named == {frozenset(("foot", "c")), frozenset(("a", "c"))}
    (urdf.parent / "r.srdf").write_text(
        '<robot name="r"><disable_collisions link1="c" link2="a" reason="Never"/>'
        '<group_state name="home" group="g"><joint name="j" value="0.1"/></group_state></robot>'
    )
    m = da.load(urdf, base="floating")
    assert [(rule.one, rule.other, rule.reason) for rule in m.contact_rules] == [
        ("c", "a", "<disable_collisions>: Never")
    ]
    with pytest.raises(da.ModelError, match="no shapes that could touch"):
        m.contacts(self=True, ground=False, missing="leave out")
    again = m.contacts(self=True, ground=False, missing="leave out", pairs=[("c", "foot")])
    assert again.names(0) == ("c", "foot")


SDF = """<sdf version="1.9"><model name="m"><link name="a"><pose>0 0 1 0 0 0</pose>
<inertial><mass>1</mass><inertia><ixx>1</ixx><iyy>1</iyy><izz>1</izz></inertia></inertial>
<collision name="ball"><pose>0 0 0.5 0 0 0</pose><geometry><ellipsoid><radii>1 2 3</radii></ellipsoid></geometry>
<surface><friction><ode><mu>0.4</mu></ode></friction><bounce><restitution_coefficient>0.25</restitution_coefficient></bounce>
<contact><collide_bitmask>0x02</collide_bitmask></contact></surface></collision></link></model></sdf>"""


def test_sdf(tmp_path):
    (tmp_path / "m.sdf").write_text(SDF)
    (shape,) = da.load(tmp_path / "m.sdf").collision_shapes
    assert (shape.name, shape.body, shape.kind, shape.size) == ("ball", "a", "ellipsoid", (1.0, 2.0, 3.0))
    assert (shape.friction, shape.restitution, shape.group, shape.mask) == (0.4, 0.25, 2, 2)
    np.testing.assert_allclose(shape.placement.position, (0, 0, 0.5))


def test_bad_laws_are_said_with_their_line(tmp_path):
    (tmp_path / "m.sdf").write_text(SDF.replace("0x02", "9z"))
    m = da.load(tmp_path / "m.sdf")
    assert not m.collision_shapes
    assert any("'9z' is not a bit mask" in note for note in m.notes)
    pytest.importorskip("mujoco")
    (tmp_path / "m.obj").write_text(TETRAHEDRON)
    (tmp_path / "m.xml").write_text(MJCF.replace("{lost}", "").replace('friction="0.05"', 'friction="e"'))
    with pytest.raises(da.ModelError, match="friction"):
        da.load(tmp_path / "m.xml")


MJCF = """<mujoco><option/><asset><mesh name="t" vertex="0 0 0 1 0 0 0 1 0 0 0 1"/>
<mesh name="f" file="m.obj" scale="2 2 2"/>
<mesh name="lost" file="lost.stl"/></asset>
<worldbody><geom name="floor" type="plane" size="5 5 .1" friction="0.3"/>
<body name="a" pos="0 0 2"><freejoint/><inertial pos="0 0 0" mass="1" diaginertia="1 1 1"/>
<geom name="box" type="box" size=".1 .2 .3" friction="0.8" priority="2" pos="0 0 -1"/>
<geom name="tetra" type="mesh" mesh="t" pos="1 0 0"/><geom name="file" type="mesh" mesh="f" pos="0 3 0"/>
<geom name="shown" type="sphere" size=".1" contype="0" conaffinity="0"/>
<body name="b"><joint type="hinge"/><inertial pos="0 0 0" mass="1" diaginertia="1 1 1"/>
<geom name="rod" type="capsule" fromto="5 0 0 6 0 0" size=".1" condim="1"/>
<body name="c" pos="8 0 0"><joint type="hinge"/><geom name="ball" type="sphere" size=".1" mass="1"/>{lost}
</body></body></body></worldbody>
<contact><exclude body1="a" body2="c"/><pair geom1="rod" geom2="box" friction="0.05"/></contact></mujoco>"""


def test_mjcf(tmp_path):
    pytest.importorskip("mujoco")
    (tmp_path / "m.obj").write_text(TETRAHEDRON)
    (tmp_path / "m.xml").write_text(MJCF.replace("{lost}", ""))
    m = da.load(tmp_path / "m.xml")
    shapes = {shape.name: shape for shape in m.collision_shapes}
    assert list(shapes) == ["floor", "box", "tetra", "file", "rod", "ball"]
    assert (shapes["floor"].body, shapes["floor"].kind, shapes["floor"].friction) == ("world", "plane", 0.3)
    assert (shapes["box"].size, shapes["box"].priority) == ((0.2, 0.4, 0.6), 2)
    assert (shapes["rod"].kind, shapes["rod"].size, shapes["rod"].friction) == ("capsule", (0.1, 1.0), 0.0)
    assert shapes["tetra"].points.shape == (4, 3)
    assert shapes["file"].size == (2.0, 2.0, 2.0)
    scene = m.contacts(self=True)
    laws = {scene.names(k): scene.friction[k] for k in range(len(scene.pairs))}
    assert laws["floor", "box"] == 0.8, "priority"
    assert laws["floor", "ball"] == 1.0, "the larger"
    assert laws["floor", "rod"] == 0.3
    assert laws["rod", "box"] == 0.05, "a <pair>, although a joint connects them"
    assert not any({"ball", "box"} == set(pair) for pair in laws), "an <exclude>"
    found, who = scene.detect(m.pose("file"), 10.0)
    first = {scene.names(k): found[who[:, 0] == k, 6].min() for k in np.unique(who[:, 0])}
    np.testing.assert_allclose(
        [first["floor", name] for name in ("box", "tetra", "file", "rod", "ball")],
        [0.7, 2.0, 2.0, 1.9, 1.9],
        atol=1e-12,
    )


def test_lost_mesh_of_mjcf_is_named(tmp_path):
    pytest.importorskip("mujoco")
    (tmp_path / "m.obj").write_text(TETRAHEDRON)
    (tmp_path / "m.xml").write_text(MJCF.replace("{lost}", '<geom type="mesh" mesh="lost" mass="0"/>'))
    with pytest.raises(da.ModelError, match=r"'c': lost.stl"):
        da.load(tmp_path / "m.xml").contacts()


USD = """#usda 1.0
( metersPerUnit = 0.01
  upAxis = "Z" )
def PhysicsScene "scene" {
}
def Material "rubber" ( prepend apiSchemas = ["PhysicsMaterialAPI"] ) {
  float physics:dynamicFriction = 0.6
  float physics:restitution = 0.2
}
def Xform "a" ( prepend apiSchemas = ["PhysicsRigidBodyAPI", "PhysicsMassAPI"] ) {
  float physics:mass = 1
  def Cube "box" ( prepend apiSchemas = ["PhysicsCollisionAPI", "MaterialBindingAPI"] ) {
    double size = 20
    rel material:binding:physics = </rubber>
}
  def Capsule "rod" ( prepend apiSchemas = ["PhysicsCollisionAPI"] ) {
    double radius = 5
    double height = 30
    token axis = "X"
}
  def Mesh "hull" ( prepend apiSchemas = ["PhysicsCollisionAPI"] ) {
    point3f[] points = [(0, 0, 0), (100, 0, 0), (0, 100, 0), (0, 0, 100)]
    int[] faceVertexCounts = [3, 3, 3, 3]
    int[] faceVertexIndices = [0, 2, 1, 0, 1, 3, 0, 3, 2, 1, 2, 3]
}
}
"""


def test_usd(tmp_path):
    pytest.importorskip("pxr")
    (tmp_path / "m.usda").write_text(USD)
    m = da.load(tmp_path / "m.usda")
    box, rod, hull = m.collision_shapes
    np.testing.assert_allclose(box.size, (0.2, 0.2, 0.2))
    np.testing.assert_allclose((box.friction, box.restitution), (0.6, 0.2), rtol=1e-6)
    np.testing.assert_allclose(rod.size, (0.05, 0.3))
    np.testing.assert_allclose(np.abs(rod.placement.rotation[:, 2]), (1, 0, 0), atol=1e-12)
    np.testing.assert_allclose(hull.points.max(axis=0), (1, 1, 1))
    assert len(m.contacts().pairs) == 3


def test_hulls_are_made_coarser_with_their_error(tmp_path):
    """A ball of many points, at most 30 vertices: no point is farther outside than the note says."""
    x = np.random.default_rng(0).standard_normal((500, 3))
    x /= np.linalg.norm(x, axis=1)[:, None]
    b = da.Builder()
    b.body("ball", mass=1.0, inertia=(1, 1, 1))
    b.joint("free", "free", "world", "ball")
    b.collision_shape("ball", "mesh", (1, 1, 1), points=x)
    m = b.build()
    (note,) = m.contacts(most_vertices=30).notes
    assert "30 vertices" in note
    error = float(note.split("up to ")[1].split(" m")[0])
    fine, coarse = m.contacts(), m.contacts(most_vertices=30)
    q = m.neutral()
    gap = coarse.detect(q, 2.0)[0][:, 6].min() - fine.detect(q, 2.0)[0][:, 6].min()
    assert 0.0 <= gap <= 1.05 * error
    assert error < 0.3
