"""Constrained forward and inverse dynamics, impacts and projections, each a function with a status."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, reduce
from typing import TYPE_CHECKING, Any

import casadi as ca
import numpy as np

from dalembert.kkt import Status
from dalembert.kkt.expressions.block_solver import BlockSolver, RedundantRows, kept_rows
from dalembert.kkt.expressions.matrix_system import MatrixSystem, product
from dalembert.kkt.expressions.probing import probe
from dalembert.kkt.expressions.scalars import add, mul, neg, scalar, sub, total
from dalembert.kkt.expressions.sparse_factor import Vector, dense
from dalembert.kkt.expressions.verdict import BlockAnswer, Conditioning, doubted, relative
from dalembert.kkt.limits import DOUBLE, SINGLE, Thresholds
from dalembert.model.constraints import Assembled, assemble
from dalembert.model.joints import as_expression
from dalembert.model.mechanism.joint_values import driven_coordinates
from dalembert.tree.algorithms import dynamics
from dalembert.tree.algorithms.dynamics import REST
from dalembert.tree.algorithms.frame_kinematics import TreeKinematics
from dalembert.tree.algorithms.inverse import crba
from dalembert.tree.block.articulated_system import Load
from dalembert.tree.block.conditioning import closed_matrices, digits_of, needs_of, needs_of_rows, row_weights_of
from dalembert.tree.prepared.configuration import Posed, pose_tree
from dalembert.tree.prepared.link import Tree
from dalembert.tree.prepared.prepare import cheapest
from dalembert.tree.routes.route_table import TreeRoute, quickest, routes_to_take
from dalembert.tree.routes.tree_rows import TreeRows
from dalembert.types import Scalar

if TYPE_CHECKING:
    from dalembert.model.mechanism.mechanism import Mechanism

# ----------------------------------------------------------------------------------------------------------------------
# Dynamics, impacts and projections of a constrained mechanism, each as one function with a status.
#
#     forward           M a + bias + A^T lam = tau             A a = -drift
#     impact            M (v+ - v) + A^T P = 0                 rate(v+) = -e rate(v)
#     project_velocity  M (v' - v) + A^T mu = 0                rate(v') = 0           (least energy, seed 000 sec. 3)
#     project_step      M dq + A^T mu = 0                      A dq = -phi            (one step of Newton's method)
#     project           both
#     kkt               M a + A^T lam = y1                     A a = y2
#
# rate = A v + offset is what the rows do at velocity level. Each is traced on the prepared tree with the fewest
# operations.


@dataclass(frozen=True, eq=False)
class Tracing:
    """Symbols of a state, and what all questions about it share.

    Attributes
    ----------
    mechanism, tree
        What moves; its prepared links.
    needs, metric, limits
        See `kkt/expressions/block_solver.py`.
    symbols
        SX columns by name: q, v, t, and whatever else is asked for.
    """

    mechanism: Mechanism
    tree: Tree
    needs: Conditioning
    metric: Any = None
    limits: Thresholds = DOUBLE
    symbols: dict[str, ca.SX] = field(default_factory=dict)

    @classmethod
    def of(cls, mechanism: Mechanism, metric: Any = None, dtype: str = "float64") -> Tracing:
        """Prepare a mechanism: look at its ranks, choose its tree."""
        needs = needs_of(mechanism)
        # the articulated-body algorithm refuses a massless leaf, which the block form does not mind
        tree, _ = cheapest(mechanism, dynamics.inverse if needs.massless else dynamics.forward_by_aba)
        limits = replace(SINGLE if dtype == "float32" else DOUBLE, digits=digits_of(mechanism))
        return cls(mechanism, tree, needs, row_weights_of(mechanism, metric), limits)

    def symbol(self, name: str, size: int | None = None) -> list[Scalar]:
        """Return the scalars of an input."""
        sizes = {"q": self.mechanism.nq, "t": 1}
        size = sizes.get(name, self.mechanism.nv) if size is None else size
        column = self.symbols.setdefault(name, ca.SX.sym(name, size))
        return [column[i] for i in range(column.numel())]

    def column(self, name: str) -> ca.SX:
        """Return an input as an expression."""
        self.symbol(name)
        return self.symbols[name]

    @cached_property
    def posed(self) -> list[Posed]:
        """The links in their configuration."""
        return pose_tree(self.tree, self.symbol("q"))

    @cached_property
    def rows(self) -> Assembled:
        """All constraint rows, in world axes."""
        for name in ("q", "v", "t"):
            self.symbol(name)
        x = self.symbols
        return assemble(TreeKinematics(self.mechanism, self.tree, x["q"], x["v"], x["t"], posed=self.posed))

    @cached_property
    def A(self) -> list[list[Scalar]]:
        """The rows' Jacobian, (m, nv)."""
        return [scalars(ca.SX(self.rows.jacobian)[i, :]) for i in range(len(self.mechanism.names))]

    @cached_property
    def tree_rows(self) -> TreeRows:
        """The rows as forces on links, those of welds in the shortest basis."""
        return TreeRows.of(self).in_short_bases(self)

    @cached_property
    def load(self) -> Load:
        """What acts in the state (q, v) under tau: velocity, gravity, springs and dampers included."""
        return self.tree_rows.load(self)

    @cached_property
    def M(self) -> list[list[Scalar]]:
        """The mass matrix, (nv, nv)."""
        return crba(self.tree, self.posed)

    @cached_property
    def turns(self) -> bool:
        """Whether rows are turned into the axes of their frames: only there the same ones can be kept everywhere."""
        vectors = (getattr(constraint, "vectors", ()) for constraint in self.mechanism.all_constraints)
        return self.needs.redundant and any(vectors)

    @cached_property
    def kept_A(self) -> list[list[Scalar]]:
        """A in the axes in which rows are kept, (m, nv)."""
        if not self.turns:
            return self.A
        columns = [self.in_frames([row[k] for row in self.A]) for k in range(self.mechanism.nv)]
        return [[column[i] for column in columns] for i in range(len(self.A))]

    @cached_property
    def row_sums(self) -> RedundantRows:
        """Implied rows as sums of kept ones, from A alone; coordinates are scaled by masses that are usual."""
        masses = np.median([np.diag(M) for M, _, _ in closed_matrices(self.mechanism)], axis=0)
        d = np.where(masses > 0, masses, masses.max(initial=0.0) or 1.0) ** -0.5
        scaled = [[mul(x, float(scale)) for x, scale in zip(row, d, strict=True)] for row in self.kept_A]
        return RedundantRows.of(_gram(scaled), self.needs)

    def in_frames(self, c: list[Scalar]) -> list[Scalar]:
        """Return right sides of the user's rows in these axes."""
        return self.tree_rows.from_world(c) if self.turns else c

    def in_world(self, lam: list[Scalar]) -> list[Scalar]:
        """Return multipliers as the user's rows have them."""
        return self.tree_rows.to_world(lam) if self.turns else lam

    @cached_property
    def matrix_system(self) -> MatrixSystem:
        """M and A with the factor of M, or of H where links are massless."""
        needs = self.needs
        return MatrixSystem.of(self.M, self.kept_A, needs.massless, self.mechanism.coordinates, needs.size_floors)

    def by_matrices(self, f: list[Scalar], c: list[Scalar], inputs: list[Scalar]) -> BlockAnswer:
        """Return the solution of the block matrix made of M and A for right sides f, c."""
        solver = BlockSolver.of(self.matrix_system, self.needs, self.metric, self.limits)
        answer = solver.solve(f, self.in_frames(c), inputs)
        return replace(answer, multipliers=self.in_world(answer.multipliers))

    def inputs(self, names: tuple[str, ...]) -> list[Scalar]:
        """Return the scalars of all inputs."""
        return [x for name in names for x in ca.vertsplit(self.symbols[name])]

    def function(self, name: str, inputs: tuple[str, ...], outputs: dict[str, Any]) -> ca.Function:
        """Return the traced function."""
        symbols = self.named(inputs)
        results = [expression(x) for x in outputs.values()]
        return ca.Function(name, list(symbols.values()), results, list(symbols), list(outputs))

    def named(self, inputs: tuple[str, ...]) -> dict[str, ca.SX]:
        """Return the symbols of inputs by name, and after them those of parameters."""
        symbols = {name: self.column(name) for name in inputs}
        parameters = self.mechanism.parameter_column
        return symbols if parameters is None else {**symbols, "parameters": parameters}


