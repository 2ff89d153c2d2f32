"""Contacts and dry friction from event to event: compiled loops beside their plain twins, and beside SciPy.

    python benchmarks/hybrid.py [--only NAME] [--json FILE]

Bouncing balls run beside a loop around SciPy's `solve_ivp` with a terminal event, as a user would write it, as long as
that loop is right: in the end it steps over flights that are shorter than its steps. All problems run beside the plain
engines of `tests/reference`, with the same tolerances: both must find the same events. Times are the processor's, of a
whole call of `da.simulate`, the least of some calls, models being assembled and compiled before; plain twins are called
once.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import casadi as ca
import numpy as np
from scipy.integrate import solve_ivp

import dalembert as da

sys.path.insert(0, str(Path(__file__).parents[1]))
from tests.reference.contact.hybrid import simulate_plain
from tests.reference.dry.simulate import simulate as simulate_dry
from tests.simulate.contact_cases import cam_follower, rocking_block, vertical_ball
from tests.simulate.toys import woodpecker

from dalembert.examples import two_blocks
from dalembert.friction import Bounded, Coulomb, Hyperbolic, StaticKinetic
from dalembert.simulate.contact import Contact, Sphere

TOLERANCES = {"rtol": 1e-10, "atol": 1e-12}
REPEATS, AT_LEAST = 5, 0.3
"""Calls at least, and seconds of calls at least."""

SAME = 1e-6
"""Events of both engines are at the same times, seconds."""

HEIGHT, RADIUS, GRAVITY = 1.0, 0.1, 9.81


@dataclass
class Row:
    """One problem: processor times in seconds, events and steps."""

    name: str
    seconds: float
    events: int
    steps: int
    other: str
    other_seconds: float

    @property
    def ratio(self) -> float:
        """How many times faster."""
        return self.other_seconds / self.seconds

    def __str__(self) -> str:
        return (
            f"{self.name:34s} {1e3 * self.seconds:9.2f} ms {self.events:5d} {self.steps:6d}   {self.other:14s} "
            f"{1e3 * self.other_seconds:10.1f} ms {self.ratio:8.1f}"
        )


def clocked(call: Callable[[], Any]) -> tuple[float, Any]:
    """Return the least processor time of several calls, and what the last gave."""
    call()
    best, begun, count = np.inf, time.process_time(), 0
    while count < REPEATS or time.process_time() - begun < AT_LEAST:
        start = time.process_time()
        found = call()
        best, count = min(best, time.process_time() - start), count + 1
    return best, found


def once(call: Callable[[], Any]) -> tuple[float, Any]:
    """Return the processor time of one call, and what it gave."""
    start = time.process_time()
    found = call()
    return time.process_time() - start, found


def scipy_ball(impacts: int, bounce: float) -> list[float]:
    """Return the times of impacts of a ball by a loop around `solve_ivp`."""

    def rate(_t: float, y: Any) -> list[float]:
        return [y[1], -GRAVITY]

    def gap(_t: float, y: Any) -> float:
        return y[0] - RADIUS

    gap.terminal, gap.direction = True, -1  # type: ignore[attr-defined]
    t, y, times = 0.0, np.array([HEIGHT, 0.0]), []
    while len(times) < impacts:
        part = solve_ivp(rate, (t, 10.0), y, method="DOP853", events=gap, **TOLERANCES)
        t = float(part.t_events[0][0])
        y = np.array([RADIUS, -bounce * part.y_events[0][0][1]])
        times.append(t)
    return times


def ball(duration: float = 3.81, bounce: float = 0.8) -> Any:
    """Return the arguments of a bouncing ball: 20 impacts."""
    contact = Contact(Sphere("ball", RADIUS), restitution=bounce)
    return (vertical_ball(), duration, [HEIGHT], [0.0]), {"contacts": [contact]}


def lively_ball() -> Any:
    """Return the arguments of a ball with more restitution: 50 impacts."""
    return ball(8.095, 0.9)


def ball_to_rest() -> Any:
    """Return the arguments of a ball that bounces until it rests."""
    return ball(5.0)


def pecking() -> Any:
    """Return the arguments of the woodpecker toy."""
    m, q, law, contacts = woodpecker()
    return (m, 0.3, q), {"contacts": contacts, "force": law}


def rocking() -> Any:
    """Return the arguments of a block that rocks until it rests."""
    m, q, contacts = rocking_block()
    return (m, 3.0, q), {"contacts": contacts}


def cam() -> Any:
    """Return the arguments of a follower on a cam of spheres."""
    m, q, v, spring, contacts = cam_follower()
    return (m, 2.0, q, v), {"contacts": contacts, "force": spring}


def oscillator() -> Any:
    """Return the arguments of a mass on a belt, held by a spring, its reaction as load."""
    q, v = ca.SX.sym("q", 2), ca.SX.sym("v", 2)
    pad = Coulomb("pad", v[0], StaticKinetic(0.4, 0.25), normal="belt", surface=0.5)
    system = da.Lagrangian(
        q, v, ca.sumsqr(v) / 2, q[0] ** 2 / 2 + 9.81 * q[1], constraints={"belt": q[1]}, friction=[pad]
    )
    return (system, 40.0, [0.0, 0.0], [0.0, 0.0]), {}


def blocks() -> Any:
    """Return the arguments of two blocks on a belt (`da.examples.two_blocks`) as a Lagrangian."""
    q, v = ca.SX.sym("q", 2), ca.SX.sym("v", 2)
    pads = {"belt 1": (v[0] - 0.3, 4.0), "belt 2": (v[1] - 0.3, 7.0), "between": (v[0] - v[1], 5.0)}
    contacts = [Bounded(name, slip, Hyperbolic(limit, 3.0)) for name, (slip, limit) in pads.items()]
    elastic = 14.0 * (q[0] ** 2 + 0.5 * q[1] ** 2 - q[0] * q[1])
    system = da.Lagrangian(q, v, 2.0 * v[0] ** 2 + 3.5 * v[1] ** 2, elastic, friction=contacts)
    return (system, 30.0, [0.0, 0.0], [0.3, 0.3]), {}


def dry_blocks(_system: Any, *given: Any, **options: Any) -> Any:
    """Return the run of the two blocks as matrices, by the plain engine of dry friction."""
    return simulate_dry(two_blocks(), *given, **options)


CASES: dict[str, tuple[Callable[[], Any], Callable[..., Any]]] = {
    "bouncing ball, 20 impacts": (ball, simulate_plain),
    "bouncing ball, e = 0.9, 50 impacts": (lively_ball, simulate_plain),
    "bouncing ball to rest": (ball_to_rest, simulate_plain),
    "stick-slip oscillator, 40 s": (oscillator, simulate_dry),
    "two blocks on a belt, 30 s": (blocks, dry_blocks),
    "woodpecker, 0.3 s": (pecking, simulate_plain),
    "rocking block to rest": (rocking, simulate_plain),
    "cam follower on spheres, 2 s": (cam, simulate_plain),
}
"""Problems and their plain twins."""


def compared(name: str) -> list[Row]:
    """Return the rows of a problem; events of both engines must agree."""
    make, twin = CASES[name]
    given, options = make()
    seconds, run = clocked(lambda: da.simulate(*given, method="hybrid", **options, **TOLERANCES))
    plain_seconds, plain = once(lambda: twin(*given, **options, **TOLERANCES))
    words = [[(e.contact, e.old, e.new) for e in each.events] for each in (run, plain)]
    times = [np.array([e.time for e in each.events]) for each in (run, plain)]
    if words[0] != words[1] or np.abs(times[0] - times[1]).max(initial=0.0) > SAME:
        raise SystemExit(f"{name}: the events differ ({run.status}, {plain.status})")
    rows = [Row(name, seconds, len(run.events), run.steps, "plain twin", plain_seconds)]
    if make in (ball, lively_ball):
        impacts = [e.time for e in run.events if e.new == "impact"]
        bounce = options["contacts"][0].restitution
        other_seconds, found = clocked(lambda: scipy_ball(len(impacts), bounce))
        if np.abs(np.array(found) - impacts).max() > SAME:
            raise SystemExit("the ball: SciPy's impacts differ")
        rows.append(Row(name, seconds, len(run.events), run.steps, "solve_ivp loop", other_seconds))
    return rows


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="a part of the name of a problem")
    parser.add_argument("--json", type=Path)
    asked = parser.parse_args()
    print(f"{'problem':34s} {'compiled':>12s} {'events':>5s} {'steps':>6s}   {'beside':14s} {'':>13s} {'x':>8s}")
    rows = []
    for name in CASES:
        if asked.only in name:
            for row in compared(name):
                print(row, flush=True)
                rows.append(row)
    if asked.json:
        asked.json.write_text(json.dumps([vars(row) | {"ratio": row.ratio} for row in rows], indent=1))


if __name__ == "__main__":
    main()
