"""Dry friction of bearings in time: limits that depend on loads, which depend on the friction and on other contacts.

Symbols: F_i load of bearing i across its axis, mu_i r_i its law times its radius; e forces along the rows of all
contacts, a their accelerations; tau those of friction without a normal: bearings, and joints with a limit of their own.
Loads and accelerations are affine in the forces, F_i = F_i0 + G_i e, a = a_0 + H e:

    closed contacts           a_N = 0, sticking ones a_T = 0, sliding ones e_T = -mu e_N d     give their forces by tau
    friction that sticks      a_i = 0                          which gives these torques by those of the others
    friction that slides      tau_i = -s_i mu_i r_i |F_i|      solved as in `model/mechanism/bearing_friction.py`

The limit at rest is that of the load while the bearing sticks, the kinetic force that of the load while it slides.

**Several that rest together** hold the motion in more than one way. It is at rest as long as some torques hold it,
H tau = -a_0, within the limits of the loads that go with them. Such torques are found in turn with these limits: those
of the least sum of squares of tau_i / limit_i where they stay within, as `cone_loops.shared_evenly` has it; else those
whose largest part of a limit is least. Where that is one, all that take part are about to slide, and sliding with the
friction of rest begins without acceleration: there the motion begins. Which torques hold before is one choice of many,
and those that a past has wedged in may hold a little longer.

Impacts take no time, and friction of bearings no part in them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from dalembert.errors import ModelError, SolvabilityError
from dalembert.friction import Law
from dalembert.kkt.limits import CERTAIN, EPS
from dalembert.model.mechanism.bearing_friction import Bearing, refuse_open_loads
from dalembert.model.mechanism.transmissions import loop_motions
from dalembert.simulate.contact.load_response import LoadResponse
from dalembert.simulate.contact.resting_together import RubbingTogether, level_of_shares
from dalembert.simulate.contact.shapes import Heightfield
from dalembert.types import Array

if TYPE_CHECKING:
    from dalembert.model.mechanism.mechanism import Mechanism


ADVICE = (
    "in a run nothing decides it: close its loop by fewer rows (PointOnLine in a plane, Point in space), so that the "
    "load is unique, or leave this friction out"
)
"""What to do about loads of which redundant constraints leave open how they are shared."""


@dataclass(frozen=True)
class BearingLaw(Law):
    """A coefficient of friction of a joint's bearing: force per newton of load, times the radius."""

    coefficient: Law
    joint: str
    radius: float

    def kinetic(self, speed: Any, state: Any = None) -> Any:
        """Return torque per newton of load."""
        return self.radius * self.coefficient.kinetic(speed, state)

    def static(self, state: Any = None) -> float:
        """Return the limit per newton of load."""
        return self.radius * self.coefficient.static(state)


@dataclass(frozen=True, eq=False)
class ModeOfFriction:
    """What contacts do.

    Attributes
    ----------
    slides, signs, speeds
        Of friction without a normal, (n,).
    closed
        Numbers of the pairs that are closed.
    units
        Per closed pair the direction of its sliding, (2,), zero where it sticks.
    factors
        Per closed pair the coefficient of its friction.
    """

    slides: Array
    signs: Array
    speeds: Array
    closed: tuple[int, ...]
    units: Array
    factors: Array

    @classmethod
    def of(cls, w: Any, rubbing: list[int], pairs: list[int]) -> ModeOfFriction:
        """Read the engine's modes."""
        closed = tuple(i for i in pairs if w.closed[i])
        several = list(closed)
        moves = np.hypot(*w.sliding_unit[several].T) > 0.0
        units = np.where(moves[:, None], w.sliding_unit[several], w.direction[several]) * w.slides[several, None]
        speeds = np.maximum(w.sliding_speed[rubbing], 0.0)
        return cls(w.slides[rubbing].copy(), w.direction[rubbing, 0].copy(), speeds, closed, units,
                   w.law_numbers[several, 0].copy())  # fmt: skip

    @property
    def key(self) -> tuple[Any, ...]:
        """What tells modes apart."""
        parts = (self.slides, self.signs, self.speeds, self.units)
        return (self.closed, *(x.tobytes() for x in parts))

    def resting(self, k: int) -> ModeOfFriction:
        """Return the same with friction number k at rest."""
        slides = self.slides.copy()
        slides[k] = False
        return replace(self, slides=slides)

    def unknown(self, places: dict[int, int], widths: dict[int, int]) -> tuple[Array, Array]:
        """Return the forces of closed contacts as columns (rows, u) along their rows, and the rows they hold, (u,).

        `places` says where the rows of a contact begin, `widths` how many tangents it has.
        """
        columns, held = [], list[int]()
        for i, unit, mu in zip(self.closed, self.units, self.factors, strict=True):
            first, slides = places[i], bool(unit.any())
            column = np.zeros(max(places.values(), default=0) + 3)
            column[first] = 1.0
            column[first + 1 : first + 3] = -mu * unit
            columns.append(column)
            held.append(first)
            for j in range(widths[i] if mu > 0.0 and not slides else 0):
                columns.append(np.eye(column.size)[first + 1 + j])
                held.append(first + 1 + j)
        return np.array(columns).T, np.array(held, dtype=int)


