"""Rows of a mechanism whose rank is known, as expressions: what `steppers/carried_loops.py` does in loops.

Symbols as there: H = M (M + A_c^T W A_c where M is singular) = L L^T, B = D A L^-T the rows in the metric of the mass,
Q (r, n) an orthonormal basis of the chosen rows of B, F = B Q^T (m, r).

    A x = b with least x^T H x:    F y = D b by least squares,   x = L^-T Q^T y

Which rows are chosen is a matter of numbers: `chosen` holds the places of the r rows (then those of the holonomic
ones), and a row is picked by comparing places. So a function has one list of operations for all states.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import casadi as ca
import numpy as np

from dalembert.kkt.limits import ROUNDING
from dalembert.simulate.limits import RISEN
from dalembert.simulate.steppers.carried_loops import DECLINED, INCONSISTENT, MASSLESS, NOT_FINITE, REDUNDANT, Carried
from dalembert.types import Array

Row = list[Any]

MOST_ROWS = 12
"""Rows that depend on each other up to which their choice is written out as comparisons."""

HUGE = 1e300
"""Stands for infinity: what is not below it, as a sum of finite numbers is, is no number, or none that counts."""


class LaneRows:
    """The rank of a system's rows, and what is solved under it.

    Attributes
    ----------
    moving, held
        Rows that move something within the model's digits, and the holonomic ones among them.
    numbers
        How many numbers `chosen` has.
    content
        Arrays that determine the expressions.
    """

    def __init__(self, carried: Carried, holonomic: Sequence[bool], n: int) -> None:
        self.n, self.rows = n, len(holonomic)
        self.moving = sorted(carried.order[0, : carried.counts[0]].tolist())
        self.held = [i for i in self.moving if holonomic[i]]
        self.place = carried.place.tolist()
        self.rank, self.positions = (int(x) for x in carried.rank)
        self.scales, self.weights = carried.scales.tolist(), carried.weights.tolist()
        self.agree = float(carried.agree[0])
        self.numbers = self.rank + self.positions

    @property
    def content(self) -> tuple[Array, ...]:
        """Arrays that determine the expressions."""
        ends = [self.rank, self.positions, self.agree]
        kept = np.array(self.moving), np.array(self.held)
        return np.array(self.scales), np.array(self.weights), *kept, np.array(ends)

    # --- pieces ---------------------------------------------------------------------------------------------------

    def _matrices(self, terms: Mapping[str, ca.SX]) -> tuple[list[Row], list[Row]]:
        """Return M and A as lists of rows."""
        M, A = ca.densify(terms["mass"]), ca.densify(terms["jacobian"])
        M = ca.reshape(M, self.n, self.n)
        return ([[M[i, j] for j in range(self.n)] for i in range(self.n)],
                [[A[i, j] for j in range(self.n)] for i in range(self.rows)])  # fmt: skip

    def _factored(self, M: list[Row], A: list[Row], inside: Row) -> tuple[list[Row], list[Row], ca.SX]:
        """Return L, B and whether H is definite; `inside`: whether a row's weight counts."""
        n = self.n
        L = [[M[i][j] for j in range(n)] for i in range(n)]
        for k, weight in enumerate(self.weights):
            if weight > 0.0:
                for i in range(n):
                    for j in range(i + 1):
                        L[i][j] = L[i][j] + ca.if_else(inside[k], weight * A[k][i] * A[k][j], 0.0)
        definite = ca.SX(1)
        for j in range(n):
            pivot = L[j][j] - sum(L[j][k] ** 2 for k in range(j))
            definite = ca.logic_and(definite, pivot > 0.0)
            root = ca.sqrt(pivot)
            L[j][j] = root
            for i in range(j + 1, n):
                L[i][j] = (L[i][j] - sum(L[i][k] * L[j][k] for k in range(j))) / root
        B: list[Row] = []
        for k in range(self.rows):
            row: Row = []
            for j in range(n):
                row.append((self.scales[k] * A[k][j] - sum(L[j][i] * row[i] for i in range(j))) / L[j][j])
            B.append(row)
        return L, B, definite

    def _remainder(self, z: Row, Q: list[Row]) -> Row:
        """Return what a row has beyond the directions Q, taken out twice."""
        for _ in range(2):
            for q in Q:
                along = dot(q, z)
                z = [a - along * b for a, b in zip(z, q, strict=True)]
        return z

    def _chosen(self, B: list[Row], rows: Sequence[int], r: int) -> list[ca.SX]:
        """Return the places of r rows: that with the largest remainder first."""
        Q: list[Row] = []
        places: list[ca.SX] = []
        for _ in range(r):
            best, largest = ca.SX(-1), ca.SX(-1)
            for i in rows:
                z = self._remainder(B[i], Q)
                size = dot(z, z)
                for place in places:
                    size = ca.if_else(place == i, -1.0, size)
                better = size > 1.0000001 * largest
                best, largest = ca.if_else(better, i, best), ca.if_else(better, size, largest)
            places.append(best)
            Q.append(self._extended(B, best, rows, Q)[0])
        return places

    def _extended(self, B: list[Row], place: ca.SX, rows: Sequence[int], Q: list[Row]) -> tuple[Row, ca.SX]:
        """Return the direction that the row at a place adds to Q, and its size."""
        z = self._remainder([picked(place, [B[i][j] for i in rows], rows) for j in range(self.n)], Q)
        size = ca.sqrt(dot(z, z))
        some = ca.if_else(size > 0.0, size, 1.0)
        return [ca.if_else(size > 0.0, x / some, 0.0) for x in z], size

    def _directions(self, B: list[Row], places: list[ca.SX], rows: Sequence[int]) -> tuple[list[Row], ca.SX]:
        """Return Q, and the last pivot over the first: the distance from a singular configuration."""
        Q: list[Row] = []
        sizes: list[ca.SX] = []
        for place in places:
            q, size = self._extended(B, place, rows, Q)
            Q.append(q)
            sizes.append(size)
        first, last = (sizes[0], sizes[-1]) if sizes else (ca.SX(1), ca.SX(1))
        return Q, ca.if_else(first > 0.0, last / ca.if_else(first > 0.0, first, 1.0), 0.0)

    def _least_squares(self, F: list[Row], b: Row) -> tuple[Row, Row]:
        """Return y of F^T y = b, F given by its r rows, and what is left of b."""
        F, R = orthogonal(F)
        y: Row = []
        for row in F:
            along = dot(row, b)
            y.append(along)
            b = [x - along * f for x, f in zip(b, row, strict=True)]
        for k in reversed(range(len(F))):
            y[k] = (y[k] - sum(R[k][p] * y[p] for p in range(k + 1, len(F)))) / R[k][k]
        return y, b

    def _motion(self, L: list[Row], Q: list[Row], w: Row, y: Row) -> Row:
        """Return L^-T (w + Q^T y)."""
        n = self.n
        z = [w[j] + sum(q[j] * y[k] for k, q in enumerate(Q)) for j in range(n)]
        for j in reversed(range(n)):
            z[j] = (z[j] - sum(L[i][j] * z[i] for i in range(j + 1, n))) / L[j][j]
        return z

    def _projected(
        self, terms: Mapping[str, ca.SX], b: Row, places: list[ca.SX], rows: Sequence[int]
    ) -> tuple[ca.SX, Row]:
        """Return the least motion with A x = b / D on some rows, and what is left of b; NaN where H is not definite."""
        M, A = self._matrices(terms)
        inside = [holds(places, i) for i in range(self.rows)]
        L, B, _ = self._factored(M, A, inside)
        Q, _ = self._directions(B, places, rows)
        F = [[dot(B[i], q) for i in rows] for q in Q]
        y, left = self._least_squares(F, b)
        motion = self._motion(L, Q, [ca.SX(0)] * self.n, y)
        return ca.vertcat(*motion), left

    # --- answers --------------------------------------------------------------------------------------------------

    def accelerated(
        self, terms: Mapping[str, ca.SX], tau: ca.SX, v: ca.SX, chosen: ca.SX, strict: bool
    ) -> tuple[ca.SX, ca.SX, ca.SX, ca.SX]:
        """Return acceleration, multipliers, status and the rows chosen; the last three where it is strict."""
        n, r, all_rows = self.n, self.rank, self.moving
        M, A = self._matrices(terms)
        force, drift = tau - terms["bias"], terms["drift"]
        places = [chosen[k] for k in range(r)]
        definite = ca.SX(1)
        if strict:
            _, B, definite = self._factored(M, A, [ca.SX(i in all_rows) for i in range(self.rows)])
            held = self._chosen(B, self.held, self.positions)
            places = self._chosen(B, all_rows, r)
            chosen = ca.vertcat(*places, *held)
        inside = [holds(places, i) for i in range(self.rows)]
        L, B, sound = self._factored(M, A, inside)
        definite = ca.logic_and(definite, sound)
        Q, distance = self._directions(B, places, all_rows)
        # w = L^-1 (force - A^T weights drift): the motion without rows
        w: Row = []
        for j in range(n):
            total = force[j]
            for k, weight in enumerate(self.weights):
                if weight > 0.0:
                    total -= ca.if_else(inside[k], weight * A[k][j] * drift[k], 0.0)
            w.append((total - sum(L[j][i] * w[i] for i in range(j))) / L[j][j])
        # b: what the rows still ask for, each in its own unit
        along = [dot(B[i], w) for i in all_rows]
        b = [-self.scales[i] * drift[i] - x for i, x in zip(all_rows, along, strict=True)]
        size = maximum([*along, *(self.scales[i] * drift[i] for i in all_rows)])
        F = [[dot(B[i], q) for i in all_rows] for q in Q]
        y, left = self._least_squares(F, b)
        a = ca.vertcat(*self._motion(L, Q, w, y))
        if not strict:
            return a, ca.SX.zeros(self.rows), ca.SX(REDUNDANT), chosen
        beyond = self._beyond(B, Q, places)
        status = self._verdict(M, A, v, drift, w, distance, beyond, maximum(left), size, definite)
        return a, ca.vertcat(*self._multipliers(B, Q, y)), status, chosen

    def _beyond(self, B: list[Row], Q: list[Row], places: list[ca.SX]) -> ca.SX:
        """Return the largest part of a row of B beyond the kept directions."""
        found = ca.SX(0)
        for i in self.moving:
            z = self._remainder(B[i], Q)
            size = ca.if_else(holds(places, i), 0.0, ca.sqrt(dot(z, z)))
            found = ca.if_else(size <= found, found, size)
        return found

    def _multipliers(self, B: list[Row], Q: list[Row], y: Row) -> Row:
        """Return the multipliers of least norm that exert the forces of y: F^T D^-1 lam = -y."""
        F, R = orthogonal([[dot(B[i], q) / self.scales[i] for i in self.moving] for q in Q])
        b: Row = []
        for k in range(len(F)):
            b.append((-y[k] - sum(R[p][k] * b[p] for p in range(k))) / R[k][k])
        found = {i: sum((row[at] * b[k] for k, row in enumerate(F)), ca.SX(0)) for at, i in enumerate(self.moving)}
        return [found.get(i, ca.SX(0)) for i in range(self.rows)]

    def _verdict(
        self, M: list[Row], A: list[Row], v: ca.SX, drift: ca.SX, w: Row, distance: ca.SX, beyond: ca.SX, left: ca.SX,
        size: ca.SX, definite: ca.SX,
    ) -> ca.SX:  # fmt: skip
        """Return the status of accelerations at a state on the manifold: what is left is judged against the data."""
        speed = sum((ca.fabs(v[j]) for j in range(self.n)), ca.SX(0))
        lever = maximum(self.scales[i] * A[i][j] for i in self.moving for j in range(self.n))
        data = [x for row in (*M, *A) for x in row]
        known = ca.fabs(sum(data, ca.SX(0))) < HUGE
        all_known = ca.fabs(sum([*data, *w, *(drift[i] for i in self.moving)], ca.SX(0))) < HUGE
        agree = left <= self.agree * (size + lever * speed**2)
        status = ca.if_else(agree, REDUNDANT, INCONSISTENT)
        status = ca.if_else(beyond > max(RISEN, self.agree), DECLINED, status)
        if self.rank > 0:
            status = ca.if_else(distance > ROUNDING, status, DECLINED)
        status = ca.if_else(all_known, status, NOT_FINITE)
        return ca.if_else(definite, status, ca.if_else(known, MASSLESS, NOT_FINITE))

    def onto(self, terms: Mapping[str, ca.SX], residual: ca.SX, chosen: ca.SX) -> tuple[ca.SX, dict[int, ca.SX]]:
        """Return Newton's step onto the holonomic rows that move, and by place what it takes away of each residual."""
        places = [chosen[self.rank + k] for k in range(self.positions)]
        b = [-self.scales[row] * residual[self.place[row]] for row in self.held]
        motion, left = self._projected(terms, b, places, self.held)
        left = [x / self.scales[row] for x, row in zip(left, self.held, strict=True)]
        return motion, {self.place[row]: residual[self.place[row]] + x for x, row in zip(left, self.held, strict=True)}

    def admissible(self, terms: Mapping[str, ca.SX], rate: ca.SX, chosen: ca.SX) -> ca.SX:
        """Return the least change of velocities that makes them admissible."""
        b = [-self.scales[i] * rate[i] for i in self.moving]
        return self._projected(terms, b, [chosen[k] for k in range(self.rank)], self.moving)[0]


