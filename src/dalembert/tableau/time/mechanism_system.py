"""A `Mechanism` in joint coordinates as a system that the steppers read: M(q), bias(q, v), rows of loops, torques.

Symbols: q, v, a coordinates, velocities and accelerations of the joints, tau their torques, rows and signs as in
`tableau/tree_rows.py`:

    need(q, v, a) + A^T lam = tau        M = d need / da, bias = need(q, v, 0) - tau

`need` is the recursion of `tableau/newton_euler.py`. Coordinates are called as `mechanism.coordinates`, torques
"tau joint1". Joints must have as many coordinates as velocities, v = q': balls and free bodies have quaternions, and
are integrated in maximal coordinates (`tableau/maximal.py`).
"""

from __future__ import annotations

from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import casadi as ca
import numpy as np

from dalembert.errors import UnsupportedError
from dalembert.model.constraints.assemble import assemble
from dalembert.model.joints import as_expression
from dalembert.model.mechanism import Mechanism
from dalembert.model.symbols import Symbols
from dalembert.tableau.bodies import Multibody
from dalembert.tableau.from_mechanism import as_multibody, coordinates
from dalembert.tableau.newton_euler import needed
from dalembert.tableau.tree_rows import JointKinematics, passive_forces


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
                "`dalembert.tableau.maximal(mechanism)`, or replace it by joints with one coordinate each"
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
