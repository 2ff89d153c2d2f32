"""The block system of a constrained mechanism: solved in compiled code, and by `KKT` where that declines.

Three levels of answer, as everywhere: `compile(...)` is a kernel with a status per sample; `forward` runs it, and gives
samples that it declines to `KKT`; `solve` and `diagnose` take one state through `KKT`, with names.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from dalembert.checks import floats, vectors
from dalembert.errors import ModelError, SolvabilityError
from dalembert.kkt.limits import CLEAR, NEXT_TO, ROUNDING
from dalembert.model.mechanism.calls import on_manifold
from dalembert.model.mechanism.constraint_rows import rows_at
from dalembert.model.mechanism.precision import digits_of, model_rows, rows_of_rank
from dalembert.types import Array

if TYPE_CHECKING:
    from dalembert.kernel import Kernel
    from dalembert.kkt import KKT, Diagnosis, Solution
    from dalembert.model.mechanism.mechanism import Mechanism
    from dalembert.model.mechanism.ranks import GenericRank

LARGEST_SURVEYED = 200
"""Velocities up to which ranks are looked for by dense decompositions."""

# ----------------------------------------------------------------------------------------------------------------------
# One state, or a batch, through `KKT`.


def block_system(mechanism: Mechanism, q: Any, t: Any, metric: Any) -> KKT:
    """Return the block matrix, with the names of rows and coordinates."""
    still, none = np.zeros(mechanism.nv), np.zeros(len(mechanism.names))
    return _block(mechanism, q, still, none, t, metric)[0]


def solve(mechanism: Mechanism, q: Any, v: Any, force: Any, t: Any, metric: Any, options: dict[str, Any]) -> Solution:
    """Return what `KKT` says to one state or a batch."""
    system, drift, agree = _block(mechanism, q, v, mechanism.drift(q, v, t), t, metric)
    if agree:
        options = {"inconsistent": "least_squares"} | options
    return system.solve(_net_force(mechanism, q, v, force), drift, **options)


def diagnose(mechanism: Mechanism, q: Any, v: Any, t: float) -> Diagnosis:
    """Return in words what is redundant, conflicting, massless or not unique at one state."""
    v = np.zeros(mechanism.nv) if v is None else v
    system, drift, agree = _block(mechanism, q, v, mechanism.drift(q, v, t), t, None)
    return system.diagnose(drift if np.any(drift) and not agree else None)


@np.errstate(over="ignore", invalid="ignore", divide="ignore")
def _block(mechanism: Mechanism, q: Any, v: Any, drift: Array, t: Any, metric: Any) -> tuple[KKT, Array, bool]:
    """Return the block matrix, the drift as the model's digits allow it, and whether they make rows agree."""
    from dalembert.kkt import KKT

    M, A = mechanism.mass_matrix(q), rows_at(mechanism, q, t, v)
    digits, groups = digits_of(mechanism), mechanism.scale_groups
    usual = _usual_rank(mechanism, q, t)
    doubt, options = "" if usual is None else usual.doubt, dict[str, Any]()
    if usual is not None:
        A = usual.moving(A)
        digits *= CLEAR if usual.dropped > digits else 1.0  # rows of short levers: their digits count so many times
    rank = None if usual is None or digits > digits_of(mechanism) else _known_rank(mechanism, usual, q, t)
    if rank is not None:
        from dalembert.model.mechanism.ranks import agreeing

        size = float(np.asarray(mechanism.drift_size(A, v)))
        agreed = agreeing(mechanism, rank, np.asarray(q, dtype=float), float(t), drift, size)
        rows, sums = rows_of_rank(M, A, drift, groups, digits, rank.rank)
        options = {"rank": rank.rank, "groups": groups, "doubt": doubt}
        system = KKT(M, rows, mechanism.names, mechanism.coordinates, _square(metric), **options)
        return system, drift if agreed is None else sums, agreed is not None
    weights = _square(metric)
    together = _rank_of_batch(mechanism, q, t, M, A)
    if together is not None:
        options = {"rank": together.rank, "groups": groups, "doubt": doubt}
        system = KKT(M, A, mechanism.names, mechanism.coordinates, weights, **options)
        return system, drift, False
    rows = model_rows(M, A, drift, mechanism.drift_size(A, v), groups, digits)
    system = KKT(M, rows.A, mechanism.names, mechanism.coordinates, weights, rank_tolerance=rows.tolerance, doubt=doubt)
    return system, rows.drift, rows.agree


