"""`dalembert demo [NAME]`: the demonstrations, each with an HTML report."""

from __future__ import annotations

import json
import time
from contextlib import redirect_stdout
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import Annotated, Literal

import numpy as np
import tyro

from dalembert.cli.target import print_json, writable
from dalembert.errors import SolvabilityError
from dalembert.examples import (
    ANGLE,
    BELT_SPEED,
    CONTACTS,
    STEEP,
    compare_methods,
    crank_slider,
    limit_of_a_light_rod,
    run_two_blocks,
    stanford_arm,
    two_blocks,
)
from dalembert.friction import Hyperbolic, resolve
from dalembert.kkt import KKT
from dalembert.model import block_system
from dalembert.scenes import scene
from dalembert.simulate import Trajectory
from dalembert.view import Report, draw_maps, new_figure
from dalembert.view.figures import (
    draw_blocks,
    draw_convergence,
    draw_crank_slider,
    draw_forces,
    draw_law,
    draw_massless_limit,
    draw_velocities,
)
from dalembert.view.run_report import versions

# ----------------------------------------------------------------------------------------------------------------------
# One section of a demonstration: printed, and put on the report page.


def say(page: Report, heading: str, text: str, output: str) -> None:
    """Print a section and put it on the page."""
    print(f"\n== {heading}\n{text}\n\n{output}")
    page.heading(heading)
    page.text(text)
    page.output(output)


# ----------------------------------------------------------------------------------------------------------------------
# `dalembert demo crank`: seed 000's crank-slider, an impact, a redundant and an inconsistent system, and a report.


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
    blocks = K.dagger.M, K.dagger.A, K.dagger.Lambda
    equal = all(np.array_equal(a, b) for a, b in zip(blocks, expected, strict=True))
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


def _impact(page: Report) -> None:
    """Show plastic and elastic impacts of the slider against its guide."""
    rod = crank_slider(rod_mass=0.5)
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


# ----------------------------------------------------------------------------------------------------------------------
# `dalembert demo belt`: two blocks on a belt (seed 001, section 4), every event, and other methods beside.


DURATION = 30.0
"""Length of the run, seconds."""

SHORT, STEP = 5.0, 1e-2
"""Horizon and fixed step of the comparison, seconds."""


def print_events() -> int:
    """Print the events as JSON."""
    run = run_two_blocks(DURATION)
    rows = [{**event.as_dict(), "time": round(event.time, 12)} for event in run.events]
    print(json.dumps({"events": rows, "duration": DURATION, "status": run.status}, indent=1))
    return 0 if run.ok else 1


def show_belt(report: Path) -> int:
    """Print the sections, write the report, name it."""
    page = Report("Two blocks on a belt", "Dry friction with redundant contacts: every stick and slip of 30 seconds.")
    figure = new_figure(7.0, 3.0)
    left, right = figure.subplots(1, 2, width_ratios=[1.5, 1.0])
    draw_blocks(left)
    draw_law(right, Hyperbolic(4.0))
    page.figure(figure, "The blocks, and the law of friction of the first contact, set-valued at rest.")
    run = run_two_blocks(DURATION, every=0.02)
    table = "\n".join(f"  {event}" for event in run.events)
    say(page, "Every event", f"Times to nine digits, {run.steps} steps of order 8.", table)
    for draw, caption in (
        (draw_velocities, "Velocities of the blocks; the background says which contacts stick."),
        (draw_forces, "Friction forces; they jump where slip ends or turns."),
    ):
        figure = new_figure(9.0, 3.8)
        draw(figure.add_subplot(), run)
        page.figure(figure, caption)
    _redundant_contacts(page, run)
    _compare(page)
    print(f"\nreport: {page.write(report)}")
    return 0


def _redundant_contacts(page: Report, run: Trajectory) -> None:
    """Show that redundant forces sum to the elastic force, and that energy is accounted for."""
    system = two_blocks()
    stuck = np.flatnonzero((run.modes == 0).all(axis=1))
    W = np.array([[1.0, 0.0, 1.0], [0.0, 1.0, -1.0]])
    apart = max(np.abs(W @ run.forces[s] - system.bias(run.q[s], run.v[s], run.t[s])).max() for s in stuck)
    before = resolve(np.diag([4.0, 7.0]), [-6.3, 0.0], W, np.zeros(3), [4.0, 7.0, 5.0], names=CONTACTS)
    creep = max(float(np.abs(run.v[s] - BELT_SPEED).max()) for s in stuck)
    say(
        page,
        "All three contacts stick",
        "Three forces hold two blocks. Their sum on each block is the elastic force; how they share it is not "
        "determined, and the least-norm forces within the limits are returned.",
        f"largest |W T - elastic force|   {apart:.1e} N, {stuck.size} samples\n"
        f"largest creep on the belt       {creep:.1e} m/s\n"
        f"energy less work of friction    {np.abs(run.energy_residual).max():.1e} J of "
        f"{np.ptp(run.energy.total):.3g} J\n\n"
        f"at an elastic force of 6.3 N:\n{before}\n{before.report}",
    )


