"""Cassie's closed loops: rods and springs that lie in planes, so that rows across them say nothing new."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

import dalembert as da
from dalembert.kkt import Status
from dalembert.tree.block import constrained
from tests.tree.closed import Traced, numeric, routes
from tests.tree.robots import ROBOTS

FILES = {"cassie_wo_gearbox_spring": 10, "cassie_v2": 10}
"""Files with four ball joints that close loops, twelve rows, and the rank of these rows."""


@cache
def robot(name: str) -> da.Mechanism:
    return da.load(ROBOTS / "cassie_description" / "robots" / f"{name}.sdf", allow_unphysical=True)


@pytest.mark.parametrize("name", FILES)
def test_loops_close_and_solve(name):
    cassie = robot(name)
    assert len(cassie.loops) == 4
    assert len(cassie.names) == 12
    rng = np.random.default_rng(0)
    q = cassie.project(cassie.neutral())
    np.testing.assert_allclose(cassie.constraint(q), 0, atol=1e-8)
    diagnosis = cassie.diagnose(q)
    assert diagnosis.rank == FILES[name]
    assert all("plantar" in row for row in diagnosis.redundant_names)
    numbers = Traced(cassie)
    M, A = numbers.M(q), numbers.A(q)
    _, s, Vt = np.linalg.svd(A)
    N = Vt[np.count_nonzero(s > 1e-6 * s.max()) :].T
    assert N.shape[1] == cassie.nv - FILES[name]
    v, tau = N @ N.T @ rng.standard_normal(cassie.nv), rng.standard_normal(cassie.nv)
    a, lam, status = numeric(constrained.forward(cassie))(q, v, tau, 0)
    assert status == da.Status.REDUNDANT
    f = numbers.force(q, v, tau)
    start = -np.linalg.pinv(A, rcond=1e-6) @ numbers.drift(q, v)
    expected = start + N @ np.linalg.solve(N.T @ M @ N, N.T @ (f - M @ start))
    np.testing.assert_allclose(a, expected, atol=1e-6 * np.abs(expected).max())
    np.testing.assert_allclose(A.T @ lam, f - M @ a, atol=1e-6 * np.abs(f).max())
    assert np.abs(lam).max() < 100 * np.abs(f).max()


def test_every_route_gives_the_accelerations_of_kkt():
    """Ten rows go inside the tree by `caba`, two stay open: their groups are incomplete at the ground."""
    cassie = robot("cassie_v2")
    rng = np.random.default_rng(1)
    start = cassie.integrate(cassie.neutral(), 0.05 * rng.standard_normal(cassie.nv))
    q, v = cassie.project(start, rng.standard_normal(cassie.nv))
    tau = rng.standard_normal(cassie.nv)
    expected = cassie.solve(q, v, tau)
    for route, forward in routes(cassie).items():
        a, lam, status = forward(q, v, tau, 0)
        assert status == da.Status.REDUNDANT, route
        size = np.abs(expected.acceleration).max()
        np.testing.assert_allclose(a, expected.acceleration, atol=1e-9 * size, err_msg=route)
        np.testing.assert_allclose(
            lam, expected.multipliers, atol=1e-5 * np.abs(expected.multipliers).max(), err_msg=route
        )


def test_rounding_of_closed_loops_contradicts_nothing():
    """At a closed configuration the rows miss by rounding, which a projection once judged against itself."""
    cassie = robot("cassie_v2")
    closed, still = cassie.assemble(cassie.pose()).q, np.zeros(cassie.nv)
    kernel, rng = cassie.compile("project"), np.random.default_rng(0)
    assert kernel(closed, still)[-1] == Status.REDUNDANT
    for size in (1e-12, 1e-8, 1e-4, 1e-2):
        near = cassie.integrate(closed, size * rng.standard_normal((10, cassie.nv)))
        step, *_, status = kernel(near, np.zeros((10, cassie.nv)))
        assert (status == Status.REDUNDANT).all()
        after = np.abs(cassie.constraint(cassie.integrate(near, step))).max()
        assert after <= 1e-14 + 20 * size**2  # Newton's step
