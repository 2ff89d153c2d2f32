"""A mechanism as implicit steppers read systems: symbols, expressions, names."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cached_property
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import casadi as ca
import numpy as np

from dalembert.errors import UnsupportedError
from dalembert.model.constraints.all_rows import assemble
from dalembert.model.joints import KINDS
from dalembert.model.lagrangian.symbols import Symbols
from dalembert.model.mechanism.constraint_rows import refuse_turning_rows
from dalembert.model.mechanism.mechanism import Mechanism
from dalembert.model.mechanism.solve import LARGEST_SURVEYED
from dalembert.simulate.equations.callbacks import called
from dalembert.simulate.equations.chart import chart
from dalembert.simulate.equations.codes import _traced
from dalembert.simulate.equations.controller import Controller
from dalembert.simulate.equations.signals import StateInput
from dalembert.simulate.limits import CONTROLLER_DIFFERENCE
from dalembert.tableau.mechanics.welded import coordinates
from dalembert.tree.algorithms import dynamics
from dalembert.tree.algorithms.frame_kinematics import TreeKinematics
from dalembert.tree.prepared.prepare import cheapest
from dalembert.types import Array

if TYPE_CHECKING:
    from dalembert.model.mechanism.ranks import GenericRank
    from dalembert.simulate.equations.lagrangian_system import LagrangianSystem

# ----------------------------------------------------------------------------------------------------------------------
# A mechanism in coordinates x with x' = v: joints of lengths and angles, x the chart around the neutral configuration.
#
# Symbols: x, v, a coordinates, velocities and accelerations of the joints, tau their torques, lam multipliers; rows,
# names and signs are those of the mechanism.
#
#     need(x, v, a) - tau + A^T lam = 0        M = d need / da, bias = need(x, v, 0) - tau
#
# The formulas are those that the mechanism compiles (`tree`): `need` by the recursive Newton-Euler algorithm. A
# continuous joint is its angle, which counts turns. Balls and free bodies have quaternions, whose rates are not their
# velocities: they are integrated in maximal coordinates (`tableau/mechanics/maximal.py`).


class MechanismSystem:
    """A mechanism driven by the torques of its joints, "tau joint1".

    Attributes
    ----------
    a, need
        Accelerations, and the forces that they take, without those of constraints: what `motion` reads.
    own_controls
        Coordinate -> torque that becomes unknown where this coordinate is known.
    """

    def __init__(self, mechanism: Mechanism, time: ca.SX | None = None) -> None:
        _require_rates(mechanism)
        refuse_turning_rows(mechanism)
        self.mechanism = self.moving = mechanism
        self.coordinates, self.names, self.holonomic = mechanism.coordinates, mechanism.names, mechanism.holonomic
        self.base = mechanism.neutral()
        self.own_controls: dict[str, str] | None = {name: f"tau {name}" for name in self.coordinates}
        x, v, self.a = (ca.SX.sym(letter, mechanism.nv) for letter in "qva")
        self.symbols = Symbols.of(x, v, self._inputs(), ca.SX.sym("t") if time is None else time, None)

    def _inputs(self) -> ca.SX | None:
        """Return the symbols of what drives the mechanism."""
        return ca.vertcat(*[ca.SX.sym(f"tau {name}") for name in self.coordinates])

    @property
    def parameters(self) -> Any:
        """No parameters: a mechanism's numbers are in its expressions."""
        return self.symbols.parameters

    @property
    def tau(self) -> ca.SX:
        """The joint forces as an expression of x, v, t and the inputs."""
        return self.symbols.u

    @cached_property
    def place(self) -> ca.SX:
        """The configuration at x."""
        return chart(self.mechanism, ca.SX(ca.DM(self.base)), self.symbols.q, self.symbols.v)[0]

    @cached_property
    def need(self) -> ca.SX:
        """What accelerations a take beyond the joint forces."""
        return _traced(self.mechanism.open_tree(), "inverse")(self.place, self.symbols.v, self.a) - self.tau

    @cached_property
    def expressions(self) -> Any:
        """M, bias with the joint forces in it, A, drift, phi and psi."""
        m, s = self.mechanism, self.symbols
        mass = _traced(m, "mass_matrix")(self.place)
        bias = _traced(m, "bias")(self.place, s.v) - self.tau
        return SimpleNamespace(mass=mass, bias=bias, holonomic=m.holonomic, **self._rows())

    def _rows(self) -> dict[str, ca.SX]:
        """Return phi, psi, A and drift of all constraints."""
        m, empty = self.mechanism, ca.SX(0, 1)
        if not m.names:
            return {"constraint": empty, "rate": empty, "drift": empty, "jacobian": ca.SX(0, m.nv)}
        rows = assemble(ChartKinematics(self))
        phi = ca.SX(rows.residual) if rows.residual.shape[0] else empty
        return {
            "constraint": phi,
            "rate": ca.SX(rows.rate),
            "drift": ca.SX(rows.drift),
            "jacobian": ca.SX(rows.jacobian),
        }

    def own(self, q: Any) -> Any:
        """Return a configuration in these coordinates: (cos, sin) of continuous joints become angles."""
        m = self.mechanism
        return q if m.nq == m.nv or np.shape(q) != (m.nq,) else coordinates(m, q)

    def configuration(self, x: Array) -> Array:
        """Return q at x, (nv,) or (N, nv)."""
        base = np.broadcast_to(self.base, (*x.shape[:-1], self.base.size))
        return np.asarray(self.mechanism.integrate(base, x))

    def generic_rank(self, x: Array, t: float) -> GenericRank | None:
        """Return the rank of the mechanism's rows around x."""
        m = self.mechanism
        return m.generic_rank(self.configuration(x), t) if m.names and m.nv <= LARGEST_SURVEYED else None