class BearingLoads:
    """The loads of all bearings with friction of a run.

    Attributes
    ----------
    places
        Numbers of the contacts that are bearings.
    rubbing
        Numbers of all contacts without a normal, along one direction: bearings and joints with limits of their own.
    pairs
        Numbers of the contacts that open and close.
    """

    def __init__(self, mechanism: Mechanism, contacts: list[Any], q: Array, v: Array, t: float) -> None:
        self.mechanism, self.contacts = mechanism, contacts
        self.places = [i for i, contact in enumerate(contacts) if isinstance(contact.law, BearingLaw)]
        self.pairs = [i for i, contact in enumerate(contacts) if contact.pair is not None]
        self.rubbing = [
            i for i, contact in enumerate(contacts) if not contact.gapped and contact.row < 0 and contact.width == 1
        ]
        others = [contact.name for i, contact in enumerate(contacts) if i not in {*self.rubbing, *self.pairs}]
        if others:
            raise ModelError(
                f"friction of bearings goes beside contacts between shapes, limits of joints and friction of joints, "
                f"not beside {others[0]!r}: its forces are part of the loads"
            )
        grounds = [contacts[i].name for i in self.pairs if isinstance(contacts[i].pair.ground, Heightfield)]
        if grounds:
            raise ModelError(
                f"friction of bearings goes beside planes and spheres, not beside the field of {grounds[0]!r}"
            )
        self.laws = {i: contacts[i].law for i in self.rubbing}
        self.bearings = [_bearing(mechanism, contacts[i].law.joint, contacts[i].law.radius) for i in self.places]
        refuse_open_loads(mechanism.joint_forces(q, v, None, t), self.bearings, ADVICE)
        self.response = LoadResponse(mechanism, contacts, self.bearings, self.rubbing, self.pairs)
        self.key: tuple[Any, ...] = ()
        self.known: dict[tuple[Any, ...], Array] = {}

    def limits(self, w: Any) -> tuple[Array, Array]:
        """Return kinetic forces at `w.law_speeds` and static limits of the bearings at the engine's state."""
        mode = ModeOfFriction.of(w, self.rubbing, self.pairs)
        self._look(w, mode)
        now = self._loads(mode)
        kinetic, static = np.zeros(len(self.places)), np.zeros(len(self.places))
        for k, i in enumerate(self.places):
            law, sliding = self.laws[i], bool(mode.slides[self.rubbing.index(i)])
            kinetic[k] = float(law.kinetic(float(w.law_speeds[i]))) * now[k]
            static[k] = law.static() * (self._load_at_rest(k, i, mode) if sliding else now[k])
        return kinetic, static

    def _load_at_rest(self, k: int, i: int, mode: ModeOfFriction) -> float:
        """Return the load of a bearing that slides as it would be if it held.

        Where that has no certain answer the limit is that of the load in motion. If the bearing comes to rest
        nevertheless, its loads are asked for in that mode, and refused there.
        """
        try:
            return float(self._loads(mode.resting(self.rubbing.index(i)))[k])
        except SolvabilityError:
            return float(self._loads(mode)[k])

    def _look(self, w: Any, mode: ModeOfFriction) -> None:
        """Find loads and accelerations without contacts, and what unit forces of these add."""
        key = (w.q.tobytes(), w.v.tobytes(), float(w.time[0]), w.force.tobytes(), mode.closed)
        if key != self.key:
            self.affine, self.key, self.known = self.response.at(w, mode.closed), key, {}
            self.state = w.q.copy(), w.v.copy(), float(w.time[0])

    def _loads(self, mode: ModeOfFriction) -> Array:
        """Return the loads (k,) of the bearings in a mode."""
        key = mode.key
        if key not in self.known:
            self.known[key] = np.linalg.norm(self._forces(mode), axis=1)
        return self.known[key]

    def _forces(self, mode: ModeOfFriction) -> Array:
        """Return the forces across the axes, (k, 3)."""
        laws = [self.laws[i] for i in self.rubbing]
        kinetic = np.array([float(law.kinetic(float(s), self.state)) for law, s in zip(laws, mode.speeds, strict=True)])
        static = np.array([float(law.static(self.state)) for law in laws])
        loaded = [self.rubbing.index(i) for i in self.places]
        names = [getattr(law, "joint", self.contacts[i].name) for i, law in self.laws.items()]
        problem = self._without_contacts(mode)
        friction = RubbingTogether(*problem, loaded, kinetic, static, names, self.affine.t, self._alone)
        return friction.loads(mode)

    @property
    def _alone(self) -> Array:
        rows = np.arange(len(self.rubbing))
        return self.affine.H[np.ix_(rows, rows)]

    def _without_contacts(self, mode: ModeOfFriction) -> tuple[Array, Array, Array, Array]:
        """Return F_0, G, a_0, H of friction alone, the forces of closed contacts put in."""
        x, bearings = self.affine, np.arange(len(self.rubbing))
        F0, G, a0, H = x.F0, x.G[:, bearings], x.a0[bearings], x.H[np.ix_(bearings, bearings)]
        if not mode.closed:
            return F0, G, a0, H
        widths = {i: self.contacts[i].width for i in mode.closed}
        columns, rows = mode.unknown(x.places, widths)
        columns = columns[: len(x.a0)]
        K, right = x.H[rows] @ columns, -np.column_stack([x.a0[rows], x.H[np.ix_(rows, bearings)]])
        U, s, Vt = np.linalg.svd(K)
        rank = int(np.count_nonzero(s > EPS / CERTAIN * s[0]))
        e = Vt[:rank].T @ ((U[:, :rank].T @ right) / s[:rank, None])
        by = np.einsum("ijc,ju->iuc", x.G, columns)
        open_ones = np.einsum("iuc,ru->irc", by, Vt[rank:])
        level = level_of_shares(s, rank, float(s[0]))
        if np.abs(open_ones).max(initial=0.0) > level * np.abs(by).max(initial=0.0):
            raise SolvabilityError(
                f"at t = {x.t:.9g} s contacts share their forces in several ways, so that the loads of bearings are "
                "not unique: let it touch in fewer places, or leave the friction of the bearings out"
            )
        F0, G = F0 + np.einsum("iuc,u->ic", by, e[:, 0]), G + np.einsum("iuc,ul->ilc", by, e[:, 1:])
        pushed = x.H[bearings] @ columns
        return F0, G, a0 + pushed @ e[:, 0], H + pushed @ e[:, 1:]


def _bearing(mechanism: Mechanism, joint: str, radius: float) -> Bearing:
    """Return the bearing of a joint; that of a slider has no radius."""
    motion = loop_motions(mechanism).get(joint)
    turns = mechanism.joint(joint).kind != "prismatic" if motion is None else motion.turns
    if not turns and radius != 1.0:
        raise ModelError(f"the slider {joint!r} has no radius: leave radius= out")
    return Bearing.of(mechanism, joint, (radius, 1.0) if turns else 1.0)
