"""Probing of a mechanism's matrices at admissible configurations: rank, conditioning, massless joints."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import casadi as ca
import numpy as np
from jaxtyping import Float

from dalembert.errors import ModelError
from dalembert.kkt.rows import row_structure
from dalembert.memory import remembered
from dalembert.model.constraints import assemble
from dalembert.model.constraints.constraint import Constraint, Pair
from dalembert.model.joints import as_expression
from dalembert.model.mechanism.assemble import closed_samples
from dalembert.model.mechanism.precision import SLACK, digits_of
from dalembert.model.mechanism.project import Matrices, closed_before_compiling
from dalembert.tree.algebra.sparse_factor import sparse_factor, tree_order
from dalembert.tree.algorithms.frame_kinematics import TreeKinematics
from dalembert.tree.algorithms.inverse import crba
from dalembert.tree.block.rows import TreeMotion
from dalembert.tree.block.verdict import Conditioning
from dalembert.tree.prepared.configuration import pose_tree
from dalembert.tree.prepared.link import Tree
from dalembert.tree.prepared.prepare import candidates

if TYPE_CHECKING:
    from dalembert.model.mechanism.mechanism import Mechanism

# ----------------------------------------------------------------------------------------------------------------------
# Existence of accelerations of the open tree: pivots of its mass matrix at random configurations.
#
# A link that weighs nothing may be harmless (another hangs on it) or leave a motion that nothing resists. Where that
# shows in the structure, the algorithms refuse; where it is a cancellation, as of two hinges on one axis with nothing
# between them, the pivot is rounding instead of zero, and a quotient by it would be noise that looks like a number.


Array = np.ndarray

SAMPLES = 4
VANISHING = 1e-13
"""A pivot below this fraction of the diagonal of M at every sampled configuration is zero but for rounding."""


def refuse_singular(mechanism: Mechanism, tree: Tree) -> None:
    """Raise where the mass matrix of the open tree is singular wherever one looks."""
    if tree.nv == 0:
        return
    q = mechanism.random(0, SAMPLES)
    M = crba(tree, pose_tree(tree, list(q.T)))
    diagonal = np.array([np.broadcast_to(M[k][k], SAMPLES) for k in range(tree.nv)])
    with np.errstate(divide="ignore", invalid="ignore"):
        pivots = sparse_factor(M, tree_order(tree.nv), tree.coordinates).pivots
        ratio = np.abs([np.broadcast_to(pivots[k], SAMPLES) for k in range(tree.nv)]) / np.abs(diagonal)
    for k in np.flatnonzero((ratio < VANISHING).all(axis=1)):
        raise ModelError(
            f"nothing resists the coordinate {tree.coordinates[k]!r} of {tree.name!r}: its pivot in the mass matrix is "
            f"{ratio[k].max():.0e} of the diagonal; a massless link between two joints that move alike, most likely. "
            "Give it mass or armature, or constrain it and use the block form (KKT)"
        )


# ----------------------------------------------------------------------------------------------------------------------
# Conditioning of a mechanism's constrained dynamics, from its matrices at a few configurations.
#
# Symbols: H = M, or M + A^T R A where M may be singular, H = L L^T; B = D A L^-T, the rows in the metric of the mass; D
# scales the rows of one unit in one constraint (lengths, angles) by one factor; s singular values of B.
#
# Rank is a property of the mechanism: the largest found at the probes, which meet its constraints, with the tolerance
# of its digits. So many rows are kept, those with the largest pivots at all probes; the others are implied, each a sum
# of kept ones. B does not change with the units of coordinates, D takes those of rows away: kilometres or micrometres,
# the same rows are kept. One factor for each unit and constraint, not for each row: a row that does next to nothing
# beside others of its constraint is rounding of the model's numbers (a loop in a plane has one across it), and scaled
# up it would demand forces without limit. A configuration of lower rank is told by its pivots and left to `kkt`.


NEARLY_IMPLIED = 1e-6
"""Rows beside very light coordinates look implied: eigenvalue of the unit-diagonal Delassus matrix up to which."""

NEARLY_MASSLESS = 1e-12
"""M counts as singular where its unit-diagonal form has a smaller eigenvalue: lighter links lose all digits in M^-1."""

FADED = 1e-3
"""Part of its typical |A_i| up to which a row is scaled up: one that fades further at some configuration counts less
and less, and not at all where rounding is all that is left of it."""

DIGITS = 1e-9
"""Singular values of B below this part of the largest are zero, where the model says nothing else."""

PART = 1e-8
"""Weight in a sum of rows, of unit scale, from which on a row has a part in it: below is rounding over pivots."""


def probe(
    M: Float[Array, "N n n"],
    A: Float[Array, "N m n"],
    groups: Sequence[int] | None = None,
    digits: float = DIGITS,
    moves: bool = False,
) -> Conditioning:
    """Return what M and A at N configurations ask for; `groups` (m,) says which rows have one scale.

    Of a mechanism that `moves` somewhere, configurations in which it is locked have a rank of their own.
    """
    groups = tuple(range(A.shape[1])) if groups is None else tuple(groups)
    plain, weighed = _delassus(M, A, 0.0, groups), _delassus(M, A, 1.0, groups)
    light = any(_small(one) > _small(two) for one, two in zip(plain.spectra, weighed.spectra, strict=True))
    massless = light or any(_spectrum(m)[0] < NEARLY_MASSLESS for m in M)
    found = weighed if massless else plain
    heavy = _diagonals(found.H).max(initial=0.0) or 1.0
    typical, _ = _typical(_diagonals(found.G), groups, 1.0 / heavy)
    sizes, still = _typical((A * A).sum(axis=2), groups, 1.0)
    implied, sums = _dependences(found.H, A, typical, digits, moves)
    return Conditioning(
        massless,
        mass_scales=_scales(found.H),
        row_scales=_tuple(typical**-0.5),
        size_floors=_tuple(np.where(still, 1.0, FADED**2) * sizes),
        implied=implied,
        sums=sums,
    )


class _Probed(NamedTuple):
    """H and its Delassus matrix G at all probes, and the eigenvalues of G with unit diagonal."""

    H: Array
    G: Array
    spectra: list[Array]


def _delassus(M: Array, A: Array, factor: float, groups: tuple[int, ...]) -> _Probed:
    """Return what M + factor A^T R A gives at all probes."""
    weights = [factor * _weights(m, a) for m, a in zip(M, A, strict=True)]
    H = np.array([m + a.T @ (w[:, None] * a) for m, a, w in zip(M, A, weights, strict=True)])
    G = np.array([a @ _inverse(h) @ a.T for h, a in zip(H, A, strict=True)])
    return _Probed(H, G, [_spectrum(g, groups) for g in G])


def _inverse(H: Array) -> Array:
    """Return the inverse of H, of what is not zero in it; scaled first, so that light coordinates count."""
    d = _unit(np.diag(H))
    return d[:, None] * np.linalg.pinv(d[:, None] * H * d, hermitian=True) * d


def _unit(diagonal: Array) -> Array:
    """Return what scales a diagonal to ones; one where it is not positive."""
    return np.where(diagonal > 0, np.abs(diagonal) + (diagonal <= 0), 1.0) ** -0.5


def _dependences(
    H: Array, A: Array, typical: Array, digits: float, moves: bool
) -> tuple[tuple[bool, ...], tuple[tuple[int, ...], ...]]:
    """Return which rows are implied by others, and of which kept rows each of them is a sum."""
    m = A.shape[1]
    found = [row_structure(a, h, digits, scales=typical**-0.5) for h, a in zip(H, A, strict=True)]
    rows, ranks = [each.B for each in found], [each.rank for each in found]
    free = [each for each in ranks if each < A.shape[2]]
    rank = max(free if moves and free else ranks, default=0)
    generic = [B for B, each in zip(rows, ranks, strict=True) if each == rank]
    kept = _chosen(generic, rank)
    rest = [i for i in range(m) if i not in kept]
    largest = np.zeros((len(rest), rank))
    for B in generic:
        T = np.linalg.lstsq(B[kept].T, B[rest].T, rcond=None)[0].T if rank and rest else largest
        largest = np.maximum(largest, np.abs(T))
    parts = {i: tuple(sorted(kept[k] for k in np.flatnonzero(largest[at] > PART))) for at, i in enumerate(rest)}
    small = {i for i in rest if max(np.linalg.norm(B[i]) for B in generic) <= digits}
    return tuple(i in rest for i in range(m)), tuple(() if i in small else parts.get(i, ()) for i in range(m))


def _chosen(rows: list[Array], rank: int) -> list[int]:
    """Return `rank` rows whose least pivot among all probes is largest, one after another (pivoted Gram-Schmidt)."""
    left, kept = [B.copy() for B in rows], list[int]()
    for _ in range(rank):
        sizes = np.min([np.linalg.norm(B, axis=1) for B in left], axis=0)
        sizes[kept] = -1.0
        kept.append(int(np.argmax(sizes)))
        for B in left:
            unit = B[kept[-1]] / (np.linalg.norm(B[kept[-1]]) or 1.0)
            for _ in range(2):
                B -= np.outer(B @ unit, unit)
    return sorted(kept)


def _small(spectrum: Array) -> int:
    """Return how many rows others seem to imply: beside very light coordinates heavy rows look so, too."""
    return int(np.count_nonzero(spectrum < NEARLY_IMPLIED))


def _spectrum(P: Array, groups: Sequence[int] | None = None) -> Array:
    """Return the eigenvalues of P scaled to unit diagonal, or to at most one within each group; zeros come first."""
    if not P.size:
        return np.ones(1)
    diagonal = _grouped(np.diag(P), groups)
    d = np.where(diagonal > 0, _unit(diagonal), 0.0)
    return np.linalg.eigvalsh(d[:, None] * P * d)


def _grouped(diagonal: Array, groups: Sequence[int] | None) -> Array:
    """Return the largest entry of each entry's group."""
    largest = diagonal.copy()
    for group in set(groups or ()):
        members = np.array([each == group for each in groups or ()])
        largest[members] = diagonal[members].max()
    return largest


