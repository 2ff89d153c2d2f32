"""`dalembert demo crank`: seed 000's crank-slider, an impact, a redundant and an inconsistent system, and a report."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from dalembert.cli.section import say
from dalembert.errors import SolvabilityError
from dalembert.kkt import KKT
from dalembert.model import CrankSlider, block_system, solve
from dalembert.view import Report, draw_maps, new_figure
from dalembert.view.crank_slider import draw_convergence, draw_crank_slider, draw_massless_limit

ANGLE = np.pi / 3
"""Crank angle of the demonstration, radians."""

LOAD = np.array([2.0, 0.3])
"""Torques on crank and rod, newton metres: without one on the rod a small mass would not be seen."""


def show_crank(report: Path) -> int:
    """Print the sections, write the report, name it."""
    page = Report("A massless connecting rod", "What dalembert says about four small systems, each with its reason.")
    for section in (_massless, _limit, _impact, _redundant, _inconsistent, _maps):
        section(page)
    print(f"\nreport: {page.write(report)}")
    return 0


def _massless(page: Report) -> None:
    """Show equations (34) and (35)."""
    K = KKT([[1, 0], [0, 0]], [[2, -1]], names=["slider"], coordinates=["theta1", "theta2"])
    expected = [[1, 2], [2, 4]], [[0, -1]], [[0]]
    found = K.dagger.M, K.dagger.A, K.dagger.Lambda
    equal = all(np.array_equal(a, b) for a, b in zip(found, expected, strict=True))
    worst = max(float(value) for value in K.dagger.residuals().values())
    verdict = (
        f"equal to eq. (35): {'yes, to the last digit' if equal else 'NO'}; identities (11)-(14) within {worst:.0e}"
    )
    figure = new_figure(6.0, 3.0)
    draw_crank_slider(figure.add_subplot(), ANGLE)
    say(
        page,
        "A crank-slider with a massless rod",
        "The mass matrix is singular, so nothing can be divided by it; the block matrix [M A^T; A 0] is not, because "
        "the slider allows no motion of the rod alone. These are the dagger terms, the blocks of its inverse.",
        f"{K.dagger}\n\n{verdict}",
    )
    page.figure(
        figure, "Crank, massless rod and slider. The rod has no mass of its own, yet its acceleration is unique."
    )


def _limit(page: Report) -> None:
    """Show the limit m2 -> 0, block form against M^-1."""
    masses, block, traditional, apart = limit_of_a_light_rod()
    say(
        page,
        "The limit of a light rod",
        "As the rod's mass goes to zero the answer tends to the massless one, in proportion to the mass. The "
        "traditional formulas divide by the mass matrix and lose a digit for every power of ten or two; the block form "
        "keeps all of them.",
        "  rod/crank   |a - a(massless)|   error, block form   error, through M^-1\n"
        + "\n".join(
            f"  {masses[k]:8.0e}   {apart[k]:17.1e}   {block[k]:17.1e}   {traditional[k]:19.1e}"
            for k in range(0, masses.size, 4)
        ),
    )
    figure = new_figure(7.0, 3.6)
    draw_massless_limit(figure.add_subplot(), masses, block, traditional)
    page.figure(figure, "Error of the accelerations against the one-coordinate form, which has no small numbers in it.")
    figure = new_figure(7.0, 3.2)
    draw_convergence(figure.add_subplot(), masses[:13], apart[:13])
    page.figure(figure, "Distance to the massless answer: a light rod may be left out, and this is what it costs.")


def limit_of_a_light_rod() -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return mass ratios, errors of the block form and of M^-1, and distances to the massless answer."""
    q, v = np.array([ANGLE, 2 * ANGLE]), np.array([1.0, 2.0])
    still = solve(CrankSlider(), q, v, force=LOAD).acceleration
    masses = 10.0 ** -np.arange(0.0, 16.5, 1.0)
    block, traditional, apart = (np.zeros(masses.size) for _ in range(3))
    for k, mass in enumerate(masses):
        rod = CrankSlider(rod_mass=3.0 * mass)
        exact = _reduced(rod, q, v)
        size = np.abs(exact).max()
        found = solve(rod, q, v, force=LOAD).acceleration
        block[k], traditional[k] = (np.abs(x - exact).max() / size for x in (found, _through_inverse(rod, q, v)))
        apart[k] = np.abs(found - still).max()
    return masses, block, traditional, apart