def _usual_rank(mechanism: Mechanism, q: Any, t: Any) -> GenericRank | None:
    """Return the mechanism's rank, of one state the one that fits it; None where there are no rows, or too many."""
    if not mechanism.names or not 0 < mechanism.nv <= LARGEST_SURVEYED:
        return None
    if np.ndim(q) != 1 or np.ndim(t) or not np.isfinite(np.asarray(q, dtype=float)).all():
        return mechanism.generic_rank(None, float(np.ravel(t)[0]) if np.size(t) else 0.0)
    from dalembert.model.mechanism.ranks import fitting_rank

    return fitting_rank(mechanism, q, float(t))


def _known_rank(mechanism: Mechanism, rank: GenericRank, q: Any, t: Any) -> GenericRank | None:
    """Return the mechanism's rank where rows depend on each other everywhere, beyond doubt; of one state.

    Where rows are neither dependent to the model's digits nor clearly independent, `model_rows` decides. Next to a
    singular configuration the rank counts as well, redundant or not, so that no row of it is dropped; at it to the last
    digit the rows that remain decide.
    """
    if np.ndim(q) != 1 or np.ndim(t) or not np.isfinite(np.asarray(q, dtype=float)).all():
        return None
    from dalembert.model.mechanism.ranks import distance

    digits = digits_of(mechanism)
    if not rank.places or rank.dropped > CLEAR * digits:
        return None
    far = distance(mechanism, rank, q, float(t))
    return rank if far > ROUNDING and (rank.redundant or far <= CLEAR * digits) else None


def _rank_of_batch(mechanism: Mechanism, q: Any, t: Any, M: Array, A: Array) -> GenericRank | None:
    """Return the mechanism's rank where a sample of a batch is next to a singular configuration: no row is dropped.

    A sample that is singular to the last digit has a rank of its own, and must be solved apart from these.
    """
    if np.ndim(q) == 1 or not mechanism.names or not 0 < mechanism.nv <= LARGEST_SURVEYED:
        return None
    from dalembert.model.mechanism.ranks import distances, fits

    batch = np.broadcast_shapes(M.shape[:-2], A.shape[:-2])
    M, A = (np.broadcast_to(x, (*batch, *x.shape[-2:])).reshape(-1, *x.shape[-2:]) for x in (M, A))
    finite = np.flatnonzero(np.isfinite(M).all(axis=(1, 2)) & np.isfinite(A).all(axis=(1, 2)))
    if not finite.size:
        return None
    times = np.broadcast_to(floats(t, "t"), batch).ravel()
    digits, rank = digits_of(mechanism), mechanism.generic_rank(None, float(times[finite[0]]))
    if not rank.places or rank.dropped > CLEAR * digits:
        return None
    far = distances(rank, M[finite], A[finite])
    singular, near = finite[far <= ROUNDING], finite[(far > ROUNDING) & (far <= NEXT_TO * digits)]
    states = np.broadcast_to(q, (*batch, mechanism.nq)).reshape(-1, mechanism.nq)[finite], times[finite]
    if not near.size or not fits(mechanism, rank, *states, M[finite], A[finite]).all():
        return None
    if singular.size:
        raise ModelError(
            f"sample {singular[0]} is a singular configuration, sample {near[0]} is next to one: their rows differ in "
            "rank; solve them apart"
        )
    return rank


def _net_force(mechanism: Mechanism, q: Any, v: Any, force: Any) -> Array:
    """Return force - bias."""
    bias = mechanism.bias(q, v)
    return -bias if force is None else vectors(force, mechanism.nv, "force") - bias


def _square(metric: Any) -> Array | None:
    """Return weights as the diagonal matrix that `KKT` takes."""
    if metric is None:
        return None
    weights = floats(metric, "metric")
    if weights.ndim != 1:
        raise ModelError(f"metric is one positive weight per constraint row, not an array of shape {weights.shape}")
    return np.diag(weights)


