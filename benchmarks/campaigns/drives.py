"""Motions prescribed in time, beside everything that moves freely, rubs, repeats itself or has no mass.

A cart on x follows a drive; a pendulum hangs on it, a block on a vertical guide of it may rest on the floor. The cart
and the block follow closed forms, the pendulum an equation of its own (SciPy, rtol 1e-11), and the force of the drive
is the rate of momentum along x and what rubs. Drives are expressions, piecewise cubic ones, tables and Python
functions, from rest or already moving; as rows of a mechanism, a Lagrangian, or matrices, or as a known coordinate.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import casadi as ca
import numpy as np
from scipy.integrate import solve_ivp
from scipy.interpolate import CubicSpline

import dalembert as da
from dalembert.errors import DalembertError
from dalembert.friction import Dry, JointFriction

TITLE: str = "driven motion x methods x contacts, joint friction, redundant rows, massless parts: nothing is wrong"

G, CART, BOB, BLOCK, LENGTH = 9.81, 1.0, 0.5, 0.8, 0.4
DURATION = 0.6
TIMES = np.linspace(0.0, DURATION, 31)
METHODS = ("dop853", "dopri5", "rk4", "bdf", "radau", "ida", "variational", "hybrid", "moreau")
BY_STEPS = {"rk4": 5e-4, "variational": 5e-4, "moreau": 5e-4}
LEFT_OUT = ("bdf", "ida", "variational")
"""Methods that leave dry friction of joints out, and say so."""

ALLOWED = {"rk4": 1e-6, "variational": 2e-4, "moreau": 1e-2}
"""By method, errors of states where motions are of size one; others have tolerances of 1e-8."""

FORCES = {"rk4": 1e-5, "variational": 5e-2, "moreau": 5e-2}
"""By method, errors of the drive's force beside its size: of time steps, the mean over a step."""

ADAPTIVE = 1e-5


class Drive:
    """A motion of the cart: the same as an expression of t and, with two rates, as numbers."""

    def __init__(self, words: str, expression: Any) -> None:
        self.words, self.expression = words, expression
        t = ca.SX.sym("t")
        x = expression(t)
        v = ca.jacobian(x, t)
        self.parts = [ca.Function("part", [t], [e]) for e in (x, v, ca.jacobian(v, t))]

    def at(self, t: Any, k: int) -> Any:
        """Return the k-th rate at times."""
        return np.asarray(self.parts[k](np.atleast_1d(t)[None])).ravel()

    def function(self, k: int) -> Any:
        """Return the k-th rate as a Python function of a time."""
        return lambda t: float(self.parts[k](t))


def _drive(rng: np.random.Generator) -> Drive:
    """Return a random drive, at rest at the start or not."""
    A, w = round(float(rng.uniform(0.05, 0.5)), 3), round(float(10 ** rng.uniform(0.0, 1.3)), 3)
    kind = str(rng.choice(["rest", "moving", "pieces", "late"]))
    if kind == "rest":
        return Drive(f"{A} (1 - cos {w} t)", lambda t: A * (1 - ca.cos(w * t)))
    if kind == "moving":
        return Drive(f"{A} sin {w} t", lambda t: A * ca.sin(w * t))
    knots = np.sort(rng.uniform(0.0, DURATION, 3)).round(3)
    jerks = rng.uniform(-5, 5, 3).round(3)
    if kind == "pieces":
        return Drive(
            f"{A} t + {jerks} t^3 from {knots}",
            lambda t: A * t + sum(j * ca.fmax(t - k, 0) ** 3 for j, k in zip(jerks, knots, strict=True)),
        )
    start = float(knots[0])
    return Drive(f"{A} (t - {start})^4 w^2 after rest", lambda t: A * w * w * ca.fmax(t - start, 0) ** 4)


DRIVES = [_drive(np.random.default_rng(k)) for k in range(12)]
"""Few, so that their compiled codes are found again."""


def _mechanism(case: Case, driven: bool) -> Any:
    """Return cart, pendulum and block; the cart has no mass where parts are massless."""
    b = da.Builder("cart", gravity=(0, 0, -G))
    if case.cart:
        b.body("cart", mass=case.cart, inertia=(0.1, 0.1, 0.1))
    else:
        b.body("cart")
    friction: dict[str, Any] = {"friction": case.rub} if case.rub else {}
    b.joint("x", "prismatic", parent="world", child="cart", axis=(1, 0, 0), **friction)
    b.body("bob", mass=BOB, center=(0, 0, -LENGTH), inertia=(0, 0, 0))
    b.joint("angle", "revolute", parent="cart", child="bob", axis=(0, -1, 0))
    b.body("block", mass=BLOCK, inertia=(0.1, 0.1, 0.1))
    b.joint("z", "prismatic", parent="cart", child="block", axis=(0, 0, 1))
    rows = [da.Servo("x", case.drive.expression, name="drive")] if driven else []
    rows += [da.Servo("x", case.drive.expression, name="again")] if driven and case.twice else []
    return b.build().constrain(*rows) if rows else b.build()


