"""Rotating shapes that fall on planes and heightfields, event-driven, against dense sampling of the flights.

The body moves in the plane of x and z (its centre of mass and an angle), so that between two samples in free flight its
motion is known in closed form, whatever the stepper did: a parabola, and an angle linear in time. The oracle samples
every flight 4,000 times: no shape may be below the ground, energy may not grow, events must be in order. Nothing moves
while no time passes.
"""

from __future__ import annotations

import warnings

import numpy as np

import dalembert as da
from dalembert.errors import DalembertError
from dalembert.simulate.contact import Box, Contact, Heightfield, Plane, Sphere
from dalembert.simulate.events.record import Mode

TITLE: str = "rotating bars, boxes and off-centre spheres over planes and heightfields: no gap closes unseen"

GRAVITY = 9.81

DENSE = 4_000
"""Points of a flight at which the oracle looks."""

DEEP = 1e-7
"""A shape below the ground by more than this is wrong, metres: a hundred times the accuracy of steps."""

GAIN = 1e-6
"""Energy that grows by more than this part of all is wrong."""

LEAP = 1e-5
"""A position that changes by more than this while no time passes is wrong, metres and radians."""

_BODIES: dict[tuple[float, float], object] = {}


def _body(mass: float, inertia: float):
    """Return a body in the plane on x, z and an angle; one per kind, so that code is compiled once."""
    key = (mass, inertia)
    if key not in _BODIES:
        b = da.Builder("body", gravity=(0, 0, -GRAVITY))
        b.body("cart")
        b.joint("x", "prismatic", parent="world", child="cart", axis=(1, 0, 0))
        b.body("lift")
        b.joint("z", "prismatic", parent="cart", child="lift", axis=(0, 0, 1))
        b.body("body", mass=mass, inertia=(inertia, inertia, inertia))
        b.joint("angle", "revolute", parent="lift", child="body", axis=(0, -1, 0))
        _BODIES[key] = b.build()
    return _BODIES[key]


def _shape(rng: np.random.Generator):
    """Return points (a, b, radius) of a random shape in its own axes, and what `Contact` takes for it."""
    kind = rng.choice(["bar", "box", "ball", "three"])
    if kind == "bar":
        half, r = rng.uniform(0.2, 0.6), float(rng.choice([0.0, rng.uniform(0.01, 0.05)]))
        points = [(-half, 0.0, r), (half, 0.0, r)]
    elif kind == "box":
        a, b = rng.uniform(0.1, 0.4, 2)
        return kind, [(s * a, t * b, 0.0) for s in (-1, 1) for t in (-1, 1)], [Box("body", (2 * a, 0.0, 2 * b))]
    elif kind == "ball":
        points = [(rng.uniform(0.1, 0.5), rng.uniform(-0.3, 0.3), rng.uniform(0.02, 0.2))]
    else:
        points = [(*rng.uniform(-0.5, 0.5, 2), float(rng.choice([0.0, 0.05]))) for _ in range(3)]
    return kind, points, [Sphere("body", r, (a, 0.0, b)) for a, b, r in points]


def _ground(rng: np.random.Generator, points):
    """Return a ground, and the gap of circles at (x, z) over it."""
    if rng.random() < 0.6 or any(r > 0.0 for *_, r in points):
        lean = rng.uniform(-0.3, 0.3) * (rng.random() < 0.5)
        n = np.array([np.sin(lean), np.cos(lean)])
        return Plane((n[0], 0.0, n[1])), lambda x, z, r: n[0] * x + n[1] * z - r
    x = np.cumsum(rng.uniform(0.1, 0.6, 12)) - 3.5
    heights = rng.uniform(-0.15, 0.15, 12)
    field = Heightfield(x, [-2.0, 2.0], np.tile(heights[:, None], (1, 2)))
    return field, lambda px, pz, r: pz - np.interp(px, x, heights)


def _deepest(run, points, gap) -> float:
    """Return the least gap in all flights."""
    least = np.inf
    for i in np.flatnonzero(np.diff(run.t) > 0.0):
        x0, z0, angle0 = run.q[i]
        vx, vz, w = run.v[i]
        if (run.modes[i] != Mode.OPEN).any() or np.abs(run.acceleration[i] - [0.0, -GRAVITY, 0.0]).max() > 1e-9:
            continue
        s = np.linspace(0.0, run.t[i + 1] - run.t[i], DENSE)
        x, z, angle = x0 + vx * s, z0 + vz * s - GRAVITY * s * s / 2, angle0 + w * s
        c, n = np.cos(angle), np.sin(angle)
        least = min(least, *(float(gap(x + a * c - b * n, z + a * n + b * c, r).min()) for a, b, r in points))
    return least


def trial(rng: np.random.Generator) -> tuple[str, str]:
    """Drop one random shape with a random spin."""
    kind, points, shapes = _shape(rng)
    ground, gap = _ground(rng, points)
    m = _body(1.0, float(rng.choice([0.02, 0.08])))
    e, mu = float(rng.choice([0.0, 0.5, 0.9])), float(rng.choice([0.0, 0.0, 0.3]))
    contacts = [Contact(one, ground, friction=mu, restitution=e, name=f"shape {k}") for k, one in enumerate(shapes)]
    spin = float(rng.choice([-1, 1]) * 10 ** rng.uniform(0.0, 2.0))
    q = np.array([rng.uniform(-0.5, 0.5), rng.uniform(1.2, 1.8), rng.uniform(0.0, 6.0)])
    v = np.array([rng.uniform(-1, 1), rng.uniform(-2, 1), spin])
    words = f"{kind} on {type(ground).__name__}, spin {spin:.3g}, e = {e}, mu = {mu}"
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            run = da.simulate(m, 0.8, q, v, contacts=contacts, method="hybrid")
    except DalembertError as refused:
        return "refused", f"{type(refused).__name__}: {str(refused).split(':')[0]}"
    except Exception as error:
        return "foreign", f"{type(error).__name__}: {error} ({words})"
    size = abs(run.energy.total[0]) + run.kinetic[0]
    wrong = []
    if (least := _deepest(run, points, gap)) < -DEEP:
        wrong.append(f"{-least:.2g} m below the ground")
    if (gained := float(np.diff(run.energy.total).max(initial=0.0))) > GAIN * size and run.status == "completed":
        wrong.append(f"{gained:.2g} J gained")
    if run.ok and np.abs(run.energy_residual).max() > GAIN * size:
        wrong.append(f"balance of energy {np.abs(run.energy_residual).max():.2g} J")
    moved = np.abs(np.diff(run.q, axis=0)).max(axis=1, initial=0.0)[np.diff(run.t) == 0.0].max(initial=0.0)
    if moved > LEAP:
        wrong.append(f"moved by {moved:.2g} in no time")
    times = [event.time for event in run.events]
    if times != sorted(times) or (times and times[-1] > run.t[-1]):
        wrong.append("events out of order")
    if wrong:
        return "wrong", f"{', '.join(wrong)}: {words}"
    if not run.ok:
        return "refused", f"{run.status}: {' '.join(word for word in run.message.split() if word.isalpha())[:80]}"
    return "right", words