# ----------------------------------------------------------------------------------------------------------------------
# Forward dynamics: compiled code first.


def forward(mechanism: Mechanism, q: Any, v: Any, force: Any, t: Any, hold: bool = False) -> Solution:
    """Return accelerations, multipliers and a status per sample; `KKT` decides what the kernel declines or contests.

    With `hold` what has no mass and is free at single configurations is held there.
    """
    from dalembert.kkt import Status
    from dalembert.kkt.solution import compiled_solution

    q = on_manifold(mechanism, q)
    force = np.zeros(mechanism.nv) if force is None else force
    v, force = (vectors(x, mechanism.nv, name) for x, name in ((v, "v"), (force, "force")))
    t = floats(t, "t")
    a, lam, status, unsolved = (_with_rows if mechanism.names else _open_tree)(mechanism, q, v, force, t)
    batch = status.shape  # one state is a batch of one, so that what is wrong with it is its status

    def samples(index: Array) -> tuple[Array, Array, Array, Array]:
        x, y, z = (np.broadcast_to(x, (*batch, x.shape[-1])).reshape(-1, x.shape[-1])[index] for x in (q, v, force))
        return x, y, z, np.broadcast_to(t, batch).reshape(-1)[index]

    def terms(index: Array) -> tuple[Array, Array, Array, Array]:
        q, v, force, t = samples(index)
        A, c = rows_at(mechanism, q, t, v), -mechanism.drift(q, v, t)
        return mechanism.mass_matrix(q), A, _net_force(mechanism, q, v, force), c

    if np.any(unsolved):
        a[unsolved], lam[unsolved], status[unsolved] = _by_kkt(mechanism, *samples(np.flatnonzero(unsolved)))
    if hold:
        _hold(mechanism, a, lam, status, samples)
    if mechanism.massless_rows:
        status[(status == Status.UNIQUE) | (status == Status.REDUNDANT)] = Status.HELD
    system: Any = mechanism  # a protocol's property is not met by a cached one, says the checker
    return compiled_solution(system, a, lam, status, terms, lambda index: mechanism.solve(*samples(index)))


def _hold(mechanism: Mechanism, a: Array, lam: Array, status: Array, samples: Any) -> None:
    """Hold what has no mass and is free at single configurations, such as that of a straight leg."""
    from dalembert.kkt import Status

    for i in np.flatnonzero(status == Status.MASSLESS):
        q, v, force, t = (x[0] for x in samples(np.array([i])))
        alone = solve(mechanism, q, v, force, t, None, {"massless": "hold"})
        at = np.unravel_index(i, status.shape)
        a[at], lam[at], status[at] = alone.acceleration, alone.multipliers, int(np.asarray(alone.status))


def _with_rows(mechanism: Mechanism, q: Array, v: Array, force: Array, t: Array) -> tuple[Array, Array, Array, Array]:
    """Return what the kernel of a constrained mechanism says, and which samples it leaves to `KKT`."""
    from dalembert.kkt import Status

    kernel = mechanism.compile("forward")
    a, lam, codes = kernel(q, v, force, t[..., None])
    status = np.asarray(codes[..., 0].astype(int))
    if kernel.final:
        _refuse_unsolved(mechanism, kernel, a, status)
        return a, lam, status, np.zeros(status.shape, dtype=bool)
    open_to_doubt = np.isin(status, (Status.DECLINED, Status.INCONSISTENT, Status.ILL_CONDITIONED))
    return a, lam, status, open_to_doubt | (status != Status.NONFINITE) & _indefinite(mechanism, q)


