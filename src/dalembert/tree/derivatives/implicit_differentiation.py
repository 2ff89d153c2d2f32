"""Implicit differentiation of a block system: the derivative of an answer by the factors that gave the answer.

Symbols: x = (a, lam) the answer, K = [M A^T; A 0] the block matrix, r(x, p) = 0 the two block rows as a residual, p
what is varied, dr the derivative of r along p with x held; dA that of the rows, y with A_K y = W_K lam_K.

    K dx = -dr(x)        redundant rows: Z^T W dlam = Z^T dA y        (`kkt/expressions/block_solver.py`)

The answer enters dr as a symbol, so that dr is short and sparse and no code of the solver is differentiated; then each
direction is one more right side for the factors: K^-1, whose blocks are the dagger terms of seed 000 (Johnson), times
-dr. K^-1 is not formed: of a quadruped on four points the products with it have as many operations as the solves.

An implied row that the answer meets on the constraint manifold alone takes no part in dx: along directions that leave
the manifold the rows that are kept decide, exactly as in the answer itself.

Source: Carpentier & Mansard, "Analytical derivatives of rigid body dynamics algorithms", RSS 2018 (open trees; the
implicit form); Golub & Pereyra, SIAM J. Numer. Anal. 10 (1973) 413-432 (derivative of a generalised inverse).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import casadi as ca

from dalembert.kkt.expressions.block_solver import BlockSolver
from dalembert.kkt.expressions.scalars import add, mul, neg, total
from dalembert.kkt.expressions.sparse_factor import Vector
from dalembert.kkt.expressions.verdict import Asked, judged
from dalembert.types import Scalar

Columns = list[list[Scalar]]
"""One list of scalars per direction."""


@dataclass(frozen=True, eq=False)
class KnownShare:
    """A share of the first block row whose derivatives are known, at the answer: those of the others remain.

    Attributes
    ----------
    rest
        The first block row without this share.
    columns
        Derivatives of the share by the input that is varied, along the directions in which it is.
    """

    rest: ca.SX
    columns: Mapping[str, Columns]


@dataclass(frozen=True, eq=False)
class BlockResidual:
    """Block rows over symbols of the state, with the answer as symbols, too.

    Attributes
    ----------
    parts
        Columns by name, all differentiated together: "first" (n,) and "second" (m,) of the block rows, "turned" (m,) =
        A y where rows are redundant, and whatever else an answer is made of.
    answers
        Symbols that stand for answers, each with its value as an expression of the state.
    share
        What is known of the first part.
    """

    parts: Mapping[str, ca.SX]
    answers: Sequence[tuple[ca.SX, ca.SX]] = field(default=())
    share: KnownShare | None = None

    def along(self, name: str, symbol: ca.SX, seed: ca.SX) -> dict[str, Columns]:
        """Return the derivatives of all parts by an input along the columns of `seed`, the answers being held."""
        if self.share is None or name not in self.share.columns:
            return self.cut(self.answered(ca.jtimes(ca.vertcat(*self.parts.values()), symbol, seed)))
        parts = {**self.parts, "first": self.share.rest}
        columns = self.cut(self.answered(ca.jtimes(ca.vertcat(*parts.values()), symbol, seed)))
        pairs = zip(columns["first"], self.share.columns[name], strict=True)
        return {**columns, "first": [[add(*pair) for pair in zip(*both, strict=True)] for both in pairs]}

    def answered(self, expression: ca.SX) -> ca.SX:
        """Return an expression of the symbols with the answers in their places."""
        symbols = [symbol for symbol, _ in self.answers]
        rest = [s for s in ca.symvar(expression) if not any(ca.depends_on(s, symbol) for symbol in symbols)]
        function = ca.Function("residual", [*symbols, *rest], [expression])
        return function.call([*(value for _, value in self.answers), *rest])[0]

    def cut(self, block: ca.SX) -> dict[str, Columns]:
        """Return the rows of a block by the parts they belong to."""
        result: dict[str, Columns] = {}
        start = 0
        for name, part in self.parts.items():
            piece = block[start : start + part.numel(), :]
            result[name] = [_column(piece[:, k]) for k in range(block.shape[1])]
            start += part.numel()
        return result


def differentiated(
    solver: BlockSolver, size: int, parts: Mapping[str, Vector], to_world: Callable[[list[Scalar]], list[Scalar]]
) -> tuple[list[Scalar], list[Scalar]]:
    """Return dx of K dx = -dr along one direction, by the factors of K: d a, and d lam of the user's rows.

    These are L lam, L being `to_world`: d(L lam) = dL lam + L dlam, with dL lam among the parts as "told".
    """
    df = [neg(parts.get("first", {}).get(i, 0.0)) for i in range(size)]
    dc = [neg(parts.get("second", {}).get(i, 0.0)) for i in range(len(solver.G))]
    answer = solver.solved(df, dc, parts.get("turned"))
    lam = to_world(answer.lam) if answer.lam else []
    told = parts.get("told", {})
    return answer.a, [add(told.get(i, 0.0), x) for i, x in enumerate(lam)]


def proven(solver: BlockSolver, blocks: Sequence[Mapping[str, Columns]], inputs: Sequence[Scalar]) -> Scalar:
    """Return the status of the directions: the verdict on one sum of all, with weights that have nothing in common.

    A state may be solved and its derivative not: at rest, say, any pivot is good enough for a = 0. What an implied row
    would ask for off the manifold is not judged.
    """
    weights = _weights(sum(len(block["first"]) for block in blocks))
    df, dc = (
        [neg(total(*map(mul, weights, row))) for row in zip(*(x for b in blocks for x in b[part]), strict=True)]
        for part in ("first", "second")
    )
    answer = solver.solved(df, dc)
    reached = solver.system.reached(answer.motion)
    c = [met if implied else x for x, met, implied in zip(dc, reached, solver.needs.implied, strict=True)]
    return judged(solver.system, solver.needs, solver.limits, Asked(df, c, inputs), answer).status


def _weights(count: int) -> list[float]:
    """Return numbers between 1/2 and 3/2 of either sign, by golden sections: their sums are unlikely to vanish."""
    golden = (5**0.5 - 1) / 2
    return [(0.5 + (k * golden) % 1) * (1.0 if k % 2 else -1.0) for k in range(1, count + 1)]


def _column(x: ca.SX) -> list[Scalar]:
    """Return the entries of a column; what is known to be zero is a float."""
    return (
        [float(entry) if entry.is_constant() else entry for entry in ca.vertsplit(ca.densify(x))] if x.numel() else []
    )
