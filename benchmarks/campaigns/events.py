"""Random motions with a closed form: every sample that was asked for, every zero of random events, every pulse.

The oracle is the closed form: zeros are found by dense sampling of the event function on it and by Brent's method; a
pulse is a piece of a linear motion. A zero may be missing, or be too much, where the function stays below what the
error of the run (measured against the closed form) explains. Samples are compared number by number.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from itertools import pairwise
from typing import Any

import casadi as ca
import numpy as np
from scipy.optimize import brentq
from scipy.special import ellipj, ellipk

import dalembert as da
from dalembert.simulate.contact import Contact, Sphere
from dalembert.simulate.events.asked import Event

TITLE: str = "samples, zeros of events and pulses of forces in time, against closed forms"

Array = np.ndarray
Motion = Callable[[Array], tuple[Array, Array]]

MARGIN = 50.0
"""Errors of the state times this may move or hide a zero."""

ALLOWED = 1e4
"""Tolerances, per second, that a run may be off by: a missed pulse is thousands of times more."""


@cache
def hinge(gravity: float) -> Any:
    """Return a body on a hinge, inertia 1 about it, hanging along -y; far above a ground."""
    b = da.Builder("body", gravity=(0, -gravity, 0))
    b.body("bob", mass=1.0, center=(0, -1 if gravity else 0, 0), inertia=(1, 1, 0 if gravity else 1))
    b.joint("hinge", "revolute", parent="world", child="bob", axis=(0, 0, 1), position=(0, 0, 100))
    return b.build()


@cache
def oscillator() -> Any:
    """Return x'' = -k x - c x' + force as a Lagrangian; k and c act in the force."""
    x, v = ca.SX.sym("x"), ca.SX.sym("v")
    return da.Lagrangian(x, v, kinetic=0.5 * v**2)


def linear(k: float, c: float, q: float, v: float, breaks: Array, forces: Array) -> Motion:
    """Return the motion of x'' + c x' + k x = piecewise constant forces, exactly."""
    A = np.array([[0.0, 1.0], [-k, -c]])
    rates, modes = np.linalg.eig(A.astype(complex))
    inverse = np.linalg.inv(modes)
    starts = [np.array([q, v])]
    rest = [np.array([f / k, 0.0]) for f in forces]
    for a, b, r in zip(breaks[:-1], breaks[1:], rest, strict=False):
        starts.append((modes @ (np.exp(rates * (b - a)) * (inverse @ (starts[-1] - r)))).real + r)

    def at(t: Array) -> tuple[Array, Array]:
        piece = np.clip(np.searchsorted(breaks, t, side="right") - 1, 0, len(forces) - 1)
        away = np.array([inverse @ (starts[i] - rest[i]) for i in range(len(forces))])[piece]
        y = (np.exp(rates[None] * (t - breaks[piece])[:, None]) * away) @ modes.T
        y = y.real + np.array(rest)[piece]
        return y[:, 0], y[:, 1]

    return at


def wheel(q: float, v: float, breaks: Array, forces: Array) -> Motion:
    """Return the motion of x'' = piecewise constant forces."""
    starts = [(q, v)]
    for a, b, f in zip(breaks[:-1], breaks[1:], forces, strict=False):
        x, u, h = *starts[-1], b - a
        starts.append((x + u * h + f * h * h / 2, u + f * h))
    at_start, f = np.array(starts[: len(forces)]), np.asarray(forces)

    def at(t: Array) -> tuple[Array, Array]:
        i = np.clip(np.searchsorted(breaks, t, side="right") - 1, 0, len(forces) - 1)
        h = t - breaks[i]
        return at_start[i, 0] + at_start[i, 1] * h + f[i] * h * h / 2, at_start[i, 1] + f[i] * h

    return at


def swinging(q: float, t0: float) -> Motion:
    """Return the motion of a pendulum of 1 m, let go at q."""
    k, w = np.sin(abs(q) / 2), np.sqrt(9.81)

    def at(t: Array) -> tuple[Array, Array]:
        sn, cn, _, _ = ellipj(w * (t - t0) + ellipk(k * k), k * k)
        return np.sign(q) * 2 * np.arcsin(k * sn), np.sign(q) * 2 * k * w * cn

    return at


def random_event(rng: np.random.Generator, size: float, speed: float) -> tuple[Callable[..., Any], float]:
    """Return g(t, q, v) for numbers and arrays, and how strongly it feels the state."""
    kind, b = rng.integers(4), rng.uniform(0, 2 * np.pi)
    if kind == 0:
        w = rng.uniform(0.5, 8.0)
        return (lambda t, q, v: np.sin(w * q + b)), w
    if kind == 1:
        c = rng.uniform(-0.9, 0.9) * size
        return (lambda t, q, v: q - c), 1.0
    if kind == 2:
        c = rng.uniform(-0.9, 0.9) * speed
        return (lambda t, q, v: v - c), 1.0
    w = rng.uniform(1.0, 300.0)
    return (lambda t, q, v: np.sin(w * t + b) + 0.3 * q / size), 0.3 / size


