"""The contract of a constraint: data with names, and rows made of a mechanism in motion."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from dalembert.errors import ModelError
from dalembert.model.constraints.primitives import shared_carrier
from dalembert.model.mechanism.placement import IDENTITY, Placement
from dalembert.model.mechanism.validation import checked_placement, finite, numbers, unit_axis

if TYPE_CHECKING:
    from dalembert.model.constraints.primitives import FrameKinematics, Kinematics
    from dalembert.model.constraints.row_algebra import Rows
    from dalembert.model.mechanism.mechanism import Mechanism


@dataclass(frozen=True, kw_only=True, repr=False)
class Constraint:
    """Rows that hold along every motion; added by `mechanism.constrain(...)`.

    Attributes
    ----------
    name
        Begins the names of the rows; by default made of the frames' names.
    stabilize
        Baumgarte gains, off by default: a pair (kp, kd) adds kp residual + kd rate to the drift; one number w stands
        for the critically damped pair (w^2, 2 w), in 1/s.
    """

    name: str = ""
    stabilize: Any = None

    kind: ClassVar[str]

    def __post_init__(self) -> None:
        if not isinstance(self.name, str):
            raise ModelError(f"the name of a constraint is a text, not {self.name!r}")
        object.__setattr__(self, "stabilize", _gains(self.stabilize, self.label))
        self.normalize()

    def normalize(self) -> None:
        """Check the constraint's own values and make them uniform."""

    @property
    def label(self) -> str:
        """How the rows' names begin."""
        return self.name or self.kind

    @property
    def private(self) -> bool:
        """Whether it holds a Python function, of which `content` cannot tell what it does."""
        return False

    def row_names(self) -> tuple[str, ...]:
        """Return a name for each row."""
        raise NotImplementedError

    def holonomic(self) -> tuple[bool, ...]:
        """Return for each row whether it has a residual: something that configurations must fulfil."""
        return (True,) * len(self.row_names())

    @property
    def of_accelerations(self) -> bool:
        """Whether rows constrain accelerations: A may depend on velocities."""
        return False

    @property
    def turning(self) -> bool:
        """Whether rows have directions that turn with a frame which is held: they mean one instant, no motion."""
        return False

    def angular(self) -> tuple[bool, ...]:
        """Return for each row whether it is about angles: its reaction is then a moment in N m, not a force in N."""
        return (False,) * len(self.row_names())

    def check(self, mechanism: Mechanism) -> None:
        """Refuse names that the mechanism does not have."""

    def rows(self, kinematics: Kinematics) -> Rows | list[Rows]:
        """Return the rows, in the order of `row_names`; a list where some have a residual and others have none."""
        raise NotImplementedError

    def content(self) -> tuple[Any, ...]:
        """Return what determines the rows' numbers, for the cache's key."""
        return (self.kind, *(getattr(self, field.name) for field in fields(self)))

    def __repr__(self) -> str:
        words = [f"{field.name}={getattr(self, field.name)!r}" for field in fields(self) if self._changed(field)]
        return f"{type(self).__name__}({', '.join(words)})"

    def _changed(self, member: Any) -> bool:
        value = getattr(self, member.name)
        return value is not member.default and value != member.default

    def _set(self, **values: Any) -> None:
        for name, value in values.items():
            object.__setattr__(self, name, value)


