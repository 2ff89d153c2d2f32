"""Large mechanisms in maximal coordinates: G(x, x', u) and Newton's matrix put together from elements.

`maximal` writes one graph of expressions for the whole mechanism: every equation can be read, known and unknown be
exchanged, but beyond some hundred bodies the graph itself costs more than all solving. Here the formulas of a body, a
joint or a constraint (`element`) are written once per description, compiled, called for all elements of it at once, and
their values added up in one sparse matrix. Work and memory are linear in the number of elements. The equations are the
same, to rounding; known are the torques.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any

import casadi as ca
import numpy as np
from jaxtyping import Float, Int

from dalembert.errors import ShapeError, UnsupportedError
from dalembert.kernel import Kernel
from dalembert.model.mechanism import Mechanism
from dalembert.tableau.bodies import Multibody
from dalembert.tableau.element import (
    OF_BODY,
    SIZE,
    Element,
    Formulas,
    body_element,
    constraint_element,
    formulas,
    joint_element,
)
from dalembert.tableau.from_mechanism import as_multibody, closes, closing_joints
from dalembert.tableau.inputs import as_numbers, as_scalar
from dalembert.tableau.maximal import refuse_resistance
from dalembert.tableau.pattern import Pattern
from dalembert.tableau.variables import element_names

Array = np.ndarray

WORTH_COMPILING = 32
"""Elements of one description from which machine code pays; fewer are evaluated by CasADi."""


@dataclass(frozen=True, eq=False)
class _Group:
    """All elements of one description: their formulas, and the global numbers of local unknowns, rows and torques."""

    formulas: Formulas
    residual: Callable[..., Array]
    jacobian: Callable[..., Array]
    at: Int[Array, "members local"]
    torques: Int[Array, "members torques"]


class Assembly:
    """Equations of a mechanism in maximal coordinates, evaluated by elements.

    Parameters
    ----------
    model
        A `Mechanism` or a `Multibody`, as for `maximal`. Couplings, springs between frames and compensated weights are
        refused: `maximal` has them.

    Attributes
    ----------
    pattern
        Of Newton's matrix, with the names of `maximal`. Equation k belongs to unknown k (the force on a body to its v,
        the row of a joint to its multiplier): `make_plan(..., paired=True)` makes use of it.
    torques
        Names of the known variables.
    """

    def __init__(self, model: Multibody | Mechanism) -> None:
        model = as_multibody(model)
        elements = _elements(model)
        equations, unknowns = _names_of_bodies(model)
        self.torques = tuple(name for element in elements for name in element.torques)
        members: dict[Hashable, list[tuple[Element, int, int]]] = {}
        row, torque = len(unknowns), 0
        for element in elements:
            members.setdefault(element.kind, []).append((element, row, torque))
            row, torque = row + len(element.unknowns), torque + len(element.torques)
            equations += element.equations
            unknowns += element.unknowns
        gravity = np.asarray(model.gravity, dtype=float)
        self._groups = [_group(each, gravity) for each in members.values()]
        self._place(equations, unknowns)

    def _place(self, equations: list[str], unknowns: list[str]) -> None:
        """Find the place of every element's entries in one matrix."""
        n = len(unknowns)
        keys = [
            (group.at[:, group.formulas.rows] * n + group.at[:, group.formulas.cols]).ravel() for group in self._groups
        ]
        found, self._target = np.unique(np.concatenate(keys), return_inverse=True)
        indptr = np.concatenate([[0], np.cumsum(np.bincount(found // n, minlength=n))]).astype(np.int64)
        self.pattern = Pattern(indptr, found % n, tuple(equations), tuple(unknowns))

    @property
    def n(self) -> int:
        """Number of unknowns, and of equations."""
        return len(self.pattern.unknowns)

    def residual(self, x: Any, x_dot: Any, u: Any = None) -> Float[Array, " n"]:
        """Return G(x, x', u); x' (n,) counts for positions and velocities only; torques are zero by default."""
        x, x_dot, u = self._checked(x, x_dot, u)
        G = np.zeros(self.n)
        for group in self._groups:
            values = group.residual(x[group.at], x_dot[group.at], u[group.torques])
            G += np.bincount(group.at.ravel(), values.ravel(), self.n)
        return G

    def jacobian(self, x: Any, x_dot: Any, u: Any = None, shift: float = 1.0) -> Float[Array, " entries"]:
        """Return the entries of dG/dx + shift dG/dx' in the order of the pattern."""
        x, x_dot, u = self._checked(x, x_dot, u)
        shift = as_scalar(shift, "shift")
        values = [
            group.jacobian(x[group.at], x_dot[group.at], u[group.torques], np.full((len(group.at), 1), shift)).ravel()
            for group in self._groups
        ]
        return np.bincount(self._target, np.concatenate(values), self.pattern.entries)

    def _checked(self, x: Any, x_dot: Any, u: Any) -> tuple[Array, Array, Array]:
        sizes = (("x", self.n), ("x_dot", self.n), ("u", len(self.torques)))
        given = (x, x_dot, np.zeros(len(self.torques)) if u is None else u)
        arrays = [as_numbers(array, name) for array, (name, _) in zip(given, sizes, strict=True)]
        for array, (name, size) in zip(arrays, sizes, strict=True):
            if array.shape != (size,):
                raise ShapeError(f"{name} must have shape ({size},); it has {array.shape}")
        return arrays[0], arrays[1], arrays[2]


def _elements(model: Multibody) -> list[Element]:
    """Return bodies, joints and constraints as elements; refuse what no element expresses."""
    elements = [body_element(i, body) for i, body in enumerate(model.bodies)]
    for joint in (*model.joints, *closing_joints(model)):
        if joint.kind == "free":
            refuse_resistance(joint)
        else:
            elements.append(joint_element(joint, model.bodies))
    if model.source is None:
        return elements
    mechanism = model.source.mechanism
    springs = [each.name for each in mechanism.springs] if mechanism.passive else []
    lifted = [body.name for body in mechanism.bodies if body.compensation] if mechanism.passive else []
    coupled = [each.label for each in mechanism.all_constraints if each.kind == "coupler"]
    for what, names in (("spring", springs), ("compensated weight of", lifted), ("coupling", coupled)):
        if names:
            raise UnsupportedError(f"{what} {', '.join(map(repr, names))}: no element of `Assembly`; use `maximal`")
    found = [each for each in mechanism.all_constraints if not closes(each)]
    return elements + [constraint_element(each, model, model.source) for each in found]


def _names_of_bodies(model: Multibody) -> tuple[list[str], list[str]]:
    """Return names of equations and unknowns of all bodies."""
    equations, unknowns = [], []
    for body in model.bodies:
        for letter, (word, size) in OF_BODY.items():
            equations += element_names(f"{word} {body.name}", size)
            unknowns += element_names(f"{letter} {body.name}", size)
    return equations, unknowns


def _group(members: list[tuple[Element, int, int]], gravity: Array) -> _Group:
    """Write and compile the formulas of one description, and number its members."""
    first = members[0][0]
    written = formulas(first, gravity)
    local = np.arange(SIZE)
    own, torques = np.arange(len(first.unknowns)), np.arange(len(first.torques))
    at = [np.concatenate([*[SIZE * body + local for body in element.bodies], row + own]) for element, row, _ in members]
    inputs = np.array([torque + torques for _, _, torque in members], dtype=np.int64).reshape(
        len(members), len(torques)
    )
    batched = _compiled if len(members) >= WORTH_COMPILING else _evaluated
    return _Group(written, batched(written.residual), batched(written.jacobian), np.array(at), inputs)


def _compiled(function: ca.Function) -> Callable[..., Array]:
    """Return a batched call in machine code."""
    kernel = Kernel(function)
    return lambda *arrays: np.asarray(kernel(*arrays))


def _evaluated(function: ca.Function) -> Callable[..., Array]:
    """Return a batched call by CasADi."""
    return lambda *arrays: np.array([np.array(function(*each)).ravel() for each in zip(*arrays, strict=True)])
