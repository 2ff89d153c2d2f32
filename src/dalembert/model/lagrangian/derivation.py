"""The derivation of M, bias, A and drift from a Lagrangian."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import casadi as ca

from dalembert.errors import ModelError, ShapeError
from dalembert.model.lagrangian.symbols import Symbols, as_column

# ----------------------------------------------------------------------------------------------------------------------
# Constraints as a user writes them, taken apart into named scalar rows.


ALLOWED = "q v t parameters"
"""Groups of symbols that a constraint may depend on."""


def constraint_rows(constraints: Any, symbols: Symbols) -> list[tuple[str, ca.SX]]:
    """Return (name, scalar expression) per row.

    `constraints` is an expression, a mapping name -> expression, or a list of expressions and (name, expression)
    pairs. A scalar keeps its name; the rows of a column are "name[0]", "name[1]", ...; a nameless one is "row i".
    """
    rows: list[tuple[str, ca.SX]] = []
    for name, expression in _pairs(constraints):
        what = f"constraint {name!r}" if name else f"constraint {len(rows)}"
        column = symbols.checked(as_column(expression, what), what, ALLOWED)
        scalars = ca.vertsplit(column) if column.numel() else []
        for i, row in enumerate(scalars):
            label = f"row {len(rows)}" if not name else name if len(scalars) == 1 else f"{name}[{i}]"
            _refuse_constant(row, label, symbols)
            rows.append((label, row))
    return rows


def _pairs(constraints: Any) -> list[tuple[str, Any]]:
    """Return (name, expression), the name empty where none was given."""
    if isinstance(constraints, Mapping):
        return [(str(name), expression) for name, expression in constraints.items()]
    if _is_pair(constraints):
        return [constraints]
    if not isinstance(constraints, list | tuple):
        return [("", constraints)]
    return [constraint if _is_pair(constraint) else ("", constraint) for constraint in constraints]


def _is_pair(item: Any) -> bool:
    return isinstance(item, tuple) and len(item) == 2 and isinstance(item[0], str)


def _refuse_constant(row: ca.SX, name: str, symbols: Symbols) -> None:
    """Refuse a row that no coordinate can satisfy or violate."""
    if not ca.depends_on(row, ca.vertcat(symbols.q, symbols.v)):
        raise ModelError(f"constraint {name!r}, {row} = 0, depends on no coordinate and no velocity")


# ----------------------------------------------------------------------------------------------------------------------
# From a Lagrangian to M, bias, A and drift, as expressions.
#
# Symbols: T kinetic energy, V potential, D Rayleigh's dissipation function, Q generalised forces, phi a constraint,
# psi its rate. With the momentum p = dT/dv, Lagrange's equations of the first kind are
#
#     dp/dt - dT/dq + dV/dq + dD/dv + A^T lam = Q        dp/dt = M a + (dp/dq) v + dp/dt|explicit
#
# so bias is everything on the left at a = 0, lam = 0, minus Q. For a holonomic row psi = (dphi/dq) v + dphi/dt; a row
# given at velocity level is psi itself. Both kinds then read
#
#     A = dpsi/dv        drift = (dpsi/dq) v + dpsi/dt        A a + drift = d psi / dt = 0
#
# Source: H. Goldstein, C. Poole, J. Safko, "Classical Mechanics", 3rd ed., sections 1.5 (Rayleigh's function) and
# 2.4 (multipliers).


@dataclass(frozen=True, eq=False)
class Expressions:
    """What follows from a Lagrangian, in SX.

    Attributes
    ----------
    mass, bias
        M (n, n) and bias (n,).
    constraint
        phi of the holonomic rows, (h,).
    rate
        psi, (m,).
    jacobian, drift
        A (m, n) and drift (m,).
    kinetic, potential
        T and V.
    applied
        Forces without a potential, (n,): Q - dD/dv.
    names, holonomic
        Per row, its name, and whether it constrains coordinates (or, if not, velocities only).
    """

    mass: ca.SX
    bias: ca.SX
    constraint: ca.SX
    rate: ca.SX
    jacobian: ca.SX
    drift: ca.SX
    kinetic: ca.SX
    potential: ca.SX
    applied: ca.SX
    names: tuple[str, ...]
    holonomic: tuple[bool, ...]


def derive(
    symbols: Symbols, kinetic: Any, potential: Any, forces: Any, dissipation: Any, constraints: Any,
    accelerations: Any = (),
) -> Expressions:  # fmt: skip
    """Differentiate; refuse what is not mechanics of this kind, by name."""
    T = symbols.scalar(kinetic, "kinetic", "q v t parameters")
    V = symbols.scalar(potential, "potential", "q t parameters")
    M, inertial = _inertia(symbols, T)
    bias = inertial + ca.gradient(V, symbols.q)
    applied = ca.SX.zeros(symbols.q.numel())
    if dissipation is not None:
        D = symbols.scalar(dissipation, "dissipation", "q v t parameters")
        bias += ca.gradient(D, symbols.v)
        applied -= ca.gradient(D, symbols.v)
    if forces is not None:
        Q = _forces(symbols, forces)
        bias -= Q
        applied += Q
    rows = constraint_rows(constraints, symbols)
    holonomic = tuple(not ca.depends_on(row, symbols.v) for _, row in rows)
    phi = [row for (_, row), kind in zip(rows, holonomic, strict=True) if kind]
    psi = _stack([rate_of(symbols, row) if kind else row for (_, row), kind in zip(rows, holonomic, strict=True)])
    A = ca.jacobian(psi, symbols.v)
    for (name, row), i in zip(rows, range(A.shape[0]), strict=True):
        if nonlinear := _velocities(A[i, :], symbols.v):
            raise ModelError(
                f"constraint {name!r}, {row} = 0, is not linear in {nonlinear}; velocity-level constraints must be "
                "A(q, t) v + b(q, t) = 0"
            )
    e = Expressions(
        mass=ca.densify(M),
        bias=ca.densify(bias),
        constraint=_stack(phi),
        rate=psi,
        jacobian=ca.densify(A),
        drift=ca.densify(rate_of(symbols, psi)),
        kinetic=T,
        potential=V,
        applied=ca.densify(applied),
        names=tuple(name for name, _ in rows),
        holonomic=holonomic,
    )
    return with_accelerations(symbols, e, accelerations)


# ----------------------------------------------------------------------------------------------------------------------
# Constraints of accelerations: J(q, v, t) a = b(q, v, t) (Oprea's eq. 5), nonlinear in velocities.
#
# Either psi(q, v, t) = 0 is known at velocity level, |v| = const or Appell's machine: then J = dpsi/dv and
# b = -(dpsi/dq) v - dpsi/dt. Or J a - b itself is all that is known: then psi stands as zero, which holds always. By
# Gauss' principle their reaction is J^T lam, whatever J depends on (Appell 1911; Chetaev's rule).


def with_accelerations(symbols: Symbols, e: Expressions, accelerations: Any) -> Expressions:
    """Return the expressions with rows J a - b = 0 below the others."""
    a = ca.SX.sym("a", symbols.q.numel())
    names, psi, J, drift = list(e.names), [e.rate], [e.jacobian], [e.drift]
    for name, expression in _pairs(accelerations):
        what = f"constraint {name!r}" if name else f"constraint {len(names)}"
        value = expression(a) if callable(expression) and not isinstance(expression, ca.SX) else expression
        column = as_column(value, what)
        known = not ca.depends_on(column, a)
        symbols.checked(ca.substitute(column, a, ca.SX.zeros(a.numel())), what, ALLOWED)
        rows = ca.jacobian(column, symbols.v if known else a)
        if not known and ca.depends_on(rows, a):
            raise ModelError(f"{what}, {column} = 0, is not linear in the accelerations; it must be J a - b = 0")
        if rows.nnz() == 0 or any(rows[i, :].nnz() == 0 for i in range(rows.shape[0])):
            raise ModelError(f"{what}, {column} = 0, constrains no acceleration: it depends neither on v nor on a")
        labels = [f"row {len(names)}"] if not name else [name]
        count = column.numel()
        names += labels if count == 1 else [f"{labels[0]}[{i}]" for i in range(count)]
        psi.append(column if known else ca.SX.zeros(count))
        J.append(rows)
        drift.append(rate_of(symbols, column) if known else ca.substitute(column, a, ca.SX.zeros(a.numel())))
    return replace(
        e, names=tuple(names), rate=ca.densify(ca.vertcat(*psi)), jacobian=ca.densify(ca.vertcat(*J)),
        drift=ca.densify(ca.vertcat(*drift)), holonomic=(*e.holonomic, *[False] * (len(names) - len(e.names))),
    )  # fmt: skip


def of_accelerations(e: Expressions, v: ca.SX) -> tuple[bool, ...]:
    """Return which rows constrain accelerations: J depends on velocities, or nothing is known at velocity level."""
    return tuple(
        not held and (e.rate[i].is_zero() or ca.depends_on(e.jacobian[i, :], v)) for i, held in enumerate(e.holonomic)
    )


def _inertia(symbols: Symbols, T: ca.SX) -> tuple[ca.SX, ca.SX]:
    """Return M = d2T/dv2 and (dp/dq) v + dp/dt - dT/dq."""
    M, p = ca.hessian(T, symbols.v)
    if nonquadratic := _velocities(M, symbols.v):
        raise ModelError(
            f"kinetic is not quadratic in {nonquadratic}: its second derivative M still depends on velocities. "
            "Write squares as products or casadi.sumsqr, not as norms; for other energies M(q) does not exist"
        )
    return M, rate_of(symbols, p) - ca.gradient(T, symbols.q)


def coriolis_matrix(symbols: Symbols, M: ca.SX) -> ca.SX:
    """Return C (n, n) with C_ij = Gamma_ijk v_k, of Christoffel's symbols of M: M' - 2 C is skew-symmetric.

    Gamma_ijk = 1/2 (dM_ij/dq_k + dM_ik/dq_j - dM_jk/dq_i): the first term is half of M' where M does not depend on
    time, the others are the rows and columns of B = d(M v)/dq. Terms of T that are linear in v or without v, and what
    M changes with time, are in N = bias - C v.
    """
    B = ca.jacobian(M @ symbols.v, symbols.q)
    along = ca.reshape(ca.jtimes(ca.vec(M), symbols.q, symbols.v), *M.shape)
    return ca.densify((along + B - B.T) / 2)


def _forces(symbols: Symbols, forces: Any) -> ca.SX:
    """Return Q, (n,)."""
    Q = symbols.checked(as_column(forces, "forces"), "forces", "q v u t parameters")
    if Q.shape != symbols.q.shape:
        raise ShapeError(f"forces must have one entry per coordinate, {symbols.q.numel()}; they have {Q.numel()}")
    return Q


def rate_of(symbols: Symbols, x: ca.SX) -> ca.SX:
    """Return (dx/dq) v + dx/dt for a column: its rate at constant velocities."""
    if x.numel() == 0:
        return ca.SX(0, 1)
    rate = ca.jtimes(x, symbols.q, symbols.v)
    return rate + ca.jacobian(x, symbols.t) if symbols.t.numel() else rate


def _velocities(matrix: ca.SX, v: ca.SX) -> str:
    """Return the names of the velocities that a matrix depends on, empty if none."""
    return ", ".join(str(x) for x in ca.vertsplit(v) if ca.depends_on(matrix, x))


def _stack(rows: list[ca.SX]) -> ca.SX:
    return ca.densify(ca.vertcat(*rows)) if rows else ca.SX(0, 1)