def forward(mechanism: Mechanism, route: str = "auto", metric: Any = None, dtype: str = "float64") -> ca.Function:
    """Return q, v, tau, t -> acceleration, multipliers, status by a named route, or that with fewest operations."""
    setting = Tracing.of(mechanism, metric, dtype)
    return quickest(forward_by(setting, way) for way in routes_to_take(setting, route))


def forward_by(setting: Tracing, route: TreeRoute) -> ca.Function:
    """Return forward dynamics by one route."""
    return solution(setting, "forward", FORWARD_INPUTS, said_of_limbs(setting, forward_answer(setting, route)))


FORWARD_INPUTS = ("q", "v", "tau", "t")


def forward_answer(setting: Tracing, route: TreeRoute) -> BlockAnswer:
    """Return accelerations, the multipliers of the user's rows and the verdict by one route."""
    q, v, tau, _ = (setting.symbol(name) for name in FORWARD_INPUTS)
    inputs = setting.inputs(FORWARD_INPUTS)
    if route.through_tree is None:
        f = [sub(*pair) for pair in zip(tau, dynamics.bias(setting.tree, setting.posed, q, v), strict=True)]
        c = [neg(value) for value in scalars(setting.rows.drift)]
        return setting.by_matrices(f, c, inputs)
    rows = setting.tree_rows
    answer = route.through_tree(setting, rows.forces).solve(setting.load, rows.c, inputs)
    return replace(answer, multipliers=rows.to_world(answer.multipliers))


