"""O16: the indeterminate stick of two blocks as a distribution: what is unique stays so, what is not spreads."""

from functools import cache

import numpy as np
import pytest

import dalembert as da
from dalembert.examples import CONTACTS, perturbed_blocks, two_blocks

RUNS = 40
FAMILY = {"belt 1": (-0.8, 4.0), "belt 2": (0.2, 5.0), "between": (0.2, 5.0)}
"""Forces that the laws allow after 1 s: T1 + T3 = 4.2, T2 = T3, within 4, 7 and 5."""


def at_one_second(run, column):
    return np.array([np.interp(1.0, run.t, values) for values in column.T])


@cache
def study(size: float):
    usual = dict(zip(CONTACTS, (0.3, 0.3, 0.0), strict=True))
    friction = {f"speed {name}": da.normal(usual[name], 0.3 * size) for name in CONTACTS}
    friction |= {f"load {name}": da.normal(1.0, size) for name in CONTACTS}
    keep = {
        "forces": lambda run: at_one_second(run, run.forces),
        "q": lambda run: at_one_second(run, run.q),
        "end": lambda run: next(event.time for event in run.events if event.time > 1.5),
    }
    return da.ensemble(perturbed_blocks(), 2.5, [0, 0], [0.3, 0.3], runs=RUNS, parameters=friction, keep=keep,
                       method="hybrid", every=0.25, progress=False)  # fmt: skip


def test_O16_without_perturbation_the_blocks_are_those_of_the_seed():
    ours = da.simulate(perturbed_blocks(), 4.0, [0, 0], [0.3, 0.3], every=0.5)
    theirs = da.simulate(two_blocks(), 4.0, [0, 0], [0.3, 0.3], every=0.5)
    np.testing.assert_allclose(ours.q, theirs.q, atol=1e-8)
    assert [event.contact for event in ours.events] == [event.contact for event in theirs.events]


@pytest.mark.parametrize("size", [1e-6, 1e-4, 1e-2])
def test_O16_what_is_unique_spreads_in_proportion(size):
    """Displacements 0.3 m, the end of common stick at 15/7 s."""
    runs = study(size)
    q, end = np.asarray(runs["q"]), np.asarray(runs["end"])
    assert np.abs(q - 0.3).max() < 1.5 * size
    assert np.abs(end - 15 / 7).max() < 12 * size
    assert 0.5 * size < np.std(end) < 10 * size


@pytest.mark.parametrize("size", [1e-6, 1e-4, 1e-2])
def test_O16_what_is_not_unique_spreads_to_both_ends_of_the_family(size):
    forces = np.asarray(study(size)["forces"])
    sums = forces[:, 0] + forces[:, 2]
    np.testing.assert_allclose(sums, 4.2, atol=60 * size)
    for name, column in zip(CONTACTS, forces.T, strict=True):
        low, high = FAMILY[name]
        nearest = np.minimum(np.abs(column - low), np.abs(column - high))
        assert nearest.max() < 60 * size
        assert min(np.mean(column < (low + high) / 2), np.mean(column > (low + high) / 2)) > 0.25
        assert np.std(column) == pytest.approx((high - low) / 2, rel=0.1)


@pytest.mark.parametrize("size", [1e-6, 1e-2])
def test_O16_the_end_is_decided_by_one_sign(size):
    """Whether the loop of speeds is open one way or the other."""
    runs = study(size)
    first, second, between = (np.asarray(runs[f"speed {name}"]) for name in CONTACTS)
    np.testing.assert_array_equal(np.asarray(runs["forces"])[:, 0] > 1.6, first - second - between > 0)


def test_O16_the_verdict_names_what_is_not_unique():
    state = perturbed_blocks().resolve([0.3, 0.3], [0.3, 0.3])
    assert state.report.accelerations_unique
    assert set(state.report.undetermined) == set(CONTACTS)
    for name, force in state.by_name.items():
        assert FAMILY[name][0] < force < FAMILY[name][1]
