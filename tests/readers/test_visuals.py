"""Visuals of files stay with the mechanism: shapes, meshes, colours; what is missing is a note, never a refusal."""

from __future__ import annotations

import numpy as np
import pytest

import dalembert as da
from tests.readers.robots import ROBOTS

pytest.importorskip("mujoco")

TRIANGLE = (
    "solid t\nfacet normal 0 0 1\nouter loop\nvertex 0 0 0\nvertex 1 0 0\nvertex 0 1 0\nendloop\nendfacet\nendsolid"
)

URDF = """<robot name="r"><material name="red"><color rgba="1 0 0 0.5"/></material>
<link name="a"><visual><origin xyz="0 0 1" rpy="0 0 1.5707963267948966"/><geometry><box size="1 2 3"/></geometry>
<material name="red"/></visual>
<visual><geometry><cylinder radius="0.1" length="2"/></geometry>
<material name="own"><color rgba="0 2 0 1"/></material></visual>
<visual><geometry><sphere radius="0.3"/></geometry></visual>
<visual><geometry><mesh filename="{mesh}" scale="2 2 -2"/></geometry></visual>
<visual><geometry><sphere radius="ball"/></geometry></visual>
<visual><geometry><blob/></geometry></visual></link></robot>"""


def _load(path, text):
    path.write_text(text)
    return da.load(path)


def test_urdf_shapes_and_colours(tmp_path):
    (tmp_path / "m.stl").write_text(TRIANGLE)
    m = _load(tmp_path / "r.urdf", URDF.format(mesh="m.stl"))
    box, cylinder, sphere, mesh = m.visuals
    assert (box.body, box.kind, box.size, box.color) == ("a", "box", (1.0, 2.0, 3.0), (1.0, 0.0, 0.0, 0.5))
    np.testing.assert_allclose(box.placement.position, (0, 0, 1))
    np.testing.assert_allclose(box.placement.rotation @ (1, 0, 0), (0, 1, 0), atol=1e-12)
    assert (cylinder.kind, cylinder.size, cylinder.color) == ("cylinder", (0.1, 2.0), (0.0, 1.0, 0.0, 1.0))
    assert (sphere.kind, sphere.size, sphere.color) == ("sphere", (0.3,), None)
    assert (mesh.kind, mesh.size, mesh.file) == ("mesh", (2.0, 2.0, -2.0), str((tmp_path / "m.stl").resolve()))
    notes = "\n".join(m.notes)
    assert "'ball' is not a number" in notes
    assert "<blob> is no shape of URDF" in notes


def test_visuals_are_no_content(tmp_path):
    """Kernels and equality do not depend on what a mechanism looks like."""
    (tmp_path / "m.stl").write_text(TRIANGLE)
    m = _load(tmp_path / "r.urdf", URDF.format(mesh="m.stl"))
    bare = _load(tmp_path / "s.urdf", '<robot name="r"><link name="a"/></robot>')
    assert m == bare
    assert m.visuals
    assert not bare.visuals


def test_package_is_the_nearest_folder_of_its_name(tmp_path):
    folder = tmp_path / "my_robot" / "deep" / "my_robot" / "urdf"
    folder.mkdir(parents=True)
    for place in (tmp_path / "my_robot", folder.parent):
        (place / "m.stl").write_text(TRIANGLE)
    m = _load(folder / "r.urdf", URDF.format(mesh="package://my_robot/m.stl"))
    assert m.visuals[-1].file == str((folder.parent / "m.stl").resolve())
    for lost in ("package://my_robot/../m.stl", "package://other/m.stl", "package://my_robot/urdf/r.urdf"):
        m = _load(folder / "r.urdf", URDF.format(mesh=lost))
        assert [visual.file for visual in m.visuals if visual.kind == "mesh"] == [""]
        assert any("meshes were not found" in note and "generated shapes" in note for note in m.notes)


def test_go2_has_its_meshes():
    m = da.load(ROBOTS / "go2_description/urdf/go2.urdf", base="floating")
    assert len(m.visuals) == 17
    assert {visual.kind for visual in m.visuals} == {"mesh"}
    assert not any("meshes were not found" in note for note in m.notes)


