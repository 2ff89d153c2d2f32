"""Examples: the crank-slider of seed 000, the belt of seed 001, the Stanford arm of seed 003, and what they show."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import numpy as np

from dalembert.errors import ModelError
from dalembert.friction import Bounded, Hyperbolic
from dalembert.model.lagrangian.lagrangian import Lagrangian
from dalembert.model.matrices import Matrices
from dalembert.model.mechanism.builder import Builder
from dalembert.model.mechanism.mechanism import Mechanism
from dalembert.model.mechanism.placement import Placement
from dalembert.model.system import solve as block_solve
from dalembert.types import Array

if TYPE_CHECKING:
    from dalembert.simulate import Trajectory

# ----------------------------------------------------------------------------------------------------------------------
# The two-link arm of seed 000 (eq. 31) as a crank-slider: the smallest system with a massless link.
#
# Symbols: theta1 the crank's angle, theta2 the rod's angle relative to the crank, counted clockwise (so that the row
# for equal lengths is proportional to [2, -1], as in the seed; with theta2 counted as in eq. 31 it is [2, 1]); w = v1 -
# v2 angular velocity of the rod; l1, l2 lengths, m1, m2 masses, I1, I2 = m2 l2^2 / 12 inertias about the centres.
#
#     2 T = (m1 l1^2 / 4 + I1) v1^2 + m2 (l1^2 v1^2 + l1 l2 cos(theta2) v1 w + l2^2 w^2 / 4) + I2 w^2
#     V / g = m1 l1 sin(theta1) / 2 + m2 (l1 sin(theta1) + l2 sin(theta1 - theta2) / 2)


def crank_slider(
    rod_mass: float = 0.0,
    l1: float = 1.0,
    l2: float = 1.0,
    crank_mass: float = 3.0,
    crank_inertia: float = 0.25,
    gravity: float = 9.81,
) -> Lagrangian:
    """Return crank, connecting rod, and a slider on the line y = 0; m1 l1^2 / 4 + I1 = 1 by default, as in eq. (34).

    All numbers are parameters of the system. Start it where the slider is on its line, as at q = (a, 2 a) for equal
    lengths.
    """
    import casadi as ca

    values = {
        "rod_mass": rod_mass,
        "l1": l1,
        "l2": l2,
        "crank_mass": crank_mass,
        "crank_inertia": crank_inertia,
        "gravity": gravity,
    }
    p = {name: ca.SX.sym(name) for name in values}
    m1, m2, a, b = p["crank_mass"], p["rod_mass"], p["l1"], p["l2"]
    q, v = ca.SX.sym("q", 2), ca.SX.sym("v", 2)
    w, turn = v[0] - v[1], q[0] - q[1]
    crank = (m1 * a**2 / 4 + p["crank_inertia"]) * v[0] ** 2
    rod = m2 * (a**2 * v[0] ** 2 + a * b * ca.cos(q[1]) * v[0] * w + b**2 * w**2 / 4) + m2 * b**2 / 12 * w**2
    height = m1 * a * ca.sin(q[0]) / 2 + m2 * (a * ca.sin(q[0]) + b * ca.sin(turn) / 2)
    return Lagrangian(
        q,
        v,
        kinetic=(crank + rod) / 2,
        potential=p["gravity"] * height,
        constraints={"slider": a * ca.sin(q[0]) + b * ca.sin(turn)},
        parameters={name: (p[name], value) for name, value in values.items()},
        coordinates=("theta1", "theta2"),
    )


ANGLE = np.pi / 3
"""Crank angle at which rods are compared, radians."""

LOAD = np.array([2.0, 0.3])
"""Torques on crank and rod, newton metres: without one on the rod a small mass would not be seen."""


def limit_of_a_light_rod() -> tuple[Array, Array, Array, Array]:
    """Return mass ratios, errors of the block form and of M^-1, and distances to the massless answer."""
    q, v = np.array([ANGLE, 2 * ANGLE]), np.array([1.0, 2.0])
    still = block_solve(crank_slider(), q, v, force=LOAD).acceleration
    masses = 10.0 ** -np.arange(0.0, 16.5, 1.0)
    block, traditional, apart = (np.zeros(masses.size) for _ in range(3))
    for k, mass in enumerate(masses):
        rod = crank_slider(rod_mass=3.0 * mass)
        exact = _reduced(rod, q, v)
        size = np.abs(exact).max()
        acceleration = block_solve(rod, q, v, force=LOAD).acceleration
        block[k], traditional[k] = (np.abs(x - exact).max() / size for x in (acceleration, _through_inverse(rod, q, v)))
        apart[k] = np.abs(acceleration - still).max()
    return masses, block, traditional, apart


def _reduced(rod: Lagrangian, q: Array, v: Array) -> Array:
    """Solve in the crank's angle alone: a = z y + a0 with A z = 0, A a0 = -drift."""
    row, f = rod.jacobian(q)[0], LOAD - rod.bias(q, v)
    z, start = np.array([1.0, -row[0] / row[1]]), np.array([0.0, -rod.drift(q, v)[0] / row[1]])
    M = rod.mass_matrix(q)
    return start + z * (z @ (f - M @ start)) / (z @ M @ z)


