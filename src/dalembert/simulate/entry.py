"""`da.simulate`: one entry for every kind of system, and the choice of a method."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from dalembert.errors import ModelError, ShapeError

if TYPE_CHECKING:
    from dalembert.model.mechanism.mechanism import Mechanism
    from dalembert.simulate.equations.controller import Controller
    from dalembert.simulate.trajectory import Trajectory

# ----------------------------------------------------------------------------------------------------------------------
# Ways of a mechanism through time, and how one of them is chosen.


Array = np.ndarray

Stepper = Callable[..., None]
"""The contract of all: (session, **options) -> None."""


def _explicit() -> Stepper:
    from dalembert.simulate.steppers.explicit import run_explicit

    return run_explicit


def _implicit() -> Stepper:
    from dalembert.simulate.steppers.stiff import run_stiff

    return run_stiff


def _variational() -> Stepper:
    from dalembert.simulate.steppers.variational import run_variational

    return run_variational


def _hybrid() -> Stepper:
    from dalembert.simulate.contact.hybrid import run_hybrid

    return run_hybrid


def _moreau() -> Stepper:
    from dalembert.simulate.steppers.moreau import run_moreau

    return run_moreau


METHODS: dict[str, Callable[[], Stepper]] = {
    "dop853": _explicit,
    "dopri5": _explicit,
    "bdf": _implicit,
    "radau": _implicit,
    "variational": _variational,
    "hybrid": _hybrid,
    "moreau": _moreau,
}
"""Functions that import a stepper: a run waits for its own alone. Being in the list is being tested."""

WITH_CONTACTS = ("hybrid", "moreau")
"""Those that take contacts, and need some."""

FEW = 3
"""Up to so many contacts are followed from event to event."""

STIFF = 2e4
"""Decays by more than this many powers of e in the run are stiff: explicit steps would be limited by stability."""

LOOSE = 1e-5
"""Tolerances from here on let the energy of a long run drift."""

DIFFERENCE = 1e-6
"""Step of the differences by which decays are estimated."""


def choose(
    mechanism: Mechanism, law: Controller, contacts: Any, q: Array, v: Array, numbers: dict[str, Any], t: float = 0.0
) -> tuple[str, str]:
    """Return a method and the reason for it, in words."""
    if contacts is not None:
        from dalembert.simulate.contact.laws import Limbs
        from dalembert.simulate.contact.shapes import Heightfield, pairs_of

        pairs = pairs_of(mechanism, contacts)
        count = len(pairs)
        some = "1 contact" if count == 1 else f"{count} contacts"
        if Limbs(np.asarray(mechanism.mass_matrix(q))).any:
            return "hybrid", f"{some} and massless limbs: from event to event, limbs held in the air"
        if any(isinstance(each.ground, Heightfield) and each.ball and each.ball.radius > 0.0 for each in pairs):
            return "moreau", f"{some}, spheres on a heightfield among them: time stepping over its edges"
        if count <= FEW and numbers["step"] is None:
            return "hybrid", f"{some}: from event to event, every impact located"
        why = f"more than {FEW}" if count > FEW else "a step is given"
        return "moreau", f"{some}, {why}: time stepping, impacts as impulses of a step"
    decays = fastest_decay(mechanism, law, q, v, t) * numbers["duration"]
    if decays > STIFF and numbers["step"] is None:
        from dalembert.simulate.steppers.stiff import suits

        said = f"stiff: the fastest motion decays by {decays:.1e} powers of e in the run"
        if suits(mechanism):
            return "bdf", f"{said}; backward differentiation in the stabilised form"
        return "dop853", f"{said}, but implicit steppers take joints of angles and lengths alone"
    said = "a smooth motion: explicit steps of order 8 on the constraint manifold"
    if law.kind == "none" and numbers["rtol"] >= LOOSE and all(mechanism.holonomic):
        said += '; where nothing takes energy out and the run is long, method="variational" with step= keeps it better'
    return "dop853", said


def fastest_decay(mechanism: Mechanism, law: Controller, q: Array, v: Array, t: float = 0.0) -> float:
    """Return the largest rate of decay of small velocities at a state, 1/s, from differences of accelerations.

    Zero where the controller fails there: the run itself tells it, with its time.
    """
    from dalembert.simulate.equations.evaluate import Forces

    tau, n = Forces(law), mechanism.nv
    slopes = np.zeros((n, n))
    for j in range(n):
        ends = []
        for sign in (1.0, -1.0):
            speed = v.copy()
            speed[j] += sign * DIFFERENCE
            try:
                force = tau(t, q, speed)
            except (ModelError, ShapeError):
                return 0.0
            found = mechanism.forward(q, speed, force, t)
            ends.append(found[0] if isinstance(found, tuple) else found)
        slopes[:, j] = (ends[0] - ends[1]) / (2 * DIFFERENCE)
    if not np.isfinite(slopes).all():
        return 0.0
    return float(max(0.0, -np.linalg.eigvals(slopes).real.min(initial=0.0)))


# ----------------------------------------------------------------------------------------------------------------------
# `da.simulate`: one entry for every kind of system.


def simulate(system: Any, duration: float, q: Any = None, v: Any = None, **options: Any) -> Trajectory:
    """Simulate a mechanism, or a system with dry friction, from an initial state.

    Parameters
    ----------
    system
        A `Mechanism` (`da.load`, `da.Builder`), a `Lagrangian` or `Matrices`.
    duration
        Seconds.
    q, v
        Initial configuration and velocity; of a mechanism the neutral configuration and rest by default.
    options
        Of a mechanism: those of `dalembert.simulate.mechanism.simulate_mechanism`; of other systems those of
        `dalembert.simulate.dry.simulate.simulate`: `method`, `stepper`, `rtol`, `atol`, `step`, `max_step`, `every`,
        `force`, `breaks`, `sticking`.

    Returns
    -------
    Trajectory
        Also where the run could not go on: `status` and `message` say why.
    """
    from dalembert.model.mechanism.mechanism import Mechanism

    if isinstance(system, Mechanism):
        from dalembert.simulate.mechanism import simulate_mechanism

        return simulate_mechanism(system, duration, q, v, **options)
    if not hasattr(system, "coordinates"):
        raise ModelError(
            f"simulate takes a Mechanism, a Lagrangian or Matrices, not {type(system).__name__}; da.load(file) reads a "
            "robot from a file"
        )
    from dalembert.simulate.dry.simulate import METHODS as FRICTION_METHODS
    from dalembert.simulate.dry.simulate import simulate as simulate_friction

    if options.get("method") == "auto":
        options["method"] = next(iter(FRICTION_METHODS))
    return simulate_friction(system, duration, q, v, **options)
