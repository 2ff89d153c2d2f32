"""A wheel or ball that rolls on a plane without slipping: two rows on velocities, and one that keeps contact.

Symbols: n normal of the plane, e1, e2 its directions, all fixed in frame 2; d = p1 - p2; k axis of the wheel, fixed in
frame 1; r radius; u from the centre to the point of contact, of length one; g = n - (n . k) k:

    u = -g / |g|  of a wheel        u = -n  of a ball
    slip = v1 + w1 x r u - v2 - w2 x (d + r u)

The point of contact is where the rim is lowest, so the height n . (d + r u) has the rate n . slip, although u turns.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from dalembert.errors import ModelError
from dalembert.model.constraints.constraint import Pair, checked_axis, checked_number
from dalembert.model.constraints.row_algebra import Matrix, Rows, column, cross, dot, square_root, stack
from dalembert.model.joints.rotations import plane
from dalembert.model.mechanism.placement import IDENTITY
from dalembert.model.mechanism.tree_text import axis_name

if TYPE_CHECKING:
    from dalembert.model.constraints.primitives import FrameKinematics, Kinematics


@dataclass(frozen=True, repr=False)
class Rolling(Pair):
    """The frame's body touches a plane through the origin of `other` and does not slip on it; non-holonomic.

    Attributes
    ----------
    radius
        Metres.
    axis : (3,) or None
        The wheel's axis in the axes of `frame`, a thin disc that may lean; None for a ball. The rows end where a disc
        lies flat.
    normal : (3,)
        Of the plane, in the axes of `other`, towards the wheel.
    contact
        Whether to keep the wheel on the plane (a third row, with a residual).
    """

    radius: Any = field(kw_only=True)
    axis: Any = field(default=None, kw_only=True)
    normal: Any = field(default=(0.0, 0.0, 1.0), kw_only=True)
    contact: bool = field(default=True, kw_only=True)

    kind = "rolling"

    def normalize(self) -> None:
        """Check radius, axis and normal."""
        super().normalize()
        self._set(
            radius=checked_number(self.radius, self, "radius"),
            axis=None if self.axis is None else checked_axis(self.axis, self),
            normal=checked_axis(self.normal, self, "normal"),
            at=self.at or IDENTITY,
        )
        if not isinstance(self.contact, bool):
            raise ModelError(f"contact of constraint {self.label!r} is True or False, not {self.contact!r}")
        if self.radius <= 0:
            words = f"the radius of constraint {self.label!r} must be more than zero, not {self.radius:g}"
            raise ModelError(words, subject="radius")

    def row_names(self) -> tuple[str, ...]:
        """Return the slip along two directions of the plane, and the contact."""
        slips = tuple(f"{self.label}: slip along {axis_name(e)}" for e in plane(self.normal))
        return (*slips, f"{self.label}: contact") if self.contact else slips

    def holonomic(self) -> tuple[bool, ...]:
        """Return that only the contact has a residual."""
        return (False, False, True) if self.contact else (False, False)

    def rows(self, kinematics: Kinematics) -> list[Rows]:
        """Return the slip with its derivative; the height with its two."""
        first, two = self.frames(kinematics)
        n = two.direction(column(self.normal))
        u, du = self._contact(first, two, n)
        arm, darm = self.radius * u, self.radius * du
        d, v = first.position - two.position, first.v - two.v
        lever = d + arm
        slip = v + cross(first.w, arm) - cross(two.w, lever)
        change = first.a - two.a + cross(first.wd, arm) - cross(two.wd, lever)
        change = change + cross(first.w, darm) - cross(two.w, v + darm)

        def row(e: Matrix, residual: Matrix | None) -> Rows:
            jacobian = e.T @ (first.Jv - two.Jv) + cross(arm, e).T @ first.Jw - cross(lever, e).T @ two.Jw
            return Rows(residual, jacobian, dot(e, slip), dot(e, change) + dot(cross(two.w, e), slip))

        e1, e2 = (row(two.direction(column(e)), None) for e in plane(self.normal))
        slips = Rows(None, *(stack([getattr(e, x) for e in (e1, e2)]) for x in ("jacobian", "rate", "drift")))
        return [slips, row(n, dot(n, lever))] if self.contact else [slips]

    def _contact(self, one: FrameKinematics, two: FrameKinematics, n: Matrix) -> tuple[Matrix, Matrix]:
        """Return u and its rate."""
        dn = cross(two.w, n)
        if self.axis is None:
            return -n, -dn
        k = one.direction(column(self.axis))
        dk = cross(one.w, k)
        cosine, dcosine = dot(n, k), dot(dn, k) + dot(n, dk)
        g, dg = n - k * cosine, dn - k * dcosine - dk * cosine
        length = square_root(dot(g, g))
        unit = g / length
        return -unit, -(dg - unit * dot(unit, dg)) / length
