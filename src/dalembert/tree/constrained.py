"""What a constrained mechanism is asked for, each as one function with a status: dynamics, impacts, projections.

    forward           M a + bias + A^T lam = tau             A a = -drift
    impact            M (v+ - v) + A^T P = 0                 rate(v+) = -e rate(v)
    project_velocity  M (v' - v) + A^T mu = 0                rate(v') = 0           (least energy, seed 000 sec. 3)
    project_step      M dq + A^T mu = 0                      A dq = -phi            (one step of Newton's method)
    delassus          G = A H^-1 A^T

rate = A v + offset is what the rows do at velocity level. Each is traced on the prepared tree with the fewest
operations.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import casadi as ca

from dalembert.errors import ModelError
from dalembert.model.constraints import Assembled, assemble
from dalembert.model.joints import as_expression
from dalembert.model.model_digits import BUILT_DIGITS, FILE_DIGITS
from dalembert.tree import dynamics
from dalembert.tree.articulated_system import ArticulatedSystem, Load
from dalembert.tree.block_solve import BlockAnswer, BlockSolver, Needs, delassus
from dalembert.tree.choice import cheapest
from dalembert.tree.crba import crba
from dalembert.tree.frame_kinematics import TreeKinematics
from dalembert.tree.link import Tree
from dalembert.tree.matrix_system import MatrixSystem, product
from dalembert.tree.needs import needs_of, row_weights_of
from dalembert.tree.passive import joint_resistance, spring_forces
from dalembert.tree.posed import Posed, pose_tree
from dalembert.tree.rnea import accelerations, body_forces
from dalembert.tree.row_forces import TreeMotion, scalar
from dalembert.tree.scalars import Scalar, add, mul, neg, sub
from dalembert.tree.sweep import pair_add
from dalembert.tree.verdict import DOUBLE, SINGLE, Thresholds

if TYPE_CHECKING:
    from dalembert.model.mechanism import Mechanism


@dataclass(frozen=True, eq=False)
class Setting:
    """Symbols of a state, and what all questions about it share.

    Attributes
    ----------
    mechanism, tree
        What moves; its prepared links.
    needs, metric, limits
        See `block_solve.py`.
    symbols
        SX columns by name: q, v, t, and whatever else is asked for.
    """

    mechanism: Mechanism
    tree: Tree
    needs: Needs
    metric: Any = None
    limits: Thresholds = DOUBLE
    symbols: dict[str, ca.SX] = field(default_factory=dict)

    @classmethod
    def of(cls, mechanism: Mechanism, metric: Any = None, dtype: str = "float64") -> Setting:
        """Prepare a mechanism: look at its ranks, choose its tree."""
        needs = needs_of(mechanism)
        # the articulated-body algorithm refuses a massless leaf, which the block form does not mind
        tree, _ = cheapest(mechanism, dynamics.inverse if needs.massless else dynamics.forward_by_aba)
        digits = BUILT_DIGITS if mechanism.source is None else FILE_DIGITS
        limits = replace(SINGLE if dtype == "float32" else DOUBLE, digits=digits)
        return cls(mechanism, tree, needs, row_weights_of(mechanism, metric), limits)

    def symbol(self, name: str, size: int | None = None) -> list[Scalar]:
        """Return the scalars of an input."""
        sizes = {"q": self.mechanism.nq, "t": 1}
        size = sizes.get(name, self.mechanism.nv) if size is None else size
        column = self.symbols.setdefault(name, ca.SX.sym(name, size))
        return [column[i] for i in range(column.numel())]

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
        return assemble(TreeKinematics(self.mechanism, self.tree, x["q"], x["v"], x["t"]))

    @cached_property
    def A(self) -> list[list[Scalar]]:
        """The rows' Jacobian, (m, nv)."""
        return [scalars(ca.SX(self.rows.jacobian)[i, :]) for i in range(len(self.mechanism.names))]

    @cached_property
    def M(self) -> list[list[Scalar]]:
        """The mass matrix, (nv, nv)."""
        return crba(self.tree, self.posed)

    def by_matrices(self) -> BlockSolver:
        """Return the block matrix factored from M and A."""
        system = MatrixSystem.of(self.M, self.A, self.needs.massless, self.mechanism.coordinates)
        return BlockSolver.of(system, self.needs, self.metric, self.limits)

    def inputs(self, names: tuple[str, ...]) -> list[Scalar]:
        """Return the scalars of all inputs."""
        return [x for name in names for x in ca.vertsplit(self.symbols[name])]

    def function(self, name: str, inputs: tuple[str, ...], outputs: dict[str, Any]) -> ca.Function:
        """Return the traced function."""
        for each in inputs:
            self.symbol(each)
        symbols = [self.symbols[each] for each in inputs]
        return ca.Function(name, symbols, [expression(x) for x in outputs.values()], list(inputs), list(outputs))


def forward(mechanism: Mechanism, route: str = "auto", metric: Any = None, dtype: str = "float64") -> ca.Function:
    """Return q, v, tau, t -> acceleration, multipliers, status by a named route, or that with fewest operations."""
    if route not in ("auto", *ROUTES):
        raise ModelError(f"route={route!r} is not one of 'auto', {', '.join(map(repr, ROUTES))}")
    setting = Setting.of(mechanism, metric, dtype)
    if setting.needs.massless and route == "tree":
        raise ModelError(
            f"{mechanism.name!r} may hold massless motion, which the articulated-body algorithm divides by; "
            "route='matrix' (or 'auto') solves it by the block form"
        )
    names = ("matrix",) if setting.needs.massless else tuple(ROUTES) if route == "auto" else (route,)
    return min((_forward(setting, name) for name in names), key=lambda function: function.n_instructions())


