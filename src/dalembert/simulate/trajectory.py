"""The trajectory of a system with dry friction: states, forces, modes, events."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from dalembert.errors import MissingExtraError, ModelError
from dalembert.names import near_matches
from dalembert.simulate.events.record import EventRecord

if TYPE_CHECKING:
    from jaxtyping import Float, Int

    from dalembert.simulate.dry.dynamics import Dynamics

Array = np.ndarray


@dataclass(frozen=True, eq=False)
class Trajectory:
    """A motion in time; N samples, two of them at the time of every event (before and after).

    Attributes
    ----------
    t, q, v
        Times (N,), coordinates (N, n), velocities (N, n).
    modes
        Per sample and contact: 0 stick, +1 or -1 slip in that direction, 2 slip in a plane, (N, m).
    events
        Changes of modes, in order.
    friction_work
        Work that friction has done on the system since the start, joules, (N,); a moving surface may feed it.
    heat
        What sliding has turned into heat, joules, (N,); never falls.
    status, message
        "completed", "chattering", "detached" or "no solution"; why, where it is not the first.
    steps, evaluations
        Accepted steps and evaluations of the system.
    """

    t: Float[Array, " N"]
    q: Float[Array, "N n"]
    v: Float[Array, "N nv"]
    modes: Int[Array, "N m"]
    events: tuple[EventRecord, ...]
    friction_work: Float[Array, " N"]
    heat: Float[Array, " N"]
    status: str
    message: str
    steps: int
    evaluations: int
    dynamics: Dynamics = field(repr=False)

    @property
    def ok(self) -> bool:
        """True when the run reached its end."""
        return self.status == "completed"

    @property
    def coordinates(self) -> tuple[str, ...]:
        """Names of the coordinates."""
        return tuple(self.dynamics.system.coordinates)

    @property
    def contacts(self) -> tuple[str, ...]:
        """Names of the contacts."""
        return self.dynamics.names

    @cached_property
    def _resolved(self) -> tuple[Array, Array, Array, Array]:
        """Accelerations, friction forces, reactions and relative velocities of all samples, resolved exactly."""
        from dalembert.friction import FrictionStatus

        d = self.dynamics
        n, m, k = d.n, d.columns.owner.size, len(d.system.names)
        a, T = np.full((self.t.size, n), np.nan), np.full((self.t.size, m), np.nan)
        lam, xi = np.full((self.t.size, k), np.nan), np.zeros((self.t.size, m))
        warm = None
        for s in range(self.t.size):
            q, v, t, mode = self.q[s], self.v[s], float(self.t[s]), self.modes[s]
            x = d.terms(q, v, t)
            xi[s] = np.where((mode == 0)[d.columns.owner], 0.0, x.velocity)
            mode = np.where(d.columns.plane & (d.columns.sizes(xi[s]) == 0.0), 0, mode)
            answer = d.resolved(x, mode, (q, v, t), warm)
            if answer.status in (FrictionStatus.SOLVED, FrictionStatus.NOT_OPTIMAL):
                a[s], T[s], lam[s] = answer.acceleration, answer.forces, answer.multipliers
                warm = answer.forces
        return a, T, 0.0 - lam, xi

    @property
    def acceleration(self) -> Float[Array, "N n"]:
        """Accelerations; computed when first asked for."""
        return self._resolved[0]

    @property
    def forces(self) -> Float[Array, "N m"]:
        """Friction forces by contact direction (two for a plane): least-norm ones where sticking ones are redundant."""
        return self._resolved[1]

    @property
    def reactions(self) -> Float[Array, "N k"]:
        """Reactions of the constraint rows."""
        return self._resolved[2]

    @property
    def relative_velocity(self) -> Float[Array, "N m"]:
        """Relative velocities of the contacts; exactly zero where they stick."""
        return self._resolved[3]

    @cached_property
    def energy(self) -> Float[Array, " N"]:
        """T + V of every sample, joules, where the system has an energy."""
        system: Any = self.dynamics.system
        if not hasattr(system, "energy"):
            raise ModelError("this system has no energy: give Matrices(energy=...), or use a Lagrangian")
        return np.array([float(system.energy(q, v, t)) for q, v, t in zip(self.q, self.v, self.t, strict=True)])

    @property
    def energy_residual(self) -> Float[Array, " N"]:
        """Energy less its start less the work of friction: zero unless other forces do work."""
        return self.energy - self.energy[0] - self.friction_work

    def __getitem__(self, name: str) -> Array:
        """Return the coordinate, or the friction force of the contact, of this name; "name.v", "name.a": the rates."""
        if not isinstance(name, str):
            raise ModelError(f"a trajectory is asked for a coordinate or contact by name, not {name!r}")
        base, _, rate = name.partition(".") if name.endswith((".v", ".a")) else (name, "", "")
        if base in self.coordinates:
            return {"": self.q, "v": self.v, "a": self.acceleration if rate == "a" else self.v}[rate][
                :, self.coordinates.index(base)
            ]
        if name in self.contacts:
            found = self.forces[:, self.dynamics.columns.of(self.contacts.index(name))]
            return found[:, 0] if found.shape[1] == 1 else found
        near = near_matches(name, [*self.coordinates, *self.contacts])
        hint = f"; did you mean {', '.join(map(repr, near))}?" if near else ""
        raise ModelError(f"no coordinate or contact is called {name!r}{hint}")

    @staticmethod
    def load(path: Any) -> Trajectory:
        """Read the run of a mechanism from a file; one that was killed is read as far as it came."""
        from dalembert.simulate.storage.read import load_run

        return load_run(path)

    def plot(self, what: Sequence[str] | str = ("velocities", "forces")) -> Any:
        """Return a matplotlib figure of velocities and friction forces, phases shaded by who sticks."""
        try:
            from matplotlib.figure import Figure
        except ImportError as error:
            raise MissingExtraError("matplotlib", "view", "Plotting a trajectory") from error
        from dalembert.simulate.plots import draw_panel

        what = [what] if isinstance(what, str) else list(what)
        if not what:
            raise ModelError("what= is empty: 'velocities', 'coordinates' or 'forces'")

        figure = Figure(figsize=(9.0, 2.8 * len(what) + 0.6), layout="constrained")
        for axes, one in zip(np.atleast_1d(figure.subplots(len(what), 1, sharex=True)), what, strict=True):
            draw_panel(axes, self, one)
        return figure

    def __str__(self) -> str:
        span = f"{self.t[-1] - self.t[0]:g} s, {self.steps} steps, {len(self.events)} events"
        return "\n".join([f"{self.status}: {span} {self.message}".rstrip(), *map(str, self.events)])
