"""Any CasADi expression of the state that is zero: of coordinates, frames and time, or linear in velocities."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from dalembert.errors import ModelError, UnsupportedError
from dalembert.model.constraints.constraint import Constraint
from dalembert.model.constraints.row_algebra import Rows

if TYPE_CHECKING:
    from dalembert.model.constraints.primitives import Kinematics


@dataclass(frozen=True, repr=False)
class Expression(Constraint):
    """function(k) = 0 for the mechanism in motion k: `k.q`, `k.v`, `k.t`, `k.coordinate("elbow")`, `k.frame("hand")`.

    A frame has `position` (3, 1), `rotation` (3, 3) and `velocity` (6, 1) in world axes. The derivatives are CasADi's:

        da.Expression(lambda k: k.frame("hand").position[2] - 0.1 * casadi.sin(k.t), name="height")

    Attributes
    ----------
    function
        Takes `Kinematics` in CasADi expressions, returns a scalar, a column or a list.
    names
        One per row; without them there is one row with the constraint's `name`.
    velocity
        Whether the expression is at velocity level: linear in k.v, perhaps non-holonomic.
    acceleration
        Whether the rows constrain accelerations, J(q, v, t) a = b(q, v, t) (Oprea's (5)): function(k, a) then returns
        what is zero, an expression nonlinear in k.v, which runs keep at velocity level, or J a - b.
    """

    function: Callable[[Any], Any]
    names: tuple[str, ...] = field(default=(), kw_only=True)
    velocity: bool = field(default=False, kw_only=True)
    acceleration: bool = field(default=False, kw_only=True)

    kind = "expression"

    def normalize(self) -> None:
        """Refuse what is no function, and names that are missing."""
        if not callable(self.function):
            raise ModelError(f"an Expression is a function of the mechanism in motion, not {self.function!r}")
        if self.velocity and self.acceleration:
            raise ModelError("an Expression is at velocity=True or at acceleration=True, not at both")
        names = (self.names,) if isinstance(self.names, str) else tuple(self.names)
        if not names and not self.name:
            raise ModelError("an Expression needs a name, or names=(...) with one for each row")
        self._set(names=names)

    def row_names(self) -> tuple[str, ...]:
        """Return `names`, after the constraint's own where it has one."""
        if not self.names:
            return (self.name,)
        return tuple(f"{self.name}: {name}" if self.name else name for name in self.names)

    def holonomic(self) -> tuple[bool, ...]:
        """Return whether the rows are at position level."""
        return (not (self.velocity or self.acceleration),) * len(self.row_names())

    @property
    def of_accelerations(self) -> bool:
        """Whether rows constrain accelerations."""
        return self.acceleration

    @property
    def private(self) -> bool:
        """Return that it holds a Python function."""
        return True

    def rows(self, kinematics: Kinematics) -> Rows:
        """Return the expression with derivatives along dq/dt = N(q) v."""
        import casadi as ca

        k = kinematics
        if isinstance(k.q, np.ndarray):
            raise UnsupportedError(f"constraint {self.row_names()[0]!r} is an expression; it has no plain NumPy form")
        a = ca.SX.sym("a", k.v.shape[0])
        phi = self.value(k, *((a,) if self.acceleration else ()))

        def along_motion(x: ca.SX) -> ca.SX:
            return ca.jtimes(x, k.q, k.rate) + ca.jtimes(x, k.t, ca.SX.ones(1))

        if self.acceleration:
            return self._of_accelerations(phi, k, a, along_motion)
        moving = ca.depends_on(phi, k.v)
        if moving != self.velocity:
            words = "velocity=True" if self.velocity else "no velocity=True"
            raise ModelError(
                f"constraint {self.row_names()[0]!r} has {words}, but its expression "
                f"{'depends' if moving else 'does not depend'} on the velocities"
            )
        rate = phi if self.velocity else along_motion(phi)
        A = ca.jacobian(rate, k.v)
        if self.velocity and ca.depends_on(A, k.v):
            raise ModelError(
                f"constraint {self.row_names()[0]!r} must be linear in the velocities; acceleration=True takes others"
            )
        return Rows(None if self.velocity else phi, A, rate, along_motion(rate))

    def _of_accelerations(self, value: Any, k: Kinematics, a: Any, along_motion: Callable[[Any], Any]) -> Rows:
        """Return rows J a - b; what they keep at velocity level is zero where nothing is known."""
        import casadi as ca

        label, known = self.row_names()[0], not ca.depends_on(value, a)
        J = ca.jacobian(value, k.v if known else a)
        if ca.depends_on(J, a):
            raise ModelError(f"constraint {label!r} must be linear in the accelerations, J a - b")
        if any(J[i, :].nnz() == 0 for i in range(J.shape[0])):
            raise ModelError(f"constraint {label!r} constrains no acceleration: it depends neither on k.v nor on a")
        rest = along_motion(value) if known else ca.substitute(value, a, ca.SX.zeros(a.numel()))
        return Rows(None, J, value if known else ca.SX.zeros(*value.shape), rest)

    def value(self, *arguments: Any) -> Any:
        """Return the expression as a column with one entry per row."""
        import casadi as ca

        try:
            value = self.function(*arguments)
            phi = ca.vertcat(*value) if isinstance(value, list | tuple) else ca.SX(value)
        except (TypeError, RuntimeError, NotImplementedError) as error:
            raise ModelError(f"constraint {self.row_names()[0]!r}: its function failed: {error}") from error
        if phi.shape != (len(self.row_names()), 1):
            raise ModelError(
                f"constraint {self.row_names()[0]!r} has an expression of shape {phi.shape} and "
                f"{len(self.row_names())} row names: give one name for each row"
            )
        return phi
