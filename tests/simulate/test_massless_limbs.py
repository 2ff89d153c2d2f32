"""Limbs without mass in time (Johnson, after eq. 35): smooth methods, lift-off and touchdown, files."""

from __future__ import annotations

import numpy as np
import pytest

import dalembert as da
from dalembert.simulate.events.record import Mode
from tests.simulate.toys import hopper

FINE: dict = {"rtol": 1e-10, "atol": 1e-12}


def retract(k):
    """Return a spring of 30 c beside a damper c that draws the leg in to 0.4 m."""
    return -30.0 * (k.coordinate("length") - 0.4)


@pytest.mark.parametrize("method", ["dop853", "dopri5", "rk4", "radau", "bdf"])
def test_J16_every_smooth_method_holds_and_leads(method):
    m, _, _ = hopper()
    step = {"step": 1e-3} if method == "rk4" else FINE
    fall = 0.8 + 0.2 * 1.0 - 9.81 * 0.02
    run = da.simulate(m, 0.2, [0.8, 0.5], [1.0, 7.0], massless="hold", method=method, **step)
    assert run.status == "completed"
    np.testing.assert_allclose(run.q[-1], [fall, 0.5], atol=1e-9)
    np.testing.assert_array_equal(run.v[:, 1], 0.0)
    run = da.simulate(
        m, 0.2, [0.8, 0.5], [1.0, 0.0], massless={"length": retract}, method=method, force=[3.0, 5.0], **step
    )
    assert run.status == "completed"
    np.testing.assert_allclose(run.q[-1], [fall + 1.5 * 0.02, 0.4 + 0.1 * np.exp(-6.0)], atol=1e-8)
    np.testing.assert_allclose(run.reactions["massless length"], -5.0, atol=1e-12)  # the holder bears the leg's force


def test_J16_time_steps_lead_a_limb_without_force_and_work():
    """Of first order; what leads the leg bears what pulls on it, and nothing else."""
    m, _, _ = hopper()
    run = da.simulate(
        m, 0.2, [0.8, 0.5], [1.0, 0.0], massless={"length": retract}, method="moreau", step=1e-3, force=[3.0, 5.0]
    )
    assert run.status == "completed"
    np.testing.assert_allclose(run.q[-1], [1.0 - 9.81 * 0.02 + 0.03, 0.4 + 0.1 * np.exp(-6.0)], atol=1e-3)
    np.testing.assert_allclose(run.reactions["massless length"][1:], -5.0, atol=1e-10)
    assert np.abs(run.energy_residual).max() < 1e-3 * run.kinetic.max()


def test_J16_a_leg_is_led_between_lift_off_and_touchdown():
    """The foot of a leg that draws itself in lands later, at the root of its own equation; energy is kept."""
    m, spring, contacts = hopper()
    run = da.simulate(m, 0.75, [0.8, 0.5], contacts=contacts, force=spring, massless={"length": retract}, **FINE)
    assert run.status == "completed"
    landed = next(e.time for e in run.events if e.new == "impact")
    height = 0.8 - 9.81 * landed**2 / 2
    assert height == pytest.approx(0.4 + 0.1 * np.exp(-30.0 * landed), abs=1e-11)
    flight = (run.modes[:, 0] == Mode.OPEN) & (run.t < landed)
    np.testing.assert_allclose(run.q[flight, 1], 0.4 + 0.1 * np.exp(-30.0 * run.t[flight]), atol=1e-9)
    np.testing.assert_allclose(run.v[flight, 1], -3.0 * np.exp(-30.0 * run.t[flight]), atol=1e-8)
    assert (run.samples["contact_status"][flight] == da.Status.HELD).all()
    left = next(e.time for e in run.events if e.new == "open" and e.old == "closed")
    again = (run.modes[:, 0] == Mode.OPEN) & (run.t > left)  # it leaves at its free length
    np.testing.assert_allclose(run.q[again, 1], 0.4 + 0.1 * np.exp(-30.0 * (run.t[again] - left)), atol=1e-8)
    assert np.abs(run.energy_residual).max() < 1e-8


def test_J16_files_and_repeats_know_what_limbs_do(tmp_path):
    m, spring, contacts = hopper()
    path = tmp_path / "run.nc"
    run = da.simulate(m, 0.2, [0.8, 0.5], [1.0, 0.0], massless="hold", file=path)
    back = da.Trajectory.load(path)
    assert back.system.massless_rows == ("massless length",)
    np.testing.assert_array_equal(back.q, run.q)
    np.testing.assert_array_equal(back.repeat().q, run.q)
    run = da.simulate(m, 0.1, [0.8, 0.5], contacts=contacts, force=spring, massless={"length": -0.5})
    run.save(tmp_path / "contacts.nc")
    np.testing.assert_allclose(run.q[-1, 1], 0.45, atol=1e-12)
    np.testing.assert_array_equal(da.Trajectory.load(tmp_path / "contacts.nc").repeat(force=spring).q, run.q)
