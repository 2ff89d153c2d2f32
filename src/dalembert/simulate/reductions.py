"""Largest and smallest values, means and root mean squares of runs: of the motion, not of its samples.

    run ─► the same steps with samples inside of each ─► pieces without jumps ─► polynomials ─► one number a column

Between two jumps a quantity is smooth on every step [a, a + h]. Its values at Chebyshev's n + 1 points,

    t_k = a + h (1 - cos(pi k / n)) / 2,    k = 0 ... n,

the ends of the step among them, determine the polynomial p of degree n that is reduced in its place:

    mean = 1/T sum of the integrals of p,    rms^2 = 1/T sum of those of p^2    (Gauss, exact),
    max  = the largest of p, located between points of a fine grid.

Samples inside of steps are taken by the methods themselves, as those that `every=` asks for: states of full order, on
the constraints, with accelerations and reactions. Steps of `moreau` and `variational` have none inside: a quantity goes
along a straight line there, as positions of Moreau's scheme do. Source: Trefethen, "Approximation Theory and
Approximation Practice", chs. 2 to 5 and 19.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.polynomial import chebyshev, legendre

from dalembert.types import Array

if TYPE_CHECKING:
    from dalembert.simulate.trajectory import Trajectory

INSIDE = 7
"""Samples inside of a step: polynomials of degree 8 leave less on a step of order 8 than its error is."""

GRID = 32
"""Intervals of the grid on which extrema are looked for: four times the degree."""

ROUNDS = 10
"""Times that the bracket of an extremum is quartered: to 1e-7 of a step, where a value has all its digits."""

HALVINGS = 30
"""Times that a step may be halved for an integral; lengths of vectors that pass through zero have a corner there."""

ROUNDING = 1e-14
"""Part of an integral that halving need not settle: its rounding."""

SAME_STEP = 1e-6
"""Part of a step by which its length may miss the time between its samples: that is rounded at long times."""

SAME_MOTION = 1e-6
"""Difference of the ends of two runs of one motion, relative to it: more is another one, of functions with a memory."""

OWN = ("t", "q", "v", "x", "acceleration", "kinetic", "potential", "heat", "work")
"""Quantities that are members of a run; "energy" is the total, others are asked for by name, as `run[name]`."""


def column(run: Trajectory, name: str) -> Array:
    """Return a quantity over the samples, (N,) or (N, k)."""
    if name == "energy":
        return run.energy.total
    mechanical = "q" in run.samples
    named = name in (*run.unknowns, *(run.configuration_names if mechanical else ()))
    if name in OWN and not (named and (name == "x" or not mechanical)):  # else an unknown or a coordinate of that name
        return np.asarray(getattr(run, name))
    return np.asarray(run[name])


def reduced(run: Trajectory, name: str, take: str, norm: bool = False) -> Array:
    """Return one number of every column of a quantity, () or (k,); `norm`: of the length of its vectors, ()."""
    if take in ENDS:
        rows = column(run, name)
        return (np.linalg.norm(rows, axis=1) if norm and rows.ndim == 2 else rows)[ENDS[take]]
    dense = run.with_samples_inside
    return RunPieces.of(dense).reduced(column(dense, name), take, norm)[0]


# ----------------------------------------------------------------------------------------------------------------------
# A run with samples inside of its steps.


def with_samples_inside(run: Trajectory) -> Trajectory:
    """Return the same motion with samples inside of every step; where it cannot be made again, the run itself."""
    result = getattr(run.solution, "result", None)
    if result is not None:
        return run.solution.with_samples_inside(run, INSIDE)
    s = run.session
    if run.solution is not None or s is None or s.extra.get("controller missing"):
        return run
    from dalembert.simulate.time_methods import METHODS
    from dalembert.simulate.trajectory import trajectory_of

    method = METHODS[s.settings.method]
    if s.settings.inside or (s.settings.every is None and not method.inside):
        return run
    settings = replace(s.settings, every=None, inside=INSIDE if method.inside else 0)
    if run.status in CUT_SHORT:
        settings = replace(settings, duration=float(run.t[-1]) - settings.start)
    if not settings.duration > 0.0:
        return run
    again = s.from_its_start(settings)
    method.load()(again, **again.extra.get("options", {}))
    if again.status == "interrupted" and run.status != "interrupted":
        raise KeyboardInterrupt
    dense = replace(trajectory_of(again, run.contacts), moving=run.moving)
    return dense if same_end(run, dense) else run


CUT_SHORT = ("interrupted", "stopped", "no solution", "disk full", "chattering", "detached")
"""How runs end before their time and without an event: they are made again up to where they came."""


def same_end(run: Trajectory, other: Trajectory) -> bool:
    """Return whether two runs end in the same state."""
    pairs = [(run.t[-1:], other.t[-1:]), (run.q[-1], other.q[-1]), (run.v[-1], other.v[-1])]
    return all(np.allclose(a, b, SAME_MOTION, SAME_MOTION, equal_nan=True) for a, b in pairs)


# ----------------------------------------------------------------------------------------------------------------------
# Polynomials through samples.


@cache
def coefficients_of_values(n: int) -> Array:
    """Return what makes Chebyshev coefficients of the values at n + 1 points, (n + 1, n + 1)."""
    return np.linalg.inv(chebyshev.chebvander(-np.cos(np.pi * np.arange(n + 1) / n), n))


@cache
def gauss(count: int) -> tuple[Array, Array]:
    """Return Gauss' points in [-1, 1] and weights of sum 1."""
    points, weights = legendre.leggauss(count)
    return points, weights / 2.0