@dataclass(frozen=True, repr=False)
class Pair(Constraint):
    """A constraint between a frame and another, or the ground.

    Attributes
    ----------
    frame, other
        Names of frames, bodies or joints; without `other` it is the ground.
    at
        Where in `other`: a position (3,), a pair (rotation, position), a 4x4 matrix, or, instead of `other`, the name
        of a frame. Without `other` and `at` the frame is held where it is: its rows act on velocities and have no
        residual. Directions are then those of the frame at this instant; a motion in time needs to know where they
        are fixed.
    placement
        Where on `frame`: numbers, likewise.
    """

    frame: str
    other: str | None = None
    at: Any = field(default=None, kw_only=True)
    placement: Any = field(default=IDENTITY, kw_only=True)

    def normalize(self) -> None:
        """Make placements of what stands for one."""
        if isinstance(self.at, str):
            if self.other is not None:
                raise ModelError(
                    f"constraint {self.label!r} ({self.kind}): other={self.other!r} and at={self.at!r} both name a "
                    "frame; give the one it is to meet as `other`, and `at` as numbers in it"
                )
            self._set(other=self.at, at=None)
        self._set(at=_placement(self.at, self.label), placement=_placement(self.placement, self.label) or IDENTITY)

    @property
    def vectors(self) -> tuple[int, ...]:
        """Rows at which three begin that are a vector in world axes; all others are scalar products."""
        return ()

    @property
    def held(self) -> bool:
        """Whether the frame is held where it is."""
        return self.other is None and self.at is None

    @property
    def turning(self) -> bool:
        """Whether rows have directions that turn with the frame which is held: they mean one instant, no motion."""
        return self.held and 3 * len(self.vectors) < len(self.row_names())

    @property
    def label(self) -> str:
        """The name, or those of the frames."""
        return self.name or (self.frame if self.other is None else f"{self.frame}-{self.other}")

    def holonomic(self) -> tuple[bool, ...]:
        """Return True for each row unless the frame is held where it is."""
        return (not self.held,) * len(self.row_names())

    def check(self, mechanism: Mechanism) -> None:
        """Refuse frames that do not exist, or that are on one body."""
        body = mechanism.frame(self.frame).body
        two = mechanism.frame(self.other).body if self.other is not None else mechanism.ground
        if body == two:
            raise ModelError(
                f"constraint {self.label!r} ({self.kind}): {self.frame!r} and {self.other or 'the ground'!r} are both "
                f"on {body!r}; it would hold nothing or be impossible"
            )

    def frames(self, kinematics: Kinematics) -> tuple[FrameKinematics, FrameKinematics]:
        """Return both frames in motion; one that is held has a standing frame as its partner.

        Velocities that move both bodies alike change no row between them: their columns are left out, known zeros
        instead of differences that rounding leaves.
        """
        mechanism = kinematics.mechanism
        if self.held:
            first = kinematics.frame(self.frame, self.placement)
            return first, first.standing()
        other = self.other or mechanism.ground
        carrier, shared = shared_carrier(mechanism, mechanism.frame(self.frame).body, mechanism.frame(other).body)
        view = kinematics.seen_from(carrier)
        first, second = view.frame(self.frame, self.placement), view.frame(other, self.at or IDENTITY)
        return first.unmoved_by(shared), second.unmoved_by(shared)

    def finished(self, rows: Rows) -> Rows:
        """Return the rows without residual where the frame is held where it is."""
        return rows.without_residual() if self.held else rows


def _placement(value: Any, label: str) -> Placement | None:
    return None if value is None else checked_placement(value, f"a place of constraint {label!r}", None)


def _gains(value: Any, label: str) -> tuple[float, float] | None:
    """Return (kp, kd) of a pair, or of a rate w."""
    if value is None:
        return None
    what = f"stabilize of constraint {label!r}"
    gains = numbers(value, what, None)
    if isinstance(value, bool) or gains.shape not in ((), (2,)) or not np.isfinite(gains).all() or (gains < 0).any():
        raise ModelError(f"{what} is a rate w >= 0 in 1/s or a pair (kp, kd) >= 0, not {value!r}")
    return (float(gains) ** 2, 2 * float(gains)) if gains.ndim == 0 else (float(gains[0]), float(gains[1]))


def checked_axis(axis: Any, constraint: Constraint, word: str = "axis") -> tuple[float, float, float]:
    """Return a unit axis of a constraint."""
    return unit_axis(axis, f"the {word} of constraint {constraint.label!r}", None)


def checked_number(value: Any, constraint: Constraint, word: str) -> float:
    """Return a finite number of a constraint."""
    return finite(value, f"the {word} of constraint {constraint.label!r}", None)
