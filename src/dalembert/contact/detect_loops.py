"""All contacts of a scene: poses of shapes, broad phase, narrow phase.

Few pairs are gone through in turn, boxes along the axes first. Many are found by a sweep along the axis on which shapes
are spread most; the order of the last call is nearly the order of this one, so that insertion sorts it in one pass.
Pairs that are near are narrowed in rising order: the order of the contacts is that of the pairs, whatever the poses.

Sources: C. Ericson, "Real-Time Collision Detection" (2005), 7.5.
"""

from __future__ import annotations

from dalembert.contact.kinds import HEIGHTFIELD, PLANE
from dalembert.contact.memory import Hulls
from dalembert.contact.narrow_loops import collide
from dalembert.kernel.loops import reordered_inner, steady


@reordered_inner
def set_world(shape, R, p):
    """Place a shape on a body whose pose is R (9, by rows), p, and write the box around it along the world's axes."""
    for i in range(3):
        o = p[i]
        for j in range(3):
            o += R[3 * i + j] * shape.place_p[j]
            total = 0.0
            for k in range(3):
                total += R[3 * i + k] * shape.place_R[k, j]
            shape.R[i, j] = total
        shape.p[i] = o
    for i in range(3):
        c, e = shape.p[i], 0.0
        for j in range(3):
            c += shape.R[i, j] * shape.middle[j]
            e += abs(shape.R[i, j]) * shape.half[j]
        shape.low[i], shape.high[i] = c - e, c + e


@reordered_inner
def boxes_apart(one, two, margin):
    """Return whether the boxes of two shapes are farther apart than the margin along an axis."""
    apart = False
    for i in range(3):
        apart = apart or one.low[i] > two.high[i] + margin or two.low[i] > one.high[i] + margin
    return apart


@reordered_inner
def above_plane(plane, shape, margin):
    """Return whether a shape's own box is above a plane by more than the margin."""
    n0, n1, n2 = plane.R[0, 2], plane.R[1, 2], plane.R[2, 2]
    h = n0 * (shape.p[0] - plane.p[0]) + n1 * (shape.p[1] - plane.p[1]) + n2 * (shape.p[2] - plane.p[2])
    for j in range(3):
        c = n0 * shape.R[0, j] + n1 * shape.R[1, j] + n2 * shape.R[2, j]
        h += c * shape.middle[j] - abs(c) * shape.half[j]
    return h > margin


@reordered_inner
def narrow(scene, memory, H, k, margin, found, who, count):
    """Append the contacts of pair k; return how many there are, also where `found` has no room for them."""
    m, shapes = memory.work[0], memory.shapes
    i, j = scene.pairs[k, 0], scene.pairs[k, 1]
    for c in range(3):
        m.v[c] = memory.warm[k, c]
    new = collide(shapes[i], shapes[j], H, m, margin, True)
    for c in range(3):
        memory.warm[k, c] = m.v[c]
    for e in range(new):
        if count < found.shape[0]:
            for c in range(7):
                found[count, c] = m.contacts[e, c]
            who[count, 0], who[count, 1], who[count, 2] = k, m.features[e], e
        count += 1
    return count


@reordered_inner
def widest_axis(shapes, order):
    """Return the axis along which the boxes in a list are spread most."""
    best, axis = -1.0, 0
    for a in range(3):
        total, squares = 0.0, 0.0
        for s in range(order.size):
            x = shapes[order[s]].low[a] + shapes[order[s]].high[a]
            total += x
            squares += x * x
        spread = squares - total * total / max(order.size, 1)
        if spread > best:
            best, axis = spread, a
    return axis


@reordered_inner
def sweep(scene, memory, margin):
    """Write the pairs whose boxes are near into memory.near, in rising order; return how many."""
    shapes, order, near, table = memory.shapes, memory.order, memory.near, scene.table
    a = widest_axis(shapes, order)
    for s in range(1, order.size):
        i, t = order[s], s
        low = shapes[i].low[a]
        while t > 0 and shapes[order[t - 1]].low[a] > low:
            order[t] = order[t - 1]
            t -= 1
        order[t] = i
    count = 0
    for s in range(order.size):
        i = order[s]
        end = shapes[i].high[a] + margin
        for t in range(s + 1, order.size):
            j = order[t]
            if shapes[j].low[a] > end:
                break
            k = table[i, j]
            if k >= 0 and not boxes_apart(shapes[i], shapes[j], margin):
                near[count] = k
                count += 1
    sift(near, count)
    return count


@reordered_inner
def sift(x, count):
    """Sort the first entries of x: heap sort."""
    for start in range(count // 2 - 1, -1, -1):
        sink(x, start, count)
    for end in range(count - 1, 0, -1):
        x[0], x[end] = x[end], x[0]
        sink(x, 0, end)


@reordered_inner
def sink(x, at, count):
    """Let an entry sink until none below it is larger."""
    while 2 * at + 1 < count:
        below = 2 * at + 1
        if below + 1 < count and x[below + 1] > x[below]:
            below += 1
        if x[at] >= x[below]:
            return
        x[at], x[below] = x[below], x[at]
        at = below


@steady
def detect(scene, memory, poses, margin, found, who):
    """Write the contacts nearer than `margin` and return how many; more than `found` has rows are counted, not written.

    Parameters
    ----------
    scene, memory
        `SceneTables`, `SceneMemory` of a `CollisionScene`.
    poses : (frames, 12)
        R by rows and p of every body in the world.
    found : (most, 7)
        Point half-way between the surfaces, unit normal from the first shape of the pair to the second, distance.
    who : (most, 3)
        Pair, feature (the same number as long as the same corners and edges touch), number within the pair.
    """
    shapes = memory.shapes
    H = Hulls(scene.hull_numbers, scene.hull_points)
    for s in range(shapes.shape[0]):
        shape = shapes[s]
        if shape.body >= 0:
            pose = poses[shape.body]
            set_world(shape, pose, pose[9:12])
    count, pairs = 0, scene.pairs
    for k in range(scene.ground[0]):
        one, two = shapes[pairs[k, 0]], shapes[pairs[k, 1]]
        if one.kind == PLANE and above_plane(one, two, margin):
            continue
        if one.kind == HEIGHTFIELD and boxes_apart(one, two, margin):
            continue
        count = narrow(scene, memory, H, k, margin, found, who, count)
    if scene.table.shape[0] > 0:
        for t in range(sweep(scene, memory, margin)):
            count = narrow(scene, memory, H, memory.near[t], margin, found, who, count)
    else:
        for k in range(scene.ground[0], pairs.shape[0]):
            if not boxes_apart(shapes[pairs[k, 0]], shapes[pairs[k, 1]], margin):
                count = narrow(scene, memory, H, k, margin, found, who, count)
    return count
