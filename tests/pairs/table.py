"""The table of pairs: every cell run, and what became of it: right, refused with a reason, or wrong."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

import dalembert as da
from dalembert.errors import DalembertError
from tests.pairs.closed_form import pieces, states
from tests.pairs.slider import ANSWERS, MOTIONS, WRITTEN

SAMPLES = 40
"""Samples of a run, evenly in time."""

TIGHT = {"rtol": 1e-9, "atol": 1e-11}

STEPPERS: dict[str, tuple[dict[str, Any], float]] = {
    "dop853": (TIGHT, 1e-8),
    "dopri5": (TIGHT, 1e-7),
    "rk4": ({"step": 1e-2}, 1e-5),
    "bdf": (TIGHT, 1e-5),
    "radau": (TIGHT, 1e-6),
    "variational": ({"step": 1e-3}, 1e-4),
    "moreau": ({"step": 1e-3}, 5e-2),
    "ida": (TIGHT, 1e-5),
}
"""Options of every stepper, and by how much heights and velocities may be off: its own order and tolerance."""

BESIDE = 2e-3
"""Samples this near to an event, seconds, are not compared: velocities jump there."""


@dataclass(frozen=True)
class Cell:
    """What became of a cell."""

    verdict: str  # "right", "refused", "wrong"
    error: float = np.nan
    reason: str = ""


def run_cell(motion: str, answers: str, written: str, stepper: str) -> Cell:
    """Run one cell and compare it with the closed form."""
    wanted = MOTIONS[motion]
    system, given = made(motion, answers, written)
    options, tolerance = STEPPERS[stepper]
    force = None if not wanted.ramp else {"foot": ((0.0, 1.0), (0.0, wanted.ramp))}
    start = np.full(2, wanted.x), np.full(2, wanted.v)
    every = wanted.duration / SAMPLES
    try:
        run = da.simulate(system, wanted.duration, *start, force=force, method=stepper, every=every, **given, **options)
    except DalembertError as refused:
        return Cell("refused", reason=str(refused).split("\n")[0])
    if run.status not in ("completed", "inaccurate"):
        return Cell("refused", reason=f"{run.status}: {run.message}")
    error = distance(run, motion)
    return Cell("right" if run.status == "completed" and error <= tolerance else "wrong", error, run.message)


@cache
def made(motion: str, answers: str, written: str) -> tuple[Any, dict[str, Any]]:
    """Return the system of a cell, made once for all steppers."""
    return WRITTEN[written](answers, MOTIONS[motion])


def distance(run: Any, motion: str) -> float:
    """Return by how much the heights and velocities of both coordinates miss the closed form, at most."""
    _, events = pieces(MOTIONS[motion])
    times = np.array([t for t, _ in events])
    t = np.asarray(run.t)
    away = np.array([np.abs(times - s).min(initial=np.inf) > BESIDE for s in t])
    assert np.count_nonzero(away) >= SAMPLES // 2, "nothing to compare"
    assert t[-1] == MOTIONS[motion].duration, "the run ended early"
    exact = states(MOTIONS[motion], t)
    off = np.maximum(np.abs(run.q - exact[:, :1]), np.abs(run.v - exact[:, 1:])).max(axis=1)
    return float(np.where(np.isfinite(off[away]), off[away], np.inf).max())


def keys() -> list[tuple[str, str, str, str]]:
    """Return all cells by name."""
    return [(m, a, w, s) for m in MOTIONS for a in ANSWERS for w in WRITTEN for s in STEPPERS]


def run_table(wanted: Any = None) -> dict[tuple[str, str, str, str], Cell]:
    """Run all cells, or some."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return {key: run_cell(*key) for key in (keys() if wanted is None else wanted)}