def said_of_limbs(setting: Tracing, answer: BlockAnswer) -> BlockAnswer:
    """Return the answer with the status that limbs without mass are held, where rows do that."""
    if not setting.mechanism.massless_rows:
        return answer
    status = ca.SX(answer.status)
    solved = ca.logic_or(status == int(Status.UNIQUE), status == int(Status.REDUNDANT))
    return replace(answer, status=ca.if_else(solved, int(Status.HELD), status))


def block_solution(mechanism: Mechanism, route: str, metric: Any, dtype: str) -> ca.Function:
    """Return q, y1 (nv,), y2 (m,), t -> acceleration, multipliers, status of M a + A^T lam = y1, A a = y2."""
    setting = Tracing.of(mechanism, metric, dtype)
    return quickest(block_solution_by(setting, way) for way in routes_to_take(setting, route))


def block_solution_by(setting: Tracing, route: TreeRoute) -> ca.Function:
    """Return the solution of the block matrix for right sides y1, y2 by one route."""
    y1, y2 = setting.symbol("y1"), setting.symbol("y2", len(setting.mechanism.names))
    names = ("q", "y1", "y2", "t")
    for name in ("q", "t"):
        setting.symbol(name)
    inputs = setting.inputs(names)
    if route.through_tree is None:
        answer = setting.by_matrices(y1, y2, inputs)
    else:
        rows = setting.tree_rows
        load = Load([REST] * len(setting.tree.links), y1)
        answer = route.through_tree(setting, rows.forces).solve(load, rows.from_world(y2), inputs)
        answer = replace(answer, multipliers=rows.to_world(answer.multipliers))
    return solution(setting, "kkt", names, answer)


def solution(setting: Tracing, name: str, inputs: tuple[str, ...], answer: BlockAnswer) -> ca.Function:
    """Return an answer as a function."""
    outputs = {"acceleration": answer.acceleration, "multipliers": answer.multipliers, "status": [answer.status]}
    return setting.function(name, inputs, outputs)


def impact(mechanism: Mechanism, metric: Any = None, dtype: str = "float64") -> ca.Function:
    """Return q, v, restitution (m,), t -> velocity, impulses, status."""
    setting = Tracing.of(mechanism, metric, dtype)
    e = setting.symbol("restitution", len(mechanism.names))
    return _jump(
        setting, "impact", [add(1.0, restitution) for restitution in e], ("q", "v", "restitution", "t"), "impulses"
    )


def project_velocity(mechanism: Mechanism, metric: Any = None, dtype: str = "float64") -> ca.Function:
    """Return q, v, t -> velocity, impulses, status: the admissible velocity nearest to v in kinetic energy."""
    setting = Tracing.of(mechanism, metric, dtype)
    return _jump(setting, "project_velocity", [1.0] * len(mechanism.names), ("q", "v", "t"), "impulses")


def _jump(setting: Tracing, name: str, taken: list[Scalar], inputs: tuple[str, ...], impulses: str) -> ca.Function:
    """Return the velocity after a jump that takes `taken` times the rate of the rows away."""
    answer = _jumped(setting, taken, inputs)
    outputs = {"velocity": answer.acceleration, impulses: answer.multipliers, "status": [answer.status]}
    return setting.function(name, inputs, outputs)