def _reduced(rod: CrankSlider, q: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Solve in the crank's angle alone: a = z y + a0 with A z = 0, A a0 = -drift."""
    row, f = rod.jacobian(q)[0], LOAD - rod.bias(q, v)
    z, start = np.array([1.0, -row[0] / row[1]]), np.array([0.0, -rod.drift(q, v)[0] / row[1]])
    M = rod.mass_matrix(q)
    return start + z * (z @ (f - M @ start)) / (z @ M @ z)


def _through_inverse(rod: CrankSlider, q: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Solve by the traditional formulas (24), (25)."""
    Mi, A, f = np.linalg.inv(rod.mass_matrix(q)), rod.jacobian(q), LOAD - rod.bias(q, v)
    lam = np.linalg.inv(A @ Mi @ A.T) @ (A @ Mi @ f + rod.drift(q, v))
    return Mi @ (f - A.T @ lam)


def _impact(page: Report) -> None:
    """Show plastic and elastic impacts of the slider against its guide."""
    rod = CrankSlider(rod_mass=0.5)
    K = block_system(rod, [ANGLE, 2 * ANGLE])
    before = np.array([1.0, 0.5])
    lines = [f"velocity before   {before}   kinetic energy {K.impact(before).energy_before:.4f}"]
    for e in (0.0, 0.5, 1.0):
        hit = K.impact(before, restitution=e)
        lines.append(
            f"restitution {e:.1f}   {np.round(hit.velocity, 4)}   kinetic energy {hit.energy_after:.4f}   "
            f"impulse {hit.reactions[0]:+.4f}"
        )
    say(
        page,
        "An impact",
        "The slider's guide closes on a moving arm: v+ = M+ M v- - e A+^T A v-. At e = 1 no energy is lost or gained.",
        "\n".join(lines),
    )


def _table() -> tuple[KKT, np.ndarray]:
    """Return a table on four legs, one leg too many, and its load."""
    corners = {"front left": (-1, 1), "front right": (1, 1), "rear left": (-1, -1), "rear right": (1, -1)}
    A = np.array([[1.0, y, -x] for x, y in corners.values()])
    return KKT(np.diag([20.0, 5.0, 5.0]), A, list(corners), ["height", "roll", "pitch"]), np.array([-196.2, 30.0, 0.0])


def _redundant(page: Report) -> None:
    """Show a table on four legs."""
    K, load = _table()
    s = K.solve(load)
    say(
        page,
        "One leg too many",
        "A rigid table on four legs: its acceleration is unique, the forces in its legs are not. The least ones are "
        "returned, and the diagnosis names the redundancy.",
        f"{s}\n\n{K.diagnose()}",
    )


def _inconsistent(page: Report) -> None:
    """Show the same table, one leg asked to move."""
    K, load = _table()
    try:
        K.solve(load, drift=[0.0, 0.0, 0.0, -0.1])
    except SolvabilityError as refused:
        reason = str(refused)
    else:
        raise AssertionError("four legs cannot move apart")
    say(page, "A contradiction", "The same table, with one foot asked to rise while the others stay.", reason)


def _maps(page: Report) -> None:
    """Draw Fig. 1."""
    figure = new_figure(7.0, 3.6)
    draw_maps(figure.add_subplot())
    page.heading("Where the matrices map")
    page.figure(
        figure, "Velocities, accelerations and forces, of the system and of its constraints (seed 000, Fig. 1)."
    )
