"""How far one frame is turned against another: zero where they are aligned and nowhere else.

Symbols: R = R2^T R1 turns from frame 2 to frame 1; theta = angle times axis of R, no longer than pi; x, y, z components
of a unit vector.

The components of R - R^T are sines, and the sine of half a turn is zero: a residual made of them would be met by frames
that look in opposite directions. An angle grows all the way to pi.
"""

from __future__ import annotations

from dalembert.model.constraints.algebra import Matrix, choose, square_root, stack
from dalembert.model.constraints.coordinates import angle

TINY = 1e-30
"""Added to squares of sines under a root: angle / sine is even in the sine, and does not notice."""

OPPOSITE = 1e-9
"""Below this sine an opposite axis has no direction of its own: then the turn is about the first across it."""


def rotation_vector(R: Matrix) -> Matrix:
    """Return theta (3, 1) of a rotation (3, 3), with all digits at any angle.

    The matrix 4 p p^T of the unit quaternion p is linear in R; of its columns the first with a diagonal entry of 1 or
    more is taken, so that nothing small is divided by (Shepperd 1978, "Quaternion from rotation matrix").
    """
    r = [[R[i : i + 1, j : j + 1] for j in range(3)] for i in range(3)]
    wx, wy, wz = r[2][1] - r[1][2], r[0][2] - r[2][0], r[1][0] - r[0][1]
    xy, xz, yz = r[0][1] + r[1][0], r[0][2] + r[2][0], r[1][2] + r[2][1]
    ww, xx = 1 + r[0][0] + r[1][1] + r[2][2], 1 + r[0][0] - r[1][1] - r[2][2]
    yy, zz = 1 - r[0][0] + r[1][1] - r[2][2], 1 - r[0][0] - r[1][1] + r[2][2]
    p = stack([wz, xz, yz, zz])
    for size, column in ((yy, [wy, xy, yy, yz]), (xx, [wx, xx, xy, xz]), (ww, [ww, wx, wy, wz])):
        p = choose(size >= 1, stack(column), p)
    w, u = p[0:1, :], p[1:4, :]
    w, u = choose(w < 0, -w, w), choose(w < 0, -u, u)
    length = square_root(u.T @ u + TINY)
    return u * (2 * angle(length, w) / length)


def tilt(x: Matrix, y: Matrix, z: Matrix) -> Matrix:
    """Return the turn (2, 1), angle times axis, about a frame's first two axes, that brings (x, y, z) to its third."""
    x = choose(z < 0, choose(x * x + y * y < OPPOSITE**2, OPPOSITE, x), x)
    sine = square_root(x * x + y * y + TINY)
    return stack([y, -x]) * (angle(sine, z) / sine)
