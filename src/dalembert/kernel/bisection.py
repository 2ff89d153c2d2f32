"""Bisection of ascending numbers inside compiled loops.

`np.searchsorted` does the same, but code that Numba compiles with it loads SciPy when it comes from the cache, which
takes as long as all else that a second start does.
"""

from __future__ import annotations

from dalembert.kernel.loops import inner


@inner
def count_below(numbers, x):
    """Return how many of ascending numbers are less than x."""
    low, high = 0, numbers.size
    while low < high:
        middle = (low + high) >> 1
        if numbers[middle] < x:
            low = middle + 1
        else:
            high = middle
    return low


@inner
def count_up_to(numbers, x):
    """Return how many of ascending numbers are less than x, or equal to it."""
    low, high = 0, numbers.size
    while low < high:
        middle = (low + high) >> 1
        if numbers[middle] <= x:
            low = middle + 1
        else:
            high = middle
    return low
