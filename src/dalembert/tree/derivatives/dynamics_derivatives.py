"""Derivatives of forward dynamics, inverse dynamics and impacts, each a function with a status.

    forward    M a + bias + A^T lam = tau       A a + drift = 0                  d(a, lam)   by q, v, force, t
    impact     M (v+ - v) + A^T P = 0           rate(v+) + e rate(v) = 0         d(v+, P)    by q, v, restitution, t
    inverse    tau = M a + bias + A^T lam       least forces of the motors       d(tau, lam) by q, v, a

and of all three by the ten inertial numbers of a body and any other parameter of the model
(`model/mechanism/parametric.py`), q and v being held. Without rows multipliers have length 0. q is varied along its
tangent: column i is d/d eps f(integrate(q, eps e_i)) at eps = 0, the convention of Pinocchio, Crocoddyl and MuJoCo.

Rows are taken as forces on links, in the axes of the frames that they hold (`block/row_forces.py`): there most of them
are constant, and their derivative is that of one pass of the Newton-Euler algorithm with these forces on its links.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import casadi as ca

from dalembert.errors import UnsupportedError
from dalembert.kernel.program.columns import ColumnFunction
from dalembert.kkt import Status
from dalembert.kkt.expressions.block_solver import BlockSolver
from dalembert.kkt.expressions.matrix_system import MatrixSystem, product
from dalembert.kkt.expressions.scalars import add, mul, neg, sub, total
from dalembert.kkt.expressions.sparse_factor import Vector
from dalembert.kkt.expressions.verdict import BlockAnswer
from dalembert.tree.algebra import vectors
from dalembert.tree.algebra.screws import Pair
from dalembert.tree.algebra.vectors import ZERO
from dalembert.tree.algorithms import dynamics
from dalembert.tree.algorithms.dynamics import refuse_singular, status_of_numbers
from dalembert.tree.algorithms.inverse import LinkMotion, accelerations, body_forces, joint_forces
from dalembert.tree.algorithms.passive import joint_resistance, spring_forces
from dalembert.tree.block.articulated_system import scaled
from dalembert.tree.block.constrained import Tracing, expression, inverse, scalars
from dalembert.tree.block.row_forces import RowForce, TreeMotion
from dalembert.tree.derivatives.alike_columns import RightSide, Unknown, column_function, groups
from dalembert.tree.derivatives.directions import (
    INERTIA,
    at_their_values,
    checked_directions,
    label,
    open_parameters,
    parameters_of,
    tangent,
)
from dalembert.tree.derivatives.implicit_differentiation import (
    BlockResidual,
    Columns,
    KnownShare,
    differentiated,
    proven,
)
from dalembert.tree.derivatives.newton_euler_derivatives import newton_euler_derivatives
from dalembert.tree.derivatives.regressor import inertia_columns, plain_setting
from dalembert.tree.prepared.configuration import pair_add
from dalembert.tree.prepared.prepare import candidates
from dalembert.tree.routes.tree_rows import TreeRows
from dalembert.types import Scalar

if TYPE_CHECKING:
    from dalembert.model.mechanism.mechanism import Mechanism


# ----------------------------------------------------------------------------------------------------------------------
# The two block rows of a mechanism over symbols of its state and of the answer.


@dataclass(frozen=True, eq=False)
class Differentiated:
    """A mechanism whose block system is solved, and then differentiated.

    Attributes
    ----------
    setting
        Symbols, prepared tree and conditioning, as for the answer itself.
    inputs
        Names of the inputs, in order.
    """

    setting: Tracing
    inputs: tuple[str, ...]

    @cached_property
    def rows(self) -> TreeRows:
        """The rows as forces on links, with their drift."""
        return self.setting.tree_rows

    @cached_property
    def A(self) -> list[list[Scalar]]:
        """The Jacobian of these rows, (m, nv)."""
        return [row_entries(self.setting, row) for row in self.rows.forces]

    @cached_property
    def solver(self) -> BlockSolver:
        """The factors, that of the Delassus matrix among them."""
        setting = self.setting
        return BlockSolver.of(self.system, setting.needs, setting.metric, setting.limits)

    @cached_property
    def system(self) -> MatrixSystem:
        """M and A, and the factor of M, or of H where links are massless."""
        setting, needs = self.setting, self.setting.needs
        return MatrixSystem.of(setting.M, self.A, needs.massless, setting.mechanism.coordinates, needs.size_floors)

    def values(self) -> list[Scalar]:
        """Return the scalars of all inputs."""
        for name in self.inputs:
            self.setting.symbol(name)
        return self.setting.inputs(self.inputs)

    def direction(self, name: str) -> tuple[ca.SX, ca.SX]:
        """Return the symbols of an input or parameter, and the directions in which they are varied."""
        mechanism = self.setting.mechanism
        if name == "q":
            return self.setting.column("q"), tangent(mechanism, self.setting.symbol("q"))
        known = parameters_of(mechanism)
        symbols = known[name] if name in known else self.setting.column(name)
        return symbols, ca.SX.eye(symbols.numel())


def moving_rows(setting: Tracing, motions: list[LinkMotion], a: Sequence[Scalar]) -> TreeRows:
    """Return the rows as forces with A a + drift in the place of their drift, `motions` being those with a."""
    q, v, t = (setting.column(name) for name in ("q", "v", "t"))
    motion = TreeMotion(setting.mechanism, setting.tree, setting.posed, q, v, t, motions, a)
    groups = [(constraint, motion.rows(constraint)) for constraint in setting.mechanism.all_constraints]
    return TreeRows(motion, groups, [None] * len(groups)).in_short_bases(setting)


def row_entries(setting: Tracing, row: RowForce) -> list[Scalar]:
    """Return a row of A: J^T F, and its forces on joints."""
    own: list[Pair] = [(ZERO, ZERO)] * len(setting.tree.links)
    for i, F in row.links.items():
        own[i] = F
    entries, _ = joint_forces(setting.tree, setting.posed, own)
    for k, value in row.joints.items():
        entries[k] = add(entries[k], value)
    return entries


def borne(
    setting: Tracing, needed: list[Pair], joints: Sequence[Scalar], rows: Sequence[RowForce], lam: Sequence[Scalar]
) -> list[Scalar]:
    """Return J^T (needed + F lam) + joints: what forces on links, those of the rows among them, ask of the joints."""
    links, tau = list(needed), list(joints)
    for row, force in zip(rows, lam, strict=True):
        for i, F in row.links.items():
            links[i] = pair_add(links[i], scaled(force, F))
        for k, value in row.joints.items():
            tau[k] = add(tau[k], mul(value, force))
    return [add(*pair) for pair in zip(joint_forces(setting.tree, setting.posed, links)[0], tau, strict=True)]


def unknowns(**sizes: int) -> dict[str, ca.SX]:
    """Return symbols for answers."""
    return {name: ca.SX.sym(name, size) for name, size in sizes.items()}


def rotors(setting: Tracing, a: Sequence[Scalar]) -> list[Scalar]:
    """Return armature times a."""
    armature = [inertia for link in setting.tree.links for inertia in link.armature]
    return list(map(mul, armature, a))


# ----------------------------------------------------------------------------------------------------------------------
# Forward dynamics.


FORWARD_STATES = {"q": "q", "v": "v", "force": "tau", "t": "t"}
"""What forward dynamics is differentiated by, and the inputs that these are."""


def forward_derivatives(mechanism: Mechanism, wrt: Any, metric: Any, dtype: str) -> ca.Function | ColumnFunction:
    """Return q, v, tau, t -> acceleration, multipliers, status and d(acceleration, multipliers)/d(each of wrt)."""
    numbers = open_parameters(mechanism, wrt)
    if numbers:
        return at_their_values(forward_derivatives, mechanism, numbers, wrt, metric, dtype)
    names = checked_directions(mechanism, wrt, tuple(FORWARD_STATES))
    if not mechanism.names:
        refuse_singular(mechanism, candidates(mechanism)[0])
    block = Differentiated(Tracing.of(mechanism, metric, dtype), ("q", "v", "tau", "t"))
    setting, solver = block.setting, block.solver
    q, v, tau, _ = (setting.symbol(name) for name in block.inputs)
    f = [sub(*pair) for pair in zip(tau, dynamics.bias(setting.tree, setting.posed, q, v), strict=True)]
    answer = solver.solve(f, block.rows.c, block.values())
    symbols = unknowns(a=mechanism.nv, lam=len(mechanism.names), y=mechanism.nv)
    residual = forward_residual(block, symbols, answer)
    motions = _answered_motions(setting, v, answer.acceleration)
    blocks = _slopes(block, residual, motions, {name: FORWARD_STATES.get(name, name) for name in names})
    return _function(block, "forward_derivatives", ("acceleration", "multipliers"), answer, blocks)


def forward_residual(block: Differentiated, symbols: Mapping[str, ca.SX], answer: BlockAnswer) -> BlockResidual:
    """Return M a + bias + A^T lam - tau and A a + drift; beside them A y, and the multipliers of the user's rows."""
    setting, tree, posed = block.setting, block.setting.tree, block.setting.posed
    q, v, tau = (setting.symbol(name) for name in ("q", "v", "tau"))
    a, lam, y = (ca.vertsplit(symbols[name]) if symbols[name].numel() else [] for name in ("a", "lam", "y"))
    motions = accelerations(tree.gravity, posed, v, a)
    rows = moving_rows(setting, motions, a)
    needed = [pair_add(*pair) for pair in zip(body_forces(tree, motions), spring_forces(tree, posed, v), strict=True)]
    resisted = [sub(*pair) for pair in zip(joint_resistance(tree, posed, q, v), tau, strict=True)]
    joints = [add(*pair) for pair in zip(resisted, rotors(setting, a), strict=True)]
    first = borne(setting, needed, joints, rows.forces, lam)
    residual = _residual(block, symbols, first, [row.drift for row in rows.forces], rows, (lam, y), answer)
    steady, others = _split(setting, rows.forces)
    slopes = newton_euler_derivatives(
        tree, posed, tree.gravity, v, answer.acceleration, _combined(steady, answer.multipliers)
    )
    rest = borne(setting, spring_forces(tree, posed, v), joints, others, lam)
    return replace(residual, share=KnownShare(_expression(rest), {"q": slopes.q, "v": slopes.v}))