def zeros_of(g: Callable[[Array], Array], begin: float, end: float, breaks: Array) -> tuple[Array, Array]:
    """Return the zeros of g inside a span and the least |g| that separates each from its neighbours."""
    t = np.union1d(np.linspace(begin, end, 60_001), breaks[(breaks >= begin) & (breaks <= end)])
    y = g(t)
    places = np.flatnonzero(y[:-1] * y[1:] < 0)
    found = np.array([brentq(lambda x: g(np.array([x]))[0], t[i], t[i + 1], xtol=1e-15) for i in places])
    edges = [0, *(places + 1).tolist(), t.size]
    heights = [np.abs(y[a:b]).max(initial=0.0) for a, b in pairwise(edges)]
    return found, np.array([min(heights[i], heights[i + 1]) for i in range(len(found))])


def asked(start: float, duration: float, every: float) -> list[float]:
    """Return start + k every and the end, as promised."""
    end, k = start + duration, int(np.ceil(duration / every)) + 1
    times = start + every * np.arange(k + 1)
    inner = times[(times < end) & (np.abs(times - end) > 8 * np.finfo(float).eps * max(abs(start), abs(end)))]
    return [*inner.tolist(), end]


def trial(rng: np.random.Generator) -> tuple[str, str]:
    """Run one random case and judge it."""
    case = _case(rng)
    try:
        run = da.simulate(
            case["system"], case["duration"], [case["q"]], [case["v"]], t=case["start"], **case["options"]
        )
    except da.DalembertError as refused:
        return "refused", f"{type(refused).__name__}: {str(refused)[:60]}"
    except Exception as error:
        return "foreign", f"{case['label']}: {type(error).__name__}: {error}"
    if run.status not in ("completed", "event"):
        return "refused", f"{run.status}: {run.message[:60]}"
    if "may be missing" in run.message:
        return "refused", "events that cannot be followed"
    return _judged(case, run)


def _case(rng: np.random.Generator) -> dict[str, Any]:
    kind = rng.choice(["wheel", "spring", "pendulum", "lagrangian"])
    method = rng.choice(["dop853", "dopri5", "bdf", "radau", "variational", "hybrid"])
    start, duration = float(rng.choice([0.0, 0.0, 1.7, -3.3])), float(rng.uniform(0.3, 4.0))
    if method == "hybrid":  # steps in Python
        duration *= 0.1
    rtol = float(10.0 ** rng.uniform(-10.5, -5.5))
    options: dict[str, Any] = {"rtol": rtol, "atol": rtol}
    q, v = float(rng.uniform(0.3, 2.0) * rng.choice([-1, 1])), float(rng.uniform(-3, 3))
    breaks, forces, k, c = np.array([start]), np.array([0.0]), 0.0, 0.0
    step = duration / 4000
    if kind != "pendulum" and rng.random() < 0.5:
        first, length = rng.uniform(0.1, 0.8) * duration, 10.0 ** rng.uniform(-4, -1.3)
        if method == "variational":
            first, length = step * round(first / step), step * max(1, round(length / step))
        breaks = start + np.array([0.0, first, min(first + length, 0.95 * duration)])
        forces = np.array([0.0, rng.uniform(0.3, 2.0) / length, 0.0])
    if kind in ("spring", "lagrangian"):
        k, c = rng.uniform(1.0, 400.0 if method == "hybrid" or kind == "lagrangian" else 2500.0), rng.uniform(0.0, 2.0)
    if kind == "wheel":
        v = float(rng.uniform(1.0, 120.0))
    if kind == "pendulum":
        v = 0.0
    motion = (
        swinging(q, start) if kind == "pendulum" else wheel(q, v, breaks, forces) if kind == "wheel"
        else linear(k, c, q, v, breaks, forces)
    )  # fmt: skip
    if kind != "pendulum" and (k or len(forces) > 1):

        def force(t: float, q: Array, v: Array) -> Array:
            i = min(max(int(np.searchsorted(breaks, t, side="right")) - 1, 0), len(forces) - 1)
            return np.array([forces[i] - k * q[0] - c * v[0]])

        if rng.random() < 0.5:
            force.breaks = breaks[1:]  # type: ignore[attr-defined]
        else:
            options["breaks"] = breaks[1:]
        options["force"] = force
    if kind == "lagrangian":
        options["method"] = str(method := rng.choice(["dop853", "dopri5", "radau"]))
    else:
        options["method"] = str(method)
        options |= {"step": step} if method == "variational" else {}
        options |= {"contacts": [Contact(Sphere("bob", radius=0.1))]} if method == "hybrid" else {}
    t = np.linspace(start, start + duration, 2001)
    size, speed = (max(float(np.abs(each).max()), 1e-3) for each in motion(t))
    events, feels = {}, {}
    for i in range(rng.integers(0, 3) if kind != "lagrangian" else 0):
        g, feel = random_event(rng, size, speed)
        terminal = int(rng.integers(1, 6)) if rng.random() < 0.2 else 0
        events[f"g{i}"] = Event(lambda t, q, v, g=g: g(t, q[0], v[0]), terminal, int(rng.integers(-1, 2)))
        feels[f"g{i}"] = g, feel
    if events:
        options["events"] = events
    if rng.random() < 0.7:
        every = float(rng.choice([0.1, 0.05, duration / 7, duration / 10, rng.uniform(0.01, 1.5) * duration]))
        options["every"] = step * max(1, round(every / step)) if method == "variational" else every
    return {
        "system": oscillator() if kind == "lagrangian" else hinge(9.81 if kind == "pendulum" else 0.0),
        "label": f"{kind} {method} rtol={rtol:.1e}", "duration": duration, "start": start, "q": q, "v": v,
        "options": options, "motion": motion, "events": events, "feels": feels, "breaks": breaks, "rtol": rtol,
        "scale": max(size, speed, 1.0), "method": str(method), "step": step, "fast": np.sqrt(max(k, 10.0)),
    }  # fmt: skip