def dot(a: Row, b: Row) -> Any:
    """Return the sum of products."""
    return sum((x * y for x, y in zip(a, b, strict=True)), ca.SX(0))


def maximum(values: Any) -> ca.SX:
    """Return the largest size of numbers; a NaN is no number, and larger than all."""
    most = ca.SX(0)
    for x in values:
        size = ca.fabs(x)
        most = ca.if_else(size <= most, most, size)
    return most


def picked(place: ca.SX, values: Sequence[Any], rows: Sequence[int]) -> ca.SX:
    """Return the value of the row at a place."""
    return sum((ca.if_else(place == i, x, 0.0) for i, x in zip(rows, values, strict=True)), ca.SX(0))


def holds(places: Sequence[ca.SX], i: int) -> ca.SX:
    """Return whether a row is among those at some places."""
    found = ca.SX(0)
    for place in places:
        found = ca.logic_or(found, place == i)
    return found


def orthogonal(F: list[Row]) -> tuple[list[Row], list[Row]]:
    """Return an orthonormal basis of the rows of F (r, m), taken twice, and R so that F = R^T (that basis)."""
    r = len(F)
    R: list[Row] = [[ca.SX(0)] * r for _ in range(r)]
    basis: list[Row] = []
    for k, row in enumerate(F):
        for _ in range(2):
            for p, other in enumerate(basis):
                along = dot(other, row)
                R[p][k] = R[p][k] + along
                row = [x - along * y for x, y in zip(row, other, strict=True)]
        size = ca.sqrt(dot(row, row))
        R[k][k] = size
        some = ca.if_else(size > 0.0, size, 1.0)
        basis.append([ca.if_else(size > 0.0, x / some, 0.0) for x in row])
    return basis, R