def _jumped(setting: Tracing, taken: list[Scalar], inputs: tuple[str, ...]) -> BlockAnswer:
    v, rate = setting.symbol("v"), scalars(setting.rows.rate)
    c = [sub(Av, mul(*pair)) for Av, *pair in zip(product(setting.A, v), taken, rate, strict=True)]
    return setting.by_matrices(product(setting.M, v), c, setting.inputs(inputs))


def project_step(mechanism: Mechanism, dtype: str = "float64") -> ca.Function:
    """Return q, t -> step (nv,), residual (h,), status: Newton's step onto the rows that have a residual."""
    setting = Tracing.of(mechanism, None, dtype)
    answer = _stepped(setting)
    outputs = {"step": answer.acceleration, "residual": scalars(setting.rows.residual), "status": [answer.status]}
    return setting.function("project_step", ("q", "t"), outputs)


def _stepped(setting: Tracing) -> BlockAnswer:
    rows = tuple(i for i, has in enumerate(setting.mechanism.holonomic) if has)
    needs = needs_of_rows(setting.mechanism, rows)
    A, phi = [setting.A[i] for i in rows], scalars(setting.rows.residual)
    system = MatrixSystem.of(setting.M, A, needs.massless, setting.mechanism.coordinates, needs.size_floors)
    still: list[Scalar] = [0.0] * setting.mechanism.nv
    solver = BlockSolver.of(system, needs, None, setting.limits)
    sizes = [float(setting.mechanism.row_sizes[i]) for i in rows]
    return solver.solve(still, [neg(residual) for residual in phi], setting.inputs(("q", "t")), sizes)


def project(mechanism: Mechanism, metric: Any = None, dtype: str = "float64") -> ca.Function:
    """Return q, v, t -> step, velocity (nv,), residual (h,), impulses (m,), status: both projections, one factor of M.

    The status is the worse of the two.
    """
    setting = Tracing.of(mechanism, metric, dtype)
    inputs = ("q", "v", "t")
    jump, step = _jumped(setting, [1.0] * len(mechanism.names), inputs), _stepped(setting)
    outputs = {
        "step": step.acceleration,
        "velocity": jump.acceleration,
        "residual": scalars(setting.rows.residual),
        "impulses": jump.multipliers,
        "status": [ca.fmax(jump.status, step.status)],
    }
    return setting.function("project", inputs, outputs)


def scalars(column: Any) -> list[Scalar]:
    """Return the entries of a vector; constants are floats."""
    column = ca.densify(ca.SX(column))
    return [scalar(column[i]) for i in range(column.numel())]


def expression(values: Any) -> ca.SX:
    """Return lists of scalars as an expression; an empty list is a column without rows, an expression itself."""
    if isinstance(values, ca.SX):
        return values
    return as_expression(values) if values else ca.SX(0, 1)


# ----------------------------------------------------------------------------------------------------------------------
# Inverse dynamics of a constrained mechanism: how its actuators must pull to cause a given motion.
#
# Symbols: b = M a + bias, what the open tree would need; indices d driven, p passive coordinates; tau = b + A^T lam,
#
#     least |tau_d|^2   subject to   b_p + A_p^T lam = 0
#
# and among the lam that remain the one of least norm. With Q = A_d A_d^T this is a block system of its own,
#
#     [ Q     A_p ] [ lam ]   [ -A_d b_d ]
#     [ A_p^T  0  ] [ nu  ] = [ -b_p     ]
#
# of the rows that are kept (`kkt/expressions/block_solver.py`), solved by the same code: Q may be singular, the whole
# is not. What they bear is then spread over all rows. If the passive coordinates need forces that no multiplier can
# give, the motion is impossible with these actuators: the status says inconsistent.