def _judged(case: dict[str, Any], run: Any) -> tuple[str, str]:
    label, start, duration = case["label"], case["start"], case["duration"]
    q, v = case["motion"](run.t)
    error = max(float(np.abs(run.q[:, 0] - q).max()), float(np.abs(run.v[:, 0] - v).max()))
    allowed = ALLOWED * case["rtol"] * case["scale"] * (1.0 + duration) * case["fast"]
    if case["method"] == "variational":
        allowed = (case["fast"] * case["step"]) ** 2 * case["scale"] * (1.0 + duration * case["fast"])
    if not error <= allowed:
        return "wrong", f"{label}: off by {error:.1e}, allowed {allowed:.1e}"
    times = np.array([e.time for e in run.events])
    if (np.diff(times) < 0).any() or (np.diff(run.t) < 0).any():
        return "wrong", f"{label}: times out of order"
    if "every" in case["options"]:
        want = {t for t in asked(start, duration, case["options"]["every"]) if t <= run.t[-1]}
        if not want <= set(run.t) or not set(run.t) <= want | set(times):
            return "wrong", f"{label}: samples missing {sorted(want - set(run.t))[:3]} or too many"
    for name, watch in case["events"].items():
        said = _zeros_judged(case, run, name, watch, max(error, 1e-13 * case["scale"]))
        if said:
            return "wrong", f"{label}: {said}"
    return "right", ""


def _zeros_judged(case: dict[str, Any], run: Any, name: str, watch: Event, error: float) -> str:
    """Return what is wrong with the zeros of one event, or nothing."""
    g, feel = case["feels"][name]

    def on_motion(t: Array) -> Array:
        return g(t, *case["motion"](t))

    end, noise = float(run.t[-1]), MARGIN * feel * error + 1e-12
    exact, heights = zeros_of(on_motion, case["start"], end, case["breaks"])
    slopes = np.array([(on_motion(np.array([t + 1e-7])) - on_motion(np.array([t - 1e-7])))[0] for t in exact])
    firm = heights > noise
    found = np.array([e.time for e in run.events if e.contact == name])
    for t, slope, sure in zip(exact, slopes, firm, strict=True):
        near = noise / max(abs(slope) / 2e-7, 1e-9) + 1e-9
        counts = sure and watch.direction * slope >= 0 and case["start"] + near < t < end - near
        if counts and (not found.size or np.abs(found - t).min() > max(near, 1e-7)):
            return f"zero of {name} at {t:.9g} of {exact.size} is missing"
    for t in found:
        if abs(on_motion(np.array([t]))[0]) > noise + 1e-9 * (1.0 + np.abs(slopes).max(initial=0.0) / 2e-7):
            return f"{name} has no zero at {t:.9g}: {on_motion(np.array([t]))[0]:.2g}"
    count = int(watch.terminal)
    if run.status == "completed" and count and found.size >= count:
        return f"{name} ends the run after {count} zeros, and {found.size} are there"
    return ""