def _through_inverse(rod: Lagrangian, q: Array, v: Array) -> Array:
    """Solve by the traditional formulas (24), (25)."""
    Mi, A, f = np.linalg.inv(rod.mass_matrix(q)), rod.jacobian(q), LOAD - rod.bias(q, v)
    lam = np.linalg.inv(A @ Mi @ A.T) @ (A @ Mi @ f + rod.drift(q, v))
    return Mi @ (f - A.T @ lam)


# ----------------------------------------------------------------------------------------------------------------------
# Two blocks on a belt (seed 001, section 4, Table 1, eqs. 21a, 21b): three contacts, redundant when all stick.
#
# Symbols: q1, q2 displacements, m1, m2 masses, k stiffness of both springs, T1, T2 limits between blocks and belt, T3
# between the blocks, speed of the belt. Elastic forces -k (2 q1 - q2) on block 1 and -k (q2 - q1) on block 2.


CONTACTS = ("belt 1", "belt 2", "between")
"""Names of the contacts, in the order of T1, T2, T3."""


def two_blocks(
    masses: tuple[float, float] = (4.0, 7.0),
    limits: tuple[float, float, float] = (4.0, 7.0, 5.0),
    stiffness: float = 14.0,
    speed: float = 0.3,
    decay: float = 3.0,
) -> Matrices:
    """Return the system with the parameters of Table 1; start it at q = (0, 0), v = (speed, speed)."""
    elastic = stiffness * np.array([[2.0, -1.0], [-1.0, 1.0]])
    M = np.diag(masses)

    def energy(q: Array, v: Array, t: float) -> float:
        return 0.5 * float(v @ M @ v) + 0.5 * float(q @ elastic @ q)

    directions = ([1.0, 0.0], [0.0, 1.0], [1.0, -1.0])
    surfaces = (speed, speed, 0.0)
    return Matrices(
        {"q1": masses[0], "q2": masses[1]},
        force=lambda q, v, t: -elastic @ q,
        friction=[
            Bounded(name, w, Hyperbolic(limit, decay), surface=surface)
            for name, w, limit, surface in zip(CONTACTS, directions, limits, surfaces, strict=True)
        ],
        energy=energy,
    )


def perturbed_blocks() -> Lagrangian:
    """Return the two blocks with the friction of each contact as parameters: "speed NAME" and "load NAME".

    Speeds are those of the surfaces, 0.3, 0.3 and 0 m/s; loads multiply the limits. All three contacts stick at once
    only where speed belt 1 = speed belt 2 + speed between: else one of them creeps, and the forces are determined.
    """
    import casadi as ca

    q, v = ca.SX.sym("q", 2), ca.SX.sym("v", 2)
    limits, speeds, masses, stiffness = (4.0, 7.0, 5.0), (BELT_SPEED, BELT_SPEED, 0.0), (4.0, 7.0), 14.0
    speed, load = ([ca.SX.sym(f"{word} {name}") for name in CONTACTS] for word in ("speed", "load"))
    friction = [
        Bounded(name, way, Hyperbolic(limit), load=factor, surface=surface)
        for name, way, limit, factor, surface in zip(
            CONTACTS, (v[0], v[1], v[0] - v[1]), limits, load, speed, strict=True
        )
    ]
    parameters = {f"speed {name}": (x, usual) for name, x, usual in zip(CONTACTS, speed, speeds, strict=True)}
    parameters |= {f"load {name}": (x, 1.0) for name, x in zip(CONTACTS, load, strict=True)}
    kinetic = masses[0] * v[0] ** 2 / 2 + masses[1] * v[1] ** 2 / 2
    potential = stiffness * (q[0] ** 2 + (q[1] - q[0]) ** 2) / 2
    return Lagrangian(q, v, kinetic, potential, parameters=parameters, friction=friction, coordinates=("q1", "q2"))


BELT_SPEED = 0.3
"""Speed of the belt and of both blocks at the start, m/s."""

TOLERANCES = {"rtol": 1e-13, "atol": 1e-15}
"""Nine digits of an event after 30 s: halving the tolerances changes none of them."""

STEEP = 0.4
"""The slope of the regularised law is stiff: part of the step that it is run with."""


def run_two_blocks(duration: float = 30.0, **options: Any) -> Trajectory:
    """Simulate the seed's example, every event located; options go to `da.simulate`."""
    from dalembert.simulate import simulate

    speed = [BELT_SPEED, BELT_SPEED]
    return simulate(two_blocks(), duration, [0.0, 0.0], speed, **{**TOLERANCES, **options})


