"""Small elements of a URDF as text: limits, dynamics, origins, numbers."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from dalembert.model.placement import Placement

if TYPE_CHECKING:
    from dalembert.model.parts import Joint

UNLIMITED = 1e308
"""Stands for infinity, which urdfdom does not read."""


def limit(joint: Joint, effort: float | None = None) -> list[str]:
    """Return the <limit> of a joint with one coordinate; URDF asks for it where the joint is revolute or prismatic.

    `effort` is that of its motor, for a joint without a limit of its own.
    """
    if joint.kind not in ("revolute", "prismatic", "continuous", "helical"):
        return []
    values = vars(joint.limits)
    if not joint.limits.effort and effort is not None:
        values = values | {"effort": (effort,)}
    defaults = {"lower": -UNLIMITED, "upper": UNLIMITED, "effort": UNLIMITED, "velocity": UNLIMITED}
    if joint.kind in ("continuous", "helical"):
        del defaults["lower"], defaults["upper"]
        if not values["velocity"] and not values["effort"]:
            return []
    said = []
    for name, default in defaults.items():
        value = values[name][0] if values[name] else default
        said.append(f'{name}="{word(max(-UNLIMITED, min(UNLIMITED, value)))}"')
    return [f"    <limit {' '.join(said)}/>"]


def dynamics(joint: Joint) -> list[str]:
    """Return the <dynamics> of a joint, where one value serves all its velocities."""
    given = [(name, getattr(joint, name)) for name in ("damping", "friction") if len(set(getattr(joint, name))) == 1]
    said = " ".join(f'{name}="{word(values[0])}"' for name, values in given)
    return [f"    <dynamics {said}/>"] if given else []


def origin(tag: str, placement: Placement) -> str:
    """Return a placement as an element with xyz and rpy."""
    return f'<{tag} xyz="{words(placement.position)}" rpy="{words(placement.rpy())}"/>'


def word(value: float) -> str:
    """Return the shortest text that reads back as the same number."""
    return repr(float(value) + 0.0)


def words(values: Iterable[float]) -> str:
    """Return numbers, separated by blanks."""
    return " ".join(word(value) for value in values)
