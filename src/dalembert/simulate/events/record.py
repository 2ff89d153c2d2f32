"""Records of events, impacts and modes of contacts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from dalembert.errors import UnsupportedError
from dalembert.simulate.limits import ACCEPTED, IMPACT_GAIN

if TYPE_CHECKING:
    from dalembert.kkt import Status
    from dalembert.model.mechanism.joint_forces import JointForces


class Mode(IntEnum):
    """What a contact does: it sticks, slides with positive or negative velocity, slides in a plane, or is open."""

    SLIP_MINUS = -1
    STICK = 0
    SLIP_PLUS = 1
    SLIP = 2
    OPEN = 3


MODES: dict[int, str] = {-1: "slip-", 0: "stick", 1: "slip+", 2: "slip", 3: "open"}
"""Modes as words of events."""


@dataclass(frozen=True)
class EventRecord:
    """A contact that changed its mode, or an event function of the user that became zero.

    Attributes
    ----------
    time
        In seconds.
    contact, index
        Name and number of the contact, or of the event.
    old, new
        Before and after: "stick", "slip+" or "slip-", in a plane "stick" or "slip"; where contacts open and close also
        "open", "closed", "impact" and, after infinitely many, "impacts" and "rest". Of an event "" and
        "rising" or "falling".
    """

    time: float
    contact: str
    index: int
    old: str
    new: str

    def as_dict(self) -> dict[str, str | float | int]:
        """Return what `--json` prints."""
        return {"time": self.time, "contact": self.contact, "index": self.index, "from": self.old, "to": self.new}

    def __str__(self) -> str:
        return f"{self.time:14.9f}  {self.contact}: {self.old} -> {self.new}"


CERTIFICATE = ("momentum", "laws", "energy_before", "energy_after", "status")
"""What the certificate of an impact holds, in the order of the columns of `samples["impact"]`."""


@dataclass(frozen=True, eq=False)
class ImpactRecord:
    """The impact of one instant, with its certificate.

    Attributes
    ----------
    time
        In seconds.
    impulses
        Of every contact that took part, N s: (3,) in world axes; of a Lagrangian normal, tangent, tangent; of a limit
        that of its joint away from the bound (N m s of a hinge), and two zeros.
    momentum
        What M (v+ - v-) = A^T L + W^T P misses, relative to its terms.
    laws
        What complementarity of velocities and impulses, with restitution and Coulomb's cone, misses, relative to the
        velocities before.
    energy_before, energy_after
        Kinetic energy, joules.
    heat
        What the contacts took, joules; the loss of kinetic energy where no row and no surface moves by itself.
    status
        UNIQUE, or REDUNDANT where contacts depend on each other: velocities are unique then, impulses one of many.
    completes
        True where the impact stands for infinitely many (Zeno) and closes what still separates by less than a
        millimetre per second: `momentum` misses that.
    wrenches
        Computes `joint_impulses`.
    """

    time: float
    impulses: Mapping[str, np.ndarray]
    momentum: float
    laws: float
    energy_before: float
    energy_after: float
    heat: float
    status: Status
    completes: bool = False
    wrenches: Callable[[], JointForces] | None = field(default=None, repr=False)

    @cached_property
    def joint_impulses(self) -> JointForces:
        """Impulsive wrenches of all joints, loops and constraints of a mechanism, N s and N m s, at the joints.

        `joint_impulses["knee"].force` is that of the parent on the child; `unique`, `family` and `in_axes` are as of
        joint forces.
        """
        if self.wrenches is None:
            raise UnsupportedError("this record is of no run: joint impulses are those of run.impacts")
        return self.wrenches()

    @property
    def contacts(self) -> tuple[str, ...]:
        """Names of the contacts that took part."""
        return tuple(self.impulses)

    @property
    def momentum_ok(self) -> bool:
        """Whether momentum balances, but for what completes infinitely many impacts."""
        return self.momentum <= ACCEPTED or self.completes

    @property
    def laws_ok(self) -> bool:
        """Whether the laws of impact hold."""
        return self.laws <= ACCEPTED

    @property
    def energy_ok(self) -> bool:
        """Whether the contacts bring no energy in: Newton's restitution with friction may."""
        return self.heat >= -2.0 * IMPACT_GAIN * self.energy_before

    @property
    def ok(self) -> bool:
        """True when momentum, laws and energy are certified."""
        return self.momentum_ok and self.laws_ok and self.energy_ok

    def __str__(self) -> str:
        words = "certified" if self.ok else "not certified"
        return (
            f"{self.time:14.9f}  impact of {', '.join(self.contacts)}: {words} (momentum {self.momentum:.1e}, laws "
            f"{self.laws:.1e}, heat {self.heat:.3g} J)"
        )
