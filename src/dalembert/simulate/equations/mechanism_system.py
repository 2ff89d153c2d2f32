"""A mechanism as implicit steppers read systems: symbols, expressions, names."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import casadi as ca
import numpy as np

from dalembert.errors import UnsupportedError
from dalembert.model.constraints.all_rows import assemble
from dalembert.model.joints import as_expression
from dalembert.model.lagrangian.symbols import Symbols
from dalembert.model.mechanism.mechanism import Mechanism
from dalembert.model.mechanism.solve import LARGEST_SURVEYED
from dalembert.simulate.equations.callbacks import called
from dalembert.simulate.equations.chart import chart
from dalembert.simulate.equations.codes import _traced
from dalembert.simulate.equations.controller import Controller
from dalembert.simulate.equations.signals import StateInput
from dalembert.tableau.mechanics.bodies import Multibody, as_multibody, coordinates
from dalembert.tableau.mechanics.newton_euler import JointKinematics, needed, passive_forces

if TYPE_CHECKING:
    from dalembert.model.mechanism.ranks import GenericRank

# ----------------------------------------------------------------------------------------------------------------------
# A mechanism as the tableau's implicit steppers read systems: symbols, expressions, names.
#
# The mechanism becomes a system in x with x' = v: joints of lengths and angles (a continuous joint by its angle), x the
# chart around the neutral configuration. A Python function of (t, q, v) enters as a linear model,
#
#     tau = c + K x + D v,        c, K, D from the function and its differences at the point where Newton's method
#     starts,
#
# whose error is of second order in the correction that follows, far below the tolerance that the correction keeps to.


Array = np.ndarray

DIFFERENCE = 1e-7
"""Step of the differences, times the size of a coordinate or one."""


class ImplicitSystem:
    """A mechanism under a controller."""

    def __init__(self, mechanism: Mechanism, controller: Controller, guarded: Callable[..., Any]) -> None:
        n = mechanism.nv
        self.mechanism, self.controller = mechanism, controller
        self.coordinates, self.names, self.holonomic = mechanism.coordinates, mechanism.names, mechanism.holonomic
        self.base = mechanism.neutral()
        self.model = None if controller.function is None else LinearModel(self, guarded)
        count = controller.symbols.numel() if self.model is None else n + 2 * n * n
        # controls need names that no coordinate has
        u = ca.vertcat(*(ca.SX.sym(f"input {k}") for k in range(count)), ca.SX(0, 1))
        empty = SimpleNamespace(column=ca.SX(0, 1))
        q, v = ca.SX.sym("q", n), ca.SX.sym("v", n)
        self.symbols = SimpleNamespace(q=q, v=v, u=u, t=controller.t, parameters=empty)
        self.parameters = SimpleNamespace(pack=lambda given: np.zeros(0))

    @cached_property
    def place(self) -> ca.SX:
        """The configuration at x."""
        return chart(self.mechanism, ca.SX(ca.DM(self.base)), self.symbols.q, self.symbols.v)[0]

    @cached_property
    def expressions(self) -> Any:
        """M, bias with the joint forces in it, A, drift, phi and psi."""
        m, s, place = self.mechanism, self.symbols, self.place
        rows, empty = len(m.names), ca.SX(0, 1)
        asked = {
            "jacobian": ("constraint_jacobian", (place, s.t)),
            "drift": ("constraint_drift", (place, s.v, s.t)),
            "constraint": ("constraint", (place, s.t)),
            "rate": ("constraint_velocity", (place, s.v, s.t)),
        }
        found = {name: _traced(m, what)(*given) if rows else empty for name, (what, given) in asked.items()}
        found["jacobian"] = ca.reshape(found["jacobian"], rows, m.nv) if rows else ca.SX(0, m.nv)
        mass = _traced(m, "mass_matrix")(place)
        bias = _traced(m, "bias")(place, s.v) - self.tau
        return SimpleNamespace(mass=mass, bias=bias, holonomic=m.holonomic, **found)

    @property
    def tau(self) -> ca.SX:
        """The joint forces as an expression of x, v, t and the inputs."""
        c, s, n = self.controller, self.symbols, self.mechanism.nv
        if self.model is None:
            return ca.substitute(c.tau, ca.vertcat(c.q, c.v, c.symbols), ca.vertcat(self.place, s.v, s.u))
        K, D = (ca.reshape(s.u[n + k * n * n : n + (k + 1) * n * n], n, n).T for k in range(2))
        return s.u[:n] + K @ s.q + D @ s.v

    def generic_rank(self, x: Array, t: float) -> GenericRank | None:
        """Return the rank of the mechanism's rows around x."""
        m = self.mechanism
        return m.generic_rank(self.configuration(x), t) if m.names and m.nv <= LARGEST_SURVEYED else None

    def known(self) -> dict[str, Any]:
        """Return tables, or the linear model, by the names of their symbols."""
        names = [str(each) for each in ca.vertsplit(self.symbols.u)] if self.symbols.u.numel() else []
        if self.model is not None:
            return {name: StateInput(self.model, k) for k, name in enumerate(names)}
        return {names[k]: p for k, p in self.controller.signals.polynomials.items()}

    def configuration(self, x: Array) -> Array:
        """Return q at x, (nv,) or (N, nv)."""
        base = np.broadcast_to(self.base, (*x.shape[:-1], self.base.size))
        return np.asarray(self.mechanism.integrate(base, x))


