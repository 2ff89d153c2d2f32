"""Published DAEs to their reference digits; redundant and singular mechanisms; long runs of closed loops."""

from functools import cache

import numpy as np
import pytest
from benchmarks.dae_problems import BRICARD, PROBLEMS
from benchmarks.dae_problems.bricard import CORNER_AT_1, corner

from dalembert.tableau.time import FORMULATIONS, Problem

MECHANICAL = [name for name, p in PROBLEMS.items() if p.mechanical and name not in ("fekete", "double_four_bar")]


@cache
def problem(name, formulation="stabilised"):
    return Problem(PROBLEMS[name].build(), formulation=formulation)


def errors(name, rtol, formulation="stabilised", **options):
    p = PROBLEMS[name]
    result = problem(name, formulation).integrate((0, p.t_end), p.q, p.v, rtol=rtol, atol=rtol, **options)
    assert result.success, result.message
    return p.errors(result)


@pytest.mark.parametrize("name", MECHANICAL)
def test_Y6_stabilised_form_reaches_the_reference(name):
    """Errors fall with the tolerance, to a few hundred times rtol in positions (the problem's condition)."""
    coarse, fine = errors(name, 1e-5), errors(name, 1e-9)
    group = "elastic" if name == "flexible_slider_crank" else "positions"
    limit = 1e-5 if group == "elastic" else 3e-7
    assert fine[group] < limit
    assert fine[group] < 0.05 * coarse[group]
    assert fine.get("velocities", 0.0) < 1e-5
    assert fine.get("multipliers", 0.0) < 3e-4


@pytest.mark.parametrize("name", MECHANICAL)
def test_Y6_index_3_form_reaches_the_reference(name):
    """Velocities are weighed by h in the error test, so index 3 gives fewer digits for the same tolerance."""
    fine = errors(name, 1e-10, "index3")
    assert fine["positions"] < 1e-4
    assert fine.get("velocities", 0.0) < 3e-4


@pytest.mark.parametrize("name", ["andrews", "car_axis", "sundials_slider_crank", "water_tube"])
def test_radau_reaches_the_reference(name):
    fine = errors(name, 1e-8, method="radau")
    assert max(fine.get("positions", 0.0), fine.get("pressures", 0.0)) < 1e-7


@pytest.mark.parametrize("formulation", FORMULATIONS)
def test_every_formulation_gives_the_same_motion(formulation):
    assert errors("andrews", 1e-9, formulation)["positions"] < (3e-4 if formulation == "index3" else 1e-6)


def test_water_tube_to_its_digits():
    fine = errors("water_tube", 1e-10)
    assert fine["flows"] < 3e-5
    assert fine["friction"] < 3e-5
    assert fine["pressures"] < 1e-8


def test_double_four_bar_passes_its_singular_configurations():
    """All rods in a line every half turn: A loses rank there; ten seconds are about ten passages."""
    assert errors("double_four_bar", 1e-8)["positions"] < 1e-4


@pytest.mark.slow
def test_fekete_points():
    fine = errors("fekete", 1e-8)
    assert fine["positions"] < 1e-6
    assert fine["multipliers"] < 1e-10


def test_bricard_mechanism_redundant_for_ever():
    """30 rows of rank 29 (and 5 of quaternions): rank is decided on the manifold, the motion is the published one."""
    run = Problem(BRICARD.build(), formulation="index2").integrate((0, 1), BRICARD.q, BRICARD.v, rtol=1e-8, atol=1e-8)
    assert run.success
    assert run.start.redundant == 1
    assert np.abs(corner(run) - CORNER_AT_1).max() < 1e-6
    # forces of least norm: no part of them lies in null(A^T), the self-stress of the loop
    system = BRICARD.build()
    lam = np.array([run[f"lam[{name}]"][-1] for name in system.names])
    left, sizes, _ = np.linalg.svd(system.jacobian(run.y[:35, -1]))
    assert sizes[-1] < 1e-6 * sizes[-2]
    assert abs(left[:, -1] @ lam) < 1e-5 * np.abs(lam).max()


def test_closed_loop_does_not_leak():
    """Thousands of steps of a conservative closed loop: constraints at rounding level, energy within tolerance."""
    p = PROBLEMS["double_four_bar"]
    system = p.build()
    run = problem("double_four_bar").integrate((0, 0.6), p.q, p.v, rtol=1e-8, atol=1e-8, max_step=2e-4)
    q, v = run.y[:15].T, run.y[15:30].T
    assert run.statistics.steps >= 3000
    assert np.abs(system.constraint(q)).max() < 1e-12
    assert np.abs(system.constraint_velocity(q, v)).max() < 1e-11
    energy = system.energy(q, v)
    assert np.abs(energy - energy[0]).max() < 1e-6