def _compare(page: Report) -> None:
    """Show the other methods beside the exact one."""
    lines = [f"  {'method':24s}{'events':>7s}{'error, s':>11s}{'creep, m/s':>12s}{'steps':>7s}{'run, s':>8s}"]
    for row in compare_methods(SHORT, STEP):
        error = f"{row['error']:.1e}"
        lines.append(
            f"  {row['method']:24s}{row['events']:7d}{error:>11s}{row['creep']:12.1e}{row['steps']:7d}"
            f"{row['seconds']:8.2f}  {row['stopped']}".rstrip()
        )
    say(
        page,
        "Methods compared",
        f"The first {SHORT:g} s; fixed steps of {STEP:g} s ({STEEP * STEP:g} s for the regularised law, a stiff one), "
        "coarse: an event is off by some steps. Error: largest distance of an event of the first line to "
        "the nearest one found. Creep: how fast blocks that stick move on the belt. The short form refuses where its "
        "condition fails.",
        "\n".join(lines),
    )


# ----------------------------------------------------------------------------------------------------------------------
# `dalembert demo`: six short demonstrations on one page, with mechanisms in motion.


NEXT = """dalembert scenes                                 list all scenes; each is a file to copy and change
dalembert simulate four_bar --report page.html   a run with its report
dalembert sweep bouncing_ball                    many values of a parameter
dalembert check your_robot.urdf                  is it solvable, which forces are unique
dalembert view your_robot.urdf                   look at it
dalembert demo belt                              one of these in detail
dalembert warm                                   compile all loops now: no later run waits"""
"""What to try after the demonstration."""


def show_all(report: Path) -> int:
    """Run the six, print a section of each, write the page, and say what to try next."""
    begun = time.perf_counter()
    page = Report(
        "Six mechanisms, six questions",
        "What constrained mechanics can ask, and what dalembert answers: each section is a scene that comes with the "
        "package, run just now. Drag to turn a picture, press play to move it.",
    )
    for section in (_rod, _belt, _robot, _graph, _door, _hopper):
        section(page)
    page.heading("What to try next")
    page.output(NEXT)
    page.table(("", "version"), versions())
    print(f"\n== What to try next\n{NEXT}")
    print(f"\n{time.perf_counter() - begun:.0f} s; report: {page.write(report)}")
    return 0


def _moving(page: Report, run: Trajectory, title: str) -> None:
    """Show a run in motion."""
    page.page(run.animate().page, title)


def _rod(page: Report) -> None:
    """Show a massless rod in motion, and the limit of light ones."""
    chosen = scene("crank_slider")
    run = chosen.run(progress=False)
    masses, block, traditional, _ = limit_of_a_light_rod()
    M = run.system.mass_matrix(run.q[0])
    say(
        page,
        "1. What if a part weighs nothing?",
        "The connecting rod of this crank-slider has no mass. Its mass matrix is singular; divide by it, and digits "
        "are lost long before the mass is zero. The block form loses none, and the motion is unique.",
        f"rank of the mass matrix   {np.linalg.matrix_rank(M)} of {len(M)}\n"
        f"constraints held to       {run.position_residual.max():.0e} m\n"
        f"energy balance off by     {np.abs(run.energy_residual).max():.0e} J of {np.ptp(run.kinetic):.3g} J",
    )
    _moving(page, run, "crank-slider")
    figure = new_figure(7.0, 3.2)
    draw_massless_limit(figure.add_subplot(), masses, block, traditional)
    page.figure(figure, "Error of the accelerations as the rod's mass goes to zero: block form, and M^-1.")