def _split(setting: Tracing, rows: Sequence[RowForce]) -> tuple[list[dict[int, Pair]], list[RowForce]]:
    """Return the forces of rows on links that are constant in the links' axes, and the rows without them."""
    q = setting.column("q")

    def is_steady(force: Pair) -> bool:
        return not ca.depends_on(_expression([*force[0], *force[1]]), q)

    steady = [{i: F for i, F in row.links.items() if is_steady(F)} for row in rows]
    others = [
        replace(row, links={i: F for i, F in row.links.items() if i not in there})
        for row, there in zip(rows, steady, strict=True)
    ]
    return steady, others


def _combined(forces: Sequence[Mapping[int, Pair]], lam: Sequence[Scalar]) -> dict[int, Pair]:
    """Return the sum of all rows' forces, each times its multiplier, by link."""
    result: dict[int, Pair] = {}
    for row, multiplier in zip(forces, lam, strict=True):
        for i, F in row.items():
            result[i] = pair_add(result.get(i, (ZERO, ZERO)), scaled(multiplier, F))
    return result


def _residual(
    block: Differentiated,
    symbols: Mapping[str, ca.SX],
    first: list[Scalar],
    second: list[Scalar],
    rows: TreeRows,
    held: tuple[list[Scalar], list[Scalar]],
    answer: BlockAnswer,
) -> BlockResidual:
    """Return a residual of two block rows with what rows in other axes, and redundant ones, need beside them."""
    lam, y = held
    parts = {"first": first, "second": second}
    if lam:
        parts["told"] = rows.to_world(lam)
    answers = [(symbols["a"], _expression(answer.acceleration)), (symbols["lam"], _expression(answer.multipliers))]
    turning = block.solver.turning_motion(answer.multipliers)
    if turning:
        parts["turned"] = [total(*map(mul, row, y)) for row in block.A]
        answers.append((symbols["y"], _expression(turning)))
    return BlockResidual({name: _expression(part) for name, part in parts.items()}, answers)