def _lagrangian(case: Case, driven: bool) -> Any:
    """Return the same by its energies."""
    q, v, t, u = ca.SX.sym("q", 3), ca.SX.sym("v", 3), ca.SX.sym("t"), ca.SX.sym("u")
    bob = ca.vertcat(v[0] + LENGTH * v[1] * ca.cos(q[1]), LENGTH * v[1] * ca.sin(q[1]))
    kinetic = 0.5 * (case.cart * v[0] ** 2 + BOB * ca.sumsqr(bob) + BLOCK * (v[0] ** 2 + v[2] ** 2))
    rows = [("drive", q[0] - case.drive.expression(t))] if driven else []
    rows += [("again", q[0] - case.drive.expression(t))] if driven and case.twice else []
    floor = [da.Unilateral("floor", gap=q[2] - 0.1, along=v[0], law=case.mu)] if case.floor else None
    friction = [JointFriction("joint", "x", Dry(case.rub))] if case.rub else None
    return da.Lagrangian(
        q, v, kinetic=kinetic, potential=G * (BLOCK * q[2] - BOB * LENGTH * ca.cos(q[1])), time=t,
        constraints=rows, friction=friction, unilateral=floor, coordinates=("x", "angle", "z"),
        forces=None if driven else ca.vertcat(u, 0, 0), controls=None if driven else u,
    )  # fmt: skip


@dataclass(frozen=True)
class Case:
    """What was drawn."""

    drive: Drive
    method: str
    system: str
    floor: bool
    mu: float
    rub: float
    twice: bool
    cart: float
    angle: float
    known: str

    def __str__(self) -> str:
        parts = [f"floor, mu = {self.mu}" if self.floor else "", f"joint friction {self.rub}" if self.rub else "",
                 "two rows" if self.twice else "", "" if self.cart else "cart without mass"]  # fmt: skip
        known = f", known as {self.known}" if self.known else ""
        parts = "; ".join(part for part in parts if part)
        return f"{self.method}, {self.system}{known}, x = {self.drive.words}, {parts}"

    def at(self, t: Any, k: int) -> np.ndarray:
        """Return the k-th rate of the cart's place at times: of a table, that of the spline through it."""
        if self.known == "table":
            return CubicSpline(TIMES, self.drive.at(TIMES, 0))(np.atleast_1d(t), k)
        return self.drive.at(t, k)

    @property
    def rubs(self) -> float:
        """Friction that acts on the cart, N, where the method knows it."""
        joint = 0.0 if self.method in LEFT_OUT else self.rub
        return joint + (self.mu * BLOCK * G if self.floor else 0.0)


def trial(rng: np.random.Generator) -> tuple[str, str]:
    """Run one random drive by one method."""
    case = _case(rng)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return _judged(case, _run(case, rng))
    except DalembertError as refused:
        return "refused", f"{case.method} {case.system}: {type(refused).__name__}: {str(refused)[:80]}"
    except Exception as error:
        return "foreign", f"{case}: {type(error).__name__}: {error}"


def _case(rng: np.random.Generator) -> Case:
    """Draw a case that its method takes."""
    drive, method = DRIVES[rng.integers(len(DRIVES))], str(rng.choice(METHODS))
    system = str(rng.choice(["mechanism", "lagrangian"]))
    touches = method in ("hybrid", "moreau") or (method in ("dop853", "dopri5", "rk4", "radau") and rng.random() < 0.3)
    rub = float(rng.choice([0.0, 0.0, 0.7, 3.0]))
    known = str(rng.choice(["", "table", "functions"])) if method in ("bdf", "radau", "ida") and not touches else ""
    unknown = bool(known) or (system == "lagrangian" and method in LEFT_OUT)
    return Case(
        drive, method, system, touches, mu=float(rng.choice([0.0, 0.3])) * touches, rub=0.0 if unknown else rub,
        twice=bool(rng.random() < 0.3) and not known, cart=CART if rng.random() < 0.7 else 0.0,
        angle=float(rng.uniform(-1.5, 1.5)), known=known,
    )  # fmt: skip


