"""Bodies and chains dropped on a plane with two to eight contact points, event-driven, until they rest.

Points strike in turn, slide, rock and come to rest together, with restitution from 0 to 0.9, Newton's or Poisson's,
some with dry friction and limits of joints. A run goes on to its end, and on its way no point is below the ground,
forces of contact push and stay in their cones, energy is that of the start less the heat and never grows, and impulses
balance the momentum. Newton's law with friction may add energy (Kane's paradox): then a run says so.
"""

from __future__ import annotations

import warnings

import numpy as np

import dalembert as da
from dalembert.errors import DalembertError

TITLE: str = "drops of two to eight contact points until they rest: sticks, bricks, chains with friction and limits"

GRAVITY = 9.81

DEEP = 1e-7
"""A point below the ground by more than this is wrong, metres: a hundred times what touches."""

GAIN = 1e-6
"""Energy that grows by more than this part of all is wrong, and a balance that misses more."""

CONE = 1e-6
"""Part of the largest force, over the whole run, up to which impulses that pull or leave their cones are none: a force
that turns with the last of a sliding is that of its sample, and lasts for nanoseconds."""


def _points(rng: np.random.Generator) -> np.ndarray:
    """Return places of two to eight points on a body, (k, 3)."""
    kind = rng.choice(["stick", "tripod", "brick", "any"])
    if kind == "stick":
        half = rng.uniform(0.2, 0.6)
        return np.array([(-half, 0.0, 0.0), (half, 0.0, 0.0)])
    if kind == "tripod":
        angles = 2 * np.pi * np.arange(3) / 3 + rng.uniform(-0.3, 0.3, 3)
        return np.array([(0.3 * np.cos(a), 0.3 * np.sin(a), -rng.uniform(0.1, 0.4)) for a in angles])
    if kind == "brick":
        h = rng.uniform(0.05, 0.4, 3)
        return np.array([(x, y, z) for x in (-h[0], h[0]) for y in (-h[1], h[1]) for z in (-h[2], h[2])])
    return rng.uniform(-0.4, 0.4, (int(rng.integers(2, 9)), 3))


def _body(rng: np.random.Generator):
    """Return a free body with its points, and a start."""
    b = da.Builder("body", gravity=(0, 0, -GRAVITY))
    shape = np.sort(rng.uniform(0.01, 0.1, 3))
    shape[2] = min(shape[2], 0.95 * (shape[0] + shape[1]))
    b.body("body", mass=float(rng.uniform(0.3, 3.0)), inertia=tuple(map(float, shape)))
    b.joint("float", "free", parent="world", child="body")
    points, axis, angle = _points(rng), rng.normal(size=3), rng.uniform(0.0, np.pi)
    axis /= np.linalg.norm(axis)
    q = np.array([0.0, 0.0, 1.0, *(axis * np.sin(angle / 2)), np.cos(angle / 2)])
    v = np.zeros(6) if rng.random() < 0.5 else rng.normal(size=6) * [1.0, 1.0, 1.0, 3.0, 3.0, 3.0]
    return b.build(), [("body", point) for point in points], q, v, []


def _chain(rng: np.random.Generator):
    """Return a planar chain of one to four rods with a point at each end, and a start; some rub, some have limits."""
    count, b = int(rng.integers(1, 5)), da.Builder("chain", gravity=(0, 0, -GRAVITY))
    b.body("cart")
    b.joint("x", "prismatic", parent="world", child="cart", axis=(1, 0, 0))
    b.body("lift")
    b.joint("z", "prismatic", parent="cart", child="lift", axis=(0, 0, 1))
    lengths, limited, others = rng.uniform(0.2, 0.6, count), rng.random() < 0.5, []
    for k, length in enumerate(map(float, lengths)):
        mass = float(rng.uniform(0.2, 1.5))
        across = mass * length**2 / 12
        b.body(f"rod {k}", mass=mass, center=(length / 2, 0, 0), inertia=(0.01 * across, across, across))
        before = (float(lengths[k - 1]) if k else 0.0, 0.0, 0.0)
        limits, parent = (-2.0, 2.0) if limited and k else None, f"rod {k - 1}" if k else "lift"
        b.joint(f"hinge {k}", "revolute", parent, f"rod {k}", (0, -1, 0), position=before, limits=limits)
    if limited and count > 1:
        others.append(da.JointLimits(restitution=float(rng.uniform(0.0, 0.9))))
    if rng.random() < 0.5:
        others += [da.JointFriction(f"rub {k}", f"hinge {k}", float(rng.uniform(0.02, 0.3))) for k in range(1, count)]
    places = [("rod 0", np.zeros(3))] + [(f"rod {k}", np.array([lengths[k], 0.0, 0.0])) for k in range(count)]
    angles = np.array([rng.uniform(-1.0, 1.0), *rng.uniform(-1.5, 1.5, count - 1)])
    heights = np.cumsum([0.0, *(lengths * np.sin(np.cumsum(angles)))])
    q = np.array([0.0, rng.uniform(0.3, 1.0) - heights.min(), *angles])
    v = np.zeros(count + 2) if rng.random() < 0.5 else rng.normal(size=count + 2)
    return b.build(), places, q, v, others


