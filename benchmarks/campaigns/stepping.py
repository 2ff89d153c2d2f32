"""Contacts by time stepping, contacts that are driven against each other, and joints with data that do not act.

Each kind has its own oracle. Shapes that fall by steps of `moreau`: their gaps at samples from the closed form of the
shape, their energy from q and v. A part between two jaws that servos close: the moment at which there is no room left,
from their speeds. An arm with random data: which of them would have changed its motion, and SciPy on those that act.
"""

from __future__ import annotations

import warnings
from functools import cache
from typing import Any

import numpy as np
from scipy.integrate import solve_ivp

import dalembert as da
from campaigns.contacts import GRAVITY, _body, _shape
from dalembert.errors import DalembertError
from dalembert.simulate.contact import Contact, JointLimits, Plane, Sphere

TITLE: str = "time stepping, driven contacts, data that do not act: nothing wrong is called completed"

GAIN = 0.02
"""Part of all energy that steps of first order may seem to gain, at steps of 1 ms."""

WAYS = 2.0
"""Ways of the fastest point in a step by which a shape may be in the ground."""


def trial(rng: np.random.Generator) -> tuple[str, str]:
    """Run one random case of a random kind."""
    kind = rng.choice([_falling, _jaws, _arm])
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return kind(rng)
    except DalembertError as refused:
        return "refused", f"{type(refused).__name__}: {str(refused).split(':')[0]}"
    except Exception as error:
        return "foreign", f"{kind.__name__}: {type(error).__name__}: {error}"


def _said(run: Any) -> tuple[str, str]:
    return "refused", f"{run.status}: {' '.join(word for word in run.message.split() if word.isalpha())[:60]}"


def _falling(rng: np.random.Generator) -> tuple[str, str]:
    """Drop a shape on a plane that may lean, by steps of 1 ms."""
    kind, points, shapes = _shape(rng)
    lean, h = float(rng.uniform(-0.3, 0.3) * (rng.random() < 0.5)), 1e-3
    n, law = np.array([np.sin(lean), np.cos(lean)]), str(rng.choice(["newton", "poisson"]))
    e, mu = float(rng.choice([0.0, 0.5, 0.9])), float(rng.choice([0.0, 0.3, 0.8]))
    m = _body(1.0, float(rng.choice([0.02, 0.08])))
    contacts = [
        Contact(one, Plane((n[0], 0.0, n[1])), friction=mu, restitution=e, impact=law, name=f"shape {k}")
        for k, one in enumerate(shapes)
    ]
    q = np.array([rng.uniform(-0.5, 0.5), rng.uniform(1.2, 1.8), rng.uniform(0.0, 6.0)])
    v = np.array([rng.uniform(-1, 1), rng.uniform(-2, 1), rng.choice([-1, 1]) * 10 ** rng.uniform(0.0, 1.5)])
    run = da.simulate(m, 0.8, q, v, contacts=contacts, method="moreau", step=h)
    words = f"{kind}, {law}, spin {v[2]:.3g}, e = {e}, mu = {mu}"
    if not run.ok:
        return _said(run)
    (x, z, angle), reach = run.q.T, max(float(np.hypot(a, b)) + r for a, b, r in points)
    c, s = np.cos(angle), np.sin(angle)
    depth = -np.min([n[0] * (x + a * c - b * s) + n[1] * (z + a * s + b * c) - r for a, b, r in points], axis=0)
    way = h * (np.hypot(run.v[:, 0], run.v[:, 1]) + reach * np.abs(run.v[:, 2]) + GRAVITY * h)
    if (deep := float((depth - WAYS * way).max())) > 1e-6:
        return "wrong", f"{deep:.2g} m in the ground beyond its way: {words}"
    if (gained := float(run.energy.total.max() - run.energy.total[0])) > GAIN * (
        abs(run.energy.total[0]) + run.kinetic[0]
    ):
        return "wrong", f"{gained:.2g} J gained: {words}"
    return "right", words


@cache
def _clamp(left: float, right: float) -> Any:
    """Return a part between two jaws that servos drive."""
    b = da.Builder("jaws", gravity=(0, 0, 0))
    for name in ("left", "right", "part"):
        b.body(name, mass=1.0, inertia=(0.01, 0.01, 0.01))
        b.joint(f"x {name}", "prismatic", parent="world", child=name, axis=(1, 0, 0))
    return b.build().constrain(da.Servo("x left", lambda t: left * t), da.Servo("x right", lambda t: -right * t))