def _forward(setting: Setting, route: str) -> ca.Function:
    inputs = ("q", "v", "tau", "t")
    for name in inputs:
        setting.symbol(name)
    answer = ROUTES[route](setting)
    outputs = {"acceleration": answer.acceleration, "multipliers": answer.multipliers, "status": [answer.status]}
    return setting.function("forward", inputs, outputs)


def forward_by_matrices(setting: Setting) -> BlockAnswer:
    """Solve by M and A: sparse L^T D L, then the Schur complement over the rows."""
    q, v, tau = (setting.symbol(name) for name in ("q", "v", "tau"))
    f = [sub(*pair) for pair in zip(tau, dynamics.bias(setting.tree, setting.posed, q, v), strict=True)]
    c = [neg(value) for value in scalars(setting.rows.drift)]
    return setting.by_matrices().solve(f, c, setting.inputs(("q", "v", "tau", "t")))


def forward_by_tree(setting: Setting) -> BlockAnswer:
    """Solve by the articulated-body algorithm and the forces of the rows on links."""
    tree, posed, mechanism = setting.tree, setting.posed, setting.mechanism
    q, v, tau = (setting.symbol(name) for name in ("q", "v", "tau"))
    motions = accelerations(tree.gravity, posed, v, [0.0] * tree.nv)
    x = setting.symbols
    motion = TreeMotion(mechanism, tree, posed, x["q"], x["v"], x["t"], motions)
    rows = [motion.rows(constraint) for constraint in mechanism.all_constraints]
    forces = [row for group in rows for row in group]
    needed = [pair_add(*pair) for pair in zip(body_forces(tree, motions), spring_forces(tree, posed, v), strict=True)]
    load = Load(needed, [sub(*pair) for pair in zip(tau, joint_resistance(tree, posed, q, v), strict=True)])
    solver = BlockSolver.of(ArticulatedSystem.of(tree, posed, forces), setting.needs, setting.metric, setting.limits)
    answer = solver.solve(load, [neg(row.drift) for row in forces], setting.inputs(("q", "v", "tau", "t")))
    lam: list[Scalar] = []
    for constraint, group in zip(mechanism.all_constraints, rows, strict=True):
        lam += motion.in_world(constraint, answer.multipliers[len(lam) : len(lam) + len(group)])
    return BlockAnswer(answer.acceleration, lam, answer.status, answer.residuals)


ROUTES = {"tree": forward_by_tree, "matrix": forward_by_matrices}
"""Ways to solve; being here is being tested."""


def impact(mechanism: Mechanism, metric: Any = None, dtype: str = "float64") -> ca.Function:
    """Return q, v, restitution (m,), t -> velocity, impulses, status."""
    setting = Setting.of(mechanism, metric, dtype)
    e = setting.symbol("restitution", len(mechanism.names))
    return _jump(setting, "impact", [add(1.0, each) for each in e], ("q", "v", "restitution", "t"), "impulses")


def project_velocity(mechanism: Mechanism, metric: Any = None, dtype: str = "float64") -> ca.Function:
    """Return q, v, t -> velocity, impulses, status: the admissible velocity nearest to v in kinetic energy."""
    setting = Setting.of(mechanism, metric, dtype)
    return _jump(setting, "project_velocity", [1.0] * len(mechanism.names), ("q", "v", "t"), "impulses")


def _jump(setting: Setting, name: str, taken: list[Scalar], inputs: tuple[str, ...], impulses: str) -> ca.Function:
    """Return the velocity of which `taken` times the rate of the rows has been taken."""
    v, rate = setting.symbol("v"), scalars(setting.rows.rate)
    c = [sub(Av, mul(*pair)) for Av, *pair in zip(product(setting.A, v), taken, rate, strict=True)]
    answer = setting.by_matrices().solve(product(setting.M, v), c, setting.inputs(inputs))
    outputs = {"velocity": answer.acceleration, impulses: answer.multipliers, "status": [answer.status]}
    return setting.function(name, inputs, outputs)


def project_step(mechanism: Mechanism, dtype: str = "float64") -> ca.Function:
    """Return q, t -> step (nv,), residual (h,), status: Newton's step onto the rows that have a residual."""
    setting = Setting.of(mechanism, None, dtype)
    kept = [i for i, has in enumerate(mechanism.holonomic) if has]
    needs = Needs(
        setting.needs.redundant,
        setting.needs.massless,
        setting.needs.mass_scales,
        tuple(setting.needs.row_scales[i] for i in kept),
        tuple(setting.needs.groups[i] for i in kept),
    )
    A, phi = [setting.A[i] for i in kept], scalars(setting.rows.residual)
    system = MatrixSystem.of(setting.M, A, needs.massless, mechanism.coordinates)
    still: list[Scalar] = [0.0] * mechanism.nv
    solver = BlockSolver.of(system, needs, None, setting.limits)
    answer = solver.solve(still, [neg(each) for each in phi], setting.inputs(("q", "t")))
    outputs = {"step": answer.acceleration, "residual": phi, "status": [answer.status]}
    return setting.function("project_step", ("q", "t"), outputs)


def delassus_matrix(mechanism: Mechanism) -> ca.Function:
    """Return q, t -> G (m, m) in the units of the rows."""
    setting = Setting.of(mechanism)
    system = MatrixSystem.of(setting.M, setting.A, setting.needs.massless, mechanism.coordinates)
    return setting.function("delassus", ("q", "t"), {"G": delassus(system)})


def scalars(column: Any) -> list[Scalar]:
    """Return the entries of a vector; constants are floats."""
    column = ca.densify(ca.SX(column))
    return [scalar(column[i]) for i in range(column.numel())]


def expression(values: Any) -> ca.SX:
    """Return lists of scalars as an expression; an empty list is a column without rows."""
    return as_expression(values) if values else ca.SX(0, 1)
