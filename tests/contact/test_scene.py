"""Scenes: contacts of mechanisms with the ground and each other, pairs that are left out, sweeps, height fields."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

import dalembert as da
from dalembert.contact.detect_loops import detect


@cache
def _boxes(n=3, ground=True, **options):
    """Free boxes of 0.2 m, and the scene of their shapes."""
    b = da.Builder("boxes")
    for k in range(n):
        b.body(f"box {k}", mass=1.0, inertia=(0.01, 0.01, 0.01))
        b.joint(f"joint {k}", "free", "world", f"box {k}")
        b.collision_shape(f"box {k}", "box", (0.2, 0.2, 0.2))
    m = b.build()
    return m, m.contacts(ground=ground, self=True, q=_spread(m, n), **options)


def _spread(m, n, gap=0.3):
    q = m.neutral()
    for k in range(n):
        q[7 * k : 7 * k + 3] = (gap * k, 0.0, 0.1)
    return q


def test_stack_of_boxes_has_four_corners_a_pair():
    m, scene = _boxes()
    q = _spread(m, 3)
    for k in range(3):
        q[7 * k : 7 * k + 3] = (0.0, 0.0, 0.1 + 0.2 * k)
    found, who = scene.detect(q, margin=1e-6)
    pairs = [scene.names(k) for k in who[:, 0]]
    assert pairs == [("ground", "box 0")] * 4 + [("box 0", "box 1")] * 4 + [("box 1", "box 2")] * 4
    np.testing.assert_allclose(found[:, 6], 0.0, atol=1e-15)
    np.testing.assert_allclose(found[:, 3:6], np.tile([0.0, 0.0, 1.0], (12, 1)), atol=1e-15)
    np.testing.assert_allclose(found[:, 2], np.repeat([0.0, 0.2, 0.4], 4), atol=1e-15)


def test_more_contacts_than_room_are_counted():
    m, scene = _boxes()
    q = _spread(m, 3)
    found, who = np.zeros((5, 7)), np.zeros((5, 3), np.int64)
    assert detect(scene.tables, scene.memory(), scene.poses(q), 1e-6, found, who) == 12
    assert found[4].any()


def test_a_sweep_finds_what_all_pairs_find():
    """40 boxes, 780 pairs: a sweep, against every pair by its own; in the same order, again after a motion."""
    m, scene = _boxes(40)
    assert len(scene.tables.table)
    rng = np.random.default_rng(0)
    memory = scene.memory()
    plain = scene.tables._replace(table=np.zeros((0, 0), np.int32))
    for _ in range(3):
        q = m.neutral()
        for k in range(40):
            x = rng.standard_normal(4)
            q[7 * k : 7 * k + 3], q[7 * k + 3 : 7 * k + 7] = rng.uniform(0, 1, 3), x / np.linalg.norm(x)
        found, who = scene.detect(q, 1e-3, memory)
        assert len(found) > 40
        all_found, all_who = np.zeros_like(found), np.zeros_like(who)
        assert detect(plain, scene.memory(), scene.poses(q), 1e-3, all_found, all_who) == len(found)
        np.testing.assert_array_equal(all_who[:, 0], who[:, 0])
        np.testing.assert_allclose(all_found[:, 6], found[:, 6], atol=1e-12)


@cache
def _arm():
    b = da.Builder("arm")
    for k in range(4):
        b.body(f"link {k}", mass=1.0, inertia=(0.01, 0.01, 0.01))
        b.joint(
            f"joint {k}",
            "revolute",
            f"link {k - 1}" if k else "world",
            f"link {k}",
            axis=(0, 1, 0),
            position=(0, 0, 0.5 * bool(k)),
        )
        b.collision_shape(f"link {k}", "capsule", (0.1, 0.5), position=(0, 0, 0.25))
    b.body("tool", mass=0.1, inertia=(0.001, 0.001, 0.001))
    b.joint("weld", "fixed", "link 3", "tool", position=(0, 0, 0.5))
    b.collision_shape("tool", "sphere", 0.15, restitution=0.4, friction=0.2)
    return b


def test_neighbours_are_left_out_over_fixed_joints():
    scene = _arm().build().contacts(self=True, ground=False)
    names = {frozenset(scene.names(k)) for k in range(len(scene.pairs))}
    assert frozenset(("link 0", "link 2")) in names
    assert frozenset(("link 0", "link 1")) not in names
    assert frozenset(("link 3", "tool")) not in names
    assert frozenset(("link 2", "tool")) not in names, "the tool is a part of link 3, the child of link 2"
    assert frozenset(("link 1", "tool")) in names


def test_pairs_that_overlap_are_left_out_by_name_unless_they_are_named():
    m = _arm().build()
    folded = m.neutral()
    folded[2] = np.pi
    scene = m.contacts(self=True, ground=False, q=folded)
    note = next(note for note in scene.notes if "overlap" in note)
    assert "at the configuration given" in note
    assert (
        "'tool' and 'link 0'" in note
        or "'link 0' and 'tool'" in note
        or "'link 1' and 'link 3'" in note
        or "'link 3' and 'link 1'" in note
    )
    named = m.contacts(self=True, ground=False, q=folded, pairs=[("link 0", "tool")])
    assert ("tool", "link 0") in [named.names(k) for k in range(len(named.pairs))]


def test_laws_of_pairs():
    """The larger restitution; friction of who says something; MuJoCo's 1 where nobody does; the user's own for all."""
    m = _arm().build()
    scene = m.contacts(self=True)
    by_name = {frozenset(scene.names(k)): k for k in range(len(scene.pairs))}
    tool, links = by_name[frozenset(("ground", "tool"))], by_name[frozenset(("ground", "link 3"))]
    assert (scene.friction[tool], scene.restitution[tool]) == (0.2, 0.4)
    assert (scene.friction[links], scene.restitution[links]) == (1.0, 0.0)
    assert set(m.contacts(friction=0.3, restitution=0.1).friction) == {0.3}


def test_rules_and_groups():
    b = _arm()
    b.contact_rule("link 0", "link 2", reason="test")
    b.collision_shape("link 1", "sphere", 0.2, name="soft", group=2, mask=2)
    m = b.build()
    scene = m.contacts(self=True)
    names = {frozenset(scene.names(k)) for k in range(len(scene.pairs))}
    assert frozenset(("link 0", "link 2")) not in names
    assert not any("soft" in pair for pair in names)
    b.contact_rules.clear()


def test_on_ground():
    m, _ = _boxes(1)
    q = m.neutral()
    q[:7] = (1.0, 2.0, 3.0, 0.0, np.sin(np.pi / 8), 0.0, np.cos(np.pi / 8))
    lowered = m.on_ground(q)
    np.testing.assert_allclose(lowered, [1.0, 2.0, 0.1 * np.sqrt(2), *q[3:]], atol=1e-12)
    with pytest.raises(da.ModelError, match="floating"):
        _arm().build().on_ground()


def test_zero_sizes_are_refused_by_name():
    b = da.Builder()
    b.body("a")
    with pytest.raises(da.ModelError, match="edge along x, along z must be above zero"):
        b.collision_shape("a", "box", (0.0, 1.0, -1.0))
    with pytest.raises(da.ModelError, match="friction=-1"):
        b.collision_shape("a", "sphere", 1.0, friction=-1)


# ----------------------------------------------------------------------------------------------------------------------
# Height fields.


@cache
def _on_heights(kind, size, slope=0.0, ridge=0.0):
    x = np.linspace(-2, 2, 9)
    z = slope * x[:, None] + ridge * (np.abs(x)[:, None] < 0.1) + np.zeros((9, 9))
    b = da.Builder("field")
    b.body("thing", mass=1.0, inertia=(1, 1, 1))
    b.joint("free", "free", "world", "thing")
    b.collision_shape("thing", kind, size)
    m = b.build()
    return m, m.contacts(ground=da.Heightfield(x, x, z))


SHAPES = [
    ("sphere", (0.3,)),
    ("box", (0.6, 0.5, 0.6)),
    ("cylinder", (0.3, 0.6)),
    ("capsule", (0.3, 0.6)),
    ("ellipsoid", (0.5, 0.4, 0.3)),
]


@pytest.mark.parametrize(("kind", "size"), SHAPES)
@pytest.mark.parametrize("depth", [-1e-3, 1e-3])
def test_a_level_height_field_is_a_plane(kind, size, depth):
    """Depth, normal and the region of the contacts are those of the plane, above and below."""
    m, scene = _on_heights(kind, size)
    plane = m.contacts()
    rng = np.random.default_rng(3)
    for _ in range(20):
        q = m.neutral()
        x = rng.standard_normal(4)
        q[:3], q[3:] = (*rng.uniform(-1, 1, 2), 1.0), x / np.linalg.norm(x)
        q = m.on_ground(q, depth)
        found, _ = scene.detect(q, 2e-3)
        flat, _ = plane.detect(q, 2e-3)
        assert len(found) >= 1
        np.testing.assert_allclose(found[:, 3:6], np.tile([0, 0, 1.0], (len(found), 1)), atol=1e-7)
        assert abs(found[:, 6].min() - flat[:, 6].min()) < 1e-9
        deepest = found[np.argmin(found[:, 6]), :3]
        assert np.abs(flat[:, :3] - deepest).max(axis=1).min() < 1e-6 or len(flat) > 1


def test_sphere_on_a_slope_and_a_ridge():
    """On a slope the distance is that of its plane; on a ridge that of its line, by one contact."""
    m, scene = _on_heights("sphere", (0.3,), slope=0.5)
    q = m.neutral()
    q[:3] = (0.13, 0.21, 0.6)
    n = np.array([-0.5, 0.0, 1.0]) / np.sqrt(1.25)
    found, _ = scene.detect(q, 1.0)
    assert abs(found[:, 6].min() - (n @ q[:3] - 0.3)) < 1e-12
    np.testing.assert_allclose(found[np.argmin(found[:, 6]), 3:6], n, atol=1e-9)
    m, scene = _on_heights("sphere", (0.3,), ridge=0.2)
    q[:3] = (0.05, 0.11, 0.55)
    found, _ = scene.detect(q, 0.1)
    best = found[np.argmin(found[:, 6])]
    assert abs(best[6] - (np.hypot(0.05, 0.35) - 0.3)) < 1e-12
    np.testing.assert_allclose(best[3:6], np.array([0.05, 0.0, 0.35]) / np.hypot(0.05, 0.35), atol=1e-9)