def _answered_motions(
    setting: Tracing, v: list[Scalar], a: list[Scalar]
) -> Callable[[], tuple[list[LinkMotion], list[LinkMotion]]]:
    """Return the motions of all links at the answer, and at rest, when they are asked for."""

    def motions() -> tuple[list[LinkMotion], list[LinkMotion]]:
        return link_motions(setting, setting.tree.gravity, v, a)

    return motions


def link_motions(
    setting: Tracing, gravity: vectors.Vector, v: list[Scalar], a: list[Scalar]
) -> tuple[list[LinkMotion], list[LinkMotion]]:
    """Return the motions of all links for v and a, and at rest, less gravity."""
    still: list[Scalar] = [0.0] * setting.tree.nv
    at_rest = accelerations(gravity, setting.posed, still, still)
    return accelerations(gravity, setting.posed, v, a), at_rest


def _slopes(
    block: Differentiated,
    residual: BlockResidual,
    motions: Callable[[], tuple[list[LinkMotion], list[LinkMotion]]],
    directions: Mapping[str, str],
) -> dict[str, dict[str, Columns]]:
    """Return the derivatives of a residual by direction, whose inputs `directions` names."""
    return {
        name: inertia_block(block.setting, residual, motions(), name)
        if name.startswith(INERTIA)
        else residual.along(symbol, *block.direction(symbol))
        for name, symbol in directions.items()
    }


