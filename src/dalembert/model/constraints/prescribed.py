"""Constraints on joint coordinates: couplers between them, servos in time."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from dalembert.errors import ModelError
from dalembert.model.constraints.constraint import Constraint, checked_number
from dalembert.model.constraints.primitives import angle, coordinate_index
from dalembert.model.constraints.row_algebra import Matrix, Rows

if TYPE_CHECKING:
    from dalembert.model.constraints.primitives import Kinematics
    from dalembert.model.mechanism.mechanism import Mechanism

# ----------------------------------------------------------------------------------------------------------------------
# A linear relation between joint coordinates, a gear or a mimic joint: one row.


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


# ----------------------------------------------------------------------------------------------------------------------
# A coordinate that follows a given motion in time: one row that depends on time.


@dataclass(frozen=True, repr=False)
class Servo(Constraint):
    """A joint coordinate equals motion(t); its reaction is the force or torque of the drive.

    Attributes
    ----------
    coordinate
        Of a hinge, slider, screw or cardan joint.
    motion
        A number, or a function of time in CasADi expressions: `lambda t: 0.3 * casadi.sin(t)`; radians or metres.
    """

    coordinate: str
    motion: float | Callable[[Any], Any]

    kind = "servo"

    def normalize(self) -> None:
        """Make a number a float."""
        if not callable(self.motion):
            self._set(motion=checked_number(self.motion, self, "motion"))

    @property
    def label(self) -> str:
        """The name, or that of the coordinate."""
        return self.name or f"servo {self.coordinate}"

    @property
    def private(self) -> bool:
        """Whether the motion is a Python function."""
        return callable(self.motion)

    def row_names(self) -> tuple[str, ...]:
        """Return the constraint's own name."""
        return (self.label,)

    def check(self, mechanism: Mechanism) -> None:
        """Refuse a coordinate that does not exist or is no length or angle."""
        coordinate_index(mechanism, self.coordinate, self.label)

    def rows(self, kinematics: Kinematics) -> Rows:
        """Return q_i - motion(t); of a continuous joint the difference is within (-pi, pi]."""
        mechanism = kinematics.mechanism
        i = coordinate_index(mechanism, self.coordinate, self.label)
        value, speed, acceleration = self._motion(kinematics.t)
        difference = kinematics.coordinate(self.coordinate) - value
        if mechanism.index_q(self.coordinate).stop - mechanism.index_q(self.coordinate).start == 2:
            difference = _wrapped(difference)
        A = np.zeros((1, mechanism.nv))
        A[0, i] = 1.0
        return Rows(difference, A, kinematics.v[i : i + 1, :] - speed, -acceleration)

    def _motion(self, t: Matrix) -> tuple[Matrix, Matrix, Matrix]:
        """Return the motion and its first two derivatives at t, each (1, 1)."""
        if not callable(self.motion):
            return np.full((1, 1), self.motion), np.zeros((1, 1)), np.zeros((1, 1))
        import casadi as ca

        time = ca.SX.sym("t")
        try:
            x = ca.SX(self.motion(time))
        except Exception as error:
            raise ModelError(
                f"the motion of constraint {self.label!r} must be a function of the time t that returns one CasADi "
                f"expression, as in lambda t: casadi.sin(t); it failed: {error}"
            ) from error
        if x.shape != (1, 1) or any(not ca.is_equal(s, time) for s in ca.symvar(x)):
            raise ModelError(
                f"the motion of constraint {self.label!r} must be one expression of the time alone, not {x.shape}, {x}"
            )
        dx = ca.jacobian(x, time)
        function = ca.Function("motion", [time], [x, dx, ca.jacobian(dx, time)])
        values = [ca.densify(value) for value in function(t)]
        x, dx, ddx = (np.array(value) for value in values) if isinstance(t, np.ndarray) else values
        return x, dx, ddx


def _wrapped(x: Matrix) -> Matrix:
    """Return an angle within (-pi, pi]."""
    return angle(np.sin(x), np.cos(x)) if isinstance(x, np.ndarray) else angle(x.sin(), x.cos())