class ChartKinematics(TreeKinematics):
    """The mechanism in motion at the coordinates x, for its constraints."""

    def __init__(self, system: MechanismSystem) -> None:
        tree, _ = cheapest(system.mechanism, dynamics.inverse)
        super().__init__(system.mechanism, tree, system.place, system.symbols.v, system.symbols.t)
        self.x = system.symbols.q

    def coordinate(self, name: str) -> ca.SX:
        """Return a length or angle of a joint; that of a continuous joint counts turns."""
        return self.x[self.mechanism.index_v(name).start]


def _require_rates(mechanism: Mechanism) -> None:
    """Refuse joints whose velocities are not the rates of their coordinates."""
    for joint in mechanism.joints:
        if not KINDS[joint.kind].has_rates:
            raise UnsupportedError(
                f"joint {joint.name!r} ({joint.kind}): its velocities are not the rates of its coordinates. Integrate "
                "`dalembert.tableau.maximal(mechanism)`, or replace it by joints with one coordinate each"
            )


# ----------------------------------------------------------------------------------------------------------------------
# A mechanism under a controller.
#
# A Python function of (t, q, v) enters as a linear model,
#
#     tau = c + K x + D v,        c, K, D from the function and its differences at the point where Newton's method
#     starts,
#
# whose error is of second order in the correction that follows, far below the tolerance that the correction keeps to.


