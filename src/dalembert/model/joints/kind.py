"""The contract of a kind of joint: numbers, motion as formulas, geometry of its coordinates.

Symbols (Featherstone 2008, ch. 4): F joint's frame on the parent, G joint's frame on the child, X_FG = (R, p) the
motion, S motion subspace in G: the velocity of G relative to F, in G's axes, is [linear; angular] = S v; its
acceleration at a = 0 is the bias S_dot v. N(q): dq/dt = N(q) v.

Formulas are nested lists of scalars. They are written once and take CasADi scalars, numbers or NumPy arrays alike;
entries that are constant are Python floats, so that zeros and ones stay visible. `as_expression` and `as_array` make
matrices of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from dalembert.types import Array, Scalar

if TYPE_CHECKING:
    import casadi as ca

    from dalembert.model.mechanism.parts import Joint

Rows = list[list[Scalar]]

ZERO = [[0.0, 0.0, 0.0], [0.0, 0.0, 0.0], [0.0, 0.0, 0.0]]
IDENTITY = [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]


class Kind:
    """A kind of joint; as it stands, one whose coordinates form a vector space with dq/dt = v.

    Attributes
    ----------
    name
        As in `Joint.kind`.
    q_names, v_names
        Suffixes of the nq coordinates and nv velocities; a single empty one stands for the joint's own name.
    angular
        Per velocity, whether it is an angle's rate (rad/s) rather than a length's (m/s).
    unit
        Which coordinates form a vector of length one (a quaternion, a cosine and sine), if any do.
    straight
        Whether the coordinates are lengths and angles that count on, with the velocities as their rates.
    axes
        Number of axes that the joint asks for: 0, `axis`, or `axis` and `axis2`.
    position
        Number of first coordinates that are the position of a body.
    urdf
        The type in URDF; none where URDF has no such joint.
    other_names
        What other tools call it; asked for by such a name, the builder answers with this one.
    """

    name: ClassVar[str]
    q_names: ClassVar[tuple[str, ...]] = ("",)
    v_names: ClassVar[tuple[str, ...]] = ("",)
    angular: ClassVar[tuple[bool, ...]] = (True,)
    unit: ClassVar[slice] = slice(0, 0)
    straight: ClassVar[bool] = True
    axes: ClassVar[int] = 1
    position: ClassVar[int] = 0
    urdf: ClassVar[str | None] = None
    other_names: ClassVar[tuple[str, ...]] = ()

    @property
    def nq(self) -> int:
        """Number of coordinates."""
        return len(self.q_names)

    @property
    def nv(self) -> int:
        """Number of velocities."""
        return len(self.v_names)

    @property
    def has_rates(self) -> bool:
        """Whether the velocities are rates of lengths and angles; an angle may be kept as its cosine and sine."""
        return self.straight or self.nv == 1

    @property
    def lengths(self) -> int:
        """Number of velocities that are rates of lengths; they come first."""
        return len(self.angular) - sum(self.angular)

    def motion(self, joint: Joint, q: Sequence[Scalar]) -> tuple[Rows, list[Scalar]]:
        """Return R (3, 3) and p (3,) of X_FG."""
        raise NotImplementedError

    def subspace(self, joint: Joint, q: Sequence[Scalar]) -> Rows:
        """Return S, (6, nv), in G."""
        raise NotImplementedError

    def bias(self, joint: Joint, q: Sequence[Scalar], v: Sequence[Scalar]) -> list[Scalar]:
        """Return S_dot v, (6,), in G; zero where S is constant."""
        return [0.0] * 6

    def rate(self, q: Sequence[Scalar], v: Sequence[Scalar]) -> list[Scalar]:
        """Return dq/dt = N(q) v, (nq,)."""
        return list(v)

    def neutral(self) -> Array:
        """Return the configuration without motion, (nq,): R = 1, p = 0."""
        return np.zeros(self.nq)

    def integrate(self, q: Array, v: Array) -> Array:
        """Return where the constant velocity v leads from q in unit time, (..., nq)."""
        return q + v

    def difference(self, q0: Array, q1: Array) -> Array:
        """Return the least velocity that leads from q0 to q1 in unit time, (..., nv)."""
        return q1 - q0

    def normalize(self, q: Array) -> Array:
        """Return the configuration on the manifold nearest to q, (..., nq)."""
        return q

    def random(self, rng: np.random.Generator, lower: Array, upper: Array, size: tuple[int, ...]) -> Array:
        """Return random configurations, (*size, nq), uniform within finite limits (nv,)."""
        return uniform(rng, lower, upper, np.asarray(self.angular), size)


def uniform(rng: np.random.Generator, lower: Array, upper: Array, angular: Array, size: tuple[int, ...]) -> Array:
    """Return uniform samples (*size, n) within limits; one that is infinite counts as pi or 1 m around zero.

    Where only one limit is finite, samples lie within that reach of it.
    """
    reach = np.where(angular, np.pi, 1.0)
    low, high = np.isfinite(lower), np.isfinite(upper)
    below = np.where(low, lower, np.where(high, np.minimum(-reach, upper - reach), -reach))
    above = np.where(high, upper, np.where(low, np.maximum(reach, lower + reach), reach))
    return below + (above - below) * rng.random((*size, len(lower)))


def sine(x: Scalar) -> Scalar:
    """Return sin x of a CasADi scalar, a number or an array."""
    return x.sin() if hasattr(x, "sin") else np.sin(x)


def cosine(x: Scalar) -> Scalar:
    """Return cos x of a CasADi scalar, a number or an array."""
    return x.cos() if hasattr(x, "cos") else np.cos(x)


def as_expression(rows: Any) -> ca.SX:
    """Return nested lists of CasADi scalars and floats as a sparse SX matrix (a list as a column)."""
    import casadi as ca

    table = [row if isinstance(row, list) else [row] for row in rows]
    matrix = ca.SX(len(table), len(table[0]) if table else 0)
    for i, row in enumerate(table):
        for j, entry in enumerate(row):
            entry = ca.SX(entry)
            if not entry.is_zero():
                matrix[i, j] = entry
    return matrix


def as_array(rows: Any) -> Array:
    """Return nested lists of numbers and arrays (...,) as one array (..., rows[, columns])."""
    if not isinstance(rows, list):
        return np.asarray(rows, dtype=float)
    if not rows:
        return np.zeros(0)
    parts = [as_array(row) for row in rows]
    return np.stack(np.broadcast_arrays(*parts), axis=-1) if _flat(rows) else _stacked(parts)


def _flat(rows: list[Any]) -> bool:
    return not any(isinstance(row, list) for row in rows)


def _stacked(parts: list[Array]) -> Array:
    """Stack rows (..., columns) to (..., rows, columns)."""
    return np.stack(np.broadcast_arrays(*parts), axis=-2)