def _weights(M: Array, A: Array) -> Array:
    """Return the row weights of `matrix_system.row_weights`, in numbers."""
    masses = np.diag(M)
    size = (A * A).sum(axis=1)
    heavy = np.divide((A * A) @ masses, size, out=np.zeros_like(size), where=size > 0)
    heavy = np.where(heavy > 0, heavy, (masses.mean() if masses.size else 0.0) or 1.0)
    return np.divide(heavy, size, out=np.zeros_like(size), where=size > 0)


def _scales(P: Float[Array, "N k k"]) -> tuple[float, ...]:
    """Return the median diagonal to the power -1/2; one where it is zero."""
    middle = np.median(_diagonals(P), axis=0)
    return _tuple(np.where(middle > 0, middle, 1.0) ** -0.5)


def _typical(sizes: Float[Array, "N m"], groups: Sequence[int], otherwise: float) -> tuple[Array, Array]:
    """Return the median size of each row, the largest of its group (m,), and which are zero (m,).

    Those take the largest of all, or `otherwise` where nothing moves.
    """
    middle = _grouped(np.median(sizes, axis=0), groups)
    idle = middle <= 0
    return np.where(idle, middle.max(initial=0.0) or otherwise, middle), idle


def _diagonals(P: Float[Array, "N k k"]) -> Array:
    return np.diagonal(P, axis1=1, axis2=2)


