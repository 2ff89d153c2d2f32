"""Data of a model that a run does not use: named, by kind, in `notes`, `message` and the file of the run."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from dalembert.model.mechanism.mechanism import Mechanism

NAMED = 6
"""So many joints are named, of more only the number."""

SHAPES = "collision shapes"
"""Begins the note of a mechanism whose file has shapes that collide in other programs."""


class Ignored(NamedTuple):
    """A kind of data that does not act, and a sentence on it."""

    kind: str
    sentence: str


def ignored_data(mechanism: Mechanism, contacts: Any, forced: bool) -> list[Ignored]:
    """Return which data of a mechanism do not act in a run; `forced`: joint forces are given."""
    joints, found = mechanism.joints, []

    def say(kind: str, names: Iterable[str], words: str) -> None:
        listed = list(names)
        if listed:
            some = ", ".join(map(repr, listed[:NAMED]))
            more = f" and {len(listed) - NAMED} more" if len(listed) > NAMED else ""
            found.append(Ignored(kind, words.format(some + more)))

    say("dry friction of joints", (j.name for j in joints if any(j.friction)),
        "dry friction of {} does not act; torque= can hold a law of friction")  # fmt: skip
    if not mechanism.passive:
        acting = [j.name for j in joints if any((*j.damping, *j.stiffness))]
        parts = [each.name for each in (*mechanism.springs, *mechanism.tendons)]
        say("damping and springs", [*acting, *parts],
            "damping and springs of {} do not act (passive=False); with_passive(True) lets them")  # fmt: skip
    stopped = _stopped(contacts)
    limited = [j.name for j in joints if _finite(j.limits.lower, j.limits.upper)]
    say("joint limits", (name for name in limited if stopped is not None and name not in stopped),
        "limits of {} are not watched; contacts=[JointLimits()] stops joints of one coordinate there")  # fmt: skip
    say("limits of speed", (j.name for j in joints if _finite(j.limits.velocity)), "limits of speed of {} do not act")
    if forced:
        motors = [m.name for m in mechanism.actuators if np.isfinite(m.effort)]
        say("limits of effort", [*(j.name for j in joints if _finite(j.limits.effort)), *motors],
            "limits of effort of {} do not clip torque=")  # fmt: skip
    if contacts is None:
        found += [Ignored(SHAPES, note) for note in mechanism.notes if note.startswith(SHAPES)]
    return found


def _finite(*values: Sequence[float]) -> bool:
    return any(np.isfinite(one) for each in values for one in each)


def _stopped(contacts: Any) -> tuple[str, ...] | None:
    """Return joints whose limits are contacts; None where all are."""
    if contacts is None:
        return ()
    from dalembert.simulate.contact.shapes import JointLimits

    several = contacts if isinstance(contacts, Sequence) else [contacts]
    limits = [each for each in several if isinstance(each, JointLimits)]
    if any(not each.joints for each in limits):
        return None
    return tuple(name for each in limits for name in each.joints)