def _open_tree(mechanism: Mechanism, q: Array, v: Array, force: Array, t: Array) -> tuple[Array, Array, Array, Array]:
    """Return the accelerations of an open tree, and the samples without finite ones: `KKT` says why."""
    from dalembert.kkt import Status

    (a, _, _), verdicts = mechanism.compile("forward").call(q, v, force, np.zeros(1))
    bad = verdicts != Status.FINITE
    batch = np.broadcast_shapes(a.shape[:-1], t.shape)
    a = a if a.shape[:-1] == batch else np.broadcast_to(a, (*batch, a.shape[-1])).copy()
    status, lam = np.full(batch, int(Status.UNIQUE)), np.zeros((*batch, 0))
    unsolved = np.zeros(batch, dtype=bool)
    if bad.any():
        finite = np.logical_and.reduce(np.broadcast_arrays(*(np.isfinite(x).all(axis=-1) for x in (q, v, force))))
        infinite = ~np.isfinite(a).all(axis=-1)
        a[infinite], status[infinite] = np.nan, Status.NONFINITE
        unsolved = infinite & finite & (mechanism.nv <= LARGEST_SURVEYED)
    return a, lam, status, unsolved | (status == Status.UNIQUE) & _indefinite(mechanism, q)


def _indefinite(mechanism: Mechanism, q: Array) -> Array:
    """Return for every sample whether its mass matrix has a negative eigenvalue; only negative inertias bring one."""
    if mechanism.nv > LARGEST_SURVEYED or not mechanism.negative_bodies:
        return np.zeros(q.shape[:-1], dtype=bool)
    return np.asarray(np.linalg.eigvalsh(mechanism.mass_matrix(q))[..., 0] < 0.0)


def _by_kkt(mechanism: Mechanism, q: Array, v: Array, force: Array, t: Array) -> tuple[Array, Array, Array]:
    """Return what `KKT` says to a batch, under the mechanism's rank: next to a singularity no row is dropped.

    A sample that contradicts this rank may do so within the model's digits, or on another part of the manifold:
    then its own rank decides, as it does where one is lost to the last digit, or where more rows are independent. Next
    to such a configuration the answer stays uncertified.
    """
    from dalembert.kkt import KKT, Status
    from dalembert.model.mechanism.ranks import distances, fits

    rank = None if mechanism.nv > LARGEST_SURVEYED else mechanism.generic_rank(None, float(t[0]))
    if rank is None or not rank.places:
        solution = mechanism.solve(q, v, force, t)
        return solution.acceleration, solution.multipliers, np.asarray(solution.status)
    M, A = mechanism.mass_matrix(q), rank.moving(rows_at(mechanism, q, t, v))
    options: dict[str, Any] = {"rank": rank.rank, "groups": mechanism.scale_groups, "doubt": rank.doubt}
    system = KKT(M, A, mechanism.names, mechanism.coordinates, **options)
    solution = system.solve(_net_force(mechanism, q, v, force), mechanism.drift(q, v, t))
    a, lam, status = solution.acceleration, solution.multipliers, np.array(solution.status)
    finite = np.isfinite(M).all(axis=(1, 2)) & np.isfinite(A).all(axis=(1, 2))
    solved = (Status.UNIQUE, Status.REDUNDANT, *((Status.ILL_CONDITIONED,) if rank.doubt else ()))
    unsolved = np.flatnonzero(~np.isin(status, solved) & finite)
    far = distances(rank, M[unsolved], A[unsolved])
    other, sound = unsolved[(far > digits_of(mechanism)) | (far <= ROUNDING)], np.flatnonzero(finite)
    more = sound[~fits(mechanism, rank, q[sound], t[sound], M[sound], A[sound])]
    for k in np.union1d(other, more):
        alone = mechanism.solve(q[k : k + 1], v[k : k + 1], force[k : k + 1], t[k : k + 1])
        a[k], lam[k], status[k] = alone.acceleration[0], alone.multipliers[0], np.asarray(alone.status)[0]
    return a, lam, status


def _refuse_unsolved(mechanism: Mechanism, kernel: Kernel, a: Array, status: Array) -> None:
    """Raise for a single state without an answer that no dense solver may explain; NaN has its status."""
    from dalembert.kkt import Status

    if status.ndim or Status(int(status)).answered or Status(int(status)) is Status.NONFINITE:
        return
    raise SolvabilityError(
        f"{Status(int(status)).message}; {kernel.explain(a)}. A mechanism of {mechanism.nv} velocities has no dense "
        "diagnosis: look at a shorter one of its kind, or free these rows"
    )