def _tuple(x: Array) -> tuple[float, ...]:
    return tuple(map(float, x))


# ----------------------------------------------------------------------------------------------------------------------
# Conditioning of a mechanism's constrained dynamics at random configurations that meet its constraints.


PROBES = 5
"""Configurations at which ranks are looked at before code is chosen."""

CLEARLY_CLOSED = 0.01
"""Part of the model's digits by which constraints may be open where ranks are looked at: rows that depend on each other
differ by as much, levers apart."""


@remembered(8)
def needs_of(mechanism: Mechanism) -> Conditioning:
    """Return what the matrices at `PROBES` configurations ask for; always the same ones."""
    return needs_of_rows(mechanism, tuple(range(len(mechanism.names))))


@remembered(8)
def needs_of_rows(mechanism: Mechanism, rows: tuple[int, ...], world: bool = False) -> Conditioning:
    """Return the same where only some of the rows hold; vectors in axes of the `world`, not the observer's."""
    found, digits = closed_matrices(mechanism, world), digits_of(mechanism)
    sizes = residual_sizes(mechanism)[np.array(mechanism.holonomic, dtype=bool)]
    gaps = np.array([np.abs(phi / sizes).max(initial=0.0) for _, _, phi in found])
    closed = gaps <= max(CLEARLY_CLOSED * digits, gaps.min(initial=np.inf))
    M, A = (np.array([x[i] for x, near in zip(found, closed, strict=True) if near]) for i in (0, 1))
    tolerance = max(digits, gaps[closed].max() / CLEARLY_CLOSED) if gaps[closed].max() <= SLACK else digits
    return probe(M, A[:, rows], [mechanism.scale_groups[i] for i in rows], tolerance, moves=True)