def inertia_block(
    setting: Tracing, residual: BlockResidual, motions: tuple[list[LinkMotion], list[LinkMotion]], name: str
) -> dict[str, Columns]:
    """Return the derivatives of all parts by the inertial numbers of a body: forces alone depend on them."""
    k = setting.mechanism.body_index(name.removeprefix(INERTIA))
    first = inertia_columns(setting.mechanism, setting.tree, setting.posed, *motions, k)
    still = {part: [[0.0] * x.numel() for _ in first] for part, x in residual.parts.items()}
    return {**still, "first": first}


def _function(
    block: Differentiated,
    name: str,
    words: tuple[str, str],
    answer: BlockAnswer,
    blocks: Mapping[str, Mapping[str, Columns]],
) -> ca.Function | ColumnFunction:
    """Return the function of an answer and its derivatives; `words` name the two unknowns."""
    setting, rows = block.setting, block.rows
    status = ca.fmax(answer.status, proven(block.solver, list(blocks.values()), block.values()))
    held = bool(setting.mechanism.names)
    lam = rows.to_world(answer.multipliers) if held else []
    outputs = {words[0]: answer.acceleration, words[1]: lam, "status": [status]}
    sides = [
        RightSide.of(direction, k, {part: columns[k] for part, columns in parts.items()})
        for direction, parts in blocks.items()
        for k in range(len(parts["first"]))
    ]
    sizes = {direction: len(parts["first"]) for direction, parts in blocks.items()}
    unknowns = [
        Unknown(size, {x: (f"d{word}_d{label(x)}", columns) for x, columns in sizes.items()})
        for word, size in zip(words, (setting.mechanism.nv, len(setting.mechanism.names)), strict=True)
    ]

    def solve(parts: Mapping[str, Vector]) -> tuple[list[Scalar], list[Scalar]]:
        return differentiated(block.solver, setting.mechanism.nv, parts, rows.to_world)

    made = column_function(
        name,
        setting.named(block.inputs),
        {word: _expression(x) for word, x in outputs.items()},
        groups(sides, block.system.mass),
        solve,
        unknowns,
    )
    entries = sum(len(sides) * unknown.size for unknown in unknowns)
    return made if entries >= LEAST_ENTRIES else made.unrolled


LEAST_ENTRIES = 500
"""Derivatives from which on columns are looped over; straight-line code for fewer fits the caches as it is."""


def _expression(values: Sequence[Scalar]) -> ca.SX:
    return ca.densify(ca.SX(expression(list(values))))


# ----------------------------------------------------------------------------------------------------------------------
# Impacts.


IMPACT_STATES = ("q", "v", "restitution", "t")
"""What impacts are differentiated by."""


