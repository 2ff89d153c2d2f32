"""Choice in a family of joint forces in straight-line code: the same member as in `model/mechanism/member_choice.py`.

Symbols: Z_j multipliers of a member of the family, A^T Z_j = 0; T_j what it adds to the wrenches; E roots of
compliances, which weigh wrenches. The least of |E (W + sum_j z_j T_j)| is what is left of W after its parts along all
T_j are taken away, one after another (modified Gram-Schmidt):

    W -= T_j (T_j, W) / (T_j, T_j)      T_i -= T_j (T_j, T_i) / (T_j, T_j)      (x, y) = x^T E^2 y

Multipliers go along. Flexible joints decide first; members that store nothing in them are zero then, but for rounding,
and are left to joints that give way alike. Which ones these are is decided before tracing, as which rows are kept is:
by the largest pivots at the mechanism's probes.

The multipliers Z_j are those of implied rows by the kept ones, A_D = T A_K; wherever the loops are cut, the T_j span
the same family. Source of the process: A. Bjorck, "Solving linear least squares problems by Gram-Schmidt
orthogonalization", BIT 7 (1967) 1-21.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import TYPE_CHECKING, Any

import casadi as ca
import numpy as np

from dalembert.kkt.expressions.probing import rows_of_rank
from dalembert.kkt.expressions.scalars import mul, neg, sub, total
from dalembert.kkt.limits import EPS, ROUNDING, open_level
from dalembert.model.mechanism.member_choice import DETERMINED, compliances, even_roots, length_of
from dalembert.status import Status
from dalembert.tree.block.conditioning import closed_configurations
from dalembert.types import Array, Scalar

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dalembert.tree.block.constrained import Tracing


@dataclass(frozen=True, eq=False)
class Loads:
    """Wrenches of all transmissions in the axes of their children, one after the other (6 k,), and multipliers (m,)."""

    wrenches: list[Scalar]
    multipliers: list[Scalar]

    def less(self, factor: Scalar, other: Loads) -> Loads:
        """Return these loads less a factor times others."""
        pairs = ((self.wrenches, other.wrenches), (self.multipliers, other.multipliers))
        W, lam = ([sub(x, mul(factor, y)) for x, y in zip(*pair, strict=True)] for pair in pairs)
        return Loads(W, lam)


@dataclass(frozen=True, eq=False)
class Chosen:
    """The member that was chosen.

    Attributes
    ----------
    loads
        Its wrenches and multipliers.
    open
        Members that flexible joints leave open; all of them where none are given.
    least
        The least part of a deciding member that others do not make up, squared.
    """

    loads: Loads
    open: list[Loads]
    least: Scalar


def member_multipliers(setting: Tracing) -> list[list[Scalar]]:
    """Return Z: per implied row a combination of the user's rows that acts on nothing, (m,)."""
    needs, m = setting.needs, len(setting.mechanism.names)
    parts = dict(zip(setting.row_sums.implied, setting.row_sums.sums, strict=True))
    result = []
    for i in (i for i, implied in enumerate(needs.implied) if implied):
        row = {j: neg(x) for j, x in parts.get(i, {}).items()} | {i: 1.0}
        result.append(setting.in_world([row.get(j, 0.0) for j in range(m)]))
    return result


def chosen_member(
    setting: Tracing, loads: Loads, members: Sequence[Loads], flexible: Mapping[str, Any] | None
) -> Chosen:
    """Return the member of least elastic energy: in `flexible` joints, and then in joints that give way alike."""
    even = even_roots(setting.mechanism)
    stages = [even] if flexible is None else [np.sqrt(compliances(setting.mechanism, flexible)), even]
    rest, least, remaining = list(members), list[Scalar](), list(members)
    for roots in stages:
        squares = (roots.ravel() ** 2).tolist()
        deciding = _deciding(setting, rest, roots.ravel())
        for j in deciding:
            along, others = rest[j], [k for k in range(len(rest)) if k != j]
            size = _inner(squares, along, along)
            least.append(size / _inner(squares, members[j], members[j]))
            loads = loads.less(_inner(squares, along, loads) / size, along)
            for k in others:
                rest[k] = rest[k].less(_inner(squares, along, rest[k]) / size, along)
            rest[j] = replace(along, wrenches=[0.0] * len(along.wrenches))
        if len(stages) > 1 and roots is stages[0]:
            remaining = [member for k, member in enumerate(rest) if k not in deciding]
    return Chosen(loads, remaining, reduce(ca.fmin, least, ca.SX(1)))