def _belt(page: Report) -> None:
    """Show stick and slip of two blocks."""
    run = scene("two_blocks").run(progress=False)
    sticks = sum(event.new == "stick" for event in run.events)
    say(
        page,
        "2. When does it stick, when does it slip?",
        "Two blocks on a moving belt, springs between them, three contacts with dry friction. Where all three stick, "
        "three forces hold two blocks: they are one of many, and the motion is unique all the same.",
        f"{len(run.events)} events in {run.t[-1]:g} s, {sticks} of them begin to stick; the first:\n"
        + "\n".join(f"  {event}" for event in run.events[:4]),
    )
    page.figure(run.plot(("velocities", "forces")), "Velocities and friction forces; the background says what sticks.")


def _robot(page: Report) -> None:
    """Show a robot on its feet."""
    chosen = scene("quadruped")
    solution = chosen.solve()
    names = solution.system.names
    rows = zip(names, solution.reactions, solution.certificate.unique, strict=True)
    say(
        page,
        "3. What do its feet carry?",
        "A quadruped stands on four feet and sways. Twelve components of force act on them, more than its motion "
        "determines. Green arrows are unique, orange ones are the least of many.",
        "\n".join(f"  {n:12s}{round(x, 2) + 0.0:9.2f} N  {'unique' if only else 'one of many'}" for n, x, only in rows),
    )
    _moving(page, chosen.run(progress=False), "quadruped")


def _graph(page: Report) -> None:
    """Show the equations of the Stanford arm."""
    from dalembert.tableau import newton_euler
    from dalembert.tableau.structure.pictures import structure_picture

    report = newton_euler(stanford_arm()).structure()
    say(
        page,
        "4. Which equation determines what?",
        "The Stanford arm's inverse dynamics as equations with names. Before any number, the graph says which equation "
        "determines which unknown, and in which order: here one after the other, nothing is solved simultaneously.",
        str(report).splitlines()[0],
    )
    page.picture(structure_picture(report, "matrix"), "Equations and unknowns of the Stanford arm in solving order.")


def _door(page: Report) -> None:
    """Show a door on three hinges."""
    chosen = scene("door")
    solution = chosen.solve()
    rows = zip(solution.system.names, solution.reactions, solution.certificate.unique, strict=True)
    say(
        page,
        "5. One hinge too many?",
        "Two hinges hold a door, this one has three. The weight on the lower hinge is unique; how the hinges share the "
        "horizontal pull is not, and no rigid model knows. The diagnosis names what is redundant.",
        "\n".join(f"  {n:27s}{round(x, 2) + 0.0:9.2f} N  {'unique' if only else 'one of many'}" for n, x, only in rows)
        + f"\n\n{chosen.mechanism.diagnose(chosen.start[0])}",
    )
    _moving(page, chosen.run(progress=False), "door")


def _hopper(page: Report) -> None:
    """Show a hop on a massless leg."""
    run = scene("runner").run(progress=False)
    say(
        page,
        "6. Landing without a loss",
        "A hopper on a leg without mass. In the air the leg is held; touch-down passes no impulse to the body, so no "
        "energy is lost, and the foot lifts off where its force ends.",
        "\n".join(f"  {event}" for event in run.events)
        + f"\nenergy balance off by {np.abs(run.energy_residual).max():.0e} J of {run.energy.total[0]:.0f} J",
    )
    _moving(page, run, "hopper")
    page.figure(run.plot(("coordinates", "forces")), "Coordinates, and the force on the foot while it stands.")


# ----------------------------------------------------------------------------------------------------------------------
# `dalembert demo [NAME]`: the demonstrations, each with an HTML report.


@dataclass(frozen=True)
class Demo:
    """Show what dalembert does, and write an HTML report.

    all (the default): six mechanisms in motion on one page. crank: the crank-slider with a massless rod in detail.
    belt: two blocks on a belt, stick and slip for 30 s, beside other methods.

    For example:

        dalembert demo

        dalembert demo belt --report belt.html
    """

    name: Annotated[Literal["all", "crank", "belt"], tyro.conf.Positional] = "all"
    """Which demonstration."""

    report: Path | None = None
    """Where to write the report; by default dalembert-demo.html, dalembert-crank.html or dalembert-belt.html."""

    json: bool = False
    """Print plain data and nothing else: of the belt its events, of others the name of the report."""

    def run(self) -> int:
        """Run the demonstration and return the exit code."""
        if self.json and self.name == "belt":
            return print_events()
        target = self.report or Path(f"dalembert-{'demo' if self.name == 'all' else self.name}.html")
        writable(target, (".html",), "--report")
        show = {"all": show_all, "crank": show_crank, "belt": show_belt}[self.name]
        if not self.json:
            return show(target)
        with redirect_stdout(StringIO()):
            code = show(target)
        print_json({"report": target})
        return code