def impact_derivatives(mechanism: Mechanism, wrt: Any, metric: Any, dtype: str) -> ca.Function | ColumnFunction:
    """Return q, v, restitution, t -> velocity, impulses, status and d(velocity, impulses)/d(each of wrt)."""
    numbers = open_parameters(mechanism, wrt)
    if numbers:
        return at_their_values(impact_derivatives, mechanism, numbers, wrt, metric, dtype)
    names = checked_directions(mechanism, wrt, IMPACT_STATES)
    refuse_open(mechanism, "impact_derivatives")
    block = Differentiated(Tracing.of(mechanism, metric, dtype), IMPACT_STATES)
    setting = block.setting
    setting.symbol("restitution", len(mechanism.names))
    v, inputs = setting.symbol("v"), block.values()
    kept = [neg(x) for x in block.rows.from_world(kept_rates(setting))]
    answer = block.solver.solve(product(setting.M, v), kept, inputs)
    symbols = unknowns(a=mechanism.nv, lam=len(mechanism.names), y=mechanism.nv)
    residual = impact_residual(block, symbols, answer)
    change = [sub(*pair) for pair in zip(answer.acceleration, v, strict=True)]
    still: list[Scalar] = [0.0] * mechanism.nv
    blocks = _slopes(
        block, residual, lambda: link_motions(setting, ZERO, still, change), {name: name for name in names}
    )
    return _function(block, "impact_derivatives", ("velocity", "impulses"), answer, blocks)


def impact_residual(block: Differentiated, symbols: Mapping[str, ca.SX], answer: BlockAnswer) -> BlockResidual:
    """Return M (v+ - v) + A^T P and rate(v+) + e rate(v), with what stands beside them."""
    setting, tree = block.setting, block.setting.tree
    after, P, y = (ca.vertsplit(symbols[name]) for name in ("a", "lam", "y"))
    change = [sub(*pair) for pair in zip(after, setting.symbol("v"), strict=True)]
    still: list[Scalar] = [0.0] * tree.nv
    needed = body_forces(tree, accelerations(ZERO, setting.posed, still, change))
    joints = rotors(setting, change)
    first = borne(setting, needed, joints, block.rows.forces, P)
    kept = block.rows.from_world(kept_rates(setting))
    second = [add(*pair) for pair in zip(product(block.A, after), kept, strict=True)]
    residual = _residual(block, symbols, first, second, block.rows, (P, y), answer)
    steady, others = _split(setting, block.rows.forces)
    gain = [sub(*pair) for pair in zip(answer.acceleration, setting.symbol("v"), strict=True)]
    slopes = newton_euler_derivatives(tree, setting.posed, ZERO, still, gain, _combined(steady, answer.multipliers))
    rest = borne(setting, [(ZERO, ZERO)] * len(tree.links), joints, others, P)
    return replace(residual, share=KnownShare(_expression(rest), {"q": slopes.q}))


def kept_rates(setting: Tracing) -> list[Scalar]:
    """Return offset + e rate(v) of the user's rows: rate(v+) = A v+ + offset must be -e rate(v)."""
    v, rate = setting.column("v"), ca.SX(setting.rows.rate)
    offset = scalars(ca.substitute(rate, v, ca.SX.zeros(v.shape)))
    rebound = map(mul, setting.symbol("restitution"), scalars(rate))
    return [add(*pair) for pair in zip(offset, rebound, strict=True)]


def refuse_open(mechanism: Mechanism, what: str) -> None:
    """Refuse a mechanism without rows where rows are all that is asked about."""
    if not mechanism.names:
        raise UnsupportedError(f"{mechanism.name!r} has no constraint rows, so that {what!r} has nothing to say of it")


# ----------------------------------------------------------------------------------------------------------------------
# Inverse dynamics.


INVERSE_STATES = ("q", "v", "a")
"""What inverse dynamics is differentiated by."""


