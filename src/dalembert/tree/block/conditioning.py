"""Probing of a mechanism's matrices at admissible configurations: rank and conditioning."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import casadi as ca
import numpy as np

from dalembert.errors import ModelError
from dalembert.kkt.expressions.probing import probe
from dalembert.kkt.expressions.verdict import Conditioning
from dalembert.kkt.limits import CLEAR, CLEARLY_CLOSED, CLEARLY_MORE, SLACK
from dalembert.memory import remembered
from dalembert.model.constraints import assemble
from dalembert.model.constraints.constraint import Constraint, Pair
from dalembert.model.constraints.prescribed import Servo
from dalembert.model.joints import as_expression
from dalembert.model.mechanism.assemble import closed_samples
from dalembert.model.mechanism.precision import digits_of, in_doubt
from dalembert.model.mechanism.project import Matrices, closed_before_compiling
from dalembert.model.mechanism.solve import LARGEST_SURVEYED
from dalembert.tree.algorithms.frame_kinematics import TreeKinematics
from dalembert.tree.algorithms.inverse import crba
from dalembert.tree.block.row_forces import TreeMotion
from dalembert.tree.prepared.configuration import pose_tree
from dalembert.tree.prepared.prepare import candidates

if TYPE_CHECKING:
    from dalembert.model.mechanism.mechanism import Mechanism

# ----------------------------------------------------------------------------------------------------------------------
# Conditioning of a mechanism's constrained dynamics at random configurations that meet its constraints.


PROBES = 5
"""Configurations at which ranks are looked at before code is chosen."""


@remembered(8)
def needs_of(mechanism: Mechanism) -> Conditioning:
    """Return what the matrices at `PROBES` configurations ask for; always the same ones."""
    return needs_of_rows(mechanism, tuple(range(len(mechanism.names))))


@remembered(8)
def needs_of_rows(mechanism: Mechanism, rows: tuple[int, ...], world: bool = False) -> Conditioning:
    """Return the same where only some of the rows hold; vectors in axes of the `world`, not the observer's.

    A mechanism whose drives take all its freedom has full rank where it works; branches in which parts lie on each
    other, and can move in spite of the drives, do not say what is usual.
    """
    matrices, digits = closed_matrices(mechanism, world), digits_of(mechanism)
    sizes = residual_sizes(mechanism)[np.array(mechanism.holonomic, dtype=bool)]
    gaps = np.array([np.abs(phi / sizes).max(initial=0.0) for _, _, phi in matrices])
    closed = gaps <= max(CLEARLY_CLOSED * digits, gaps.min(initial=np.inf))
    M, A = (np.array([x[i] for x, near in zip(matrices, closed, strict=True) if near]) for i in (0, 1))
    gap = float(gaps[closed].max()) if gaps[closed].max() <= SLACK else 0.0
    moves = not any(isinstance(constraint, Servo) for constraint in mechanism.all_constraints)
    idle, groups, units = mechanism.idle_rows(A, gap), [mechanism.scale_groups[i] for i in rows], mechanism.row_units
    least, most = in_doubt(mechanism)
    band = least / CLEARLY_MORE, most * CLEARLY_MORE
    options = groups, max(CLEAR * digits, gap / CLEARLY_CLOSED), moves, units[list(rows)]
    still = np.where(idle.rows[:, None], 0.0, A)[:, rows]
    needs = probe(M, still, *options, band)
    near = needs.near or ((idle.sizes > band[0]) & (idle.sizes < band[1])).any()
    if not near or mechanism.nv > LARGEST_SURVEYED:
        return replace(needs, doubtful=bool(idle.doubtful.any()))
    generic = mechanism.generic_rank(None, 0.0)  # what is near the limits is decided once, for all answers
    ranks = {tuple(range(len(A[0]))): generic.rank, tuple(np.flatnonzero(mechanism.holonomic)): generic.positions}
    rank = ranks.get(rows) if generic.places else None
    return replace(
        probe(M, generic.moving(A)[:, rows], *options, None, rank), doubtful=bool(generic.doubt) or generic.singular
    )


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
        A = ca.horzcat(*[as_expression(in_frames(motion, mechanism.all_constraints, column)) for column in columns])
    function = ca.Function("probe", [q, t, v], [M, A, ca.SX(rows.residual)])
    speeds = np.random.default_rng(1).standard_normal(mechanism.nv)  # of rows that depend on velocities

    def at(q: Any) -> tuple[Any, Any, Any]:
        M, A, phi = (np.array(ca.densify(x)) for x in function(q, 0.0, speeds))
        return M, mechanism.without_rounding(A.reshape(len(mechanism.names), mechanism.nv), np.asarray(q)), phi.ravel()

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