class ControllerForces:
    """Forces of a controller as an expression: with tables, or a Python function as its linear model."""

    def __init__(
        self, controller: Controller, n: int, configuration: Callable[[Array], Array], guarded: Callable[..., Any]
    ) -> None:
        self.controller, self.n = controller, n
        function = controller.function
        self.model = None if function is None else LinearModel(function, n, configuration, guarded)
        count = controller.symbols.numel() if self.model is None else n + 2 * n * n
        # inputs need names that no coordinate has
        self.inputs = ca.vertcat(*(ca.SX.sym(f"input {k}") for k in range(count))) if count else None

    def expression(self, s: Symbols, place: ca.SX) -> ca.SX:
        """Return the joint forces as an expression of x, v, t and the inputs; `place` is q at x."""
        c, n = self.controller, self.n
        if self.model is None:
            old, new = ca.vertcat(c.t, c.q, c.v, c.symbols), ca.vertcat(s.t, place, s.v, s.u)
            return ca.substitute(c.tau, old, new)
        K, D = (ca.reshape(s.u[n + k * n * n : n + (k + 1) * n * n], n, n).T for k in range(2))
        return s.u[:n] + K @ s.q + D @ s.v

    def known(self) -> dict[str, Any]:
        """Return tables, or the linear model, by the names of their symbols."""
        names = [str(symbol) for symbol in ca.vertsplit(self.inputs)] if self.inputs is not None else []
        if self.model is not None:
            return {name: StateInput(self.model, k) for k, name in enumerate(names)}
        return {names[k]: p for k, p in self.controller.signals.polynomials.items()}


class ControlledSystem(MechanismSystem):
    """A mechanism whose joint forces a controller gives."""

    def __init__(self, mechanism: Mechanism, controller: Controller, guarded: Callable[..., Any]) -> None:
        self.forces = ControllerForces(controller, mechanism.nv, self.configuration, guarded)
        super().__init__(mechanism, controller.t)
        self.own_controls = None

    def _inputs(self) -> ca.SX | None:
        """Return the symbols of what drives the mechanism."""
        return self.forces.inputs

    @property
    def tau(self) -> ca.SX:
        """The joint forces as an expression of x, v, t and the inputs."""
        return self.forces.expression(self.symbols, self.place)


class ControlledLagrangian:
    """A Lagrangian to whose forces a controller adds its own."""

    def __init__(self, system: LagrangianSystem, controller: Controller, guarded: Callable[..., Any]) -> None:
        self.moving = system
        self.coordinates, self.names, self.holonomic = system.coordinates, system.names, system.holonomic
        self.base, self.place = system.neutral(), system.q
        self.forces = ControllerForces(controller, system.nv, self.configuration, guarded)
        inputs = self.forces.inputs
        self.symbols = replace(system.symbols, u=ca.SX(0, 1) if inputs is None else inputs)
        tau = self.forces.expression(self.symbols, self.place)
        self.expressions = replace(system.expressions, bias=system.expressions.bias - tau)

    @property
    def parameters(self) -> Any:
        """The parameters with their values."""
        return self.symbols.parameters

    def configuration(self, x: Array) -> Array:
        """Return q at x: the same."""
        return np.array(x)

    def generic_rank(self, x: Array, t: float) -> GenericRank | None:
        """Return the rank of the rows around x."""
        m = self.moving
        return m.generic_rank(x, t) if m.names and m.nv <= LARGEST_SURVEYED else None


class LinearModel:
    """c, K, D of a Python function at a state; the last state is kept for starts."""

    def __init__(
        self, function: Callable[..., Any], n: int, configuration: Callable[[Array], Array], guarded: Callable[..., Any]
    ) -> None:
        self.function, self.n, self.configuration, self.guarded = function, n, configuration, guarded
        self.state = np.zeros(0)

    def __call__(self, t: float, x: Array | None) -> Array:
        """Return c, K by rows, D by rows."""
        n = self.n
        if x is not None:
            self.state = x[: 2 * n].copy()
        state, tau = self.state, self._forces(t, self.state)
        slopes = np.empty((n, 2 * n))
        for j in range(2 * n):
            beside = state.copy()
            beside[j] += CONTROLLER_DIFFERENCE * max(1.0, abs(state[j]))
            slopes[:, j] = (self._forces(t, beside) - tau) / (beside[j] - state[j])
        return np.concatenate([tau - slopes @ state, slopes[:, :n].ravel(), slopes[:, n:].ravel()])

    def _forces(self, t: float, state: Array) -> Array:
        q, v = self.configuration(state[: self.n]), state[self.n :]
        return self.guarded(t, lambda: called(self.function, t, q, v))
