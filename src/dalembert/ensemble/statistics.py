"""Statistics of studies, with intervals: means, quantiles, probabilities, Sobol indices.

Symbols: n runs, y what was kept of them, m and s mean and standard deviation, t Student's quantile.

    mean          m +- t s / sqrt(n)                            runs at random
    quantile p    between two order statistics, by binomial quantiles of n and p
    probability   Clopper and Pearson's interval for k of n
    Sobol index   S_i = E[f_B (f_ABi - f_A)] / V      total T_i = E[(f_A - f_ABi)^2] / (2 V)

Points of a Sobol or Halton sequence are more even than random ones, and the spread of y says nothing of the error of
their mean: it has no interval here, and so have the values of a grid. That of a Latin hypercube errs on the safe side
where y is monotone.

Sources: Clopper & Pearson, Biometrika 26 (1934); David & Nagaraja, "Order Statistics", sec. 7.1; Saltelli et al.
(2010), table 2, (b) and (f); Jansen (1999).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dalembert.errors import ModelError
from dalembert.types import Array

QUANTILES = (0.05, 0.5, 0.95)

RESAMPLES = 400
"""Bootstrap samples of Sobol indices: their quantiles of 2.5 % are known to a fifth."""

INDEPENDENT = ("random", "latin")
"""Designs whose spread tells the error of a mean."""


@dataclass(frozen=True, eq=False)
class SampleStatistics:
    """Statistics of one quantity over the runs that reached their end.

    Attributes
    ----------
    count, left_out
        Runs that are in it, and those that are not since they have no answer.
    mean, deviation
        Over the runs.
    interval
        Of the mean, (2, ...); NaN where the design allows none, as those of quantiles.
    quantiles, quantile_intervals
        By probability.
    """

    name: str
    count: int
    left_out: int
    mean: Array
    deviation: Array
    interval: Array
    quantiles: dict[float, Array]
    quantile_intervals: dict[float, Array]
    confidence: float

    def __str__(self) -> str:
        part = f"{self.name}: {self.count} runs"
        if self.left_out:
            part += f", {self.left_out} without an answer left out"
        if np.ndim(self.mean) or not self.count:
            return f"{part}; mean {self.mean}"
        lines = [f"{part}; mean {self.mean:.6g}, deviation {self.deviation:.4g}"]
        if np.isfinite(self.interval).all():
            lines.append(f"  mean in [{self.interval[0]:.6g}, {self.interval[1]:.6g}] at {self.confidence:.0%}")
        for p, value in self.quantiles.items():
            low, high = self.quantile_intervals[p]
            interval = "" if np.isnan(low) else f" in [{low:.6g}, {high:.6g}]"
            lines.append(f"  {p:.0%} quantile {value:.6g}{interval}")
        return "\n".join(lines)


def sample_statistics(name: str, y: Array, answered: Array, independent: bool, confidence: float) -> SampleStatistics:
    """Return the statistics of y (N, *shape) over the runs that have an answer; intervals if they are independent."""
    from scipy.stats import t as student

    refuse_confidence(confidence)
    rows = y[answered]
    n, shape = len(rows), y.shape[1:]
    nothing = np.full(shape, np.nan)
    mean = rows.mean(axis=0) if n else nothing
    deviation = rows.std(axis=0, ddof=1) if n > 1 else nothing
    half = student.ppf(0.5 + confidence / 2, n - 1) * deviation / np.sqrt(n) if independent and n > 1 else nothing
    ordered = np.sort(rows, axis=0)
    quantiles = {p: np.quantile(rows, p, axis=0) if n else nothing for p in QUANTILES}
    known = n > 0 and independent
    ends = {p: _order_interval(ordered, p, confidence) if known else np.stack([nothing, nothing]) for p in QUANTILES}
    return SampleStatistics(
        name, n, len(y) - n, mean, deviation, np.stack([mean - half, mean + half]), quantiles, ends, confidence
    )


def _order_interval(ordered: Array, p: float, confidence: float) -> Array:
    """Return the order statistics between which the quantile p lies with at least that confidence."""
    from scipy.stats import binom

    n, tail = len(ordered), (1.0 - confidence) / 2
    low, high = int(binom.ppf(tail, n, p)) - 1, int(binom.ppf(1.0 - tail, n, p))
    if np.isnan(ordered).any():
        return np.full((2, *ordered.shape[1:]), np.nan)
    below = ordered[low] if low >= 0 else np.full(ordered.shape[1:], -np.inf)
    above = ordered[high] if high < n else np.full(ordered.shape[1:], np.inf)
    return np.stack([below, above])


@dataclass(frozen=True)
class Probability:
    """How often something happened, with Clopper and Pearson's interval."""

    value: float
    low: float
    high: float
    happened: int
    count: int

    def __str__(self) -> str:
        if np.isnan(self.low):
            return f"{self.value:.6g}, {self.happened} of {self.count} runs"
        return f"{self.value:.6g} in [{self.low:.6g}, {self.high:.6g}], {self.happened} of {self.count} runs"


