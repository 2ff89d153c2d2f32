"""Narrow phase: the contacts of one pair of shapes, by the method that its kinds ask for.

    sphere, capsule with each other, sphere with box or cylinder, plane with anything     closed forms
    two boxes                                                  separating axes, GJK for the nearest points of boxes
    apart height field with anything                                 its triangles one by one (`field_contact_loops.py`)
    everything else                                            GJK on cores, EPA where cores cut each other

The answer: rows of m.contacts, point half-way between the surfaces (3), unit normal from the first shape to the second
(3), signed distance; and m.features, numbers that stay as long as the same corners and edges touch.
"""

from __future__ import annotations

import numpy as np

from dalembert.contact.closed_loops import box_axes, box_edges, sphere_box, sphere_cylinder, two_segments
from dalembert.contact.epa_loops import epa
from dalembert.contact.field_contact_loops import on_heightfield
from dalembert.contact.gjk_loops import gjk
from dalembert.contact.kinds import BOX, CAPSULE, CYLINDER, HEIGHTFIELD, PLANE, SPHERE
from dalembert.contact.manifold_loops import on_faces, single
from dalembert.contact.plane_loops import on_plane
from dalembert.contact.support_loops import core_radius
from dalembert.kernel.loops import reordered_inner, steady


@reordered_inner
def size_of(one, two):
    """Return the size of a pair that its tolerances are parts of: reach of the smaller, distance of the origins."""
    d = abs(one.p[0] - two.p[0]) + abs(one.p[1] - two.p[1]) + abs(one.p[2] - two.p[2])
    return max(max(one.reach, two.reach), d)


@reordered_inner
def two_boxes(one, two, H, m, size, margin):
    """Write nearest points, normal and distance of two boxes; return whether they are within the margin."""
    kind, sep = box_axes(one, two, m, size)
    if sep > margin:
        return False
    if sep > 0.0:
        hit = gjk(one, two, H, m, size, margin)
        if hit <= 0:
            return hit == 0
    if kind > 5:
        box_edges(one, two, m, kind, sep)
        return True
    # a face: its normal, and the corner of the other box that is deepest
    first = kind < 3
    box, n = (two, m.n) if first else (one, m.n)
    s = -1.0 if first else 1.0
    for c in range(3):
        m.b[c] = box.p[c] - one.p[c]
    for j in range(3):
        along = s * (box.R[0, j] * n[0] + box.R[1, j] * n[1] + box.R[2, j] * n[2])
        e = box.size[j] if along >= 0.0 else -box.size[j]
        for c in range(3):
            m.b[c] += e * box.R[c, j]
    for c in range(3):
        m.a[c] = m.b[c] - sep * n[c] if first else m.b[c]
        if not first:
            m.b[c] += sep * n[c]
    m.distance = sep
    return True


@reordered_inner
def touch(one, two, m):
    """Write an answer for cores that touch and whose difference has no volume, along the line of their origins."""
    x, y, z = two.p[0] - one.p[0], two.p[1] - one.p[1], two.p[2] - one.p[2]
    s = np.sqrt(x * x + y * y + z * z)
    if s > 0.0:
        m.n[0], m.n[1], m.n[2] = x / s, y / s, z / s
    else:
        m.n[0], m.n[1], m.n[2] = 0.0, 0.0, 1.0
    for c in range(3):
        m.a[c], m.b[c] = m.simplex[0, 3 + c], m.simplex[0, 6 + c]
    m.distance = 0.0


@reordered_inner
def nearest_points(one, two, H, m, size, margin):
    """Write nearest points of the cores, normal and distance; return whether the shapes are within the margin."""
    k1, k2 = one.kind, two.kind
    r = core_radius(one) + core_radius(two)
    if k1 <= CAPSULE and k2 <= CAPSULE:
        two_segments(one, two, m)
    elif k1 == SPHERE and k2 == BOX:
        sphere_box(one, two, m)
    elif k1 == SPHERE and k2 == CYLINDER:
        sphere_cylinder(one, two, m)
    elif k1 == BOX and k2 == BOX:
        return two_boxes(one, two, H, m, size, margin)
    else:
        hit = gjk(one, two, H, m, size, margin + r)
        if hit < 0:
            return False
        if hit > 0:
            if not epa(one, two, H, m, hit, size):
                touch(one, two, m)
            m.v[0] = m.v[1] = m.v[2] = 0.0  # a simplex of near points would be a flat polytope to begin with
    return m.distance <= margin + r


@reordered_inner
def collide(one, two, H, m, margin, several):
    """Write the contacts of two shapes that are nearer than `margin`; return how many.

    Kinds in rising order, but planes and height fields come first. m.v: the direction to begin with, zero for none; it
    holds the last one afterwards. `several`: more than one point where faces or lines lie on each other.
    """
    size = size_of(one, two)
    if one.kind == PLANE:
        return on_plane(one, two, H, m, size, margin)
    if one.kind == HEIGHTFIELD:
        return on_heightfield(one, two, H, m, margin)
    if not nearest_points(one, two, H, m, size, margin):
        return 0
    r1, r2 = core_radius(one), core_radius(two)
    for c in range(3):
        m.a[c] += r1 * m.n[c]
        m.b[c] -= r2 * m.n[c]
    m.distance -= r1 + r2
    if not several or one.kind == SPHERE:
        return single(m, one.p, 0, size, margin)
    return on_faces(one, two, H, m, size, margin)


@steady
def collide_pairs(shapes, pairs, H, work, margin, several, warm, out, features, counts):
    """Write the contacts of pairs (n, 2) of shapes into out (n, 8, 7), their numbers into counts (n,)."""
    m = work[0]
    for k in range(pairs.shape[0]):
        for c in range(3):
            m.v[c] = warm[k, c]
        counts[k] = collide(shapes[pairs[k, 0]], shapes[pairs[k, 1]], H, m, margin, several)
        for c in range(3):
            warm[k, c] = m.v[c]
        for e in range(counts[k]):
            features[k, e] = m.features[e]
            for c in range(7):
                out[k, e, c] = m.contacts[e, c]