def _run(case: Case, rng: np.random.Generator) -> Any:
    """Simulate; where nothing touches, the drive may be a known coordinate in place of rows."""
    build = _mechanism if case.system == "mechanism" else _lagrangian
    more: dict[str, Any] = {"step": BY_STEPS[case.method]} if case.method in BY_STEPS else {"rtol": 1e-8, "atol": 1e-8}
    more |= {"every": 0.01} if rng.random() < 0.5 and case.method not in BY_STEPS else {}
    if case.floor and case.system == "mechanism":
        more["contacts"] = [da.Contact(da.Sphere("block", 0.1), friction=case.mu, name="floor")]
    q = [float(case.drive.at(0.0, 0)[0]), case.angle, 0.1]
    v = [float(case.drive.at(0.0, 1)[0]), 0.0, 0.0]
    if case.known:
        more["known"] = {"x": KNOWN[case.known](case.drive)}
        q, v = {"angle": case.angle, "z": 0.1}, {"angle": 0.0, "z": 0.0}
    return da.simulate(build(case, driven=not case.known), DURATION, q, v, method=case.method, **more)


KNOWN = {
    "table": lambda drive: (TIMES, drive.at(TIMES, 0), "cubic"),
    "functions": lambda drive: [drive.function(k) for k in range(3)],
}
"""A known coordinate: values at times, or functions of time for the value and its two rates."""


def _judged(case: Case, run: Any) -> tuple[str, str]:
    """Compare a run with closed forms, SciPy, and the momentum along x."""
    expected = "simplified" if case.rub and case.method in LEFT_OUT else "completed"
    if not run.ok and run.status != "simplified":
        return "refused", f"{case.method} {case.system}: {run.status}: {run.message[:60]}"
    if run.status != expected:
        return "wrong", f"{case}: {run.status} in place of {expected}: {run.message}"
    t = run.t
    angle, rate = _pendulum(case, t)
    z = 0.1 if case.floor else 0.1 - 0.5 * G * t**2
    truth = np.column_stack([case.at(t, 0), angle, z + 0 * t])
    speeds = np.column_stack([case.at(t, 1), rate, (0.0 if case.floor else -G) * t])
    allowed = ALLOWED.get(case.method, ADAPTIVE / 10)
    far = float((np.abs(run.q - truth) / (1 + np.abs(truth))).max())
    fast = float((np.abs(run.v - speeds) / (10 + np.abs(speeds))).max())
    words = f"{case}: {far:.1e} off, velocities {fast:.1e}"
    if not max(far, fast) <= allowed:
        return "wrong", words
    missed = _force_missed(case, run, t, speeds, angle)
    if not missed <= FORCES.get(case.method, ADAPTIVE):
        return "wrong", f"{words}, the drive's force {missed:.1e}"
    return "right", words


def _pendulum(case: Case, t: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return angle and rate of a pendulum whose pivot is driven."""

    def rates(t: float, y: np.ndarray) -> list[float]:
        return [y[1], -(G * np.sin(y[0]) + case.at(t, 2)[0] * np.cos(y[0])) / LENGTH]

    found = solve_ivp(rates, (0, DURATION), [case.angle, 0.0], method="DOP853", dense_output=True, rtol=1e-11,
                      atol=1e-12, max_step=0.02)  # fmt: skip
    return found.sol(t)


def _force_missed(case: Case, run: Any, t: np.ndarray, speeds: np.ndarray, angle: np.ndarray) -> float:
    """Return by how much the drive's force misses the rate of momentum and friction, over their size.

    Time steps give the mean over a step: compared in its middle. Of two samples at an event the second counts: at the
    start the block is set down.
    """
    if case.known:
        force = run["tau x" if case.system == "mechanism" else "u"]
    else:
        force = -np.sum(run.multipliers[:, : 2 if case.twice else 1], axis=1)
    if case.method in BY_STEPS and case.method != "rk4":
        t, speeds, force = 0.5 * (t[1:] + t[:-1]), 0.5 * (speeds[1:] + speeds[:-1]), force[1:]
        angle = 0.5 * (angle[1:] + angle[:-1])
    a = case.at(t, 2)
    turning = -(G * np.sin(angle) + a * np.cos(angle)) / LENGTH
    swing = BOB * LENGTH * (turning * np.cos(angle) - speeds[:, 1] ** 2 * np.sin(angle))
    inertia = (case.cart + BOB + BLOCK) * a + swing
    slides = np.abs(speeds[:, 0]) > SLIDES
    truth = inertia + case.rubs * np.sign(speeds[:, 0])
    sure = (slides | (case.rubs == 0.0)) & (np.diff(t, append=np.inf) > 0.0)
    return float(np.abs(force - truth)[sure].max(initial=0.0) / (1.0 + np.abs(truth).max()))


SLIDES = 0.02
"""Speed, m/s, above which steps of half a millisecond do not turn back."""