SDF = """<sdf version="1.9"><model name="m"><frame name="f"><pose>0 0 1 0 0 0</pose></frame>
<link name="a"><pose>1 0 0 0 0 0</pose>
<visual name="v"><pose relative_to="f">0 0 1 0 0 0</pose>
<geometry><capsule><radius>0.1</radius><length>2</length></capsule>
</geometry><material><diffuse>0.1 0.2 0.3 1</diffuse></material></visual>
<visual name="w"><geometry><mesh><uri>m.stl</uri><scale>1 1 2</scale></mesh></geometry></visual>
<visual name="p"><geometry><plane><normal>1 0 0</normal><size>2 4</size></plane></geometry></visual>
<visual name="x"><geometry><heightmap/></geometry></visual></link></model></sdf>"""


def test_sdf(tmp_path):
    (tmp_path / "m.stl").write_text(TRIANGLE)
    m = _load(tmp_path / "m.sdf", SDF)
    capsule, mesh, plane = m.visuals
    assert (capsule.kind, capsule.size, capsule.color) == ("capsule", (0.1, 2.0), (0.1, 0.2, 0.3, 1.0))
    np.testing.assert_allclose(capsule.placement.position, (-1, 0, 2), atol=1e-12)
    assert (mesh.kind, mesh.size) == ("mesh", (1.0, 1.0, 2.0))
    assert plane.size == (1.0, 2.0)
    np.testing.assert_allclose(plane.placement.rotation[:, 2], (1, 0, 0), atol=1e-12)
    assert any("<heightmap> is not drawn" in note for note in m.notes)


MJCF = """<mujoco><asset><mesh name="t" file="m.stl" scale="2 2 2"/><material name="blue" rgba="0 0 1 1"/></asset>
<default><default class="c"><geom group="3"/></default></default>
<worldbody><geom type="plane" size="1 2 .1"/>
<body name="a" pos="0 0 1"><inertial mass="1" pos="0 0 0" diaginertia="1 1 1"/><joint axis="0 1 0"/>
<geom type="box" size=".1 .2 .3" material="blue" pos="0 0 .5"/>
<geom type="capsule" fromto="0 0 0 0 0 2" size=".1" rgba="1 0 0 1"/>
<geom type="mesh" mesh="t" pos="0 1 0" euler="90 0 0"/>
<geom class="c" type="sphere" size="1"/></body></worldbody></mujoco>"""


def test_mjcf(tmp_path):
    cube = np.array([[x, y, z] for x in (0, 1) for y in (0, 1) for z in (0, 1)], float)
    faces = [(0, 1, 2), (1, 2, 3), (4, 5, 6), (5, 6, 7), (0, 1, 4), (1, 4, 5)]
    facets = "".join(
        "facet normal 0 0 0\nouter loop\n" + "".join(f"vertex {' '.join(map(str, cube[k]))}\n" for k in face)
        + "endloop\nendfacet\n" for face in faces
    )  # fmt: skip
    (tmp_path / "m.stl").write_text(f"solid c\n{facets}endsolid")
    m = _load(tmp_path / "m.xml", MJCF)
    plane, box, capsule, mesh = m.visuals
    assert (plane.body, plane.kind, plane.size) == ("world", "plane", (1.0, 2.0))
    assert (box.kind, box.color) == ("box", (0.0, 0.0, 1.0, 1.0))
    np.testing.assert_allclose(box.size, (0.2, 0.4, 0.6))
    np.testing.assert_allclose(capsule.size, (0.1, 2.0))
    np.testing.assert_allclose(capsule.placement.position, (0, 0, 1), atol=1e-12)
    assert (mesh.kind, mesh.size) == ("mesh", (2.0, 2.0, 2.0))
    np.testing.assert_allclose(mesh.placement.position, (0, 1, 0), atol=1e-12)
    np.testing.assert_allclose(mesh.placement.rotation @ (0, 1, 0), (0, 0, 1), atol=1e-12)
    assert m.mass == 1.0


def test_builder():
    b = da.Builder("b")
    b.body("a", mass=1.0)
    b.visual("a", "box", (1, 2, 3), position=(0, 0, 1), color=(1, 0, 0))
    assert b.build("floating").visuals[0].color == (1.0, 0.0, 0.0, 1.0)
    for kind, size, color, words in (
        ("boxx", (1, 2, 3), None, "did you mean 'box'"),
        ("box", (1, 2), None, "edge along x"),
        ("sphere", -1.0, None, "radius"),
        ("sphere", 1.0, (1, 2, 3), "from 0 to 1"),
    ):
        with pytest.raises(da.ModelError, match=words):
            b.visual("a", kind, size, color=color)
    b.visual("nobody", "sphere", 1.0)
    with pytest.raises(da.ModelError, match="nobody"):
        b.build("floating")
