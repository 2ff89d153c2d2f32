"""A linear relation between joint coordinates, a gear or a mimic joint: one row."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from dalembert.errors import ModelError
from dalembert.model.constraints.constraint import Constraint, checked_number
from dalembert.model.constraints.coordinates import coordinate_index
from dalembert.model.constraints.rows import Rows

if TYPE_CHECKING:
    from dalembert.model.constraints.kinematics import Kinematics
    from dalembert.model.mechanism import Mechanism


@dataclass(frozen=True, repr=False)
class Coupler(Constraint):
    """The sum of factor * coordinate over `terms` equals `offset`.

    Attributes
    ----------
    terms
        Mapping from coordinates of hinges, sliders, screws and cardan joints to factors.
    offset
        In the unit of the sum.

    Notes
    -----
    The angle of a continuous joint counts within (-pi, pi]: with factors that are not whole numbers the residual
    jumps where the joint has turned once; its rate and drift do not.
    """

    terms: Any
    offset: float = 0.0

    kind = "coupler"

    def normalize(self) -> None:
        """Make the terms a tuple of pairs."""
        terms = tuple((str(name), checked_number(factor, self, "factor")) for name, factor in _pairs(self.terms))
        self._set(terms=terms, offset=checked_number(self.offset, self, "offset"))
        if not any(factor for _, factor in terms):
            raise ModelError(f"constraint {self.label!r} couples nothing: {self.terms}")

    @property
    def label(self) -> str:
        """The name, or those of the coordinates."""
        return self.name or "coupler " + "-".join(str(name) for name, _ in _pairs(self.terms))

    def row_names(self) -> tuple[str, ...]:
        """Return the constraint's own name."""
        return (self.label,)

    def check(self, mechanism: Mechanism) -> None:
        """Refuse coordinates that do not exist or are no lengths and angles."""
        for name, _ in self.terms:
            coordinate_index(mechanism, name, self.label)

    def rows(self, kinematics: Kinematics) -> Rows:
        """Return the row; A is constant, the drift zero."""
        A = np.zeros((1, kinematics.mechanism.nv))
        residual: Any = np.full((1, 1), -self.offset)
        for name, factor in self.terms:
            A[0, coordinate_index(kinematics.mechanism, name, self.label)] += factor
            residual = residual + factor * kinematics.coordinate(name)
        return Rows(residual, A, A @ kinematics.v, np.zeros((1, 1)))


def _pairs(terms: Any) -> list[tuple[Any, Any]]:
    """Return coordinates with their factors, of a mapping or of pairs."""
    try:
        return [(name, factor) for name, factor in (terms.items() if isinstance(terms, Mapping) else terms)]
    except (TypeError, ValueError) as error:
        raise ModelError(
            f"a coupler takes coordinates with factors, {{'left': 1, 'right': -2}}, not {terms!r}"
        ) from error
