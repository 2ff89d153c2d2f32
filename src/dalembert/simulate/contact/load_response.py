"""Loads of bearings and accelerations of contact rows, as affine functions of the forces along these rows.

Symbols: e forces along the rows W of contacts; F loads of bearings across their axes, a = W qdd + shift.

    F_i = F_i0 + G_ij e_j        a_i = a_i0 + H_ij e_j

Friction acts along velocities, as motors do; a force between shapes acts on two bodies where they touch, and passes
through the joints between.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from dalembert.errors import SolvabilityError
from dalembert.model.mechanism.transmissions import LoopMotion, loop_motions
from dalembert.simulate.contact_loads import load_of_pair, outer_forces
from dalembert.status import Status
from dalembert.types import Array

if TYPE_CHECKING:
    from dalembert.model.mechanism.bearing_friction import Bearing
    from dalembert.model.mechanism.mechanism import Mechanism


@dataclass(frozen=True, eq=False)
class AffineLoads:
    """F0 (k, 3), G (k, r, 3), a0 (r,), H (r, r) at a time; `places` says where the rows of a closed pair begin."""

    F0: Array
    G: Array
    a0: Array
    H: Array
    places: dict[int, int]
    t: float


class LoadResponse:
    """What finds them: kernels of a mechanism with bearings, friction along single rows, and pairs of shapes."""

    def __init__(
        self, mechanism: Mechanism, contacts: list[Any], bearings: list[Bearing], rubbing: list[int], pairs: list[int]
    ) -> None:
        self.mechanism, self.contacts, self.rubbing = mechanism, contacts, rubbing
        self.axes = np.array([bearing.axis for bearing in bearings])
        self.joints = tuple(bearing.name for bearing in bearings)
        self.touching = [i for i in pairs if contacts[i].pair.ball is not None]
        self.sliders = self._sliders()
        if not (self.touching or self.sliders):
            self.kernel = mechanism.compile("joint_forces", joints=self.joints)

    def _sliders(self) -> dict[int, LoopMotion]:
        """Return by place in `rubbing` the sliders that close loops: their friction acts on two bodies where they are.

        That of a hinge is a couple, which adds to no force.
        """
        motions, sliders = loop_motions(self.mechanism), {}
        for k, i in enumerate(self.rubbing):
            along = self.contacts[i].along
            if isinstance(along, str) and along in motions and not motions[along].turns:
                sliders[k] = motions[along]
        return sliders

    def at(self, w: Any, closed: tuple[int, ...]) -> AffineLoads:
        """Return the functions at the engine's state, for the pairs that are closed."""
        numbers = [3 * i + 1 for i in self.rubbing] + [3 * i + j for i in closed for j in range(3)]
        rows, shift = w.W[numbers], w.shift[numbers]
        count, t = len(numbers) + 1, float(w.time[0])
        tau = np.tile(w.force, (count, 1))
        tau[1:] += rows
        q, v, at = np.tile(w.q, (count, 1)), np.tile(w.v, (count, 1)), np.full((count, 1), t)
        if self.touching or self.sliders:
            F, a, status = self._pushed(w, q, v, tau, at, closed)
        else:
            F, a, _, status, _ = self.kernel(q, v, tau, at)
        if (np.asarray(status) > Status.ILL_CONDITIONED).any():
            raise SolvabilityError(
                f"at t = {t:.9g} s bearings have no loads that are certain: {Status(int(np.max(status))).message}"
            )
        F = np.asarray(F).reshape(count, len(self.joints), 6)[:, :, :3]
        F = F - np.einsum("nic,ic->ni", F, self.axes)[..., None] * self.axes
        a = np.asarray(a) @ rows.T + shift
        places = {i: len(self.rubbing) + 3 * k for k, i in enumerate(closed)}
        return AffineLoads(F[0], np.swapaxes(F[1:] - F[0], 0, 1), a[0], (a[1:] - a[0]).T, places, t)

    def _pushed(
        self, w: Any, q: Array, v: Array, tau: Array, t: Array, closed: tuple[int, ...]
    ) -> tuple[Array, Array, Array]:
        """Return wrenches, accelerations and statuses under unit forces, those between shapes acting on bodies."""
        m, first = self.mechanism, 1 + len(self.rubbing)
        a, lam, status = m.compile("forward")(q, v, tau, t)
        loads = {}
        for k, i in enumerate(closed):
            if i in self.touching:
                force = np.zeros((len(q), 3))
                force[first + 3 * k : first + 3 * k + 3] = w.axes[i]
                loads[self.contacts[i].name] = load_of_pair(m, q, self.contacts[i].pair, force)
        outer = outer_forces(m, q, loads)
        for k, motion in self.sliders.items():
            unit = np.zeros(len(q))
            unit[1 + k] = 1.0
            for body, wrench in motion.wrenches(m, q, unit).items():
                outer[body] = outer.get(body, 0.0) + wrench
        options = {"joints": self.joints} | ({"external": tuple(outer)} if outer else {})
        more = [np.concatenate(list(outer.values()), axis=1)] if outer else []
        return m.compile("joint_forces_of_motion", **options)(q, v, a, lam, t, *more), a, status
