"""How runs with contacts end: what there is when something ends them, and ridges of heightfields inside boxes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from dalembert.errors import ModelError, SolvabilityError
from dalembert.simulate.contact.shapes import Box, Contact, Heightfield
from dalembert.simulate.equations.callbacks import CallError
from dalembert.simulate.limits import INSIDE, INSIDE_PART
from dalembert.simulate.session import Session
from dalembert.types import Array


def call_on_step(session: Session, t: float, q: Array, v: Array) -> None:
    """Call the user's function after a step; an error of it is named."""
    if session.on_step is None:
        return
    try:
        session.on_step(t, q.copy(), v.copy())
    except CallError as failed:
        message = f"{type(failed.error).__name__}: {failed.error}"
        raise ModelError(f"on_step failed at t = {t:.9g} s: {message}") from failed.error


@contextmanager
def guarded(session: Session, time: Callable[[], float], finish: Callable[[], None]) -> Iterator[None]:
    """Keep what there is, whatever ends the steps: no answer, an error in a Python function, the keyboard."""
    try:
        yield
    except SolvabilityError as refused:
        session.stop("no solution", str(refused))
    except Exception as error:
        session.extra["error"] = error, time()
        session.stop("stopped", str(error))
    finally:
        finish()
        if not session.blocks:
            session.blocks.append(_start_alone(session))
        say_ridges(session)


def _start_alone(session: Session) -> dict[str, Array]:
    """Return the initial state as the only sample: nothing is known there but itself."""
    m, none = session.mechanism, np.zeros(1)
    rows = {"acceleration": np.full((1, m.nv), np.nan), "multipliers": np.full((1, len(m.names)), np.nan)}
    start = {"t": np.array([session.settings.start]), "q": session.q[None].copy(), "v": session.v[None].copy()}
    return start | rows | {"work": none, "step": none.copy(), "heat": none.copy()}


# ----------------------------------------------------------------------------------------------------------------------
# Ridges of heightfields in boxes: a box touches with its corners alone, so a ridge may enter a face between them.
#
# Symbols: p + s d, s in [0, 1], an edge of the heightfield's grid in the axes of the box; h half lengths of its edges.
#
# No contact acts there, and no run may pass over it in silence: samples are looked through, and a ridge inside a box is
# a trouble of the run with its contact, time and depth.


SAMPLES = np.stack(np.meshgrid(*[np.linspace(-1.0, 1.0, 9)] * 3, indexing="ij"), axis=-1).reshape(-1, 3)
"""Places of a box at which it is looked for ground, in halves of its edges; edges of the grid are looked at besides."""

RIDGE = (
    "a ridge of the heightfield is {depth:.3g} m inside the box of contact {name!r} at t = {t:.9g} s: a box touches "
    "heightfields with its corners alone; put spheres along its edges"
)


def say_ridges(session: Session) -> None:
    """Mark a run in which a ridge enters a box: the deepest is named."""
    contacts = session.extra.get("contacts")
    several = contacts if isinstance(contacts, list | tuple) else [contacts]
    shaped = [c for c in several if isinstance(c, Contact)]
    boxes = [c for c in shaped if isinstance(c.shape, Box) and isinstance(c.other, Heightfield)]
    worst: tuple[float, str, float] | None = None
    for contact in boxes:
        for block in session.blocks:
            for t, q in zip(block["t"], block["q"], strict=True):
                depth = depth_of_ridges(session.mechanism, contact, q)
                if depth > 0.0 and (worst is None or depth > worst[0]):
                    worst = depth, contact.name, float(t)
    if worst is not None:
        session.status = "inaccurate" if session.status == "completed" else session.status
        message = RIDGE.format(depth=worst[0], name=worst[1], t=worst[2])
        session.message = f"{session.message}; {message}".removeprefix("; ")


def depth_of_ridges(mechanism: Any, contact: Contact, q: Array) -> float:
    """Return how deep edges of the heightfield's grid are inside a box, 0 where none is."""
    box, field = contact.shape, contact.other
    R, p = (np.asarray(array) for array in mechanism.kinematics(q, box.frame))
    centre, half = p + R @ np.array(box.at), 0.5 * np.array(box.size)
    reach = float(np.linalg.norm(half))
    i, j = (_near(grid, x, reach) for grid, x in ((field.x, centre[0]), (field.y, centre[1])))
    x, y = np.meshgrid(_over(field.x[i], centre[0], reach), _over(field.y[j], centre[1], reach), indexing="ij")
    z = np.pad(field.z[np.ix_(i, j)], 1, mode="edge")
    points = (np.stack([x, y, z], axis=-1) - centre) @ R  # in the axes of the box
    pieces = [(points[:-1], points[1:]), (points[:, :-1], points[:, 1:])]
    depth = max(float(_depths(a.reshape(-1, 3), b.reshape(-1, 3), half).max(initial=0.0)) for a, b in pieces)
    depth = max(depth, _under(field, centre + (SAMPLES * half) @ R.T))
    return depth if depth > max(INSIDE, INSIDE_PART * float(half[half > 0.0].min(initial=np.inf))) else 0.0


def _under(field: Any, places: Array) -> float:
    """Return how deep the places (k, 3) of a box are under the surface, vertically."""
    i, j = (
        np.clip(np.searchsorted(grid, places[:, k], side="right") - 1, 0, grid.size - 2)
        for k, grid in enumerate((field.x, field.y))
    )
    u = np.clip((places[:, 0] - field.x[i]) / (field.x[i + 1] - field.x[i]), 0.0, 1.0)
    w = np.clip((places[:, 1] - field.y[j]) / (field.y[j + 1] - field.y[j]), 0.0, 1.0)
    z = (1 - u) * ((1 - w) * field.z[i, j] + w * field.z[i, j + 1])
    z += u * ((1 - w) * field.z[i + 1, j] + w * field.z[i + 1, j + 1])
    return float((z - places[:, 2]).max())


def _near(grid: Array, x: float, reach: float) -> Array:
    """Return the lines of the grid within reach, and one beyond on either side."""
    first = max(int(np.searchsorted(grid, x - reach)) - 1, 0)
    last = min(int(np.searchsorted(grid, x + reach)), grid.size - 1)
    return np.arange(min(first, grid.size - 1), max(last, first) + 1)


def _over(lines: Array, x: float, reach: float) -> Array:
    """Return the lines with one more on either side, level ground beyond the edge."""
    return np.array([min(lines[0], x - reach) - reach, *lines, max(lines[-1], x + reach) + reach])


def _depths(a: Array, b: Array, half: Array) -> Array:
    """Return how deep the middle of what a box holds of the segments from a to b is below its faces; < 0 outside."""
    d = b - a
    with np.errstate(divide="ignore", invalid="ignore"):
        t0, t1 = (-half - a) / d, (half - a) / d
    still = d == 0.0
    outside = (still & (np.abs(a) >= half)).any(axis=1)
    low = np.where(still, 0.0, np.minimum(t0, t1)).max(axis=1).clip(0.0)
    high = np.where(still, 1.0, np.maximum(t0, t1)).min(axis=1).clip(None, 1.0)
    middle = a + (0.5 * (low + high))[:, None] * d
    return np.where(outside | (low >= high), -1.0, (half - np.abs(middle)).min(axis=1))
