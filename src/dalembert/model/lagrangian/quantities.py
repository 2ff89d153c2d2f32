"""Quantities of a Lagrangian system as functions, the block solve among them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce

import casadi as ca

from dalembert.errors import ModelError, UnsupportedError
from dalembert.kkt import Status
from dalembert.kkt.limits import CLEARLY_REGULAR, length_ratio
from dalembert.kkt.residual import CERTAIN_DIGITS, acceptable, rounding
from dalembert.model.lagrangian.contacts import ContactExpressions, as_outputs
from dalembert.model.lagrangian.derivation import Expressions
from dalembert.model.lagrangian.symbols import Symbols
from dalembert.names import near_matches

# ----------------------------------------------------------------------------------------------------------------------
# The block system solved in straight-line code: expressions for a and lam, and whether they are certified.
#
# Symbols: R = diag(rho) row weights, H = M + A^T R A = L L^T, Y = L^-1 A^T, S = Y^T Y = Ls Ls^T, Delassus matrix of H.
#
#     H a + A^T lam = f + A^T R c        A a = c
#
# has the solution of the system with M for every rho > 0, and H is definite although M is singular, as long as no
# admissible motion is massless. So neither Cholesky factorisation needs pivots or branches. What a straight line cannot
# do is change its mind: a sample is certified by the rules of `kkt` (traces of the inverses, componentwise backward
# error, three certain digits), and one that is not must be solved there. Redundant rows, free massless motions,
# indefinite masses and NaN all end uncertified.
#
# The weights: 1 / rho_j = sum_i A_ji^2 / M_ii over the coordinates with mass, the Delassus diagonal of a diagonal M, so
# that units do not matter; a row on massless coordinates alone is weighed by the mean of M's diagonal.
#
# Cost: 2 (n^3 + m^3) / 3 + n^2 m + n m^2 multiplications, before structural zeros. Source: G. H. Golub, C. Greif, "On
# solving block-structured indefinite linear systems", SIAM J. Sci. Comput. 24 (2003) 2076-2092 (the augmentation);
# plain twin: `kkt/routes/mass_weighted.py`.


Rows = list[list[ca.SX]]

ROUNDING_ONLY = 1000.0
"""A row whose data are below ROUNDING_ONLY * (n + m) * eps of what b could cause in it holds rounding only."""


@dataclass(frozen=True, eq=False)
class StraightLine:
    """Expressions of one solve.

    Attributes
    ----------
    acceleration, multipliers
        a (n,) and lam (m,), after one step of refinement.
    residuals
        Componentwise backward errors of the two block rows, (2,).
    certified
        1 where the numbers are proved; otherwise 0, and the numbers mean nothing.
    """

    acceleration: ca.SX
    multipliers: ca.SX
    residuals: ca.SX
    certified: ca.SX


def straight_line(M: ca.SX, A: ca.SX, f: ca.SX, c: ca.SX) -> StraightLine:
    """Solve M a + A^T lam = f, A a = c in expressions, M (n, n) symmetric, A (m, n)."""
    n, m = M.shape[0], A.shape[0]
    rho = _weights(M, A)
    H = M + A.T @ (ca.repmat(rho, 1, n) * A) if m else M
    L = cholesky(_rows(H))
    Y = [forward(L, row) for row in _rows(A)]
    S = [[_dot(Y[i], Y[j]) for j in range(m)] for i in range(m)]
    Ls = cholesky(S)
    K = ca.blockcat([[M, A.T], [A, ca.SX(m, m)]])
    b = ca.vertcat(f, c)

    def solve(right: ca.SX) -> ca.SX:
        f, c = right[:n, :], right[n:, :]
        g = forward(L, _scalars(f + A.T @ (rho * c)))
        h = forward(Ls, [_dot(Y[j], g) - c[j] for j in range(m)])
        lam = backward(Ls, h)
        a = backward(L, [g[i] - _dot([Y[j][i] for j in range(m)], lam) for i in range(n)])
        return ca.vertcat(*a, *lam)

    x = solve(b)
    x += solve(b - K @ x)
    scales = ca.vertcat(*[1 / ca.sqrt(P[i][i]) for P in (_rows(H), S) for i in range(len(P))])
    spreads = [trace_of_inverse(L, scales[:n, :]), trace_of_inverse(Ls, scales[n:, :])]
    r = ca.fabs(b - K @ x)
    data = _floored(ca.fabs(K) @ ca.fabs(x) + ca.fabs(b), ca.fabs(K) @ scales * ca.norm_2(scales * b))
    return StraightLine(x[:n, :], x[n:, :], _residuals(r, data, n), _certified(x, b, r, data, scales, spreads, n))


def cholesky(P: Rows) -> Rows:
    """Return the rows of L, P = L L^T; a pivot that is not positive makes what follows NaN."""
    L: Rows = []
    for i, row in enumerate(P):
        own: list[ca.SX] = []
        for j in range(i):
            own.append((row[j] - _dot(own, L[j][:j])) / L[j][j])
        own.append(ca.sqrt(row[i] - _dot(own, own)))
        L.append(own)
    return L


def forward(L: Rows, b: list[ca.SX]) -> list[ca.SX]:
    """Solve L x = b."""
    x: list[ca.SX] = []
    for row, value in zip(L, b, strict=True):
        x.append((value - _dot(row[:-1], x)) / row[-1])
    return x


def backward(L: Rows, b: list[ca.SX]) -> list[ca.SX]:
    """Solve L^T x = b."""
    n = len(L)
    x = [ca.SX(0)] * n
    for i in reversed(range(n)):
        x[i] = (b[i] - _dot([L[k][i] for k in range(i + 1, n)], x[i + 1 :])) / L[i][i]
    return x


def trace_of_inverse(L: Rows, d: ca.SX) -> ca.SX:
    """Return trace((D L L^T D)^-1): it bounds 1 / (smallest eigenvalue) of the matrix scaled to unit diagonal."""
    total = ca.SX(0)
    for j in range(len(L)):
        column = [1 / (L[j][j] * d[j])]
        for i in range(j + 1, len(L)):
            column.append(-_dot(L[i][j:i], column) / L[i][i])
        total += _dot(column, column)
    return total


def _weights(M: ca.SX, A: ca.SX) -> ca.SX:
    """Return rho, (m,); see the head of the file."""
    masses = ca.diag(M)
    share = ca.if_else(masses > 0, 1 / masses, 0)
    mean = ca.sum1(masses) / M.shape[0]
    size, reach = ca.sum2(A * A), (A * A) @ share
    return ca.if_else(reach > 0, 1 / reach, ca.if_else(mean > 0, mean, 1) / size)


def _residuals(r: ca.SX, data: ca.SX, n: int) -> ca.SX:
    """Return the largest r / data of each block row; a row without data has no residual."""
    omega = ca.if_else(data > 0, r / data, 0)
    return ca.vertcat(*[ca.mmax(block) if block.numel() else ca.SX(0) for block in (omega[:n, :], omega[n:, :])])


def _floored(data: ca.SX, around: ca.SX) -> ca.SX:
    """Return the data of every row, with rows of nothing but rounding measured against what b could cause in them.

    A rod without load has the multiplier zero, a structure at rest the acceleration zero; see `kkt/residual.py`.
    """
    rounding_only = data <= ROUNDING_ONLY * rounding(data.numel()) * around
    return data + ca.if_else(rounding_only, around, 0)


def _certified(x: ca.SX, b: ca.SX, r: ca.SX, data: ca.SX, scales: ca.SX, spreads: list[ca.SX], n: int) -> ca.SX:
    """Return 1 where the rules of `kkt` hold; every comparison is false for NaN.

    With E = spread * rounding * |data| in scaled units, the error of x is at most |scales| E. It must leave three
    digits of a and of lam; of a block that is zero to rounding, three digits of what b could cause in its least entry.
    """
    size = x.numel()
    whole, cause = ca.sumsqr(scales * data), ca.sumsqr(scales * b)
    conditions = [spread < CLEARLY_REGULAR for spread in spreads]
    conditions += [r[i] <= acceptable(size) * data[i] for i in range(size)]
    if size - n > 1:  # a row that is rounding beside another leaves the rank in doubt: `kkt` says so
        rows = scales[n:, :]
        conditions.append(ca.mmin(rows) > length_ratio(n, size - n) * ca.mmax(rows))
    for block in (slice(0, n), slice(n, size)):
        if block.start == block.stop:
            continue
        answer, widest, least = ca.sumsqr(x[block, :]), ca.sumsqr(scales[block, :]), ca.mmin(scales[block, :])
        for spread in spreads:
            error = widest * whole * (spread * rounding(size)) ** 2
            zero = ca.logic_and(answer <= error, error <= CERTAIN_DIGITS**2 * least**2 * cause)
            conditions.append(ca.logic_or(error <= CERTAIN_DIGITS**2 * answer, zero))
    return reduce(ca.logic_and, conditions)


def _dot(x: list[ca.SX], y: list[ca.SX]) -> ca.SX:
    """Return the sum of products; constants fold, so structural zeros cost nothing."""
    return reduce(lambda total, pair: total + pair[0] * pair[1], zip(x, y, strict=True), ca.SX(0))


def _rows(matrix: ca.SX) -> Rows:
    return [[matrix[i, j] for j in range(matrix.shape[1])] for i in range(matrix.shape[0])]


def _scalars(column: ca.SX) -> list[ca.SX]:
    return [column[i] for i in range(column.numel())]


# ----------------------------------------------------------------------------------------------------------------------
# The quantities that a Lagrangian system compiles to: the table, and one CasADi function per entry.


LARGEST = 25
"""Straight-line code grows with (n + m)^3: above this size compiled loops (`KKT` on batches) are the better way."""

QUANTITIES = {
    "forward": "q v u t parameters",
    "terms": "q v u t parameters",
    "mass_matrix": "q t parameters",
    "bias": "q v u t parameters",
    "jacobian": "q t parameters",
    "drift": "q v t parameters",
    "constraint": "q t parameters",
    "constraint_velocity": "q v t parameters",
    "energy": "q v t parameters",
    "contacts": "q v u t parameters",
}
"""Every quantity, with the inputs it may have."""


def quantity(expressions: Expressions, symbols: Symbols, what: str, contacts: ContactExpressions) -> ca.Function:
    """Return the CasADi function of one quantity."""
    if what not in QUANTITIES:
        near = near_matches(what, QUANTITIES)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise ModelError(f"what={what!r} is not one of {', '.join(map(repr, QUANTITIES))}{hint}")
    outputs = as_outputs(contacts) if what == "contacts" else _outputs(expressions, what)
    inputs = {name: symbols.groups[name] for name in input_names(symbols, what)}
    return ca.Function(what, list(inputs.values()), list(outputs.values()), list(inputs), list(outputs))


def input_names(symbols: Symbols, what: str) -> list[str]:
    """Return the names of a quantity's inputs, in order."""
    return [name for name in QUANTITIES[what].split() if name in symbols.sizes]


def _outputs(e: Expressions, what: str) -> dict[str, ca.SX]:
    match what:
        case "forward":
            return _forward(e)
        case "terms":
            return {"mass_matrix": e.mass, "bias": e.bias, "jacobian": e.jacobian, "drift": e.drift}
        case "mass_matrix":
            return {what: e.mass}
        case "constraint_velocity":
            return {what: e.rate}
        case _:
            return {what: getattr(e, what)}


def _forward(e: Expressions) -> dict[str, ca.SX]:
    """Return the constrained forward dynamics, with its status."""
    size = e.mass.shape[0] + e.jacobian.shape[0]
    if size > LARGEST:
        raise UnsupportedError(
            f"n + m = {size} is too large for straight-line code (at most {LARGEST}); system.forward(q, v) solves such "
            'batches through KKT, and compile("terms") gives M, bias, A and drift'
        )
    solved = straight_line(e.mass, e.jacobian, -e.bias, -e.drift)
    status = ca.if_else(solved.certified, int(Status.UNIQUE), int(Status.DECLINED))
    return {
        "acceleration": solved.acceleration,
        "multipliers": solved.multipliers,
        "status": status,
        "residuals": solved.residuals,
    }
