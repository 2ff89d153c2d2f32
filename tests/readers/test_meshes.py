"""Meshes of STL, OBJ and COLLADA files: by hand, and against Assimp (through coal) on the robots of others."""

from __future__ import annotations

import struct

import numpy as np
import pytest

import dalembert as da
from dalembert.readers.meshes import TriangleMesh, coarser, read_mesh
from tests.readers.robots import ROBOTS

CORNERS = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]], float)
FACES = np.array([[0, 2, 1], [0, 1, 3], [0, 3, 2], [1, 2, 3]])


def _volume(mesh: TriangleMesh) -> float:
    a, b, c = (mesh.vertices[mesh.faces[:, k]] for k in range(3))
    return float(np.einsum("ij,ij->i", a, np.cross(b, c)).sum() / 6)


def _files(folder):
    binary = b"\0" * 80 + struct.pack("<I", 4)
    for face in FACES:
        binary += struct.pack("<12fH", 0, 0, 0, *CORNERS[face].ravel(), 0)
    (folder / "binary.stl").write_bytes(binary)
    facets = "".join(
        "facet normal 0 0 0 outer loop " + " ".join("vertex " + " ".join(map(str, CORNERS[k])) for k in face)
        + " endloop endfacet\n" for face in FACES
    )  # fmt: skip
    (folder / "text.stl").write_text(f"solid s\n{facets}endsolid")
    lines = [f"v {x} {y} {z}" for x, y, z in CORNERS] + ["f 1/1 3/1 2/1", "f 1//2 2//2 4//2", "f -4 -1 -2", "f 2 3 4"]
    (folder / "m.obj").write_text("\n".join(lines))
    (folder / "m.dae").write_text(
        '<COLLADA><asset><unit meter="0.5"/><up_axis>Y_UP</up_axis></asset>'
        '<library_effects><effect id="e"><profile_COMMON><technique><phong><diffuse><color>1 0.5 0 1</color></diffuse>'
        '</phong></technique></profile_COMMON></effect></library_effects><library_materials><material id="mat">'
        '<instance_effect url="#e"/></material></library_materials><library_geometries><geometry id="g"><mesh>'
        f'<source id="p"><float_array>{" ".join(map(str, CORNERS.ravel()))}</float_array></source>'
        '<vertices id="v"><input semantic="POSITION" source="#p"/></vertices>'
        '<polylist material="sym"><input semantic="VERTEX" source="#v" offset="1"/>'
        '<input semantic="NORMAL" source="#p" offset="0"/><vcount>3 3 3 3</vcount>'
        f"<p>{' '.join(f'0 {k}' for k in FACES.ravel())}</p></polylist></mesh></geometry></library_geometries>"
        "<library_visual_scenes><visual_scene><node><translate>0 0 2</translate><scale>2 2 2</scale>"
        '<instance_geometry url="#g"><bind_material><technique_common><instance_material symbol="sym" target="#mat"/>'
        "</technique_common></bind_material></instance_geometry></node></visual_scene></library_visual_scenes></COLLADA>"
    )


@pytest.mark.parametrize("name", ["binary.stl", "text.stl", "m.obj"])
def test_a_tetrahedron(tmp_path, name):
    _files(tmp_path)
    (mesh,) = read_mesh(str(tmp_path / name))
    assert (len(mesh.vertices), len(mesh.faces)) == (4, 4)
    assert _volume(mesh) == pytest.approx(1 / 6)


def test_collada(tmp_path):
    """Unit 0.5 m and scale 2 make 1; the node lifts it by 2 units, 1 m; <up_axis> turns nothing."""
    _files(tmp_path)
    (mesh,) = read_mesh(str(tmp_path / "m.dae"))
    assert mesh.color == 0xFF8000
    assert _volume(mesh) == pytest.approx(1 / 6)
    np.testing.assert_allclose(mesh.vertices.min(axis=0), (0, 0, 1))


def test_broken_files_are_refused(tmp_path):
    for name, text in (("a.obj", "v 0 0 0\nf 1 2 3"), ("b.stl", "solid\nvertex 1 x 2"), ("c.dae", "<COLLADA><a>")):
        (tmp_path / name).write_text(text)
        with pytest.raises(da.ModelError, match=name):
            read_mesh(str(tmp_path / name))
    with pytest.raises(da.ModelError, match=r"\.stl, \.obj, \.dae"):
        read_mesh("/etc/passwd")


MESHES = ("go2_description/visuals/base.dae", "go2_description/visuals/thigh.dae", "go2_description/visuals/foot.dae")


@pytest.mark.parametrize("name", MESHES)
def test_against_assimp(name):
    coal = pytest.importorskip("coal")
    other = coal.MeshLoader().load(str(ROBOTS / name), np.ones(3)).vertices()
    ours = np.concatenate([mesh.vertices for mesh in read_mesh(str(ROBOTS / name))])
    size = np.ptp(ours, axis=0).max()
    np.testing.assert_allclose(ours.min(axis=0), other.min(axis=0), atol=2e-3 * size)
    np.testing.assert_allclose(ours.max(axis=0), other.max(axis=0), atol=2e-3 * size)


def test_coarser_keeps_the_shape():
    u, v = np.meshgrid(np.linspace(0, np.pi, 80), np.linspace(0, 2 * np.pi, 160), indexing="ij")
    ball = np.column_stack([(np.sin(u) * np.cos(v)).ravel(), (np.sin(u) * np.sin(v)).ravel(), np.cos(u).ravel()])
    a = (np.arange(79)[:, None] * 160 + np.arange(159)).ravel()
    faces = np.concatenate([np.column_stack([a, a + 160, a + 161]), np.column_stack([a, a + 161, a + 1])])
    fine = TriangleMesh(ball, faces)
    coarse = coarser(fine, 5000)
    assert 500 < len(coarse.faces) <= 5000
    assert _volume(coarse) == pytest.approx(_volume(fine), rel=0.03)
