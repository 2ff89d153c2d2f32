"""Narrow phase: signed distances of all kinds of shapes against bounds and coal; exchange, scales, contact points."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from dalembert.contact.kinds import NUMBERS
from tests.contact.collisions import CLOUD, SIZES, Pairs

CONVEX = ("sphere", "capsule", "box", "cylinder", "ellipsoid", "hull")
KINDS = [*itertools.combinations_with_replacement(CONVEX, 2), *(("plane", kind) for kind in CONVEX)]


@pytest.mark.parametrize(("one", "two"), KINDS)
@pytest.mark.parametrize("scale", [1.0, 1e-3, 1e3])
def test_distance_is_what_its_normal_certifies(one, two, scale):
    """No normal nearby separates better, and the support function along the normal gives the distance found."""
    rng = np.random.default_rng(2)
    pairs = Pairs(one, two, n=20 if scale == 1.0 else 8, scale=scale, seed=4)
    for depth in (None, 0.02):
        if depth is not None:
            pairs.bring_near(depth, rng)
        found, _, counts = pairs.collide()
        assert (counts == 1).all() or one == "plane"
        for i in range(pairs.n):
            n, d = found[i, 0, 3:6], found[i, 0, 6]
            assert abs(np.linalg.norm(n) - 1.0) < 1e-14
            assert abs(pairs.bound(i, n) - d) < 3e-14 * scale
            if one == "plane":
                continue
            for _ in range(8):  # a local maximum: normals around are not better
                other = n + 10.0 ** rng.uniform(-6, -1) * rng.standard_normal(3)
                assert pairs.bound(i, other / np.linalg.norm(other)) < d + 1e-12 * scale


@pytest.mark.parametrize(("one", "two"), KINDS)
def test_coal_knows_no_better_normal(one, two):
    """coal's normals never separate better by 1e-9; distances agree to 1e-8 but for coal's local optima."""
    coal = pytest.importorskip("coal")
    pairs = Pairs(one, two, n=60, seed=7)
    found, _, _ = pairs.collide()
    first, second = _coal(coal, one), _coal(coal, two)
    distance = coal.ComputeDistance(first, second)
    request, result = coal.DistanceRequest(), coal.DistanceResult()
    request.gjk_tolerance = request.epa_tolerance = 1e-9
    request.gjk_max_iterations = request.epa_max_iterations = 500
    agree = 0
    for i in range(pairs.n):
        a, b = pairs.records[i], pairs.records[pairs.n + i]
        result.clear()
        distance(coal.Transform3s(a["R"], a["p"]), coal.Transform3s(b["R"], b["p"]), request, result)
        theirs = pairs.bound(i, np.array(result.normal))
        assert theirs <= found[i, 0, 6] + 1e-9
        agree += abs(found[i, 0, 6] - result.min_distance) < 1e-8
    assert agree > 0.8 * pairs.n


def _coal(coal, kind):
    s = np.array(SIZES[kind], float)
    if kind == "hull":
        points = coal.StdVec_Vec3s()
        for x in CLOUD:
            points.append(x)
        return coal.Convex.convexHull(points, True, None)
    return {
        "sphere": lambda: coal.Sphere(s[0]),
        "capsule": lambda: coal.Capsule(s[0], 2 * s[1]),
        "box": lambda: coal.Box(*(2 * s)),
        "cylinder": lambda: coal.Cylinder(s[0], 2 * s[1]),
        "ellipsoid": lambda: coal.Ellipsoid(*s),
        "plane": lambda: coal.Halfspace(np.array([0, 0, 1.0]), 0.0),
    }[kind]()


@pytest.mark.parametrize("kind", CONVEX)
def test_exchange_turns_the_normal(kind):
    pairs = Pairs(kind, kind, n=50, seed=5)
    one, two = pairs.collide()[0][:, 0], pairs.collide(exchanged=True)[0][:, 0]
    np.testing.assert_allclose(one[:, 6], two[:, 6], atol=1e-12)
    np.testing.assert_allclose(one[:, 3:6], -two[:, 3:6], atol=1e-9)


@pytest.mark.parametrize(("one", "two"), KINDS)
def test_same_bits_again_and_a_warm_start_changes_no_distance(one, two):
    pairs = Pairs(one, two, n=30, seed=6)
    warm = np.zeros((pairs.n, 3))
    first = pairs.collide(several=True, warm=warm)
    again = pairs.collide(several=True)
    for a, b in zip(first, again, strict=True):
        np.testing.assert_array_equal(a, b)
    cold, hot = pairs.collide()[0][:, 0], pairs.collide(warm=warm)[0][:, 0]
    np.testing.assert_allclose(cold[:, 6], hot[:, 6], atol=1e-12)


@pytest.mark.parametrize(("one", "two"), KINDS)
def test_points_are_half_way_between_both_surfaces(one, two):
    """The witness x -+ d/2 n of both shapes lies on its surface: no farther along the normal than the support point."""
    pairs = Pairs(one, two, n=30, seed=8)
    found = pairs.collide()[0][:, 0]
    for i in range(pairs.n):
        x, n, d = found[i, :3], found[i, 3:6], found[i, 6]
        for k, sign in ((0, 1.0), (1, -1.0)):
            p = pairs.records["p"][k * pairs.n + i]
            assert abs(sign * n @ (x - sign * 0.5 * d * n - p) - pairs.farthest(k, i, sign * n)) < 1e-9


def _two(one, two, size1, size2, p, R=None):
    """Return contacts and features of two shapes, the second at p."""
    pairs = Pairs(one, two, n=1)
    a, b = pairs.records
    a["size"], b["size"], a["p"], b["p"], a["R"], b["R"] = (
        size1,
        size2,
        0.0,
        p,
        np.eye(3),
        np.eye(3) if R is None else R,
    )
    a["kind"], b["kind"] = NUMBERS[one], NUMBERS[two]
    found, features, counts = pairs.collide(several=True, margin=1e-3)
    return found[0, : counts[0]], features[0, : counts[0]]


def test_box_on_box_has_four_corners():
    found, features = _two("box", "box", (1, 1, 0.5), (0.2, 0.3, 0.1), (0.1, 0.2, 0.6))
    assert len(found) == 4
    corners = {(round(x, 9), round(y, 9)) for x, y in found[:, :2]}
    assert corners == {(-0.1, -0.1), (0.3, -0.1), (-0.1, 0.5), (0.3, 0.5)}
    np.testing.assert_allclose(found[:, 6], 0.0, atol=1e-15)
    np.testing.assert_allclose(found[:, 3:6], np.tile([0, 0, 1.0], (4, 1)))
    assert len(set(features)) == 4
    again, same = _two("box", "box", (1, 1, 0.5), (0.2, 0.3, 0.1), (0.1001, 0.2, 0.5999))
    assert set(same) == set(features)
    np.testing.assert_allclose(again[:, 6], -1e-4, atol=1e-12)


def test_crossed_boxes_have_eight_corners():
    c = np.cos(np.pi / 4)
    turned = np.array([[c, -c, 0], [c, c, 0], [0, 0, 1.0]])
    found, features = _two("box", "box", (1, 1, 0.5), (1, 1, 0.5), (0, 0, 1.0), turned)
    assert len(found) == len(set(features)) == 8
    np.testing.assert_allclose(np.abs(found[:, :2]).max(axis=1), 1.0)


def test_cylinder_stands_and_lies_on_a_plane():
    standing, _ = _two("plane", "cylinder", 0.0, (0.5, 1.0, 0), (0, 0, 1.0))
    assert len(standing) == 3
    np.testing.assert_allclose(np.linalg.norm(standing[:, :2], axis=1), 0.5)
    lying, _ = _two(
        "plane", "cylinder", 0.0, (0.5, 1.0, 0), (0, 0, 0.5), np.array([[0, 0, 1.0], [0, 1, 0], [-1, 0, 0]])
    )
    assert sorted(np.round(lying[:, 0], 9)) == [-1.0, 1.0]


def test_parallel_capsules_touch_along_a_line():
    found, _ = _two("capsule", "capsule", (0.2, 1.0, 0), (0.3, 0.5, 0), (0.5, 0, 0.8))
    assert sorted(np.round(found[:, 2], 9)) == [0.3, 1.0]
    np.testing.assert_allclose(found[:, 6], 0.0, atol=1e-15)


def test_far_from_the_origin_costs_no_digits():
    """A cube of a millimetre at a kilometre: the depth is good to the rounding of its place."""
    near = Pairs("hull", "cylinder", n=40, scale=1e-3, seed=9)
    found = near.collide()[0][:, 0]
    near.records["p"] += 1024.0  # exact in binary where places are multiples of 2^-43
    far = near.collide()[0][:, 0]
    np.testing.assert_allclose(far[:, 6], found[:, 6], atol=3e-13)
