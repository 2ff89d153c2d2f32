"""`dalembert demo belt`: two blocks on a belt (seed 001, section 4), every event, and other methods beside."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import numpy as np

from dalembert.cli.section import say
from dalembert.friction import Hyperbolic, resolve
from dalembert.model.belt import CONTACTS, two_blocks
from dalembert.simulate import Trajectory, simulate
from dalembert.view import Report, new_figure
from dalembert.view.belt import draw_blocks, draw_forces, draw_law, draw_velocities

DURATION = 30.0
SPEED = 0.3
TOLERANCES = {"rtol": 1e-13, "atol": 1e-15}
"""Nine digits of an event after 30 s: halving the tolerances changes none of them."""

SHORT, STEP = 5.0, 1e-2
"""Horizon and fixed step of the comparison, seconds."""

STEEP = 0.4
"""The slope of the regularised law is stiff: part of the step that it is run with."""


def events_run(**options: Any) -> Trajectory:
    """Simulate the seed's example with events."""
    return simulate(two_blocks(), DURATION, [0.0, 0.0], [SPEED, SPEED], **{**TOLERANCES, **options})


def print_events() -> int:
    """Print the events as JSON."""
    run = events_run()
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
    run = events_run(every=0.02)
    table = "\n".join(f"  {event}" for event in run.events)
    say(page, "Every event", f"Times to nine digits, {run.steps} steps of order 8.", table)
    for draw, caption in (
        (draw_velocities, "Velocities of the blocks; the background says which contacts stick."),
        (draw_forces, "Friction forces; they jump where slip ends or turns."),
    ):
        figure = new_figure(9.0, 3.8)
        draw(figure.add_subplot(), run)
        page.figure(figure, caption)
    _redundant(page, run)
    _compare(page)
    print(f"\nreport: {page.write(report)}")
    return 0


def _redundant(page: Report, run: Trajectory) -> None:
    """Show that redundant forces sum to the elastic force, and that energy is accounted for."""
    system = two_blocks()
    stuck = np.flatnonzero((run.modes == 0).all(axis=1))
    W = np.array([[1.0, 0.0, 1.0], [0.0, 1.0, -1.0]])
    apart = max(np.abs(W @ run.forces[s] - system.bias(run.q[s], run.v[s], run.t[s])).max() for s in stuck)
    before = resolve(np.diag([4.0, 7.0]), [-6.3, 0.0], W, np.zeros(3), [4.0, 7.0, 5.0], names=CONTACTS)
    creep = max(float(np.abs(run.v[s] - SPEED).max()) for s in stuck)
    say(
        page,
        "All three contacts stick",
        "Three forces hold two blocks. Their sum on each block is the elastic force; how they share it is not "
        "determined, and the least-norm forces within the limits are returned.",
        f"largest |W T - elastic force|   {apart:.1e} N, {stuck.size} samples\n"
        f"largest creep on the belt       {creep:.1e} m/s\n"
        f"energy less work of friction    {np.abs(run.energy_residual).max():.1e} J of {np.ptp(run.energy):.3g} J\n\n"
        f"at an elastic force of 6.3 N:\n{before}\n{before.report}",
    )


COMPARED = {
    "exact, events": {"method": "events"},
    "exact, fixed step": {"method": "fixed", "resolver": "exact"},
    "flowchart": {"method": "fixed", "resolver": "flowchart"},
    "flowchart, short form": {"method": "fixed", "resolver": "flowchart", "form": "short"},
    "switch": {"method": "fixed", "resolver": "switch"},
    "regularised": {"method": "fixed", "resolver": "regularised", "width": 1e-3},
}
"""Every method on the same motion."""


def compared(duration: float, step: float) -> list[dict[str, Any]]:
    """Run every method; return event times, creep, steps, run time, and where it stopped."""
    rows, reference = [], np.zeros(0)
    for name, options in COMPARED.items():
        options = dict(options)
        size = STEEP * step if name == "regularised" else step
        extra = {"step": size, "stepper": "rk4"} if options["method"] == "fixed" else {}
        begin = time.perf_counter()
        run = simulate(two_blocks(), duration, [0.0, 0.0], [SPEED, SPEED], **{**TOLERANCES, **extra, **options})
        spent = time.perf_counter() - begin
        times = _starts_of_slip(run) if name == "regularised" else np.array([event.time for event in run.events])
        if not reference.size:
            reference = times
        reached = reference[reference <= run.t[-1]]
        error = max((float(np.abs(times - t).min()) for t in reached), default=np.nan) if times.size else np.nan
        first = run.t <= 2.1
        rows.append(
            {
                "method": name,
                "events": len(run.events),
                "error": error,
                "creep": float(np.abs(run.v[first] - SPEED).max()),
                "steps": run.steps,
                "seconds": spent,
                "stopped": "" if run.ok else f"stops at {run.t[-1]:.3f} s: {run.message.splitlines()[0]}",
            }
        )
    return rows


def _starts_of_slip(run: Trajectory) -> np.ndarray:
    """Return when a regularised contact leaves or enters the band |velocity| < 0.01 m/s: it never sticks."""
    speed = np.abs(np.column_stack([run.v[:, 0] - SPEED, run.v[:, 1] - SPEED, run.v[:, 0] - run.v[:, 1]]))
    inside = speed < 0.01
    return np.sort(np.concatenate([run.t[1:][inside[1:, i] != inside[:-1, i]] for i in range(3)]))


def _compare(page: Report) -> None:
    """Show the other methods beside the exact one."""
    lines = [f"  {'method':24s}{'events':>7s}{'error, s':>11s}{'creep, m/s':>12s}{'steps':>7s}{'run, s':>8s}"]
    for row in compared(SHORT, STEP):
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
