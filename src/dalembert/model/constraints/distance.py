"""Two points that keep their distance, as by a rod without mass: one row."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from dalembert.errors import ModelError
from dalembert.model.constraints.algebra import dot
from dalembert.model.constraints.constraint import Pair, checked_number
from dalembert.model.constraints.rows import Rows
from dalembert.model.placement import IDENTITY

if TYPE_CHECKING:
    from dalembert.model.constraints.kinematics import Kinematics


@dataclass(frozen=True, repr=False)
class Distance(Pair):
    """The origins of two frames are `length` apart: phi = (d . d - length^2) / (2 length), in metres.

    The reaction is the force in the rod in N where the length is right, positive where it pushes.

    Attributes
    ----------
    length
        Metres, more than zero; for zero use `Point`.
    """

    length: Any = field(kw_only=True)

    kind = "distance"

    def normalize(self) -> None:
        """Check places and the length; without `other` and `at` the other end is the ground's origin."""
        super().normalize()
        self._set(length=checked_number(self.length, self, "length"), at=self.at or IDENTITY)
        if self.length <= 0:
            raise ModelError(
                f"the length of constraint {self.label!r} must be more than zero, not {self.length:g}: "
                "two points that coincide are a Point, three rows"
            )

    def row_names(self) -> tuple[str, ...]:
        """Return one name."""
        return (f"{self.label}: distance",)

    def rows(self, kinematics: Kinematics) -> Rows:
        """Return the row; phi_dot = d . (v1 - v2) / length."""
        one, two = self.frames(kinematics)
        d, v, L = one.position - two.position, one.v - two.v, self.length
        return Rows(
            (dot(d, d) - L * L) / (2 * L),
            d.T @ (one.Jv - two.Jv) / L,
            dot(d, v) / L,
            (dot(d, one.a - two.a) + dot(v, v)) / L,
        )