def clenshaw(c: list[Array], s: Array) -> Array:
    """Return the sum of c_k T_k(s); the same bits for a piece whatever stands beside it."""
    first, second = np.zeros_like(s), np.zeros_like(s)
    for k in range(len(c) - 1, 0, -1):
        first, second = c[k] + 2.0 * s * first - second, first
    return c[0] + s * first - second


class Polynomials:
    """A quantity on P pieces: w polynomials of degree n on each, or the length of the vector of all w.

    Parameters
    ----------
    values : (P, n + 1, w)
        At Chebyshev's points.
    sign
        -1: the negative of it, whose largest value is the smallest.
    """

    def __init__(self, values: Array, norm: bool, sign: float = 1.0) -> None:
        matrix = coefficients_of_values(values.shape[1] - 1)
        columns = [values[:, j] for j in range(values.shape[1])]
        self.c: list[Array] = []
        for row in matrix:
            total = np.zeros(columns[0].shape)
            for entry, x in zip(row, columns, strict=True):
                total = total + entry * x
            self.c.append(total)
        self.norm, self.degree, self.sign = norm, values.shape[1] - 1, sign

    def at(self, s: Array, piece: Any = slice(None), which: Any = slice(None)) -> Array:
        """Return values at s in [-1, 1] of some pieces, and of some columns where there is no norm."""
        if not self.norm:
            return self.sign * clenshaw([c[piece, which] for c in self.c], s)
        square = np.zeros(s.shape)
        for j in range(self.c[0].shape[1]):
            square = square + clenshaw([c[piece, j] for c in self.c], s) ** 2
        return self.sign * np.sqrt(square)

    def on(self, points: Array) -> Array:
        """Return values at points of all pieces, (points, P, w or 1)."""
        pieces, w = self.c[0].shape
        rows = [self.at(np.full(pieces if self.norm else (pieces, w), s)) for s in points]
        return np.array(rows).reshape(len(points), pieces, -1)


def largest(p: Polynomials) -> Array:
    """Return the largest value on every piece, (P, w)."""
    grid = -np.cos(np.pi * np.arange(GRID + 1) / GRID)
    values = p.on(grid)
    best = values.max(axis=0)
    # a polynomial of degree n exceeds its largest value on the grid by no more than 1 / cos(n pi / 2 GRID)
    more = 0.5 * (1.0 / np.cos(p.degree * np.pi / (2 * GRID)) - 1.0) * np.ptp(values, axis=0)
    inner = (values[1:-1] > values[:-2]) & (values[1:-1] >= values[2:]) & (values[1:-1] + more >= best)
    k, piece, which = np.nonzero(inner)
    low, high = grid[k], grid[k + 2]
    found = values[k + 1, piece, which]
    for _ in range(ROUNDS):
        points = [low + (high - low) * (i / 8.0) for i in range(9)]
        tried = np.array([p.at(s, piece, which) for s in points])
        best_of = tried.argmax(axis=0)
        found = np.maximum(found, tried.max(axis=0, initial=-np.inf))
        width = (high - low) / 8.0
        low, high = low + width * np.maximum(best_of - 1, 0), low + width * np.minimum(best_of + 1, 8)
    np.maximum.at(best, (piece, which), found)
    return best


def integral(p: Polynomials, power: int) -> Array:
    """Return the mean of p or p^2 on every piece, (P, w); halved where a length of vectors has a corner."""
    points, weights = gauss(p.degree + 1)

    def over(low: Array, high: Array, piece: Array) -> Array:
        middle, half = 0.5 * (low + high), 0.5 * (high - low)
        total = np.zeros(())
        for s, weight in zip(points, weights, strict=True):
            at = middle + half * s
            total = total + weight * p.at(at if p.norm else at[:, None] * np.ones(p.c[0].shape[1]), piece) ** power
        return half[:, None] * np.asarray(total).reshape(len(piece), -1)

    pieces = len(p.c[0])
    piece, low, high = np.arange(pieces), np.full(pieces, -1.0), np.full(pieces, 1.0)
    whole = over(low, high, piece)
    if not p.norm or power == 2:
        return whole
    total, level = np.zeros_like(whole), np.abs(whole)
    for _ in range(HALVINGS):
        middle = 0.5 * (low + high)
        left, right = over(low, middle, piece), over(middle, high, piece)
        open_ = (np.abs(left + right - whole) > ROUNDING * level[piece]).any(axis=1)
        np.add.at(total, piece[~open_], (left + right)[~open_])
        if not open_.any():
            return total
        piece = np.concatenate([piece[open_], piece[open_]])
        low, high = np.concatenate([low[open_], middle[open_]]), np.concatenate([middle[open_], high[open_]])
        whole = np.concatenate([left[open_], right[open_]])
    np.add.at(total, piece, whole)
    return total


