"""Rotation about a constant axis, and the directions of a plane, as nested lists of scalars.

Symbols: a unit axis, c and s cosine and sine of the angle:  R = a a^T + c (1 - a a^T) + s [a]x  (Rodrigues).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dalembert.model.joints.kind import Rows, Scalar


def about(axis: Any, c: Scalar, s: Scalar) -> Rows:
    """Return R, (3, 3); entries that do not depend on the angle are floats."""
    a = [float(x) for x in axis]
    skew = [[0.0, -a[2], a[1]], [a[2], 0.0, -a[0]], [-a[1], a[0], 0.0]]
    return [[_entry(a[i] * a[j], float(i == j), skew[i][j], c, s) for j in range(3)] for i in range(3)]


def _entry(along: float, unit: float, skew: float, c: Scalar, s: Scalar) -> Scalar:
    """Return along + (unit - along) c + skew s, without the terms that vanish."""
    terms: list[Scalar] = [along] if along else []
    if unit != along:
        terms.append(c if unit - along == 1.0 else (unit - along) * c)
    if skew:
        terms.append(s if skew == 1.0 else -s if skew == -1.0 else skew * s)
    if not terms:
        return 0.0
    total = terms[0]
    for term in terms[1:]:
        total = total + term
    return total


def scaled(axis: Any, factor: Scalar) -> list[Scalar]:
    """Return axis * factor, (3,); zeros stay floats."""
    return [0.0 if not x else factor if x == 1.0 else float(x) * factor for x in axis]


def column(linear: Any, angular: Any) -> list[Scalar]:
    """Return a spatial vector [linear; angular], (6,)."""
    return [*linear, *angular]


def as_columns(*columns: list[Scalar]) -> Rows:
    """Return the matrix with these columns."""
    return [list(row) for row in zip(*columns, strict=True)]


def plane(axis: Any) -> tuple[list[float], list[float]]:
    """Return directions e1, e2 of the plane with normal `axis`, so that e1, e2, axis are right-handed.

    e1 is the projection of the coordinate axis that follows the one nearest to the normal: the plane of z has
    (x, y), that of x has (y, z), that of y has (z, x).
    """
    normal = np.asarray(axis, dtype=float)
    e1 = np.eye(3)[(int(np.argmax(np.abs(normal))) + 1) % 3]
    e1 = e1 - normal * (normal @ e1)
    e1 = e1 / np.linalg.norm(e1)
    return [float(x) for x in e1], [float(x) + 0.0 for x in np.cross(normal, e1)]
