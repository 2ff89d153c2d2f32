"""Runs of loops in a plane whose axes are tilted by less than the model's digits: as those of parallel axes."""

import numpy as np
import pytest

import dalembert as da
from tests.model.test_tilted_axes import Q, four_bar

METHODS = {
    "dop853": {}, "dopri5": {}, "rk4": {"step": 1e-3}, "radau": {}, "bdf": {}, "ida": {}, "moreau": {"step": 1e-3},
    "variational": {"step": 1e-3},
}  # fmt: skip


@pytest.mark.parametrize("method", METHODS)
def test_every_stepper_moves_as_in_a_plane(method):
    """Only the time stepper `moreau` stood still, completed; the others had the mechanism's rank."""
    runs = [da.simulate(four_bar(2, tilt), 0.3, q=Q, method=method, every=0.1, **METHODS[method]) for tilt in (0, 1e-9)]
    assert all(run.ok for run in runs)
    assert np.abs(runs[0].q[-1] - Q).max() > 0.05
    assert runs[1].q == pytest.approx(runs[0].q, abs=3e-6)


def test_joint_friction_rubs_in_a_loop_of_tilted_axes():
    """The contact engine chose rows by sizes of their own, and could have kept those of a tilt."""
    runs = [da.simulate(four_bar(2, tilt, friction=0.05), 0.3, q=Q, every=0.1) for tilt in (0, 1e-9)]
    assert all(run.ok for run in runs)
    assert runs[1].q == pytest.approx(runs[0].q, abs=1e-8)