@remembered(8)
def closed_matrices(mechanism: Mechanism, world: bool = False) -> list[tuple[Any, Any, Any]]:
    """Return M, A and phi at `PROBES` random configurations that meet the constraints where that can be.

    Rows that are vectors in the axes of the world, of frames that are held, turn with these: which of them are kept
    could not be the same in all configurations. Here they are in the axes of their frames, as on the way through the
    tree, unless those of the `world` are asked for.
    """
    at = matrices(mechanism, world)
    return [at(q) for q in closed_configurations(mechanism)]


@remembered(8)
def closed_configurations(mechanism: Mechanism) -> list[Any]:
    """Return `PROBES` random configurations that meet the constraints where that can be."""
    if not any(mechanism.holonomic):
        return list(mechanism.random(np.random.default_rng(0), PROBES))
    at, sizes = matrices(mechanism), residual_sizes(mechanism)[np.array(mechanism.holonomic, dtype=bool)]
    samples = closed_samples(mechanism, lambda q: closed_before_compiling(mechanism, at, q, sizes), PROBES, seed=0)
    closed = [q for q, met in samples if met]
    return closed or [q for q, _ in samples]


def neutral_if_met(mechanism: Mechanism) -> list[Any]:
    """Return the neutral configuration where it meets constraints and limits: many robots have straight legs there."""
    q = mechanism.neutral()
    within = ((mechanism.lower <= 0) & (mechanism.upper >= 0)).all()
    if not within or not any(mechanism.holonomic):
        return [q] if within else []
    sizes = residual_sizes(mechanism)[np.array(mechanism.holonomic, dtype=bool)]
    return [q] if np.abs(matrices(mechanism)(q)[2] / sizes).max() <= SLACK else []


@remembered(2)
def matrices(mechanism: Mechanism, world: bool = True) -> Matrices:
    """Return M, A and phi as a function of numbers; what rounding has left of entries of A that cancel is zero."""
    q, v, t = ca.SX.sym("q", mechanism.nq), ca.SX.sym("v", mechanism.nv), ca.SX.sym("t")
    tree = candidates(mechanism)[-1]
    posed = pose_tree(tree, ca.vertsplit(q))
    rows = assemble(TreeKinematics(mechanism, tree, q, v, t, posed=posed))
    M = as_expression(crba(tree, posed))
    A = ca.SX(rows.jacobian)
    if not world:
        motion = TreeMotion(mechanism, tree, posed, q, v, t, ())
        columns = [[A[i, k] for i in range(A.shape[0])] for k in range(A.shape[1])]
        A = ca.horzcat(*[as_expression(in_frames(motion, mechanism.all_constraints, each)) for each in columns])
    function = ca.Function("probe", [q, t], [M, A, ca.SX(rows.residual)])

    def at(q: Any) -> tuple[Any, Any, Any]:
        M, A, phi = (np.array(ca.densify(x)) for x in function(q, 0.0))
        return M, mechanism.without_rounding(A.reshape(-1, mechanism.nv), np.asarray(q)), phi.ravel()

    return at


def in_frames(motion: TreeMotion, constraints: Sequence[Constraint], c: list[Any]) -> list[Any]:
    """Return numbers of the user's rows, those of vectors in the axes of the frames that are held."""
    result: list[Any] = []
    for constraint in constraints:
        result += motion.from_world(constraint, c[len(result) : len(result) + len(constraint.row_names())])
    return result


def residual_sizes(mechanism: Mechanism) -> Any:
    """Return what residuals are measured against, (m,): the mechanism's size for lengths, one for all others."""
    lengths = [isinstance(c, Pair) and not turns for c in mechanism.all_constraints for turns in c.angular()]
    return np.where(lengths, mechanism.reach, 1.0)


def row_weights_of(mechanism: Mechanism, metric: Any) -> Any:
    """Return the metric's weights, checked: one positive number per row, or None."""
    if metric is None:
        return None
    try:
        weights = np.asarray(metric, dtype=float)
    except (TypeError, ValueError):
        weights = np.empty(0)
    if weights.shape != (len(mechanism.names),) or not (np.isfinite(weights) & (weights > 0)).all():
        raise ModelError(f"metric is {len(mechanism.names)} positive weights, one per constraint row; got {metric!r}")
    return weights
