"""What an environment simulates, observes and rewards; four that are registered with Gymnasium.

- `dalembert/LightCartPole-v0`: a cart swings up a pole whose rod has no mass, a point mass at its end.
- `dalembert/FourBar-v0`: a crank drives a linkage whose loop has three redundant rows, to a speed that is observed.
- `dalembert/Go2Stance-v0`: a quadruped whose four feet are held where they are keeps its trunk in place; it needs the
  package example-robot-data.
- `dalembert/CassieLegs-v0`: a biped in its stand brings its legs into a squat; rods and leaf springs close four loops,
  two of whose twelve rows are redundant. It needs the same package.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, partial
from importlib.metadata import PackageNotFoundError, files
from typing import Any

import numpy as np

from dalembert.bridges.chosen import guest
from dalembert.errors import MissingExtraError, ModelError
from dalembert.model import Builder
from dalembert.model.constraints import Point, Revolute
from dalembert.model.mechanism.mechanism import Mechanism
from dalembert.types import Array

NAMESPACE = "dalembert"


@dataclass(frozen=True, eq=False)
class EnvTask:
    """What an environment does; functions take and return batches.

    Attributes
    ----------
    mechanism
        What moves. Contacts are not simulated here; constraints and loops are.
    actuated
        Coordinates that are driven: an action of 1 is the force or torque of `limits`.
    observe
        observe(q, v) -> (n, k).
    reward
        reward(q, v, action) -> (n,).
    terminated
        terminated(q, v) -> (n,) truth values.
    start
        start(rng, n) -> q (n, nq), v (n, nv), on the loops.
    step, substeps
        Seconds between actions, and steps of the integrator in them.
    horizon
        Steps of an episode.
    method
        "rk4" or "euler".
    """

    mechanism: Mechanism
    actuated: Sequence[str]
    limits: Sequence[float]
    observe: Callable[[Array, Array], Array]
    reward: Callable[[Array, Array, Array], Array]
    start: Callable[[np.random.Generator, int], tuple[Array, Array]]
    terminated: Callable[[Array, Array], Array] = lambda q, v: np.zeros(len(q), dtype=bool)
    step: float = 0.02
    substeps: int = 2
    horizon: int = 500
    method: str = "rk4"

    def __post_init__(self) -> None:
        if len(self.actuated) != len(self.limits):
            raise ModelError(f"{len(self.actuated)} coordinates are driven, but there are {len(self.limits)} limits")
        if not (self.step > 0 and self.substeps >= 1):
            raise ModelError(f"step={self.step}, substeps={self.substeps}: both are positive")


# ----------------------------------------------------------------------------------------------------------------------
# Examples.


@cache
def light_cart_pole() -> EnvTask:
    """Return the cart-pole: its rod weighs nothing, all inertia is that of the point mass."""
    b = Builder("cart-pole")
    b.body("cart", mass=1.0, inertia=(1.0, 1.0, 1.0))
    b.body("bob", mass=0.1, center=(0, 0, 0.5), inertia=(0, 0, 0))
    b.joint("rail", "prismatic", "world", "cart", axis=(1, 0, 0))
    b.joint("pivot", "revolute", "cart", "bob", axis=(0, 1, 0))

    def observe(q: Array, v: Array) -> Array:
        return np.column_stack([q[:, 0], np.sin(q[:, 1]), np.cos(q[:, 1]), v])

    def reward(q: Array, v: Array, action: Array) -> Array:
        return np.cos(q[:, 1]) - 0.1 * q[:, 0] ** 2 - 0.01 * (v**2).sum(axis=1) - 0.01 * (action**2).sum(axis=1)

    def start(rng: np.random.Generator, n: int) -> tuple[Array, Array]:
        q = np.column_stack([np.zeros(n), np.full(n, np.pi)]) + rng.uniform(-0.1, 0.1, (n, 2))
        return q, rng.uniform(-0.1, 0.1, (n, 2))

    return EnvTask(b.build(), ["rail"], [10.0], observe, reward, start, lambda q, v: np.abs(q[:, 0]) > 2.4)


@cache
def four_bar() -> EnvTask:
    """Return a crank that shall turn at a constant speed although the linkage it drives is heavy."""
    b = Builder("four-bar")
    parent, at = "world", 0.0
    for name, length in {"crank": 0.4, "coupler": 1.0, "rocker": 0.8}.items():
        b.body(name, mass=1.0, center=(length / 2, 0, 0), inertia=(0.01, 0.1, 0.1))
        b.joint(name, "revolute", parent, name, axis=(0, -1, 0), position=(at, 0, 0))
        parent, at = name, length
    pin = Revolute("rocker", at=(1.1, 0, 0), placement=(0.8, 0, 0), axis=(0, 1, 0), name="pin")
    mechanism = b.build().constrain(pin)
    closed = mechanism.assemble([1.0, -0.7, -1.5]).q

    def reward(q: Array, v: Array, action: Array) -> Array:
        return -((v[:, 0] - 3.0) ** 2) - 0.01 * (action**2).sum(axis=1)

    def start(rng: np.random.Generator, n: int) -> tuple[Array, Array]:
        q = mechanism.project(closed + rng.uniform(-0.05, 0.05, (n, 3)))
        return q, np.zeros((n, 3))

    def observe(q: Array, v: Array) -> Array:
        return np.column_stack([np.cos(q), np.sin(q), v])

    return EnvTask(mechanism, ["crank"], [30.0], observe, reward, start, horizon=250)


GO2_HEIGHT = 0.3
GO2_POSE = {"thigh": 0.9, "calf": -1.8}
"""Height of the trunk and angles of the legs where it stands, metres and radians; hips are at zero."""


def _robot_file(name: str) -> str:
    """Return the path of a file of the package example-robot-data."""
    try:
        paths = [path for path in files("example-robot-data") or () if path.name == name]
    except PackageNotFoundError:
        paths = []
    if not paths:
        raise MissingExtraError("example-robot-data", "test", f"the robot {name!r}")
    return str(paths[0].locate())


@cache
def go2_stance() -> EnvTask:
    """Return a quadruped on four held feet whose trunk shall stay at its height."""
    from dalembert.readers import load

    feet = ("FL_foot", "FR_foot", "RL_foot", "RR_foot")
    mechanism = load(_robot_file("go2.urdf"), base="floating").constrain(*(Point(foot) for foot in feet))
    stand = mechanism.neutral()
    stand[2] = GO2_HEIGHT
    for joint in mechanism.joints:
        for part, angle in GO2_POSE.items():
            if part in joint.name:
                stand[mechanism.index_q(joint.name)] = angle
    base = mechanism.joints[0].name
    driven = [name for name in mechanism.coordinates if not name.startswith(base)]

    def observe(q: Array, v: Array) -> Array:
        return np.column_stack([q[:, 2:], v])

    def reward(q: Array, v: Array, action: Array) -> Array:
        return 1.0 - 10 * np.abs(q[:, 2] - stand[2]) - 0.05 * (v**2).sum(axis=1) - 0.01 * (action**2).sum(axis=1)

    def start(rng: np.random.Generator, n: int) -> tuple[Array, Array]:
        return np.tile(stand, (n, 1)), np.zeros((n, mechanism.nv))

    def fallen(q: Array, v: Array) -> Array:
        return q[:, 2] < 0.5 * stand[2]

    return EnvTask(mechanism, driven, [20.0] * len(driven), observe, reward, start, fallen, substeps=4)


CASSIE_SQUAT = {"pitch": 0.5, "knee": -1.2}
CASSIE_MOTORS = {"roll": 80.0, "yaw": 60.0, "pitch": 80.0, "knee": 80.0, "foot": 40.0}
"""Angles of a squat in radians; what the motors of each leg can do, N m."""


@cache
def cassie_legs() -> EnvTask:
    """Return a biped whose pelvis is held; ten motors bring its legs into a squat, through rods and leaf springs."""
    from dalembert.readers import load

    mechanism = load(_robot_file("cassie_v2.sdf"), base="fixed", passive=True, allow_unphysical=True)
    hanging = mechanism.assemble(mechanism.neutral()).q
    driven = [f"{side}-{motor}-op" for side in ("left", "right") for motor in CASSIE_MOTORS]
    at = np.array([mechanism.index_q(name).start for name in driven])
    angles = np.array([next((x for part, x in CASSIE_SQUAT.items() if part in name), np.nan) for name in driven])
    goals, places = angles[np.isfinite(angles)], at[np.isfinite(angles)]

    def observe(q: Array, v: Array) -> Array:
        return np.column_stack([np.sin(q), np.cos(q), v])

    def reward(q: Array, v: Array, action: Array) -> Array:
        missed = ((q[:, places] - goals) ** 2).sum(axis=1)
        return np.exp(-missed) - 1e-3 * (v**2).sum(axis=1) - 0.01 * (action**2).sum(axis=1)

    def start(rng: np.random.Generator, n: int) -> tuple[Array, Array]:
        q = np.tile(hanging, (n, 1))  # leaf springs are relaxed there; it begins with a small velocity
        return q, np.array([mechanism.project(hanging, v)[1] for v in rng.uniform(-0.1, 0.1, (n, mechanism.nv))])

    def beyond(q: Array, v: Array) -> Array:
        return np.abs(q[:, at]).max(axis=1) > 2.6

    limits = [CASSIE_MOTORS[name.split("-")[1]] for name in driven]
    return EnvTask(mechanism, driven, limits, observe, reward, start, beyond, substeps=80, horizon=250)


EXAMPLES: dict[str, tuple[Callable[[], EnvTask], int]] = {
    "LightCartPole": (light_cart_pole, 500),
    "FourBar": (four_bar, 250),
    "Go2Stance": (go2_stance, 500),
    "CassieLegs": (cassie_legs, 250),
}
"""Registered environments with their horizons."""


def _single(make: Callable[[], EnvTask], **options: Any) -> Any:
    from dalembert.bridges.gym.environment import Env

    return Env(make(), **options)


def _vector(make: Callable[[], EnvTask], num_envs: int = 1, **options: Any) -> Any:
    from dalembert.bridges.gym.environment import VectorEnv

    return VectorEnv(make(), num_envs, **options)


def register_examples() -> None:
    """Make the examples known to Gymnasium."""
    gymnasium = guest("gymnasium", "Gymnasium", "gym", "an environment")
    for name, (make, horizon) in EXAMPLES.items():
        key = f"{NAMESPACE}/{name}-v0"
        if key not in gymnasium.registry:
            gymnasium.register(
                key,
                entry_point=partial(_single, make),
                vector_entry_point=partial(_vector, make),
                max_episode_steps=horizon,
            )