def _faults(m, run, places, radius: float, normal: np.ndarray, mu: float) -> list[str]:
    """Return in words what is wrong with a run."""
    E, heat, wrong = run.energy.total, run.heat, []
    size = float(np.abs(E).max() + run.kinetic.max())
    R, p = m.kinematics(run.q)
    names = [body.name for body in m.bodies]
    for body, place in places:
        k = names.index(body)
        if (gap := float((((R[:, k] @ place) + p[:, k]) @ normal).min()) - radius) < -DEEP:
            wrong.append(f"{-gap:.2g} m below the ground")
    if (gained := float(np.diff(E).max(initial=0.0))) > GAIN * size:
        wrong.append(f"{gained:.2g} J gained")
    if (missed := float(np.abs(E + heat - E[0] - heat[0]).max())) > GAIN * size:
        wrong.append(f"balance of energy {missed:.2g} J")
    if (cooled := -float(np.diff(heat).min(initial=0.0))) > GAIN * size:
        wrong.append(f"{cooled:.2g} J of heat came back")
    forces = np.stack([run.forces[:, 3 * k : 3 * k + 3] for k in range(len(places))], axis=1)
    pushed = forces @ normal
    rubbed = np.linalg.norm(forces - pushed[..., None] * normal, axis=-1)
    beyond = np.maximum(np.maximum(-pushed, rubbed - mu * pushed), 0.0)[:-1] * np.diff(run.t)[:, None]
    if (impulse := float(beyond.sum(axis=0).max())) > CONE * float(np.abs(forces).max()) * run.t[-1]:
        wrong.append(f"forces pull, or leave their cones, by {impulse:.2g} N s")
    bad = [impact for impact in run.impacts if not (impact.momentum_ok and impact.laws_ok)]
    return [*wrong, f"{len(bad)} impacts: {bad[0]}"] if bad else wrong


def trial(rng: np.random.Generator) -> tuple[str, str]:
    """Drop one random body or chain."""
    m, places, q, v, others = (_body if rng.random() < 0.6 else _chain)(rng)
    e, mu = float(rng.choice([0.0, 0.1, rng.uniform(0.0, 0.9), 0.9])), float(rng.choice([0.0, 0.1, 0.4, 0.8]))
    law, radius = str(rng.choice(["newton", "poisson"], p=[0.8, 0.2])), float(rng.choice([0.0, 0.02]))
    lean = 0.2 * rng.random() * (rng.random() < 0.3)
    ground = da.Plane((np.sin(lean), 0.0, np.cos(lean)))
    contacts = [
        da.Contact(da.Sphere(body, radius, tuple(place)), ground, mu, e, law, name=f"foot {k}")
        for k, (body, place) in enumerate(places)
    ]
    q[1 if q.size != 7 else 2] += 1.0 * np.tan(lean)
    words = f"{m.name}, {len(places)} points, e = {e:.3g}, mu = {mu}, {law}, {len(others)} other contacts"
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            run = da.simulate(m, 3.0, q, v, contacts=[*contacts, *others], method="hybrid")
            wrong = _faults(m, run, places, radius, np.asarray(ground.normal, dtype=float), mu)
    except DalembertError as refused:
        return "refused", f"{type(refused).__name__}: {str(refused).split(':')[0]}"
    except Exception as error:
        return "foreign", f"{type(error).__name__}: {error} ({words})"
    if run.status == "inaccurate" and "gain" in run.message:
        return "refused", "energy gained by Newton's law, and said so"
    if not run.ok:
        return "refused", f"{run.status}: {' '.join(word for word in run.message.split() if word.isalpha())[:80]}"
    return ("wrong", f"{', '.join(wrong)}: {words}") if wrong else ("right", words)
