"""Dry friction of bearings in time: limits that depend on loads, which depend on the friction.

Symbols: F_i load of bearing i across its axis, mu_i coefficient, r_i radius, s_i sign of its velocity, tau_i friction
along its coordinate or about its hinge. Loads and accelerations are affine in the torques, F_i = F_i0 + G_ij tau_j,
a_i = a_i0 + H_ij tau_j:

    bearings that stick       a_i = 0                          which gives their torques by those of the others
    bearings that slide       tau_i = -s_i mu_i r_i |F_i|      solved as in `model/mechanism/bearing_friction.py`

The limit at rest is that of the load while the bearing sticks, the kinetic force that of the load while it slides.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from dalembert.errors import ModelError, SolvabilityError
from dalembert.friction import Law
from dalembert.kkt.limits import CERTAIN, EPS
from dalembert.model.mechanism.bearing_friction import Bearing, friction_torques, refuse_open_loads
from dalembert.model.mechanism.transmissions import loop_hinges
from dalembert.status import Status
from dalembert.types import Array

if TYPE_CHECKING:
    from dalembert.model.mechanism.mechanism import Mechanism


ADVICE = (
    "in a run nothing decides it: close its loop by fewer rows (PointOnLine in a plane, Point in space), so that the "
    "load is unique, or leave this friction out"
)
"""What to do about loads of which redundant constraints leave open how they are shared."""

BEYOND = 10.0
"""How many times the largest friction of its load a torque must be that would hold a bearing, so that nobody asks what
the other bearings do meanwhile: their torques are of the size of that friction."""


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


class BearingLoads:
    """The loads of all bearings with friction of a run.

    Attributes
    ----------
    places
        Numbers of the contacts that are bearings.
    """

    def __init__(self, mechanism: Mechanism, contacts: list[Any], q: Array, v: Array, t: float) -> None:
        self.mechanism, self.contacts = mechanism, contacts
        self.places = [i for i, one in enumerate(contacts) if isinstance(one.law, BearingLaw)]
        others = [one.name for i, one in enumerate(contacts) if i not in self.places]
        if others:
            raise ModelError(
                f"friction of bearings goes beside no other contact, and there is {others[0]!r}: its forces are part "
                "of the loads; friction=False leaves out what a file gives the joints"
            )
        self.laws = [contacts[i].law for i in self.places]
        radii = [each.radius for each in self.laws]
        self.bearings = [_bearing(mechanism, each.joint, r) for each, r in zip(self.laws, radii, strict=True)]
        refuse_open_loads(mechanism.joint_forces(q, v, None, t), self.bearings, ADVICE)
        self.kernel = mechanism.compile("joint_forces", joints=tuple(each.name for each in self.bearings))
        self.key: tuple[Any, ...] = ()
        self.known: dict[tuple[Any, ...], Array] = {}

    def limits(self, w: Any) -> tuple[Array, Array]:
        """Return kinetic forces at `w.law_speeds` and static limits of the bearings at the engine's state."""
        slides, signs = w.slides[self.places], w.direction[self.places, 0]
        speeds = np.maximum(w.sliding_speed[self.places], 0.0)
        self._look(w)
        now = self._loads(slides, signs, speeds)
        kinetic, static = np.zeros(len(self.places)), np.zeros(len(self.places))
        for k, law in enumerate(self.laws):
            kinetic[k] = float(law.kinetic(float(w.law_speeds[self.places[k]]))) * now[k]
            static[k] = law.static() * (self._load_at_rest(k, slides, signs, speeds) if slides[k] else now[k])
        return kinetic, static

    def _load_at_rest(self, k: int, slides: Array, signs: Array, speeds: Array) -> float:
        """Return the load of a bearing that slides as it would be if it held.

        Where that has no certain answer the limit is that of the load in motion. If the bearing comes to rest
        nevertheless, its loads are asked for in that mode, and refused there.
        """
        resting = slides.copy()
        resting[k] = False
        try:
            return float(self._loads(resting, signs, speeds)[k])
        except SolvabilityError:
            return float(self._loads(slides, signs, speeds)[k])

    def _look(self, w: Any) -> None:
        """Find loads and accelerations without friction, and what unit torques add to them."""
        key = (w.q.tobytes(), w.v.tobytes(), float(w.time[0]), w.force.tobytes())
        if key == self.key:
            return
        k = len(self.bearings)
        here = w.q[None], w.v[None]
        rows = np.concatenate([each.rows(self.mechanism, here[0]) for each in self.bearings])
        drift = np.concatenate([each.drift(self.mechanism, *here) for each in self.bearings])
        tau = np.tile(w.force, (k + 1, 1))
        tau[1:] += rows
        q, v, t = np.tile(w.q, (k + 1, 1)), np.tile(w.v, (k + 1, 1)), np.full((k + 1, 1), float(w.time[0]))
        wrenches, a, _, status, _ = self.kernel(q, v, tau, t)
        if (status > Status.ILL_CONDITIONED).any():
            raise SolvabilityError(
                f"at t = {t[0, 0]:.9g} s bearings have no loads that are certain: {Status(int(status.max())).message}"
            )
        F = np.asarray(wrenches).reshape(k + 1, k, 6)[:, :, :3]
        axes = np.array([each.axis for each in self.bearings])
        F = F - np.einsum("nic,ic->ni", F, axes)[..., None] * axes
        a = np.asarray(a) @ rows.T + drift
        self.F0, self.G = F[0], np.swapaxes(F[1:] - F[0], 0, 1)
        self.a0, self.H = a[0], (a[1:] - a[0]).T
        self.t, self.key, self.known = float(t[0, 0]), key, {}

    def _loads(self, slides: Array, signs: Array, speeds: Array) -> Array:
        """Return the loads (k,) with some bearings sliding at these speeds and the others at rest."""
        key = (slides.tobytes(), signs.tobytes(), speeds.tobytes())
        if key not in self.known:
            self.known[key] = np.linalg.norm(self._forces(slides, signs, speeds), axis=1)
        return self.known[key]

    def _passes_rest(self, k: int) -> bool:
        """Say whether no friction that its load allows can hold a bearing that is at rest for an instant.

        T holds it where a_k0 + H_kk T = 0, and |T| <= mu r (|F_k0| + |G_kk T|) bounds it. At the dead point of a rocker
        H_kk is zero: the bearing turns back.
        """
        limit = self.laws[k].static()
        room = 1.0 - limit * float(np.linalg.norm(self.G[k, k]))
        largest = limit * float(np.linalg.norm(self.F0[k]))
        return room > 0.0 and abs(self.a0[k]) * room > BEYOND * abs(self.H[k, k]) * largest

    def _forces(self, slides: Array, signs: Array, speeds: Array) -> Array:
        passing = [k for k in np.flatnonzero(~slides) if self._passes_rest(int(k))]
        if passing:  # they are about to move the way they are accelerated
            slides, signs = slides.copy(), signs.copy()
            slides[passing], signs[passing] = True, np.sign(self.a0[passing])
        L, S = np.flatnonzero(slides), np.flatnonzero(~slides)
        F, G = self.F0, self.G
        if S.size:  # torques of bearings at rest, by those of the others
            H = self.H[np.ix_(S, S)]
            if np.linalg.cond(H) > CERTAIN / EPS:
                names = ", ".join(repr(self.bearings[i].name) for i in S)
                raise SolvabilityError(
                    f"at t = {self.t:.9g} s the bearings {names} come to rest together: how they share the torque is "
                    "not unique, so that their loads are not; leave one of them without friction"
                )
            rest, by = np.linalg.solve(H, -self.a0[S]), np.linalg.solve(H, -self.H[np.ix_(S, L)])
            F = F + np.einsum("isc,s->ic", G[:, S], rest)
            G = G[:, L] + np.einsum("isc,sl->ilc", G[:, S], by)
        if not L.size:
            return F
        factors = np.array([float(self.laws[i].kinetic(float(speeds[i]))) for i in L])
        tau, sure = friction_torques(signs[L], factors, F[L], G[L])
        if not sure:
            names = ", ".join(repr(self.bearings[i].name) for i in L)
            raise SolvabilityError(
                f"at t = {self.t:.9g} s the friction of the bearings {names} is not the only one: they jam, or move in "
                "several ways; smaller coefficients or radii have one answer"
            )
        return F + np.einsum("ilc,l->ic", G, tau)


def _bearing(mechanism: Mechanism, joint: str, radius: float) -> Bearing:
    """Return the bearing of a joint; that of a slider has no radius."""
    turns = joint in loop_hinges(mechanism) or mechanism.joint(joint).kind != "prismatic"
    if not turns and radius != 1.0:
        raise ModelError(f"the slider {joint!r} has no radius: leave radius= out")
    return Bearing.of(mechanism, joint, (radius, 1.0) if turns else 1.0)