def _jaws(rng: np.random.Generator) -> tuple[str, str]:
    """Close two jaws on a part that may bounce between them: the run ends where there is no room, and names both."""
    left, right = float(rng.choice([0.0, 0.3, 0.8])), float(rng.choice([0.2, 0.7]))
    e, mu, method = (
        float(rng.choice([0.0, 0.3, 0.7])),
        float(rng.choice([0.0, 0.4])),
        str(rng.choice(["hybrid", "moreau"])),
    )
    room, law = 0.6, str(rng.choice(["newton", "poisson"]))
    contacts = [
        Contact(Sphere("part", 0.1), Sphere(name, 0.1, (x, 0, 0)), friction=mu, restitution=e, impact=law, name=name)
        for name, x in (("left", -0.5), ("right", 0.5))
    ]
    end, start = room / (left + right), [left, -right, float(rng.uniform(-0.2, 0.2))]
    run = da.simulate(
        _clamp(left, right), 1.3 * end, [0.0, 0.0, float(rng.uniform(-0.2, 0.2))], start, contacts=contacts,
        method=method, **({"step": 2e-3} if method == "moreau" else {}),
    )  # fmt: skip
    words = f"jaws {left} {right}, {method}, {law}, e = {e}, mu = {mu}: {run.status} at {run.t[-1]:.6g} s of {end:.6g}"
    late = 1e-6 if method == "hybrid" else 8e-3
    if run.ok or run.t[-1] > end + late:
        return "wrong", words
    if run.status == "no solution" and not ("'left'" in run.message and "'right'" in run.message):
        return "wrong", f"{words}, contacts not named: {run.message}"
    return ("right", words) if abs(run.t[-1] - end) <= late else _said(run)


def _arm(rng: np.random.Generator) -> tuple[str, str]:
    """Let an arm with random data fall from the horizontal: its status says whether what does not act matters."""
    data: dict[str, Any] = {}
    friction, damping, limit = rng.random(3) < 0.4
    passive = bool(rng.random() < 0.7)
    data |= {"friction": float(rng.choice([0.1, 2.0]))} if friction else {}
    data |= {"damping": 0.05} if damping else {}
    upper = float(rng.choice([0.3, 2.5]))
    data |= {"limits": (-1.0, upper)} if limit else {}
    method = str(rng.choice(["dop853", "dopri5", "bdf", "radau", "variational", "hybrid", "moreau"]))
    b = da.Builder("arm")
    b.body("arm", mass=1.0, center=(0.5, 0, 0), inertia=(0.01, 0.1, 0.1))
    b.joint("hinge", "revolute", parent="world", child="arm", axis=(0, 1, 0), **data)
    more: dict[str, Any] = {"step": 1e-3} if method == "variational" else {}
    stops = method in ("hybrid", "moreau") and limit and rng.random() < 0.5
    if method in ("hybrid", "moreau"):
        more["contacts"] = [JointLimits()] if stops else [Contact(Sphere("arm", 0.1), Plane(offset=-5.0))]
    run = da.simulate(b.build(passive=passive), 0.6, [0.0], method=method, **more)
    beyond = bool(limit and not stops and run.q.max() > upper + 1e-6)
    ignored = (friction and method in WITHOUT_FRICTION) or beyond or (damping and not passive)
    words = f"{method}, {data}, passive {passive}, stops {stops}: {run.status}, {run.ignored}"
    if run.status != ("simplified" if ignored else "completed"):
        return "wrong", words
    torque = 0.0 if method in WITHOUT_FRICTION else data.get("friction", 0.0)
    end = _fall(torque, 0.05 if damping and passive else 0.0, upper if stops else np.inf)
    far = abs(run.q[-1, 0] - end)
    return ("right" if far <= FALL.get(method, 1e-5) else "wrong"), f"{words}, {far:.1e} rad off"


WITHOUT_FRICTION = ("bdf", "variational")
"""Methods that leave dry friction of joints out: steps that go on from the past, a discrete Lagrangian."""

FALL = {"moreau": 5e-3, "variational": 1e-4}
"""By method, how far off the end of the fall may be in rad: steps of 1 ms, and an order of one or two."""


def _fall(friction: float, damping: float, upper: float) -> float:
    """Return the angle after 0.6 s by SciPy: the arm only falls (friction is a constant) and stops without bounce."""

    def rate(t: float, y: np.ndarray) -> list[float]:
        return [y[1], (0.5 * 9.81 * np.cos(y[0]) - friction - damping * y[1]) / 0.35]

    def stop(t: float, y: np.ndarray) -> float:
        return float(y[0] - upper)

    stop.terminal = True  # type: ignore[attr-defined]
    events = stop if np.isfinite(upper) else None
    return float(solve_ivp(rate, (0.0, 0.6), [0.0, 0.0], rtol=1e-10, atol=1e-12, events=events).y[0, -1])
