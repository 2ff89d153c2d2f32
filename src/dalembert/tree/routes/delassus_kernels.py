"""The Delassus matrix as kernels of its own, for contact solvers: itself, its factor, its inverse times a vector.

Symbols: G = A M^-1 A^T (m, m); H = M + A^T R A, G_H = A H^-1 A^T where links are massless (`matrix_system.py`).

    delassus           G                                           in the user's rows
    delassus_factor    G + diag(shift) = L D L^T                   L unit lower triangular
    delassus_solve     G x = b                                     least x^T W x where rows are redundant

By whichever route makes G with the fewest operations. Three rows that the user has in world axes are turned before they
travel, so that G need not be. Where a link is massless M has no inverse and G no value, but x has one: it is lam of
M a + A^T lam = 0, A a = -b, and G_H x = b - G_H R b.
"""

from __future__ import annotations

from dataclasses import replace
from functools import reduce
from typing import TYPE_CHECKING, Any

import casadi as ca

from dalembert.errors import ModelError
from dalembert.kkt.expressions.block_solver import delassus, factored
from dalembert.kkt.expressions.matrix_system import MatrixSystem, product
from dalembert.kkt.expressions.scalars import add, is_zero, mul, sub
from dalembert.kkt.expressions.sparse_factor import dense, sparse, sparse_factor
from dalembert.kkt.limits import FADED
from dalembert.tree.block.conditioning import needs_of_rows
from dalembert.tree.routes.four_steps import massless_reason
from dalembert.tree.routes.route_table import ROUTES, TreeRoute, quickest, routes_to_take
from dalembert.tree.routes.tree_rows import TreeRows
from dalembert.types import Scalar

if TYPE_CHECKING:
    from dalembert.model.mechanism.mechanism import Mechanism
    from dalembert.tree.block.constrained import Tracing


def delassus_matrix(mechanism: Mechanism, route: str = "auto") -> ca.Function:
    """Return q, t -> G (m, m) in the units of the rows."""
    return quickest(matrix_by(setting, way) for setting, way in _formed(mechanism, route))


def delassus_factor(mechanism: Mechanism, route: str, metric: Any, dtype: str) -> ca.Function:
    """Return q, t -> L, D, shift."""
    return quickest(factor_by(setting, way) for setting, way in _formed(mechanism, route, metric, dtype))


def delassus_solve(mechanism: Mechanism, route: str, metric: Any, dtype: str) -> ca.Function:
    """Return q, b, t -> x."""
    return quickest(solve_by(setting, way) for setting, way in _routes(mechanism, route, metric, dtype))


def _routes(
    mechanism: Mechanism, route: str, metric: Any = None, dtype: str = "float64"
) -> list[tuple[Tracing, TreeRoute]]:
    """Return the routes that make a Delassus matrix, each beside what it starts from."""
    from dalembert.tree.block.constrained import Tracing as Setting

    setting = Setting.of(mechanism, metric, dtype)
    rows = tuple(range(len(mechanism.names)))
    setting = replace(setting, needs=needs_of_rows(mechanism, rows, world=True))  # G is that of the user's rows
    able = [way for way in routes_to_take(setting, route) if way.makes_delassus]
    if not able:
        makers = ", ".join(repr(name) for name, way in ROUTES.items() if way.makes_delassus)
        raise ModelError(f"route={route!r} makes no Delassus matrix; 'auto', {makers} do")
    return [(setting, way) for way in able]


def _formed(mechanism: Mechanism, route: str, *options: Any) -> list[tuple[Tracing, TreeRoute]]:
    """Return the same for what needs G itself."""
    makers = _routes(mechanism, route, *options)
    for setting, _ in makers[:1]:
        refuse_no_delassus(setting)
    return makers


def refuse_no_delassus(setting: Tracing) -> None:
    """Refuse a mechanism with a motion without mass, whose M has no inverse."""
    if setting.needs.massless:
        raise ModelError(
            f"{setting.mechanism.name!r}: {massless_reason(setting)}, so M has no inverse and A M^-1 A^T no value; "
            "'delassus_solve', 'kkt' and 'forward' solve the block form, or give the link mass or its joint armature"
        )


def _gram(setting: Tracing, route: TreeRoute) -> list[list[Scalar]]:
    """Return G, or G_H where links are massless."""
    if route.delassus is not None:
        return route.delassus(setting, TreeRows.of(setting).in_world())
    return delassus(_system(setting))


def _system(setting: Tracing) -> MatrixSystem:
    """Return M and the user's rows, factored."""
    needs, names = setting.needs, setting.mechanism.coordinates
    return MatrixSystem.of(setting.M, setting.A, needs.massless, names, needs.size_floors)


def matrix_by(setting: Tracing, route: TreeRoute) -> ca.Function:
    """Return q, t -> G by one route."""
    return setting.function("delassus", ("q", "t"), {"G": _gram(setting, route)})


def factor_by(setting: Tracing, route: TreeRoute) -> ca.Function:
    """Return L, D, shift by one route."""
    G = [list(row) for row in _gram(setting, route)]
    m, shift = len(G), _shift(setting, [G[i][i] for i in range(len(G))])
    for i, moved in enumerate(shift):
        G[i][i] = add(G[i][i], moved)
    factor = sparse_factor(G, range(m))
    L: list[list[Scalar]] = [[1.0 if i == j else 0.0 for j in range(m)] for i in range(m)]
    for j, column in factor.columns.items():
        for i, entry in column.items():
            L[i][j] = entry
    D = [factor.pivots[i] for i in range(m)]
    return setting.function("delassus_factor", ("q", "t"), {"L": L, "D": D, "shift": shift})


def _shift(setting: Tracing, diagonal: list[Scalar]) -> list[Scalar]:
    """Return what rows with a part in a dependence are shifted by: mu w over the largest w / G_ii of their units.

    In proportion to the metric's weights w, so that steps with the factor lead to what is least in it.
    """
    needs, groups = setting.needs, setting.mechanism.scale_groups
    weights = [1.0] * len(diagonal) if setting.metric is None else [float(w) for w in setting.metric]
    largest = {g: _least_size(s) for g, s in zip(groups, needs.row_scales, strict=True)}
    for group, size in zip(groups, diagonal, strict=True):
        largest[group] = largest[group] if is_zero(size) else ca.fmax(largest[group], size)
    members = [i for i, dependent in enumerate(needs.dependent) if dependent]
    if not members:
        return [0.0] * len(diagonal)
    top = reduce(ca.fmax, [ca.SX(weights[i] / largest[groups[i]]) for i in members])
    mu = setting.limits.shift
    return [mu * weights[i] / top if i in members else 0.0 for i in range(len(diagonal))]


def _least_size(scale: float) -> float:
    """Return the diagonal below which a row is scaled up no further."""
    return FADED * scale**-2


def solve_by(setting: Tracing, route: TreeRoute) -> ca.Function:
    """Return x by one route."""
    b = setting.symbol("b", len(setting.mechanism.names))
    G = _gram(setting, route)
    weights = _system(setting).weights if setting.needs.massless else []
    held = product(G, [mul(*pair) for pair in zip(weights, b, strict=True)]) if weights else [0.0] * len(b)
    right = [sub(*pair) for pair in zip(b, held, strict=True)]
    x = dense(factored(G, setting.needs, setting.metric).solve(sparse(right)), len(b))
    return setting.function("delassus_solve", ("q", "b", "t"), {"x": x})