class LinearModel:
    """c, K, D of a Python function at a state; the last state is kept for starts."""

    def __init__(self, system: ImplicitSystem, guarded: Callable[..., Any]) -> None:
        self.system, self.guarded = system, guarded
        self.state = np.zeros(0)

    def __call__(self, t: float, x: Array | None) -> Array:
        """Return c, K by rows, D by rows."""
        n = self.system.mechanism.nv
        if x is not None:
            self.state = x[: 2 * n].copy()
        here, tau = self.state, self._forces(t, self.state)
        slopes = np.empty((n, 2 * n))
        for j in range(2 * n):
            beside = here.copy()
            beside[j] += DIFFERENCE * max(1.0, abs(here[j]))
            slopes[:, j] = (self._forces(t, beside) - tau) / (beside[j] - here[j])
        return np.concatenate([tau - slopes @ here, slopes[:, :n].ravel(), slopes[:, n:].ravel()])

    def _forces(self, t: float, state: Array) -> Array:
        n = self.system.mechanism.nv
        q, v = self.system.configuration(state[:n]), state[n:]
        return self.guarded(t, lambda: called(self.system.controller.function, t, q, v))  # type: ignore[arg-type]


# ----------------------------------------------------------------------------------------------------------------------
# A `Mechanism` in joint coordinates as a system that the steppers read: M(q), bias(q, v), rows of loops, torques.
#
# Symbols: q, v, a coordinates, velocities and accelerations of the joints, tau their torques, rows and signs as in
# `tableau/mechanics/newton_euler.py`:
#
#     need(q, v, a) + A^T lam = tau        M = d need / da, bias = need(q, v, 0) - tau
#
# `need` is the recursion of `tableau/mechanics/newton_euler.py`. Coordinates are called as `mechanism.coordinates`,
# torques "tau joint1". Joints must have as many coordinates as velocities, v = q': balls and free bodies have
# quaternions, and are integrated in maximal coordinates (`tableau/mechanics/maximal.py`).


@dataclass(frozen=True, eq=False)
class MechanismSystem:
    """What `motion` reads of a system; `need` is the force that accelerations `a` take, without that of constraints.

    Attributes
    ----------
    own_controls
        Coordinate -> torque that becomes unknown where this coordinate is known.
    """

    mechanism: Mechanism | None
    symbols: Symbols
    expressions: Any
    coordinates: tuple[str, ...]
    names: tuple[str, ...]
    a: ca.SX
    need: ca.SX
    own_controls: dict[str, str]

    def own(self, q: Any) -> Any:
        """Return a configuration in these coordinates: (cos, sin) of continuous joints become angles."""
        mechanism = self.mechanism
        if mechanism is None or mechanism.nq == len(self.coordinates) or np.shape(q) != (mechanism.nq,):
            return q
        return coordinates(mechanism, q)

    @property
    def parameters(self) -> Any:
        """No parameters: a mechanism's numbers are in its expressions."""
        return self.symbols.parameters


def mechanism_system(model: Mechanism | Multibody, time: ca.SX | None = None) -> MechanismSystem:
    """Write a mechanism down in joint coordinates, in the symbol of time given; refuse what has none, by name."""
    tree = as_multibody(model)
    tree.require_tree()
    _require_rates(tree)
    names = tuple(model.coordinates) if isinstance(model, Mechanism) else _joint_names(tree)
    n = len(names)
    q, v, a = (ca.SX.sym(letter, n) for letter in "qva")
    tau = ca.vertcat(*[ca.SX.sym(f"tau {name}") for name in names])
    need, rows = needed(tree, q, v, a) - tau, _no_rows(n)
    if tree.source is not None:
        seen = JointKinematics(tree, tree.source, q, v)
        seen.t = time = seen.t if time is None else time
        need += passive_forces(tree.source.mechanism, seen)
        rows = _rows(tree.source.mechanism, seen)
    expressions = SimpleNamespace(mass=ca.jacobian(need, a), bias=ca.substitute(need, a, ca.SX.zeros(n)), **rows)
    own = {name: f"tau {name}" for name in names}
    symbols = Symbols.of(q, v, tau, time, None)
    mechanism = model if isinstance(model, Mechanism) else None
    return MechanismSystem(mechanism, symbols, expressions, names, expressions.names, a, need, own)


def _require_rates(tree: Multibody) -> None:
    """Refuse joints whose velocities are not the rates of their coordinates."""
    for joint in tree.joints:
        q, v = ca.SX.sym("q", joint.motion.nq), ca.SX.sym("v", joint.motion.nv)
        alone = q.numel() == v.numel()
        rate = as_expression(joint.motion.rate(ca.vertsplit(q), ca.vertsplit(v))) - v if alone else ca.SX(1)
        if not (alone and ca.simplify(rate).is_zero()):
            raise UnsupportedError(
                f"joint {joint.name!r} ({joint.kind}): its velocities are not the rates of its coordinates. Integrate "
                "`dalembert.tableau.mechanics.maximal(mechanism)`, or replace it by joints with one coordinate each"
            )


def _joint_names(tree: Multibody) -> tuple[str, ...]:
    sizes = [(joint.name, joint.motion.nv) for joint in tree.joints]
    return tuple(name if n == 1 else f"{name}[{k}]" for name, n in sizes for k in range(n))


def _no_rows(n: int) -> dict[str, Any]:
    none = ca.SX(0, 1)
    columns = {"constraint": none, "rate": none, "drift": none}
    return {**columns, "jacobian": ca.SX(0, n), "names": (), "holonomic": ()}


def _rows(mechanism: Mechanism, seen: JointKinematics) -> dict[str, Any]:
    """Return the rows of all constraints."""
    if not mechanism.names:
        return _no_rows(seen.v.numel())
    rows = assemble(seen)
    phi = ca.SX(rows.residual) if rows.residual.shape[0] else ca.SX(0, 1)
    found = {"constraint": phi, "rate": ca.SX(rows.rate), "drift": ca.SX(rows.drift), "jacobian": ca.SX(rows.jacobian)}
    return {**found, "names": tuple(mechanism.names), "holonomic": tuple(mechanism.holonomic)}
