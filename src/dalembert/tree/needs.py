"""What a mechanism's constrained dynamics has to cope with, seen at random configurations that meet its constraints."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import casadi as ca
import numpy as np

from dalembert.errors import ModelError
from dalembert.model.constraints import assemble
from dalembert.model.joints import as_expression
from dalembert.model.model_digits import BUILT_DIGITS, FILE_DIGITS
from dalembert.model.sampling import closed_samples
from dalembert.model.solving import SLACK
from dalembert.tree.choice import candidates
from dalembert.tree.crba import crba
from dalembert.tree.frame_kinematics import TreeKinematics
from dalembert.tree.judged import Needs
from dalembert.tree.posed import pose_tree
from dalembert.tree.probe import probe

if TYPE_CHECKING:
    from dalembert.model.mechanism import Mechanism

PROBES = 5
"""Configurations at which ranks are looked at before code is chosen."""

CLOSING_STEPS = 30
CLOSED = 1e-12
AT_REST = 1e-10
"""Gauss-Newton steps towards a configuration that meets the constraints; residual or step at which they end."""

Matrices = Callable[[Any], tuple[Any, Any, Any]]
"""q -> M (n, n), A (m, n), phi (h,)."""


@lru_cache(maxsize=8)
def needs_of(mechanism: Mechanism) -> Needs:
    """Return what the matrices at `PROBES` configurations ask for; always the same ones."""
    return needs_of_rows(mechanism, tuple(range(len(mechanism.names))))


@lru_cache(maxsize=8)
def needs_of_rows(mechanism: Mechanism, rows: tuple[int, ...]) -> Needs:
    """Return the same where only some of the rows hold."""
    found = closed_matrices(mechanism)
    M, A = (np.array([x[i] for x in found]) for i in (0, 1))
    return probe(M, A[:, rows], [mechanism.scale_groups[i] for i in rows], digits_of(mechanism))


def digits_of(mechanism: Mechanism) -> float:
    """Return the relative size of what is rounding of a mechanism's numbers."""
    return BUILT_DIGITS if mechanism.source is None else FILE_DIGITS


@lru_cache(maxsize=8)
def closed_matrices(mechanism: Mechanism) -> list[tuple[Any, Any, Any]]:
    """Return M, A and phi at `PROBES` random configurations that meet the constraints where that can be."""
    at = matrices(mechanism)
    return [at(q) for q in closed_configurations(mechanism)]


@lru_cache(maxsize=8)
def closed_configurations(mechanism: Mechanism) -> list[Any]:
    """Return `PROBES` random configurations that meet the constraints where that can be."""
    if not any(mechanism.holonomic):
        return list(mechanism.random(np.random.default_rng(0), PROBES))
    at = matrices(mechanism)
    samples = closed_samples(mechanism, lambda q: _closed(mechanism, at, q), PROBES, seed=0)
    closed = [q for q, met in samples if met]
    return closed or [q for q, _ in samples]


def neutral_if_met(mechanism: Mechanism) -> list[Any]:
    """Return the neutral configuration where it meets constraints and limits: many robots have straight legs there."""
    q = mechanism.neutral()
    within = ((mechanism.lower <= 0) & (mechanism.upper >= 0)).all()
    if not within or not any(mechanism.holonomic):
        return [q] if within else []
    return [q] if np.abs(matrices(mechanism)(q)[2]).max() <= SLACK else []


@lru_cache(maxsize=4)
def matrices(mechanism: Mechanism) -> Matrices:
    """Return M, A and phi as a function of numbers; what rounding has left of entries of A that cancel is zero."""
    q, v, t = ca.SX.sym("q", mechanism.nq), ca.SX.sym("v", mechanism.nv), ca.SX.sym("t")
    tree = candidates(mechanism)[-1]
    posed = pose_tree(tree, ca.vertsplit(q))
    rows = assemble(TreeKinematics(mechanism, tree, q, v, t, posed=posed))
    M = as_expression(crba(tree, posed))
    function = ca.Function("probe", [q, t], [M, ca.SX(rows.jacobian), ca.SX(rows.residual)])

    def at(q: Any) -> tuple[Any, Any, Any]:
        M, A, phi = (np.array(ca.densify(x)) for x in function(q, 0.0))
        return M, mechanism.without_rounding(A.reshape(-1, mechanism.nv), np.asarray(q)), phi.ravel()

    return at


def _closed(mechanism: Mechanism, at: Matrices, q: Any) -> Any:
    """Return a configuration near q that meets the rows with residuals, by Gauss-Newton steps; None where they fail."""
    holonomic = np.array(mechanism.holonomic, dtype=bool)
    for _ in range(CLOSING_STEPS):
        _, A, phi = at(q)
        if not phi.size or np.abs(phi).max() < CLOSED:
            return q
        if not np.isfinite(phi).all():
            return None
        step = -np.linalg.pinv(A[holonomic], rcond=1e-8) @ phi
        if np.abs(step).max() < AT_REST:
            break
        q = mechanism.integrate(q, step)
    return q if np.abs(at(q)[2]).max(initial=0.0) <= SLACK else None


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