def probability(happened: int, count: int, independent: bool, confidence: float) -> Probability:
    """Return the part of the runs in which something happened; NaN as interval where runs are not independent."""
    from scipy.stats import beta

    refuse_confidence(confidence)
    if not independent:
        return Probability(happened / count if count else np.nan, np.nan, np.nan, happened, count)
    tail = (1.0 - confidence) / 2
    low = beta.ppf(tail, happened, count - happened + 1) if happened else 0.0
    high = beta.ppf(1.0 - tail, happened + 1, count - happened) if happened < count else 1.0
    return Probability(happened / count if count else np.nan, float(low), float(high), happened, count)


def refuse_confidence(confidence: float) -> None:
    """Refuse a confidence that is no part of one."""
    if not 0.0 < confidence < 1.0:
        raise ModelError(f"confidence={confidence!r} must lie between 0 and 1, as 0.95")


# ----------------------------------------------------------------------------------------------------------------------
# Sobol indices: which input makes the spread.


@dataclass(frozen=True, eq=False)
class SobolIndices:
    """Parts of the variance that inputs explain: alone (`first`), and with all interactions (`total`).

    Attributes
    ----------
    inputs
        Names, one per column of the design.
    first, total
        (d,), with their bootstrap intervals (2, d).
    points, left_out
        Points of the design, and those of which a run has no answer.
    """

    inputs: tuple[str, ...]
    first: Array
    total: Array
    first_interval: Array
    total_interval: Array
    points: int
    left_out: int

    def __str__(self) -> str:
        lines = [f"{'input':>20}  {'first':>8}  {'interval':>18}  {'total':>8}  {'interval':>18}"]
        for k, name in enumerate(self.inputs):
            a, b = self.first_interval[:, k], self.total_interval[:, k]
            lines.append(
                f"{name:>20}  {self.first[k]:8.4f}  [{a[0]:7.4f}, {a[1]:7.4f}]  {self.total[k]:8.4f}  "
                f"[{b[0]:7.4f}, {b[1]:7.4f}]"
            )
        return "\n".join(lines)


def sobol_indices(y: Array, answered: Array, inputs: Sequence[str], seed: int, confidence: float) -> SobolIndices:
    """Return the indices of numbers y (N,) of a design "saltelli"."""
    refuse_confidence(confidence)
    d = len(inputs)
    table = y.reshape(-1, d + 2)
    whole = answered.reshape(-1, d + 2).all(axis=1)
    table = table[whole]
    if len(table) < 2:
        raise ModelError("Sobol indices need at least two points whose runs all reached their end")
    first, total = _indices(table)
    generator = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(1,)))
    samples = [_indices(table[generator.integers(len(table), size=len(table))]) for _ in range(RESAMPLES)]
    ends = ((1.0 - confidence) / 2, (1.0 + confidence) / 2)
    of_first, of_total = (np.quantile([pair[k] for pair in samples], ends, axis=0) for k in (0, 1))
    return SobolIndices(tuple(inputs), first, total, of_first, of_total, len(table), int((~whole).sum()))


def _indices(table: Array) -> tuple[Array, Array]:
    A, B, AB = table[:, 0], table[:, 1], table[:, 2:]
    variance = np.var(np.concatenate([A, B]))
    with np.errstate(all="ignore"):
        first = (B[:, None] * (AB - A[:, None])).mean(axis=0) / variance
        total = ((A[:, None] - AB) ** 2).mean(axis=0) / (2.0 * variance)
    return first, total
