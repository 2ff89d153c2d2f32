"""The table of routes: what each costs, which one "auto" takes."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

import casadi as ca

from dalembert.errors import ModelError
from dalembert.model.joints import as_expression
from dalembert.model.requests import RouteLine, RouteTable
from dalembert.tree.algorithms import dynamics
from dalembert.tree.algorithms.dynamics import refuse_singular
from dalembert.tree.block import constrained
from dalembert.tree.prepared.configuration import pose_tree
from dalembert.tree.prepared.prepare import candidates, cheapest
from dalembert.tree.routes import delassus_kernels
from dalembert.tree.routes.route_table import ROUTES, TreeRoute

if TYPE_CHECKING:
    from dalembert.model.mechanism.mechanism import Mechanism

# ----------------------------------------------------------------------------------------------------------------------
# The cost of a traced function: operations, and the longest chain of operations that wait for each other.


FREE = (ca.OP_INPUT, ca.OP_OUTPUT, ca.OP_CONST, ca.OP_PARAMETER)
"""Instructions that compute nothing."""


class Cost(NamedTuple):
    """Operations of a function, and its depth."""

    operations: int
    depth: int


def cost_of(function: ca.Function) -> Cost:
    """Return the cost of an SX function."""
    operations = deepest = 0
    levels: dict[int, int] = {}  # by work register, which later values use again
    for k in range(function.n_instructions()):
        kind = function.instruction_id(k)
        if kind == ca.OP_OUTPUT:
            continue
        (target,) = function.instruction_output(k)
        if kind in FREE:
            levels[target] = 0
            continue
        operations += 1
        levels[target] = 1 + max(levels[source] for source in function.instruction_input(k))
        deepest = max(deepest, levels[target])
    return Cost(operations, deepest)


# ----------------------------------------------------------------------------------------------------------------------
# All routes of a mechanism side by side: what each costs, which one "auto" takes, and why not the others.


TRACES: dict[str, Callable[[constrained.Tracing, TreeRoute], ca.Function]] = {
    "forward": constrained.forward_by,
    "kkt": constrained.block_solution_by,
    "delassus": delassus_kernels.matrix_by,
    "delassus_factor": delassus_kernels.factor_by,
    "delassus_solve": delassus_kernels.solve_by,
}
"""Requests that have routes."""

Found = dict[str, tuple[Cost | None, str, str]]
"""Per route its cost and summary, or why it declines; why "auto" passes it over."""


def route_table(mechanism: Mechanism, what: str) -> RouteTable:
    """Return the table; every route is traced."""
    if not mechanism.names and what != "forward":
        raise ModelError(f"{mechanism.name!r} has no constraints, so there is nothing to choose for {what!r}")
    routes = _constrained(mechanism, what) if mechanism.names else _open(mechanism)
    costs = {name: cost for name, (cost, _, over) in routes.items() if cost and not over}
    taken = min(costs, key=lambda name: costs[name])
    lines = [_line(name, *routes[name], taken, costs[taken]) for name in routes]
    lines.sort(key=lambda line: (line.operations is None, line.operations or 0))
    return RouteTable(mechanism.name, what, f"{mechanism.nv} velocities, {len(mechanism.names)} rows", tuple(lines))


def _line(name: str, cost: Cost | None, summary: str, over: str, taken: str, least: Cost) -> RouteLine:
    if cost is None:
        return RouteLine(name, None, None, f"declines: {summary}")
    if name == taken:
        return RouteLine(name, *cost, f"fewest operations; {summary}", competes=True, taken=True)
    more = f"{cost.operations / least.operations:.2f} times {taken}" + (f" ({over})" if over else "")
    return RouteLine(name, *cost, f"{more}; {summary}", competes=not over)


def _constrained(mechanism: Mechanism, what: str) -> Found:
    setting = constrained.Tracing.of(mechanism)
    if what in ("delassus", "delassus_factor"):
        delassus_kernels.refuse_no_delassus(setting)
    costs: Found = {}
    for name, route in ROUTES.items():
        reason = route.declines(setting)
        if not reason and what.startswith("delassus") and not route.makes_delassus:
            reason = "it makes no Delassus matrix"
        over = route.passed_over(setting)
        costs[name] = (None, reason, "") if reason else (cost_of(TRACES[what](setting, route)), route.described(), over)
    return costs


def _open(mechanism: Mechanism) -> Found:
    """Return forward dynamics of a tree without constraints."""
    refuse_singular(mechanism, candidates(mechanism)[0])
    costs: Found = {}
    for name, (algorithm, summary) in dynamics.FORWARD.items():
        tree, _ = cheapest(mechanism, algorithm)
        q, v, tau = (ca.SX.sym(letter, size) for letter, size in (("q", tree.nq), ("v", tree.nv), ("tau", tree.nv)))
        scalars = [ca.vertsplit(x) for x in (q, v, tau)]
        a = algorithm(tree, pose_tree(tree, scalars[0]), *scalars)
        costs[name] = (cost_of(ca.Function(name, [q, v, tau], [as_expression(a)])), summary, "")
    return costs
