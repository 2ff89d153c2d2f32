"""The list of routes: being here is being tested.

Symbols: n velocities, m rows, d depth of the tree. `matrix` forms M and A; the others go through the tree, with rows as
forces on links. A route may decline a mechanism, and says why.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from dalembert.errors import ModelError
from dalembert.kkt.expressions.block_solver import BlockSolver
from dalembert.kkt.expressions.verdict import BlockAnswer
from dalembert.model.constraints.constraint import Pair
from dalembert.tree.block.articulated_system import ArticulatedSystem, Load, TreeSystem
from dalembert.tree.block.row_forces import RowForce
from dalembert.tree.routes.caba import InsideTheTree
from dalembert.tree.routes.efpa import delassus_by_propagators
from dalembert.tree.routes.four_steps import Delassus, FourSteps, delassus_by_columns, massless_motion
from dalembert.tree.routes.pv import ALONE, NEAR, delassus_by_hops
from dalembert.types import Scalar

if TYPE_CHECKING:
    import casadi as ca

    from dalembert.tree.block.constrained import Tracing


class TreeSolver(Protocol):
    """What solves a mechanism through its tree."""

    def solve(self, load: Load, c: Sequence[Scalar], inputs: Sequence[Scalar], /) -> BlockAnswer:
        """Return a and lam with the verdict."""
        ...


@dataclass(frozen=True)
class TreeRoute:
    """One way.

    Attributes
    ----------
    name, cost, summary
        As in `route=`; growth of the work; in a line.
    through_tree
        Makes the solver from rows of forces; None for the route by matrices.
    delassus
        Makes G from a tree with rows; None where the route makes none.
    passed_over
        Returns why "auto" need not try the route; empty where it must.
    """

    name: str
    cost: str
    summary: str
    through_tree: Callable[[Tracing, list[RowForce]], TreeSolver] | None = None
    delassus: Callable[[Tracing, list[RowForce]], list[list[Scalar]]] | None = None
    passed_over: Callable[[Tracing], str] = lambda setting: ""

    @property
    def makes_delassus(self) -> bool:
        """Whether it makes the Delassus matrix on its way."""
        return self.delassus is not None or self.through_tree is None

    def described(self) -> str:
        """Return cost and summary."""
        return f"{self.cost}: {self.summary}"

    def declines(self, setting: Tracing) -> str:
        """Return why the route cannot take a mechanism; empty where it can."""
        return massless_motion(setting) if self.through_tree is not None else ""


def _four_steps(delassus: Delassus) -> Callable[[Tracing, list[RowForce]], TreeSolver]:
    def solver(setting: Tracing, forces: list[RowForce]) -> TreeSolver:
        system = TreeSystem.of(setting.tree, setting.posed, forces)
        return FourSteps(system, setting.needs, setting.metric, setting.limits, delassus)

    return solver


def _short(setting: Tracing) -> bool:
    """Say whether rows never hop: where more than a few pass one link, the ground is near."""
    tree, mechanism = setting.tree, setting.mechanism
    passing: Counter[int] = Counter()
    for constraint in mechanism.all_constraints:
        ends = (constraint.frame, constraint.other) if isinstance(constraint, Pair) else ()
        links = [tree.places[end][0] for end in ends if end is not None] or range(len(tree.links))
        rows = len(constraint.row_names())
        passing.update(dict.fromkeys({i for link in links for i in tree.ancestors(link)}, rows))
    before = {i: sum(len(tree.links[j].axes) for j in tree.ancestors(i)) for i in passing}
    return all(rows <= ALONE or before[i] <= NEAR for i, rows in passing.items())


def _propagated(setting: Tracing, forces: list[RowForce]) -> TreeSolver:
    system = ArticulatedSystem.of(setting.tree, setting.posed, forces)
    G = delassus_by_propagators(system)
    return BlockSolver.of(system, setting.needs, setting.metric, setting.limits, G)


ROUTES = {
    route.name: route
    for route in (
        TreeRoute(
            "efpa",
            "O(n + m d + m^3)",
            "rows travel to the ground as forces (extended force propagators)",
            _propagated,
            lambda setting, forces: delassus_by_propagators(ArticulatedSystem.of(setting.tree, setting.posed, forces)),
        ),
        TreeRoute(
            "pv",
            "O(n + m^2) for G, + m^3",
            "rows hop between the links where they join",
            _four_steps(delassus_by_hops),
            lambda setting, forces: delassus_by_hops(TreeSystem.of(setting.tree, setting.posed, forces)),
            lambda setting: (
                "like efpa here: no bundle of rows is large and far enough to hop" if _short(setting) else ""
            ),
        ),
        TreeRoute(
            "caba",
            "O(n + m) for contacts at the ends",
            "constraints eliminated inside the tree, loops where they meet",
            InsideTheTree.of,
        ),
        TreeRoute("matrix", "O(n d^2 + m n d + m^2 n + m^3)", "M and A formed, sparse L^T D L, Schur complement"),
        TreeRoute(
            "aba",
            "O(n m + m^3)",
            "the Delassus matrix column by column, one call of the articulated-body algorithm each",
            _four_steps(delassus_by_columns),
            lambda setting, forces: delassus_by_columns(TreeSystem.of(setting.tree, setting.posed, forces)),
            lambda setting: "never fewer operations than efpa, which makes the same passes inward and none outward",
        ),
    )
}
"""All routes by name."""


def routes_to_take(setting: Tracing, name: str) -> list[TreeRoute]:
    """Return the route of a name, or all that "auto" chooses from; a name that cannot be taken is refused."""
    if name == "auto" and setting.mechanism.parameter_column is not None:
        return [ROUTES["matrix"]]  # others look at numbers of the tree to find their order
    if name == "auto":
        return [route for route in ROUTES.values() if not route.declines(setting) and not route.passed_over(setting)]
    if name not in ROUTES:
        raise ModelError(f"route={name!r} is not one of 'auto', {', '.join(map(repr, ROUTES))}")
    reason = ROUTES[name].declines(setting)
    if reason:
        raise ModelError(
            f"{setting.mechanism.name!r} by route={name!r}: {reason}; "
            "route='matrix' (or 'auto') solves it by the block form"
        )
    return [ROUTES[name]]


def quickest(functions: Iterable[ca.Function]) -> ca.Function:
    """Return the function with the fewest instructions."""
    return min(functions, key=lambda function: function.n_instructions())