# ----------------------------------------------------------------------------------------------------------------------
# Runs as pieces.


class RunPieces:
    """The samples of K runs, one behind the other, as pieces between jumps.

    Parameters
    ----------
    t, step : (N,)
        Times; lengths of the steps that end at samples, zero inside of steps and behind jumps.
    first, stop : (K,)
        Where the samples of each run begin and end.
    inside
        Samples inside of steps.
    """

    def __init__(self, t: Array, step: Array, first: Array, stop: Array, inside: int) -> None:
        self.first, self.stop, run = first, stop, np.full(t.size, -1)
        for k, (a, b) in enumerate(zip(first, stop, strict=True)):
            run[a:b] = k
        n, joined = inside + 1, np.zeros(t.size, bool)  # joined: the interval before a sample is part of a long piece
        ends = np.flatnonzero(step[n:] > 0.0) + n if inside else np.zeros(0, np.int64)
        rows = ends[:, None] + np.arange(-n, 1)
        good = (run[rows] == run[ends][:, None]).all(axis=1) & (step[rows[:, 1:-1]] == 0.0).all(axis=1)
        good &= (np.diff(t[rows], axis=1) > 0.0).all(axis=1)
        good &= np.abs(t[rows[:, -1]] - t[rows[:, 0]] - step[ends]) <= SAME_STEP * step[ends]
        joined[rows[good, 1:]] = True
        short = np.flatnonzero((np.diff(t) > 0.0) & (run[1:] == run[:-1]) & (run[1:] >= 0) & ~joined[1:]) + 1
        self.groups = [(rows[good], run[ends[good]])] if good.any() else []
        self.groups += [(short[:, None] + np.arange(-1, 1), run[short])] if short.size else []
        self.t = t

    @classmethod
    def of(cls, run: Trajectory) -> RunPieces:
        """Return the pieces of one run."""
        inside = 0 if run.session is None else run.session.settings.inside
        return cls(run.t, run.step, np.array([0]), np.array([run.t.size]), inside)

    def reduced(self, rows: Array, take: str, norm: bool = False) -> Array:
        """Return one number of every run and column, (K,) or (K, w); of lengths of vectors (K,)."""
        table = rows.reshape(len(rows), -1)
        vectors = norm and rows.ndim == 2
        found = REDUCTIONS[take](self, table, vectors)
        return found[:, 0] if rows.ndim == 1 or vectors else found.reshape(-1, *rows.shape[1:])

    def extremum(self, table: Array, norm: bool, sign: float) -> Array:
        """Return the largest (sign 1) or smallest (-1) value, (K, w); where there is no piece, of the samples."""
        values = np.linalg.norm(table, axis=1)[:, None] if norm else table
        best = [(sign * values[a:b]).max(axis=0) for a, b in zip(self.first, self.stop, strict=True)]
        found = np.array(best).reshape(self.first.size, -1)
        for piece, run in self.groups:
            np.maximum.at(found, run, largest(Polynomials(table[piece], norm, sign)))
        return sign * found

    def mean(self, table: Array, norm: bool, power: int) -> Array:
        """Return the mean over time of a quantity or its square, (K, w); of a run without length that of its start."""
        values = np.linalg.norm(table, axis=1)[:, None] if norm else table
        total, length = np.zeros((self.first.size, values.shape[1])), np.zeros(self.first.size)
        for piece, run in self.groups:
            h = self.t[piece[:, -1]] - self.t[piece[:, 0]]
            np.add.at(total, run, h[:, None] * integral(Polynomials(table[piece], norm), power))
            np.add.at(length, run, h)
        start = values[self.first] ** power
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.where(length[:, None] > 0.0, total / length[:, None], start)


ENDS = {"first": 0, "last": -1}
"""Numbers of a column that are those of a sample."""

REDUCTIONS: dict[str, Callable[[RunPieces, Array, bool], Array]] = {
    "max": lambda motion, x, norm: motion.extremum(x, norm, 1.0),
    "min": lambda motion, x, norm: motion.extremum(x, norm, -1.0),
    "range": lambda motion, x, norm: motion.extremum(x, norm, 1.0) - motion.extremum(x, norm, -1.0),
    "mean": lambda motion, x, norm: motion.mean(x, norm, 1),
    "rms": lambda motion, x, norm: np.sqrt(motion.mean(x, norm, 2)),
}
"""How a quantity becomes one number by the motion between samples."""
