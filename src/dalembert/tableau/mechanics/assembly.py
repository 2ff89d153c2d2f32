"""Large mechanisms in maximal coordinates, assembled from elements."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any

import casadi as ca
import numpy as np

from dalembert.errors import ShapeError, UnsupportedError
from dalembert.kernel import Kernel
from dalembert.model.mechanism.inertia import Inertia
from dalembert.model.mechanism.mechanism import Mechanism
from dalembert.model.mechanism.parts import Body, Joint
from dalembert.model.mechanism.placement import Placement
from dalembert.tableau.inputs import as_numbers, as_scalar
from dalembert.tableau.mechanics.maximal import MaximalSheet, refuse_resistance
from dalembert.tableau.mechanics.maximal_rows import BodyKinematics, add_constraint, require_pair, row_count
from dalembert.tableau.mechanics.welded import BASE, WeldedTree, closes, closing_joints, motion, welded
from dalembert.tableau.structure.pattern import Pattern
from dalembert.tableau.variables import element_names
from dalembert.types import Array

if TYPE_CHECKING:
    from jaxtyping import Float, Int

# ----------------------------------------------------------------------------------------------------------------------
# Elements of a large mechanism in maximal coordinates: what one body, one joint or one constraint adds to G.
#
# Symbols: x local unknowns, x' their rates, u torques; s shift of Newton's matrix dG/dx + s dG/dx'. Local numbers: body
# k has 14 unknowns from 14 k, in the order p, e, v, w, mu of `maximal`, and 14 rows that belong to them: rate of p,
# rate of e, force, moment, unit e. Own multipliers and angles come last, and the own rows in the same order: the
# equation that belongs to an unknown has its number.
#
# The equations are those of `maximal`, written by the same sheet for one or two bodies. Elements of equal description
# share one function.


OF_BODY = {"p": ("rate of p", 3), "e": ("rate of e", 4), "v": ("force", 3), "w": ("moment", 3), "mu": ("unit e", 1)}
"""Unknowns of a body in their order, the equation of each, and their number."""

WRITTEN = (
    "kind", "parent", "child", "placement", "child_placement", "axis", "axis2", "pitch", "armature", "damping",
    "stiffness", "rest",
)  # fmt: skip
"""What of a joint enters its equations."""

SIZE = sum(size for _, size in OF_BODY.values())


@dataclass(frozen=True, eq=False)
class Element:
    """One body, joint or constraint: where it stands, its own names, and what makes it equal to others."""

    bodies: tuple[int, ...]
    equations: tuple[str, ...]
    unknowns: tuple[str, ...]
    torques: tuple[str, ...]
    kind: Hashable
    described: Any


@dataclass(frozen=True, eq=False)
class Formulas:
    """The functions that elements of equal description share; `rows`, `cols` are the local places of the Jacobian."""

    residual: ca.Function
    jacobian: ca.Function
    rows: Int[Array, " entries"]
    cols: Int[Array, " entries"]


def body_element(i: int, body: Body) -> Element:
    """Return the element of body i: its inertia, its weight and its kinematics."""
    inertia = Inertia(body.inertia.mass, np.zeros(3), body.inertia.rotational)
    kind = ("body", _plain(inertia.mass), _plain(inertia.rotational))
    return Element((i,), (), (), (), kind, Body("0", inertia))


def joint_element(joint: Joint, tree: WeldedTree) -> Element:
    """Return the element of a joint."""
    parent, child = tree.number(joint.parent), tree.number(joint.child)
    ends = tuple(body for body in (parent, child) if body != BASE)
    local = replace(
        joint,
        parent="ground" if parent == BASE else "0",
        child=str(len(ends) - 1),
        placement=joint.placement if parent == BASE else _from_centre(joint.placement, tree.bodies[parent]),
        child_placement=_from_centre(joint.child_placement, tree.bodies[child]),
    )
    kind = ("joint", *[_plain(getattr(local, field.name)) for field in fields(local) if field.name in WRITTEN])
    rows = element_names(f"joint {joint.name}", row_count(joint))
    lam = element_names(f"lam {joint.name}", len(rows))
    tau = element_names(f"tau {joint.name}", motion(joint).nv)
    if joint.kind == "helical" or (joint.kind == "revolute" and joint.stiffness):
        rows, lam = (*rows, f"angle {joint.name}"), (*lam, f"q {joint.name}")
    return Element(ends, tuple(rows), tuple(lam), tuple(tau), kind, local)


def constraint_element(constraint: Any, tree: WeldedTree) -> Element:
    """Return the element of a constraint between two frames."""
    require_pair(constraint)
    mechanism = tree.mechanism
    owners = [mechanism.frame(name).body for name in (constraint.frame, constraint.other or mechanism.ground)]
    ends = tuple(dict.fromkeys(tree.number(owner) for owner in owners if tree.number(owner) != BASE))
    places, frames = {}, []
    for owner, name in zip(owners, (constraint.frame, constraint.other or mechanism.ground), strict=True):
        body, place = tree.places[owner]
        if body != BASE:
            place = _from_centre(place, tree.bodies[body])
        places[owner] = (BASE if body == BASE else ends.index(body), place)
        frames += [places[owner][0], _plain(place @ mechanism.frame(name).placement)]
    skipped = ("name", "frame", "other")
    data = [_plain(getattr(constraint, field.name)) for field in fields(constraint) if field.name not in skipped]
    names = constraint.row_names()
    kind = (type(constraint), constraint.other is None, *frames, *data)
    described = (constraint, WeldedTree(mechanism, tuple(Body(str(k)) for k in range(len(ends))), (), places))
    rows, lam = (tuple(f"{prefix} {name}" for name in names) for prefix in ("row", "lam"))
    return Element(ends, rows, lam, (), kind, described)


def formulas(element: Element, gravity: Array) -> Formulas:
    """Write the equations of an element and differentiate them."""
    described = element.described
    if isinstance(described, Body):
        sheet = MaximalSheet([described], gravity)
        sheet.move()
        return _differentiated(sheet, sheet.equations, {}, [], element)
    sheet = MaximalSheet([Body(str(k)) for k in range(len(element.bodies))], np.zeros(3))
    if isinstance(described, Joint):
        sheet.add(described)
        symbols = {name: x for name, x in sheet.variables.items() if name.startswith(("lam ", "q "))}
        return _differentiated(sheet, _forces(sheet), symbols, [sheet.variables[f"tau {described.name}"]], element)
    constraint, local = described
    wrenches = [ca.SX(6, 1) for _ in sheet.poses]
    multipliers: dict[str, ca.SX] = {}
    seen = BodyKinematics(local, sheet.poses)
    add_constraint(constraint, seen, wrenches, sheet.rows, multipliers)
    for symbols, more in zip(sheet.wrenches, wrenches, strict=True):
        symbols[0], symbols[1] = symbols[0] + more[:3], symbols[1] + more[3:]
    return _differentiated(sheet, _forces(sheet), multipliers, [], element)


def _from_centre(place: Placement, body: Body) -> Placement:
    """Return a place on a body as seen from its centre of mass."""
    return Placement(place.rotation, place.position - body.inertia.center)


def _forces(sheet: MaximalSheet) -> dict[str, ca.SX]:
    """Return what the wrenches add to the equations of motion."""
    pairs = enumerate(sheet.wrenches)
    return {name: -w for k, pair in pairs for name, w in zip((f"force {k}", f"moment {k}"), pair, strict=True)}


def _differentiated(
    sheet: MaximalSheet, equations: dict[str, ca.SX], own: dict[str, ca.SX], torques: list[ca.SX], element: Element
) -> Formulas:
    """Return residual and Jacobian with local numbers."""
    unknowns, rates, rows = [], [], []
    for k in range(len(element.bodies)):
        for letter, (prefix, size) in OF_BODY.items():
            name = f"{letter} {k}"
            unknowns.append(sheet.variables.get(name, ca.SX.sym(name, size)))
            rates.append(sheet.rates.get(name, ca.SX.sym(f"{name}'", size)))
            rows.append(equations.get(f"{prefix} {k}", ca.SX(size, 1)))
    angles = [row for name, row in sheet.rows.items() if name.startswith("angle ")]
    others = [row for name, row in sheet.rows.items() if not name.startswith("angle ")]
    ordered = sorted(own, key=lambda name: name.startswith("q "))
    unknowns += [own[name] for name in ordered]
    rates.append(ca.SX.sym("still", sum(own[name].numel() for name in ordered)))
    x, x_dot, u, s = (*(ca.vertcat(*part, ca.SX(0, 1)) for part in (unknowns, rates, torques)), ca.SX.sym("s"))
    G = ca.vertcat(*rows, *others, *angles)
    J = ca.sparsify(ca.jacobian(G, x) + s * ca.jacobian(G, x_dot))
    at = [np.array(part, dtype=np.int64) for part in J.sparsity().get_triplet()]
    nonzeros: list[Any] = J.nonzeros()
    inputs = [x, x_dot, u]
    return Formulas(
        ca.Function("residual", inputs, [ca.densify(G)]),
        ca.Function("jacobian", [*inputs, s], [ca.vertcat(*nonzeros, ca.SX(0, 1))]),
        *at,
    )


def _plain(value: Any) -> Hashable:
    """Return a value by which equal descriptions are recognised."""
    if isinstance(value, Placement):
        return (_plain(value.rotation), _plain(value.position))
    if isinstance(value, (np.ndarray, float, int, np.number, list, tuple)):
        return (np.asarray(value, dtype=float) + 0.0).tobytes()
    return value


# ----------------------------------------------------------------------------------------------------------------------
# Large mechanisms in maximal coordinates: G(x, x', u) and Newton's matrix put together from elements.
#
# `maximal` writes one graph of expressions for the whole mechanism: every equation can be read, known and unknown be
# exchanged, but beyond some hundred bodies the graph itself costs more than all solving. Here the formulas of a body, a
# joint or a constraint (`element`) are written once per description, compiled, called for all elements of it at once,
# and their values added up in one sparse matrix. Work and memory are linear in the number of elements. The equations
# are the same, to rounding; known are the torques.


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


class ElementAssembly:
    """Equations of a mechanism in maximal coordinates, evaluated by elements.

    Parameters
    ----------
    mechanism
        As for `maximal`. Couplings, springs between frames and compensated weights are refused: `maximal` has them.

    Attributes
    ----------
    pattern
        Of Newton's matrix, with the names of `maximal`. Equation k belongs to unknown k (the force on a body to its v,
        the row of a joint to its multiplier): `make_plan(..., paired=True)` makes use of it.
    torques
        Names of the known variables.
    """

    def __init__(self, mechanism: Mechanism) -> None:
        tree = welded(mechanism)
        elements = _elements(tree)
        equations, unknowns = _names_of_bodies(tree)
        self.torques = tuple(name for element in elements for name in element.torques)
        members: dict[Hashable, list[tuple[Element, int, int]]] = {}
        row, torque = len(unknowns), 0
        for element in elements:
            members.setdefault(element.kind, []).append((element, row, torque))
            row, torque = row + len(element.unknowns), torque + len(element.torques)
            equations += element.equations
            unknowns += element.unknowns
        self._groups = [_group(group, tree.gravity) for group in members.values()]
        self._place(equations, unknowns)

    def _place(self, equations: list[str], unknowns: list[str]) -> None:
        """Find the place of every element's entries in one matrix."""
        n = len(unknowns)
        keys = [
            (group.at[:, group.formulas.rows] * n + group.at[:, group.formulas.cols]).ravel() for group in self._groups
        ]
        places, self._target = np.unique(np.concatenate(keys), return_inverse=True)
        indptr = np.concatenate([[0], np.cumsum(np.bincount(places // n, minlength=n))]).astype(np.int64)
        self.pattern = Pattern(indptr, places % n, tuple(equations), tuple(unknowns))

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
        inputs = (x, x_dot, np.zeros(len(self.torques)) if u is None else u)
        arrays = [as_numbers(array, name) for array, (name, _) in zip(inputs, sizes, strict=True)]
        for array, (name, size) in zip(arrays, sizes, strict=True):
            if array.shape != (size,):
                raise ShapeError(f"{name} must have shape ({size},); it has {array.shape}")
        return arrays[0], arrays[1], arrays[2]


def _elements(tree: WeldedTree) -> list[Element]:
    """Return bodies, joints and constraints as elements; refuse what no element expresses."""
    elements = [body_element(i, body) for i, body in enumerate(tree.bodies)]
    for joint in (*tree.joints, *closing_joints(tree)):
        if joint.kind == "free":
            refuse_resistance(joint)
        else:
            elements.append(joint_element(joint, tree))
    mechanism = tree.mechanism
    springs = [part.name for part in mechanism.springs] if mechanism.passive else []
    lifted = [body.name for body in mechanism.bodies if body.compensation] if mechanism.passive else []
    coupled = [part.label for part in mechanism.all_constraints if part.kind == "coupler"]
    for what, names in (("spring", springs), ("compensated weight of", lifted), ("coupling", coupled)):
        if names:
            raise UnsupportedError(
                f"{what} {', '.join(map(repr, names))}: no element of `ElementAssembly`; use `maximal`"
            )
    constraints = [part for part in mechanism.all_constraints if not closes(part)]
    return elements + [constraint_element(part, tree) for part in constraints]


def _names_of_bodies(tree: WeldedTree) -> tuple[list[str], list[str]]:
    """Return names of equations and unknowns of all bodies."""
    equations, unknowns = [], []
    for body in tree.bodies:
        for letter, (prefix, size) in OF_BODY.items():
            equations += element_names(f"{prefix} {body.name}", size)
            unknowns += element_names(f"{letter} {body.name}", size)
    return equations, unknowns


def _group(members: list[tuple[Element, int, int]], gravity: Array) -> _Group:
    """Write and compile the formulas of one description, and number its members."""
    first = members[0][0]
    written = formulas(first, gravity)
    local = np.arange(SIZE)
    places, torques = np.arange(len(first.unknowns)), np.arange(len(first.torques))
    at = [
        np.concatenate([*[SIZE * body + local for body in element.bodies], row + places]) for element, row, _ in members
    ]
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
    return lambda *arrays: np.array([np.array(function(*sample)).ravel() for sample in zip(*arrays, strict=True)])
