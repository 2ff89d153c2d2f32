"""From a plan to the arrays of the compiled loop."""

from __future__ import annotations

from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Int

from dalembert.tableau.factor_loops import Program, Workspace
from dalembert.tableau.plan import Plan

Array = np.ndarray

NUDGES = 3
"""Random changes of data by which the reach of such changes is sampled: one alone may cancel in an unknown."""


def make_program(plan: Plan) -> Program:
    """Return the plan as arrays: entries of A by pivot row, those of earlier blocks apart."""
    crossings = _crossings(plan)
    arrays = (
        plan.pattern.indptr,
        plan.pattern.indices,
        plan.rows,
        plan.cols,
        plan.begins,
        *_by_pivot(plan, ~plan.outside),
        *_by_pivot(plan, plan.outside),
        plan.lower_indptr,
        plan.lower,
        crossings,
        plan.upper_indptr,
        plan.upper,
    )
    numbers: list[Any] = [a.astype(np.int32 if a is crossings else np.uint32) for a in arrays]
    return Program(*numbers, probe=plan.probe, nudges=make_nudges(plan.n))


def make_nudges(n: int) -> Float[Array, "K n"]:
    """Return vectors with entries of size 1/2 to 1 and random signs, the same at every call."""
    rng = np.random.default_rng(1998)
    return rng.uniform(0.5, 1.0, (NUDGES, n)) * rng.choice([-1.0, 1.0], (NUDGES, n))


def make_workspace(plan: Plan) -> Workspace:
    """Return room for one factorization."""
    n = plan.n
    return Workspace(np.zeros(n), np.zeros(n), np.zeros(len(plan.lower)), np.zeros(len(plan.upper)), np.ones(n))


def _by_pivot(plan: Plan, chosen: Bool[Array, " entries"]) -> tuple[Array, Array, Array]:
    """Return (pointers, sources, places) of chosen entries of A, pivot row by pivot row."""
    row, col, _ = plan.places
    sources = np.flatnonzero(chosen)
    sources = sources[np.argsort(row[sources], kind="stable")]
    pointers = np.concatenate([[0], np.cumsum(np.bincount(row[sources], minlength=plan.n))])
    return pointers, sources, col[sources]


def _crossings(plan: Plan) -> Int[Array, " lower"]:
    """Return, for each entry (k, j) of L, the place of (j, k) in U, -1 where there is none."""
    k = np.repeat(np.arange(plan.n), np.diff(plan.lower_indptr))
    keys = np.repeat(np.arange(plan.n), np.diff(plan.upper_indptr)) * plan.n + plan.upper
    wanted = plan.lower * plan.n + k
    at = np.searchsorted(keys, wanted)
    hit = (at < len(keys)) & (keys[np.minimum(at, len(keys) - 1)] == wanted) if len(keys) else np.zeros(len(at), bool)
    return np.where(hit, at, -1)
