"""Statuses of closed mechanisms in loops: next to singular configurations, and in any unit."""

import numpy as np
import pytest

import dalembert as da
from dalembert.large.block_system import LargeSystem
from dalembert.large.motion_functions import large_system
from tests.tree.closed import closed_configuration
from tests.tree.test_generic_rank import FLAT, HALF, Oracle, held_chain, nearly_flat, parallelogram


@pytest.mark.parametrize("route", ["auto", "sparse"])
@pytest.mark.parametrize("kind", FLAT)
def test_next_to_flat_loops_are_right_or_say_so(kind, route):
    mechanism = parallelogram(kind)
    system = LargeSystem(large_system(mechanism).tree, None, route)
    theta, q, v, tau = nearly_flat(60, seed=3)
    expected = da.Status.UNIQUE if kind == "line" else da.Status.REDUNDANT
    for k in range(60):
        found = system.forward(q[k], v[k], tau[k], 0.0)
        assert found.status in (expected, da.Status.ILL_CONDITIONED)
        assert found.status == expected or theta[k] < 1e-6
        if found.status == expected:
            oracle = Oracle(mechanism, q[k], 2)
            truth = oracle.acceleration(v[k], tau[k])
            allowed = HALF + 100 * np.finfo(float).eps / oracle.distance
            assert np.abs(found.acceleration - truth).max() <= allowed * (np.abs(truth).max() + np.abs(tau[k]).max())


@pytest.mark.parametrize("route", ["auto", "sparse"])
@pytest.mark.parametrize("kind", ["weld", "revolute", "universal"])
def test_units_of_loops_change_neither_statuses_nor_answers(kind, route):
    """A weld of millimetre links was REDUNDANT, of tenths of these or ten kilometres INCONSISTENT."""
    first = None
    for unit in (1.0, 1e-6, 1e-4, 1e-3, 1e4, 1e6):
        mechanism = held_chain(kind, unit)
        if first is None:
            q = closed_configuration(mechanism)
            v, tau = np.random.default_rng(1).standard_normal((2, mechanism.nv))
        system = LargeSystem(large_system(mechanism).tree, None, route)
        found = system.forward(q, v, unit**2 * tau, 0.0)
        assert found.status == da.Status.UNIQUE
        first = found.acceleration if first is None else first
        assert np.abs(found.acceleration - first).max() <= 1e-10 * np.abs(first).max()
