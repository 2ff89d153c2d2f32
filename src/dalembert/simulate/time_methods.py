"""Methods of `da.simulate`: every way through time with what it takes, and how `"auto"` chooses one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from dalembert.errors import ModelError, ShapeError
from dalembert.large.requests import too_long
from dalembert.model.named_state import is_mechanism
from dalembert.simulate.equations.controller import Controller
from dalembert.simulate.limits import DECAY_DIFFERENCE
from dalembert.simulate.samples import is_on_the_grid
from dalembert.types import Array

# ----------------------------------------------------------------------------------------------------------------------
# Ways through time, and how one of them is chosen.


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
    from dalembert.simulate.contact.hybrid import run_contacts

    return run_contacts


def _moreau() -> Stepper:
    from dalembert.simulate.steppers.moreau import run_moreau

    return run_moreau


def _fixed() -> Stepper:
    from dalembert.simulate.steppers.fixed import run_fixed

    return run_fixed


def _penalty() -> Stepper:
    from dalembert.simulate.steppers.penalty import run_penalty

    return run_penalty


class TimeMethod(NamedTuple):
    """A way through time.

    Attributes
    ----------
    load
        Imports the stepper, so that a run waits for its own alone.
    contacts
        Whether it takes contacts, and needs some.
    between_events
        Whether the contact engine takes it between events.
    no_contacts
        Why it does not take contacts, where neither.
    inside
        Whether it has samples inside of its steps.
    dampers
        Whether it has dampers of its own, measured at the start: no run goes on from a sample.
    """

    load: Callable[[], Stepper]
    contacts: bool = False
    between_events: bool = False
    no_contacts: str = ""
    inside: bool = True
    dampers: bool = False

    @property
    def continues(self) -> bool:
        """Whether the motion after a sample is that of a run which starts there."""
        return not (self.contacts or self.dampers)


PAST = "backward differentiation goes on from steps of the past, and every event ends them"
METHODS = {
    "dop853": TimeMethod(_explicit, between_events=True),
    "dopri5": TimeMethod(_explicit, between_events=True),
    "rk4": TimeMethod(_explicit, between_events=True),
    "bdf": TimeMethod(_implicit, no_contacts=PAST),
    "radau": TimeMethod(_implicit, between_events=True),
    "ida": TimeMethod(_implicit, no_contacts=PAST),
    "variational": TimeMethod(
        _variational, no_contacts="a discrete Lagrangian has neither impulses nor friction of contacts", inside=False
    ),
    "hybrid": TimeMethod(_hybrid, contacts=True),
    "moreau": TimeMethod(_moreau, contacts=True, inside=False),
    "fixed": TimeMethod(_fixed, contacts=True),
    "penalty": TimeMethod(_penalty, no_contacts="it is a comparison of springs with exact rows", dampers=True),
}
"""Every method of `da.simulate`."""

MANY = 100
"""Up to so many contacts are followed from event to event: a stage eliminates all that are closed, at a cubic cost."""

FIRST_ORDER = (
    "time steps of first order, their errors in proportion to the step: rtol and atol are not used, and impacts, "
    "sticks and slips are up to a step off"
)
"""What is given up where "auto" takes time steps."""

STIFF = 2e4
"""A motion that shrinks by more than this power of e in the run is stiff: stability would limit explicit steps."""

LOOSE, LONG = 1e-5, 1e4
"""Tolerances from LOOSE on let the energy of a run of more than LONG steps drift: symplectic steps keep it."""


def choose(
    system: Any, law: Controller, contacts: Any, q: Array, v: Array, numbers: dict[str, Any], t: float = 0.0,
    friction: bool = True, breaks: Any = (), watched: bool = False,
) -> tuple[str, str]:  # fmt: skip
    """Return a method that takes the run, and the reason for it, in words."""
    if contacts is not None:
        return _choose_with_contacts(system, contacts, q, numbers, watched)
    rubbing = rubbing_contacts(system, friction)
    if rubbing:
        some = "1 contact" if len(rubbing) == 1 else f"{len(rubbing)} contacts"
        return "hybrid", f"{some} of the system: from event to event, every impact, stick and slip located"
    decays = fastest_decay(system, law, q, v, t) * numbers["duration"]
    if decays > STIFF and numbers["step"] is None:
        from dalembert.simulate.steppers.stiff import unsuited

        verdict = f"stiff: the fastest motion shrinks by e^{decays:.1e} in the run"
        why = unsuited(system)
        if not why:
            return "bdf", f"{verdict}; backward differentiation in the stabilised form"
        return "dop853", f"{verdict}, but implicit steppers do not take it: {why}"
    steps = 0.0 if numbers["step"] is None else numbers["duration"] / numbers["step"]
    if law.kind == "none" and numbers["rtol"] >= LOOSE and steps >= LONG:
        from dalembert.simulate.steppers.variational import unsuited as not_variational
        from dalembert.simulate.witness import conserves

        if (
            all(system.holonomic)
            and _ends_of_steps(numbers, t, breaks)
            and conserves(system, q, t)
            and not not_variational(system)
        ):
            return "variational", (
                f"{steps:.0f} steps of one size at loose tolerances, and nothing takes energy out: symplectic steps "
                "keep it"
            )
    return "dop853", "a smooth motion: explicit steps of order 8 on the constraint manifold"


def _ends_of_steps(numbers: dict[str, Any], t: float, breaks: Any) -> bool:
    """Return whether samples and break points are ends of steps of one size."""
    step, every = numbers["duration"] / max(1, round(numbers["duration"] / numbers["step"])), numbers["every"]
    times = [x - t for x in breaks] + ([] if every is None else [every])
    return (every is None or every > 0.5 * step) and all(is_on_the_grid(x, step) for x in times)


def rubbing_contacts(system: Any, friction: bool = True) -> tuple[str, ...]:
    """Return the names of contacts with dry friction that a system has by itself; of a mechanism: its joints."""
    source = getattr(system, "given", None)
    if source is not None:
        return tuple(contact.name for contact in (*source.contacts, *getattr(source, "unilateral", ())))
    limits = zip(system.coordinates, system.friction, strict=True) if friction else ()
    return tuple(name for name, limit in limits if limit > 0.0)


def _choose_with_contacts(
    system: Any, contacts: Any, q: Array, numbers: dict[str, Any], watched: bool
) -> tuple[str, str]:
    from dalembert.simulate.contact.complementarity import Limbs
    from dalembert.simulate.contact.contact_system import scene_of_contacts, split_contacts
    from dalembert.simulate.contact.shapes import Heightfield, pairs_of

    shapes, rubbing = split_contacts(contacts)
    scene = scene_of_contacts(contacts)
    if scene is not None:
        return "moreau", (
            f"{len(scene.pairs)} pairs of collision shapes: time stepping, of first order; no impact is located, and "
            "rtol does not enter"
        )
    pairs = pairs_of(system, shapes) if shapes or not rubbing else ()
    count = len(pairs) + len(rubbing)
    some = "1 contact" if count == 1 else f"{count} contacts"
    if Limbs(np.asarray(system.mass_matrix(q))).any:
        return "hybrid", f"{some} and massless limbs: from event to event, limbs held in the air"
    if rubbing:
        return "hybrid", f"{some}, {rubbing[0].name!r} with dry friction: from event to event, stick and slip located"
    if any(isinstance(pair.ground, Heightfield) and pair.ball and pair.ball.radius > 0.0 for pair in pairs):
        return "moreau", f"{some}, spheres on a heightfield among them: time stepping over its edges; {FIRST_ORDER}"
    if count <= MANY and numbers["step"] is None:
        return "hybrid", f"{some}: from event to event, every impact located"
    if watched:
        return "hybrid", f"{some}: from event to event, since time stepping locates no events"
    why = f"more than {MANY}" if count > MANY else "a step is given"
    return "moreau", f"{some}, {why}: time stepping, impacts as impulses of a step; {FIRST_ORDER}"


STUCK = ("no solution", "chattering")
"""Ends of located runs from which time steps may go on, over what cannot be decided there."""

ALONE = 3
"""Up to so many contacts a located run says where it has no answer; of more, time steps take its place."""


def goes_by_steps(method: str, run: Any) -> bool:
    """Return whether time steps take the place of a run that "auto" located and that could not go on."""
    return method == "auto" and run.method == "hybrid" and run.status in STUCK and len(run.contacts) > ALONE


def fastest_decay(system: Any, law: Controller, q: Array, v: Array, t: float = 0.0) -> float:
    """Return the largest rate of decay of small velocities at a state, 1/s, from differences of accelerations.

    Zero where the controller fails there: the run itself tells it, with its time. Zero of chains that no implicit
    stepper takes, whose matrix of slopes would be larger than the run.
    """
    if is_mechanism(system) and too_long(system):
        return 0.0
    from dalembert.simulate.equations.codes import Forces

    tau, n = Forces(law), system.nv
    shifts = DECAY_DIFFERENCE * np.eye(n)
    speeds = v + np.concatenate([shifts, -shifts])
    try:
        forces = np.array([tau(t, q, speed) for speed in speeds]).reshape(2 * n, n)
        a, _, _ = system.forward(np.tile(q, (2 * n, 1)), speeds, forces, t)
    except (ModelError, ShapeError):
        return 0.0
    slopes = (a[:n] - a[n:]).T / (2 * DECAY_DIFFERENCE)
    if not np.isfinite(slopes).all():
        return 0.0
    return float(max(0.0, -np.linalg.eigvals(slopes).real.min(initial=0.0)))