def inverse_derivatives(mechanism: Mechanism, wrt: Any, actuated: Any, dtype: str) -> ca.Function:
    """Return q, v, a, t -> tau, multipliers, status and d(tau, multipliers)/d(each of wrt).

    With loops, constraints or few motors: the derivatives of the least forces, the solve differentiated as it stands.
    Rows that are redundant, and motors that strain each other, are in it; the status is that of the answer, and that a
    derivative is finite.
    """
    solved = actuated is not None or bool(mechanism.loops or mechanism.constraints)
    numbers = open_parameters(mechanism, wrt, inertias=solved)
    if numbers:
        return at_their_values(inverse_derivatives, mechanism, numbers, wrt, actuated, dtype)
    names = checked_directions(mechanism, wrt, INVERSE_STATES)
    if not solved:
        return _tree_derivatives(mechanism, names)
    traced = inverse(mechanism, actuated, dtype)
    symbols = dict(zip(traced.name_in(), traced.sx_in(), strict=True))
    tau, lam, status = traced.call(list(symbols.values()))
    both, outputs = ca.vertcat(tau, lam), {"tau": tau, "multipliers": lam, "status": status}
    blocks = {name: _along(mechanism, both, symbols, name) for name in names}
    for name, block in blocks.items():
        outputs[f"dtau_d{label(name)}"] = block[: mechanism.nv, :]
        outputs[f"dmultipliers_d{label(name)}"] = block[mechanism.nv :, :]
    finite = ca.fabs(ca.sum1(ca.vertcat(*(ca.sum1(ca.sum2(ca.densify(x))) for x in blocks.values())))) < ca.inf
    outputs["status"] = ca.if_else(ca.logic_or(finite, status == int(Status.NONFINITE)), status, int(Status.DECLINED))
    return ca.Function(
        "inverse_derivatives", list(symbols.values()), list(map(ca.densify, outputs.values())), list(symbols),
        list(outputs),
    )  # fmt: skip


def _along(mechanism: Mechanism, expressions: ca.SX, symbols: Mapping[str, ca.SX], name: str) -> ca.SX:
    """Return the derivative of expressions by an input, q along its tangent, or by a parameter."""
    if name in parameters_of(mechanism):
        return ca.jacobian(expressions, parameters_of(mechanism)[name])
    seed = tangent(mechanism, ca.vertsplit(symbols["q"])) if name == "q" else ca.SX.eye(symbols[name].numel())
    return ca.jtimes(expressions, symbols[name], seed)


def _tree_derivatives(mechanism: Mechanism, names: Sequence[str]) -> ca.Function:
    """Return inverse dynamics of a tree whose joints are all driven, and its derivatives."""
    setting = plain_setting(mechanism)
    tree = setting.tree
    q, v, a = (setting.symbol(name) for name in INVERSE_STATES)
    setting.symbol("t")
    tau = expression(dynamics.inverse(tree, setting.posed, q, v, a))
    outputs: dict[str, Any] = {"tau": tau, "multipliers": [], "status": status_of_numbers(tau)}
    slopes = newton_euler_derivatives(tree, setting.posed, tree.gravity, v, a, {})._asdict()
    springs, _ = joint_forces(tree, setting.posed, spring_forces(tree, setting.posed, v))
    joints = zip(springs, joint_resistance(tree, setting.posed, q, v), rotors(setting, a), strict=True)
    rest = _expression([total(*terms) for terms in joints])
    known = parameters_of(mechanism)
    for name in names:
        if name.startswith(INERTIA) and name not in known:
            motions = link_motions(setting, tree.gravity, v, a)
            k = mechanism.body_index(name.removeprefix(INERTIA))
            block = list(map(list, zip(*inertia_columns(mechanism, tree, setting.posed, *motions, k), strict=True)))
        elif name in slopes:
            columns = _along(mechanism, rest, setting.symbols, name)
            block = ca.densify(columns + ca.horzcat(*(ca.vertcat(*map(ca.SX, column)) for column in slopes[name])))
        else:
            block = ca.densify(_along(mechanism, tau, setting.symbols, name))
        outputs[f"dtau_d{label(name)}"] = block
        outputs[f"dmultipliers_d{label(name)}"] = ca.SX(0, ca.SX(expression(block)).shape[1])
    return setting.function("inverse_derivatives", (*INVERSE_STATES, "t"), outputs)
