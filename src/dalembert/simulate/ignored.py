"""Data of a model that a run does not use: named by kind in `ignored`, `notes`, `message`, `status` and the file.

A run whose motion such data would have changed has the status `SIMPLIFIED`: dry friction, damping and springs always
would, limits of joints where samples lie beyond them; limits that were kept change nothing. Limits of speed and effort
are for controllers to keep, and whether shapes would have met is not known: the notes alone name these.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from dalembert.errors import Advised, reworded
from dalembert.simulate.limits import BEYOND_LIMIT
from dalembert.types import Array

if TYPE_CHECKING:
    from dalembert.model.mechanism.mechanism import Mechanism

NAMED = 6
"""So many joints, or effects, are named, of more only the number."""

FRICTION, PASSIVE, LIMITS = "dry friction of joints", "damping and springs", "joint limits"
"""Kinds of data whose effect on a motion is known."""

SIMPLIFIED = "simplified"
"""Status of a run that reached its end as the motion of a simpler model than the one that was given."""

LEFT_OUT = "some collision shapes"
"""Kind of notes on shapes of a scene that were left out, or made simpler."""

SHAPES = "collision shapes"
"""Begins the note of a mechanism whose file has shapes that collide in other programs."""


class Ignored(NamedTuple):
    """A kind of data that does not act, and a sentence on it."""

    kind: str
    sentence: str


def ignored_data(mechanism: Mechanism, contacts: Any, forced: bool, without: str = "") -> list[Ignored]:
    """Return which data of a mechanism do not act in a run; `forced`: joint forces are given.

    Dry friction of joints is among them: who lets it act takes it out. `without`: the option that leaves it out.
    """
    if not hasattr(mechanism, "joints"):
        return []
    joints, notes = mechanism.joints, []

    def say(kind: str, names: Iterable[str], words: str, scene: str = "") -> None:
        listed = list(names)
        if listed:
            some = ", ".join(map(repr, listed[:NAMED]))
            more = f" and {len(listed) - NAMED} more" if len(listed) > NAMED else ""
            notes.append(Ignored(kind, reworded(Advised(words, scene), lambda text: text.format(some + more))))

    words = "dry friction of {} does not act"
    why = f" ({without})" if without else "; force= can hold a law of friction"
    in_scene = " (friction = false in [simulate])" if without.startswith("friction") else "; [[friction]] gives it one"
    say(FRICTION, (j.name for j in joints if any(j.friction)), words + why, words + in_scene)
    if not mechanism.passive:
        acting = [j.name for j in joints if any((*j.damping, *j.stiffness))]
        parts = [part.name for part in (*mechanism.springs, *mechanism.tendons)]
        say(PASSIVE, [*acting, *parts],
            "damping and springs of {} do not act (passive=False); with_passive(True) lets them",
            "damping and springs of {} do not act; passive = true in [model] lets them")  # fmt: skip
    stopped = _stopped(mechanism, contacts)
    limited = [j.name for j in joints if _finite(j.limits.lower, j.limits.upper)]
    say(LIMITS, (name for name in limited if name not in stopped),
        "limits of {} are not watched; contacts=[JointLimits()] stops joints of one coordinate there",
        "limits of {} are not watched; a [[stop]] in the scene stops joints of one coordinate there")  # fmt: skip
    say("limits of speed", (j.name for j in joints if _finite(j.limits.velocity)), "limits of speed of {} do not act")
    if forced:
        motors = [m.name for m in mechanism.actuators if np.isfinite(m.effort)]
        say("limits of effort", [*(j.name for j in joints if _finite(j.limits.effort)), *motors],
            "limits of effort of {} do not clip force=", "limits of effort of {} do not clip [force]")  # fmt: skip
    several = contacts if isinstance(contacts, Sequence) else [contacts]
    notes += [Ignored(LEFT_OUT, note) for scene in several for note in getattr(scene, "notes", ())]
    if not _touching(several):
        notes += [Ignored(SHAPES, note) for note in mechanism.notes if note.startswith(SHAPES)]
    return notes


def _finite(*values: Sequence[float]) -> bool:
    return any(np.isfinite(number) for numbers in values for number in numbers)


def _touching(contacts: Sequence[Any]) -> bool:
    """Return whether shapes of a run may touch, in place of those of the file; stops and friction have none."""
    from dalembert.contact.scene import CollisionScene
    from dalembert.simulate.contact.shapes import Contact

    return any(isinstance(contact, Contact | CollisionScene) for contact in contacts)


def _stopped(mechanism: Mechanism, contacts: Any) -> set[str]:
    """Return the joints whose limits are contacts: named ones, or all of one coordinate."""
    if contacts is None:
        return set()
    from dalembert.simulate.contact.shapes import JointLimits

    several = contacts if isinstance(contacts, Sequence) else [contacts]
    limits = [limit for limit in several if isinstance(limit, JointLimits)]
    places = mechanism.manifold
    single = (np.diff(places.q_start) == 1) & (np.diff(places.v_start) == 1)
    every = [joint.name for joint, stop in zip(mechanism.joints, single, strict=True) if stop]
    return {name for limit in limits for name in (limit.joints or every)}


def missing_effects(ignored: Sequence[Ignored], m: Any, contacts: Any, blocks: Sequence[Mapping[str, Array]]) -> str:
    """Return a sentence on which of the ignored data would have changed the motion of a run; "" where none."""
    if not ignored:
        return ""
    kinds = [note.kind for note in ignored]
    effects = [kind for kind in (FRICTION, PASSIVE) if kind in kinds]
    stopped, places = _stopped(m, contacts), m.manifold
    for i, joint in enumerate(m.joints):
        q, nv = slice(int(places.q_start[i]), int(places.q_start[i + 1])), places.v_start[i + 1] - places.v_start[i]
        if LIMITS in kinds and joint.name not in stopped and q.stop - q.start == nv:
            lower, upper = _bounds(joint.limits.lower, -np.inf), _bounds(joint.limits.upper, np.inf)
            effects += _passed(blocks, q, lower, upper, f"limits of {joint.name!r}")
    more = f" and {len(effects) - NAMED} more" if len(effects) > NAMED else ""
    return f"the end was reached by a simpler model: without {', '.join(effects[:NAMED])}{more}" if effects else ""


def with_ignored(message: str, ignored: Sequence[Ignored]) -> str:
    """Return the message of a run, with the kinds of data that did not act."""
    kinds = ", ".join(item.kind for item in ignored)
    note = f"data of the model that do not act: {kinds} (see notes)" if kinds else ""
    return "; ".join(item for item in (message, note) if item)


def _bounds(values: Sequence[float], otherwise: float) -> Array:
    """Return limits as an array, (n,) or (1,) where there are none."""
    return np.array(values, float) if len(values) else np.array([otherwise])


def _passed(blocks: Sequence[Mapping[str, Array]], part: slice, lower: Array, upper: Array, words: str) -> list[str]:
    """Return the words with the first time at which samples lie beyond limits, or nothing."""
    for block in blocks:
        q = block["q"][:, part]
        below, above = (
            q < lower - BEYOND_LIMIT * (1.0 + np.abs(lower)),
            q > upper + BEYOND_LIMIT * (1.0 + np.abs(upper)),
        )
        beyond = (below | above).any(axis=1)
        if beyond.any():
            return [f"{words} (passed at t = {block['t'][np.argmax(beyond)]:.9g} s)"]
    return []
