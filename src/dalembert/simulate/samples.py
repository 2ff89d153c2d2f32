"""Times that a run must hit: samples at equal times, and break points of forces."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from dalembert.errors import ModelError
from dalembert.kernel.loops import steady
from dalembert.simulate.limits import ON_THE_GRID, SAME_INSTANT
from dalembert.types import Array

MOST_SAMPLES = 10**8
"""More samples than this are a mistake: they do not fit into the memory."""


MOST_STEPS = 10**10
"""More steps than this take hours at least, whatever the system."""


@steady
def point_inside(k, count):
    """Return where point k of `count` inside of a step lies, in parts of it: Chebyshev's points, ends left out."""
    return 0.5 * (1.0 - np.cos(np.pi * k / (count + 1)))


def asked_time(start: float, end: float, every: float, k: int) -> float:
    """Return the time of sample k, start + k every; what misses the end of the run by rounding is the end."""
    t = start + k * every
    return end if abs(t - end) <= SAME_INSTANT * max(abs(start), abs(end)) else t


def asked_times(start: float, end: float, every: float) -> Array:
    """Return all times at which `every` asks for samples: start + k every up to the end, and the end."""
    times = start + every * np.arange(int(np.ceil((end - start) / every)) + 2)
    times[np.abs(times - end) <= SAME_INSTANT * max(abs(start), abs(end))] = end
    return np.append(times[times < end], end)


def snapped(t: Array, start: float, end: float, every: float | None) -> Array:
    """Return times of steps with those that are asked times, or the end, but for rounding set to these."""
    t = np.where(np.abs(t - end) <= SAME_INSTANT * max(abs(start), abs(end)), end, t)
    if every is None:
        return t
    grid = start + np.round((t - start) / every) * every
    grid[np.abs(grid - end) <= SAME_INSTANT * max(abs(start), abs(end))] = end
    return np.where(np.abs(grid - t) <= ON_THE_GRID * every, grid, t)


def refuse_too_many(duration: float, every: float | None) -> None:
    """Refuse samples that would not fit into the memory."""
    if every is not None and duration / every > MOST_SAMPLES:
        raise ModelError(
            f"every={every!r} asks for {duration / every:.2g} samples in {duration:g} s; take a larger one"
        )


def refuse_too_many_steps(duration: float, word: str, step: float | None, every: float | None) -> None:
    """Refuse steps that no run comes to the end of, or that would not fit into the memory as samples."""
    limit = MOST_SAMPLES if every is None else MOST_STEPS
    if step is not None and duration / step > limit:
        raise ModelError(
            f"{word}={step!r} asks for {duration / step:.2g} steps in {duration:g} s, more than {limit:.0e}; take a "
            "larger one"
        )


def checked_breaks(given: Any, what: str = "breaks") -> tuple[float, ...]:
    """Return break points as sorted finite times, or say what is wrong with them."""
    try:
        times = np.atleast_1d(np.asarray(() if given is None else given, dtype=float)).ravel()
    except (TypeError, ValueError) as error:
        raise ModelError(f"{what}={given!r} must be times in seconds: {error}") from error
    if not np.isfinite(times).all():
        raise ModelError(f"{what}={given!r} must be finite times in seconds")
    return tuple(sorted({float(t) for t in times}))


def breaks_of(function: Any) -> tuple[float, ...]:
    """Return the break points that a Python function declares by its attribute `breaks`."""
    return checked_breaks(getattr(function, "breaks", None), "breaks of a function")


def refuse_breaks_between_steps(breaks: Any, start: float, step: float, method: str) -> None:
    """Refuse break points that are no ends of steps of one size."""
    for t in breaks:
        if not is_on_the_grid(t - start, step):
            raise ModelError(
                f"the break point {t:.9g} s is no end of a step: {method} takes steps of {step:.9g} s from {start:g} s "
                "on; choose a step that divides it"
            )


def is_on_the_grid(time: float, step: float) -> bool:
    """Return whether a time is a whole number of steps, up to rounding."""
    steps = time / step
    return abs(steps - round(steps)) <= ON_THE_GRID * max(1.0, abs(steps))


class Steps(NamedTuple):
    """Steps of one size: step k goes from start + k size on, and the last ends with the run."""

    start: float
    size: float
    total: int


def steps_between(start: float, duration: float, asked: float, at_most: bool = False) -> Steps:
    """Return the steps of a run, of the size that is next to the one asked for, or `at_most` that."""
    total = int(np.ceil(duration / asked * (1.0 - ON_THE_GRID))) if at_most else round(duration / asked)
    total = max(1, total)
    size = duration / total
    return Steps(start, asked if abs(size - asked) <= SAME_INSTANT * asked else size, total)


def steps_that_go_on(past: Steps, t: float, end: float, asked: float, at_most: bool = False) -> Steps:
    """Return the steps of a run that goes on at t, behind the `past` ones: as before where they lead to the end.

    Else those from t on are of a size of their own, and the start is where as many steps of this size would lead from.
    """
    total = round((end - past.start) / past.size)
    misses = (past.start + past.total * past.size - t, past.start + total * past.size - end)
    if max(np.abs(misses)) <= SAME_INSTANT * max(abs(past.start), abs(end)):
        return past._replace(total=total)
    rest = steps_between(t, end - t, asked, at_most)
    return Steps(t - past.total * rest.size, rest.size, past.total + rest.total)


def inside(t: float, bounds: tuple[float, float]) -> float:
    """Return a time kept between two break points: forces take their limits from within."""
    return min(max(t, bounds[0]), bounds[1])


def bounds_between(begin: float, end: float, stops: Any) -> tuple[float, float]:
    """Return the times between which forces are evaluated from `begin` to `end`: inside those that are break points."""
    low = float(np.nextafter(begin, np.inf)) if begin in stops else -np.inf
    high = float(np.nextafter(end, -np.inf)) if end in stops else np.inf
    return low, high