COMPARED = {
    "exact, events": {"method": "hybrid"},
    "exact, fixed step": {"method": "fixed", "resolver": "exact"},
    "flowchart": {"method": "fixed", "resolver": "flowchart"},
    "flowchart, short form": {"method": "fixed", "resolver": "flowchart", "form": "short"},
    "switch": {"method": "fixed", "resolver": "switch"},
    "regularised": {"method": "fixed", "resolver": "regularised", "width": 1e-3},
}
"""Every method on the same motion."""


def compare_methods(duration: float, step: float) -> list[dict[str, Any]]:
    """Run every method; return event times, creep, steps, run time, and where it stopped."""
    rows, reference = [], np.zeros(0)
    for name, options in COMPARED.items():
        options = dict(options)
        size = STEEP * step if name == "regularised" else step
        extra = {"step": size, "stepper": "rk4"} if options["method"] == "fixed" else {}
        begin = time.perf_counter()
        run = run_two_blocks(duration, **extra, **options)
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
                "creep": float(np.abs(run.v[first] - BELT_SPEED).max()),
                "steps": run.steps,
                "seconds": spent,
                "stopped": "" if run.ok else f"stops at {run.t[-1]:.3f} s: {run.message.splitlines()[0]}",
            }
        )
    return rows


def _starts_of_slip(run: Trajectory) -> Array:
    """Return when a regularised contact leaves or enters the band |velocity| < 0.01 m/s: it never sticks."""
    speed = np.abs(np.column_stack([run.v[:, 0] - BELT_SPEED, run.v[:, 1] - BELT_SPEED, run.v[:, 0] - run.v[:, 1]]))
    inside = speed < 0.01
    return np.sort(np.concatenate([run.t[1:][inside[1:, i] != inside[:-1, i]] for i in range(3)]))


# ----------------------------------------------------------------------------------------------------------------------
# The Stanford (Scheinman) arm, seed 003's example (Fig. 9): six joints, the third one prismatic.
#
# Parameters: R. P. Paul, "Robot Manipulators", MIT Press 1981, and Stanford AIM-177 (1972), as printed in P. Corke's
# Robotics Toolbox for MATLAB, `mdl_stanford.m`; standard Denavit-Hartenberg frames. The toolbox's centres of mass of
# links 2 to 6 look ten times too large (the book's table is in centimetres): both readings are offered.


FRAMES = (  # kind, theta, d, a, alpha; the joint's variable stands where None is
    ("revolute", None, 0.412, 0.0, -np.pi / 2),
    ("revolute", None, 0.154, 0.0, np.pi / 2),
    ("prismatic", -np.pi / 2, None, 0.0, 0.0),
    ("revolute", None, 0.0, 0.0, -np.pi / 2),
    ("revolute", None, 0.0, 0.0, np.pi / 2),
    ("revolute", None, 0.263, 0.0, 0.0),
)

MASSES = (9.29, 5.01, 4.25, 1.08, 0.630, 0.51)

INERTIAS = (
    (0.276, 0.255, 0.071),
    (0.108, 0.018, 0.100),
    (2.51, 2.51, 0.006),
    (0.002, 0.001, 0.001),
    (0.003, 0.003, 0.0004),
    (0.013, 0.013, 0.0003),
)
"""Principal moments about the centres of mass, along the link frames."""

CENTRES: dict[str, Any] = {
    "printed": (
        (0, 0.0175, -0.1105),
        (0, -1.054, 0),
        (0, 0, -6.447),
        (0, 0.092, -0.054),
        (0, 0, 0.566),
        (0, 0, 1.554),
    ),
    "centimetres": (
        (0, 0.0175, -0.1105),
        (0, -0.1054, 0),
        (0, 0, -0.6447),
        (0, 0.0092, -0.0054),
        (0, 0, 0.0566),
        (0, 0, 0.1554),
    ),
}
"""Centres of mass in the link frames, metres: as printed, and with links 2 to 6 read as centimetres times ten."""


def stanford_arm(reading: str = "centimetres") -> Mechanism:
    """Return the arm; `reading` of the table of centres of mass is "centimetres" or "printed".

    The frame of link i is its Denavit-Hartenberg frame; joint i turns about, or slides along, the z axis before it.
    """
    if not isinstance(reading, str) or reading not in CENTRES:
        raise ModelError(f"reading {reading!r} is not one of {', '.join(map(repr, CENTRES))}")
    b = Builder("Stanford arm")
    for i, (kind, theta, d, a, alpha) in enumerate(FRAMES):
        link, parent = f"link{i + 1}", f"link{i}" if i else "world"
        b.body(link, mass=MASSES[i], center=CENTRES[reading][i], inertia=INERTIAS[i])
        before = Placement.from_rpy((0, 0, theta or 0.0), (0, 0, d or 0.0))
        after = Placement.from_rpy((alpha, 0, 0), (a, 0, 0))
        b.joint(
            f"joint{i + 1}",
            kind,
            parent=parent,
            child=link,
            axis=(0, 0, 1),
            placement=before,
            child_placement=after.inverse(),
        )
    return b.build()
