"""Bisection inside compiled loops against NumPy's."""

from __future__ import annotations

import numpy as np
import pytest

from dalembert.kernel.bisection import count_below, count_up_to
from dalembert.kernel.loops import compiled


@compiled
def counts(numbers, x):
    return count_below(numbers, x), count_up_to(numbers, x)


@pytest.mark.parametrize("size", [0, 1, 2, 3, 17])
def test_it_counts_as_searchsorted(size):
    """Repeated numbers, places at them, between them and beyond; reversed views as well."""
    numbers = np.sort(np.random.default_rng(size).integers(0, 8, size).astype(float))
    for grid in (numbers, np.ascontiguousarray(numbers[::-1])[::-1]):
        for x in (*np.arange(-1.0, 9.5, 0.5), np.inf, -np.inf):
            assert counts(grid, x) == (np.searchsorted(numbers, x, "left"), np.searchsorted(numbers, x, "right"))
