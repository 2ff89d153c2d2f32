"""Convex hulls: faces, volumes, neighbours, what spans none; coarser hulls with their error."""

from __future__ import annotations

import numpy as np
import pytest

import dalembert as da
from dalembert.contact.hulls import convex_hull, packed
from dalembert.contact.memory import HEAD, NEIGHBOUR_STARTS, NEIGHBOURS


def test_cube_has_six_faces_that_turn_outward():
    corners = np.array([[x, y, z] for x in (-1, 1) for y in (-2, 2) for z in (-3, 3)], float)
    inside = np.random.default_rng(0).uniform(-0.9, 0.9, (50, 3))
    hull = convex_hull(np.vstack([corners, inside, corners]))
    assert (len(hull.vertices), len(hull.faces)) == (8, 6)
    assert abs(hull.volume - 48.0) < 1e-12
    for face, n in zip(hull.faces, hull.normals, strict=True):
        a, b, c, d = hull.vertices[list(face)]
        np.testing.assert_allclose(np.cross(b - a, c - a) / np.linalg.norm(np.cross(b - a, c - a)), n, atol=1e-12)
        np.testing.assert_allclose(a + c, b + d, atol=1e-12)
    tables = packed([hull, hull])
    starts, near = tables.i[tables.i[NEIGHBOUR_STARTS] :], tables.i[tables.i[NEIGHBOURS] :]
    for k in range(16):
        edges = {
            tuple(np.abs(hull.vertices[j % 8] - hull.vertices[k % 8]) > 0) for j in near[starts[k] : starts[k + 1]]
        }
        assert edges == {(True, False, False), (False, True, False), (False, False, True)}
    assert list(tables.i[HEAD : HEAD + 8]) == [0, 8, 0, 6, 8, 16, 6, 12]


def test_triangles_turn_outward():
    hull = convex_hull(np.random.default_rng(1).standard_normal((60, 3)))
    centre, volume = hull.vertices.mean(axis=0), 0.0
    for face, n in zip(hull.faces, hull.normals, strict=True):
        a, b, c = hull.vertices[list(face)]
        assert np.cross(b - a, c - a) @ n > 0.0
        assert n @ (a - centre) > 0.0
        volume += (a - centre) @ np.cross(b - centre, c - centre) / 6.0
    assert abs(volume - hull.volume) < 1e-12


def test_flat_points_are_refused_by_name():
    with pytest.raises(da.ModelError, match="the plate: its 4 points span no volume"):
        convex_hull(np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [1, 1, 0.0]]), "the plate")


def test_coarser_hull_is_inside_by_its_error():
    points = np.random.default_rng(2).standard_normal((400, 3))
    points /= np.linalg.norm(points, axis=1)[:, None]
    fine, coarse = convex_hull(points), convex_hull(points, most=40)
    assert len(coarse.vertices) <= 40
    assert coarse.volume < fine.volume
    offsets = np.array([n @ coarse.vertices[face[0]] for n, face in zip(coarse.normals, coarse.faces, strict=True)])
    assert abs((points @ coarse.normals.T - offsets).max() - coarse.error) < 1e-12
