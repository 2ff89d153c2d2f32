"""Y16: variational steps with rows on velocities: the discrete principle of Lagrange and d'Alembert."""

import casadi as ca
import numpy as np
import pytest

import dalembert as da
from tests.simulate.test_lagrangians import sleigh

LONG = {"method": "variational", "step": 1e-2, "every": 2.0}
"""With a duration of 1000 s: 1e5 steps."""


def incline(*more) -> da.Lagrangian:
    """A blade on an inclined plane, down along x; its turning is free."""
    q, v = ca.SX.sym("q", 3), ca.SX.sym("v", 3)
    blade = -ca.sin(q[2]) * v[0] + ca.cos(q[2]) * v[1]
    rows = {"blade": blade} | {f"blade {k}": factor(q) * blade for k, factor in enumerate(more)}
    return da.Lagrangian(q, v, ca.sumsqr(v[:2]) / 2 + v[2] ** 2 / 4, -0.7 * q[0], constraints=rows)


def blade(t, turn=1.3, pull=0.7):
    """x = a sin^2(w t) / (2 w^2), y = a (w t - sin(2 w t) / 2) / (2 w^2), from rest (A. M. Bloch 2003, sec. 1.6)."""
    phase = turn * t
    return np.stack([pull / (2 * turn**2) * np.sin(phase) ** 2,
                     pull / (2 * turn**2) * (phase - np.sin(2 * phase) / 2), phase], axis=-1)  # fmt: skip


def disc(*more) -> da.Mechanism:
    """A thin disc that leans and rolls on a plane."""
    b = da.Builder("disc")
    b.body("disc", mass=1.0, inertia=(0.25, 0.5, 0.25))
    b.joint("free", "free", parent="world", child="disc")
    return b.build().constrain(da.Rolling("disc", radius=1.0, axis=(0, 1, 0)), *more)


def test_Y16_steps_are_of_second_order_and_rows_hold_at_every_sample():
    system, q, v = sleigh()
    exact = da.simulate(system, 3.0, q, v, rtol=1e-12, atol=1e-13)
    errors = []
    for h in (1e-2, 5e-3):
        run = da.simulate(system, 3.0, q, v, method="variational", step=h)
        assert run.ok, str(run)
        assert run.velocity_residual.max() < 1e-14
        errors.append(np.abs(run.q[-1] - exact.q[-1]).max())
    assert errors[0] / errors[1] == pytest.approx(4, rel=0.05)


def test_Y16_discrete_rows_hold_in_the_middle_of_every_step():
    """psi(middle, (q1 - q0) / h) = 0, and the forces at the nodes are along A^T."""
    system, q, v = sleigh()
    run = da.simulate(system, 0.5, q, v, method="variational", step=1e-2)
    way, middle = np.diff(run.q, axis=0), (run.q[1:] + run.q[:-1]) / 2
    slip = -np.sin(middle[:, 2]) * way[:, 0] + np.cos(middle[:, 2]) * way[:, 1]
    assert np.abs(slip).max() < 1e-15


def test_Y16_energy_of_the_sleigh_over_1e5_steps():
    system, q, _ = sleigh()
    run = da.simulate(system, 1000.0, q, np.array([1.0, 0.0, 2.0]), **LONG)
    assert run.steps == 100_000
    assert np.ptp(run.energy.total) < 2.5e-5 * run.energy.total[0]
    assert np.ptp(run.energy.total[1:]) < 2e-6 * run.energy.total[0]