def _inner(squares: Sequence[float], one: Loads, two: Loads) -> Scalar:
    """Return the product of two sets of wrenches in the metric of the elastic energy."""
    return total(*(mul(c, mul(x, y)) for c, x, y in zip(squares, one.wrenches, two.wrenches, strict=True)))


def _deciding(setting: Tracing, members: Sequence[Loads], roots: Array) -> list[int]:
    """Return the members, one after another, of whose sums all others that store energy are made, at all probes."""
    T = np.array(_at_probes(setting, members))
    lengths = np.linalg.norm(T, axis=2, keepdims=True)
    E = T * roots / np.where(lengths > 0.0, lengths, 1.0)
    spectra = [np.linalg.svd(matrix, compute_uv=False) for matrix in E]
    ranks = [int(np.count_nonzero(s > DETERMINED * s.max(initial=0.0))) for s in spectra]
    rank = max(ranks, default=0)
    return rows_of_rank([matrix for matrix, local_rank in zip(E, ranks, strict=True) if local_rank == rank], rank)


def _at_probes(setting: Tracing, members: Sequence[Loads]) -> list[Array]:
    """Return the wrenches of members in numbers, (r, 6 k) at each of the mechanism's probes; rounding is zero."""
    m, columns = setting.mechanism, [setting.column(name) for name in ("q", "v", "t")]
    table = ca.vertcat(*[ca.horzcat(*[ca.SX(x) for x in member.wrenches]) for member in members])
    at = ca.Function("members", columns, [table])
    tables = [np.array(ca.densify(at(q, np.zeros(m.nv), 0.0))) for q in closed_configurations(m)]
    level = ROUNDING / EPS * setting.limits.eps
    return [np.where(np.abs(x) <= level * np.abs(x).max(initial=0.0), 0.0, x) for x in tables]


def certified(setting: Tracing, status: Scalar, chosen: Chosen) -> Scalar:
    """Return the status of a sample: declined where the members are too nearly dependent to tell them apart."""
    lost = ca.logic_not(ca.SX(chosen.least) > setting.limits.certain)
    return ca.if_else(ca.logic_and(lost, status == int(Status.REDUNDANT)), int(Status.DECLINED), status)


def unique_here(setting: Tracing, members: Sequence[Loads], turned: Sequence[Sequence[Scalar]]) -> list[Scalar]:
    """Return per component 1 where no member has a part in it, else 0; `turned` are members in the axes of the answer.

    Rounding is measured against the largest force of the member anywhere, or moment over a length, as methods do.
    """
    length, share = length_of(setting.mechanism), _rounding_share(setting)
    result: list[Scalar] = [1.0] * len(turned[0])
    for member, components in zip(members, turned, strict=True):
        scales = [1.0 if i % 6 < 3 else 1.0 / length for i in range(len(member.wrenches))]
        sizes = [ca.fabs(ca.SX(mul(s, x))) for s, x in zip(scales, member.wrenches, strict=True) if not _known_zero(x)]
        level = share * reduce(ca.fmax, sizes, ca.SX(0))
        for i, x in enumerate(components):
            if not _known_zero(x):
                alone = ca.fabs(ca.SX(x)) <= (level if i % 6 < 3 else length * level)
                result[i] = ca.SX(result[i]) * alone
    return result


def _known_zero(x: Scalar) -> bool:
    return ca.SX(x).is_zero()


def _rounding_share(setting: Tracing) -> float:
    """Return the part of a member that is rounding, from the place where the mechanism's rank is clearest."""
    rank = setting.mechanism.generic_rank()
    rounding = ROUNDING / EPS * setting.limits.eps
    return open_level(max(rounding, rank.dropped) / max(rank.kept, EPS))