def inverse(mechanism: Mechanism, actuated: Any = None, dtype: str = "float64") -> ca.Function:
    """Return q, v, a, t -> tau (nv,), multipliers (m,), status.

    Parameters
    ----------
    actuated
        Names of coordinates that are driven; "actuators" for those that the mechanism has motors on; all by default,
        then tau is the least that does it.
    """
    setting = Tracing.of(mechanism, None, dtype)
    driven = driven_coordinates(mechanism, actuated)
    passive = [k for k in range(mechanism.nv) if k not in driven]
    q, v, a = (setting.symbol(name) for name in ("q", "v", "a"))
    b, A = dynamics.inverse(setting.tree, setting.posed, q, v, a), setting.kept_A
    setting.symbol("t")
    columns = [[row[k] for row in A] for k in range(mechanism.nv)]
    rows = kept_rows(setting.needs)
    if not rows:
        return _unheld(setting, b, driven)
    Q = _gram([[A[i][k] for k in driven] for i in rows])
    needs = _needs(mechanism, rows, driven, passive)
    system = MatrixSystem.of(Q, [[columns[k][i] for i in rows] for k in passive], needs.massless)
    solver = BlockSolver.of(system, needs, None, setting.limits)
    pull = [neg(total(*(mul(A[i][k], b[k]) for k in driven))) for i in rows]
    answer = solver.solve(pull, [neg(b[k]) for k in passive], setting.inputs(("q", "v", "a")))
    lam = _least(setting, dict(zip(rows, answer.acceleration, strict=True)))
    tau = [add(b[k], total(*map(mul, columns[k], lam))) if k in driven else 0.0 for k in range(mechanism.nv)]
    several = setting.needs.redundant or _leaves_open(mechanism, rows, passive)
    status = _said(answer.status, relative(system.mass.pivots, needs.mass_scales), setting, several)
    return setting.function(
        "inverse", ("q", "v", "a", "t"), {"tau": tau, "multipliers": setting.in_world(lam), "status": [status]}
    )


def _unheld(setting: Tracing, b: list[Scalar], driven: list[int]) -> ca.Function:
    """Return the answer where no row can move anything: what is not driven must need nothing."""
    inputs = setting.inputs(("q", "v", "a"))
    solved = int(Status.REDUNDANT if setting.mechanism.names else Status.UNIQUE)
    astray = total(*(ca.fabs(ca.SX(force)) for k, force in enumerate(b) if k not in driven))
    status = ca.if_else(ca.SX(astray) > 0, int(Status.INCONSISTENT), solved)
    status = ca.if_else(ca.fabs(ca.SX(total(*inputs))) < ca.inf, doubted(status, setting.needs), int(Status.NONFINITE))
    outputs = {
        "tau": [force if k in driven else 0.0 for k, force in enumerate(b)],
        "multipliers": [0.0] * len(setting.mechanism.names),
        "status": [status],
    }
    return setting.function("inverse", ("q", "v", "a", "t"), outputs)


def _least(setting: Tracing, mu: Vector) -> list[Scalar]:
    """Return the least multipliers of all rows that do what mu does at the kept ones."""
    if any(setting.needs.sums):
        mu = setting.row_sums.spread(mu)
    return dense(mu, len(setting.mechanism.names))


def _leaves_open(mechanism: Mechanism, rows: Sequence[int], passive: list[int]) -> bool:
    """Say whether motors can strain the rows against each other: A_p has fewer independent rows than are kept."""
    A = np.array([A for _, A, _ in closed_matrices(mechanism)])[:, rows][:, :, passive]
    if not passive:
        return bool(rows)
    s = np.linalg.svd(A, compute_uv=False)
    return int((s > digits_of(mechanism) * s.max(initial=0.0)).sum(axis=1).max(initial=0)) < len(rows)


def _said(status: Any, pivots: Sequence[Scalar], setting: Tracing, several: bool) -> Any:
    """Return the status of the block system as that of the mechanism: whether tau, lam are the least of a family.

    They are a family where A is redundant, and where motors can strain the rows against each other (a standing robot's
    internal forces). A pivot of Q that vanishes is a rank that is lost.
    """
    solved = int(Status.REDUNDANT if several else Status.UNIQUE)
    lost = ca.logic_not(reduce(ca.fmin, pivots, ca.SX(1)) > setting.limits.regular)
    finite = status != int(Status.NONFINITE)
    verdict = ca.if_else(ca.logic_or(status == int(Status.UNIQUE), status == int(Status.REDUNDANT)), solved, status)
    return ca.if_else(ca.logic_and(finite, lost), int(Status.DECLINED), doubted(verdict, setting.needs))


def _gram(A: Sequence[Sequence[Scalar]]) -> list[list[Scalar]]:
    """Return A A^T."""
    return [[product([x], y)[0] for y in A] for x in A]


def _needs(mechanism: Mechanism, kept: Sequence[int], driven: list[int], passive: list[int]) -> Conditioning:
    """Return what the block system of multipliers asks for; a Q that is singular is as a massless M."""
    A = np.array([A for _, A, _ in closed_matrices(mechanism)])[:, kept]
    Q = A[:, :, driven] @ np.swapaxes(A[:, :, driven], 1, 2)
    return probe(Q, np.swapaxes(A[:, :, passive], 1, 2), digits=digits_of(mechanism))