def test_Y16_blade_on_an_incline_in_closed_form():
    """It sweeps back and forth across the slope for ever and does not slide down: 40 periods and energy kept."""
    run = da.simulate(incline(), 200.0, np.zeros(3), np.array([0.0, 0.0, 1.3]), **LONG)
    total = run.energy.total
    assert np.ptp(total) < 1e-4
    assert abs(total[: total.size // 2].mean() - total[total.size // 2 :].mean()) < 1e-7
    np.testing.assert_allclose(run.q[:50], blade(run.t[:50]), atol=5e-3)
    assert run.q[:, 0].max() < 0.7 / (2 * 1.3**2) + 1e-4


def test_Y16_redundant_rows_change_nothing():
    alone = da.simulate(incline(), 2.0, np.zeros(3), np.array([0.0, 0.0, 1.3]), method="variational", step=1e-2)
    twice = incline(lambda q: 2.0, lambda q: 3 + ca.sin(q[0]))
    run = da.simulate(twice, 2.0, np.zeros(3), np.array([0.0, 0.0, 1.3]), method="variational", step=1e-2)
    assert run.ok, str(run)
    np.testing.assert_allclose(run.q, alone.q, atol=1e-10)


def test_Y16_energy_of_a_rolling_disc_over_1e5_steps():
    """Rows of positions and of velocities together, rotations in three dimensions."""
    m = disc()
    lean = 0.2
    q = np.array([0, 0, np.cos(lean), np.sin(lean / 2), 0, 0, np.cos(lean / 2)])
    q, v = m.project(q, np.array([3.0, 0, 0, 0.1, 3.0, 0.2]))
    exact = da.simulate(m, 2.0, q, v, rtol=1e-11, atol=1e-12)
    errors = []
    for h in (1e-2, 5e-3):
        run = da.simulate(m, 2.0, q, v, method="variational", step=h)
        assert run.ok, str(run)
        errors.append(np.abs(m.difference(run.q[-1], exact.q[-1])).max())
    assert errors[0] / errors[1] == pytest.approx(4, rel=0.1)
    run = da.simulate(m, 1000.0, q, v, **LONG)
    assert run.ok, str(run)
    assert run.position_residual.max() < 1e-12
    assert run.velocity_residual.max() < 1e-12
    total = run.energy.total
    assert np.ptp(total) < 5e-3 * run.kinetic.max()
    assert abs(total[: total.size // 2].mean() - total[total.size // 2 :].mean()) < 0.05 * np.ptp(total)


def test_Y16_rows_that_move_and_forces():
    """A blade that is turned by a given law of time, a damper and a drive: against steps of order 8."""
    q, v, t, u = ca.SX.sym("q", 2), ca.SX.sym("v", 2), ca.SX.sym("t"), ca.SX.sym("u", 2)
    row = {"blade": -ca.sin(t) * v[0] + ca.cos(t) * v[1] - 0.1 * ca.cos(t)}
    system = da.Lagrangian(q, v, ca.sumsqr(v) / 2, q[0] ** 2, dissipation=0.1 * ca.sumsqr(v), constraints=row, time=t,
                           forces=u, controls=u)  # fmt: skip
    start = np.zeros(2), np.array([0.3, 0.1])
    force = lambda t, q, v: np.array([0.2, 0.1 * t])  # noqa: E731
    exact = da.simulate(system, 2.0, *start, force=force, rtol=1e-11, atol=1e-12)
    ends = [da.simulate(system, 2.0, *start, force=force, method="variational", step=h).q[-1] for h in (2e-2, 1e-2)]
    errors = [np.abs(end - exact.q[-1]).max() for end in ends]
    assert errors[0] / errors[1] == pytest.approx(4, rel=0.2)


def test_Y16_a_stored_run_goes_on_bit_for_bit(tmp_path):
    options = {"method": "variational", "step": 1e-2}
    whole = da.simulate(incline(), 1.0, np.zeros(3), np.array([0.0, 0.0, 1.3]), **options)

    def stop(t, q, v):
        if t > 0.5:
            raise KeyboardInterrupt

    part = da.simulate(incline(), 1.0, np.zeros(3), np.array([0.0, 0.0, 1.3]), file=tmp_path / "part.h5", on_step=stop,
                       **options)  # fmt: skip
    assert part.status == "interrupted"
    again = da.resume(tmp_path / "part.h5")
    np.testing.assert_array_equal(again.q, whole.q)


def test_auto_takes_no_variational_steps_where_rows_are_on_velocities():
    run = da.simulate(
        incline(), 20.0, np.zeros(3), np.array([0.0, 0.0, 1.3]), rtol=1e-4, atol=1e-6, step=1e-3, every=1.0
    )
    assert run.method == "dop853"
