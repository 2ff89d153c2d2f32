"""A cardan joint: an angle about one axis, then an angle about another that moves along.

Symbols: a1, a2 the axes; R2 = R(a2, q2); u = R2^T a1 the first axis seen from the child.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from dalembert.model.joints.axes import about, as_columns, column
from dalembert.model.joints.kind import Kind, Rows, Scalar, cosine, sine

if TYPE_CHECKING:
    from dalembert.model.parts import Joint


class Universal(Kind):
    """R = R(axis, q1) R(axis2, q2), S = [0 0; u a2], S_dot v = [0; u x a2 v1 v2]."""

    name = "universal"
    q_names = ("1", "2")
    v_names = ("1", "2")
    angular = (True, True)

    def motion(self, joint: Joint, q: Sequence[Scalar]) -> tuple[Rows, list[Scalar]]:
        """Return R(axis, q1) R(axis2, q2) and no displacement."""
        first = about(joint.axis, cosine(q[0]), sine(q[0]))
        second = about(joint.axis2, cosine(q[1]), sine(q[1]))
        R = [[sum(first[i][k] * second[k][j] for k in range(3)) for j in range(3)] for i in range(3)]
        return R, [0.0, 0.0, 0.0]

    def subspace(self, joint: Joint, q: Sequence[Scalar]) -> Rows:
        """Return [0 0; u a2]."""
        return as_columns(column([0.0] * 3, self._first_axis(joint, q)), column([0.0] * 3, joint.axis2))

    def bias(self, joint: Joint, q: Sequence[Scalar], v: Sequence[Scalar]) -> list[Scalar]:
        """Return [0; u x a2 v1 v2], since du/dt = -(a2 v2) x u."""
        u, a, speed = self._first_axis(joint, q), joint.axis2, v[0] * v[1]
        cross = [u[1] * a[2] - u[2] * a[1], u[2] * a[0] - u[0] * a[2], u[0] * a[1] - u[1] * a[0]]
        return [0.0, 0.0, 0.0, *(speed * x for x in cross)]

    def _first_axis(self, joint: Joint, q: Sequence[Scalar]) -> list[Scalar]:
        """Return u = R2^T a1."""
        second = about(joint.axis2, cosine(q[1]), sine(q[1]))
        return [sum(second[k][i] * joint.axis[k] for k in range(3)) for i in range(3)]
