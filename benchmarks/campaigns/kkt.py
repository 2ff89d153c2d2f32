"""Random block systems against 60 digits: answers that are wrong with a good status are counted.

The oracle works in mpmath on the numbers as they are: the rank of the rows in the metric of the mass, by Gram-Schmidt
with pivots, and the accelerations from the rows that it keeps. Rows that depend up to rounding are read as dependent;
where all rows are independent beyond doubt, as they are. An answer that is ok must agree with such a reading, in its
accelerations and in its kind. Rows must not be called dependent where only the metric makes them so: a motion of little
mass lengthens all rows alike. With masses that are nearly singular the exact reading counts, too.

Some trials are chains of very light coordinates whose rows are doubled exactly: right sides that contradict each other
must not be certified, and where they agree accelerations and least multipliers keep to their error bars.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import mpmath
import numpy as np

import dalembert as da

TITLE = "KKT: random masses, dependent rows with rounding, units, precisions, right sides, against 60 digits"

Array = np.ndarray
EPS = float(np.finfo(float).eps)

DIGITS = 60
"""Working precision of the oracle: entries of 1e-16 squared beside units of 1e8, with digits to spare."""

ROUNDING = 100.0
"""Rows that are independent by less than ROUNDING * sqrt(n) * eps are read as dependent: ten times what the library
takes for rounding, since Gram-Schmidt leaves more than the smallest singular value."""

DOUBT = {False: 1e-10, True: 1e-4}
"""Rows that are independent by less than this, in double or in single precision, must not be certified as such."""

PROMISED = 1e-3
"""What ok means: three digits of the largest acceleration, in the metric of the mass."""

METRIC = 1e6
"""Trace of the inverse of M, of unit diagonal, up to which M alone is the metric; beyond it rows have a say in it."""

REST = 1e-10
"""Accelerations of a structure at rest are compared with what its forces alone would cause."""


CHAINS = 0.2
"""Part of the trials that are chains of light coordinates."""


class Case(NamedTuple):
    """A system, what is wrong with its digits, and how it is passed."""

    M: Array
    A: Array
    force: Array
    drift: Array
    precision: float
    batch: bool


def trial(rng: np.random.Generator) -> tuple[str, str]:
    """Solve one random system and compare it with the oracle."""
    if rng.random() < CHAINS:
        return _light_chain(rng)
    case = _case(rng)
    kind = np.float32 if case.precision > EPS else np.float64
    M, A = case.M.astype(kind), case.A.astype(kind)
    try:
        if case.batch:
            copies = 70
            many = da.KKT(np.tile(M, (copies, 1, 1)), np.tile(A, (copies, 1, 1))).solve(case.force, case.drift)
            status, a, lam = da.Status(int(np.ravel(many.status)[5])), many.acceleration[5], many.multipliers[5]
            bars = None
        else:
            one = da.KKT(M, A).solve(case.force, case.drift)
            status, a, lam = da.Status(int(np.ravel(one.status)[0])), one.acceleration, one.multipliers
            bars = getattr(one.certificate, "acceleration_error")  # noqa: B009 - a batch has none
    except da.SolvabilityError as refused:
        return "refused", "NONFINITE" if refused.diagnosis is None else refused.diagnosis.verdict.name
    except da.DalembertError as refused:
        return "refused", type(refused).__name__
    except Exception as error:
        return "foreign", f"{type(error).__name__}: {error}"
    if status > da.Status.LEAST_SQUARES:
        return "refused", status.name
    wrong = _wrong(case, M.astype(float), A.astype(float), status, a, lam, bars)
    return ("wrong", wrong) if wrong else ("right", status.name)


def _case(rng: np.random.Generator) -> Case:
    """Draw masses, rows, units and right sides."""
    n, m = int(rng.integers(1, 8)), int(rng.integers(1, 8))
    rank = int(rng.integers(1, min(n, m) + 1))
    Q, _ = np.linalg.qr(rng.standard_normal((n, n)))
    masses = 10.0 ** -rng.uniform(0, rng.choice([1, 4, 8]), n)
    M = (Q * masses) @ Q.T if rng.random() < 0.5 else np.diag(masses)
    A = rng.standard_normal((m, rank)) @ rng.standard_normal((rank, n))
    if rng.random() < 0.3:
        A[rng.random(A.shape) < 0.4] = 0.0
    if rng.random() < 0.25 and n > 1:
        gone = rng.integers(n)
        M[gone] = M[:, gone] = 0.0
    level = 10.0 ** -rng.uniform(3, 17)
    noise = rng.random()
    if noise < 0.3:
        A = A * (1.0 + 4 * EPS * rng.standard_normal(A.shape))
    elif noise < 0.6:
        A = A + level * rng.standard_normal(A.shape)
    elif noise < 0.8 and m > 1:
        A[0] = A[1] + level * rng.standard_normal(n)
    drift = A @ rng.standard_normal(n) if rng.random() < 0.8 else rng.standard_normal(m)
    if rng.random() < 0.2:
        drift = drift * (1.0 + 10.0 ** -rng.uniform(6, 17) * rng.standard_normal(m))
    if rng.random() < 0.2:
        drift = np.zeros(m)
    force = rng.standard_normal(n)
    if rng.random() < 0.6:
        width = rng.choice([2.0, 4.0, 8.0])
        T, R = 10.0 ** rng.uniform(-width, width, n), 10.0 ** rng.uniform(-width, width, m)
        M, A, force, drift = T[:, None] * M * T, R[:, None] * A * T, T * force, R * drift
    M = 0.5 * (M + M.T)
    precision = float(np.finfo(np.float32).eps) if rng.random() < 0.15 and np.abs(A).max() < 1e30 else EPS
    if precision == EPS and rng.random() < 0.05:
        heavy, long = 10.0 ** rng.uniform(-200, 200), 10.0 ** rng.uniform(-200, 200)
        M, A, force, drift = heavy * M, long * A, heavy * force, long * drift
    return Case(M, A, force, drift, precision, bool(rng.random() < 0.15))


def _light_chain(rng: np.random.Generator) -> tuple[str, str]:
    """Solve a chain of masses down to 1e-16, some rows of which stand twice, with right sides that agree or do not."""
    n = int(rng.integers(1, 6))
    masses = 10.0 ** -rng.uniform(0, 16, n)
    r = int(rng.integers(1, n + 1))
    rows = (np.eye(n) - np.eye(n, k=-1) if rng.random() < 0.5 else np.eye(n))[rng.choice(n, r, replace=False)]
    again, weights = rng.choice(r, (k := int(rng.integers(1, r + 1))), replace=False), 2.0 ** rng.integers(-2, 3, k)
    c, f = np.round(8 * rng.standard_normal(r)) / 8, np.round(16 * rng.standard_normal(n)) / 8
    doubled, contradictory = weights * c[again], bool(rng.random() < 0.5)
    doubled[0] += contradictory * rng.integers(1, 9) / 8
    A, c = np.vstack([rows, weights[:, None] * rows[again]]), np.append(c, doubled)
    units, sizes = 2.0 ** rng.integers(-20, 20, n), 2.0 ** rng.integers(-20, 20, len(c))
    M, A, f, c = np.diag(masses * units**2), sizes[:, None] * A * units, f * units, c * sizes
    copies = 70 if rng.random() < 0.3 else 1
    try:
        many = da.KKT(np.tile(M, (copies, 1, 1)), A).solve(f, -c)
    except Exception as error:
        return "foreign", f"{type(error).__name__}: {error}"
    status = da.Status(int(many.status[0]))
    if status > da.Status.LEAST_SQUARES:
        return "refused", f"light, {status.name}"
    if contradictory:
        return "wrong", f"{status.name} of contradictory rows: {np.diag(M)}, {A.tolist()}, {f}, {c}"
    certificate = many.certificate[0]
    with mpmath.workdps(DIGITS):
        a, lam = _least(M, A, f, c, r)
        for name, x, truth, bars in (
            ("acceleration", many.acceleration[0], a, certificate.acceleration_error),
            ("multipliers", many.multipliers[0], lam, certificate.multiplier_error),
        ):
            allowed = [2 * b + 4 * EPS * abs(v) + mpmath.mpf(10) ** -300 for v, b in zip(truth, bars, strict=True)]
            over = max(abs(mpmath.mpf(u) - v) / w for u, v, w in zip(x, truth, allowed, strict=True))
            if over > 1:
                return "wrong", f"{name} of a light chain: {float(over):.1e} times their bars"
    return "right", f"light, {status.name}"


def _least(M: Array, A: Array, f: Array, c: Array, r: int) -> tuple[list, list]:
    """Return accelerations and least multipliers of rows whose first r are independent, the others their doubles."""
    n, m = M.shape[0], len(A)
    K, right = mpmath.matrix(n + r, n + r), mpmath.matrix([mpmath.mpf(float(x)) for x in (*f, *c[:r])])
    for i in range(n):
        K[i, i] = mpmath.mpf(float(M[i, i]))
        for j in range(r):
            K[i, n + j] = K[n + j, i] = mpmath.mpf(float(A[j, i]))
    x = mpmath.lu_solve(K, right)
    alone, lam = x[n:], [mpmath.mpf(0)] * m
    for j in range(r):  # the force of a row is shared by its doubles as their lengths are: least norm
        column = int(np.flatnonzero(A[j])[0])
        ratios = [float(A[i, column] / A[j, column]) if _parallel(A[i], A[j]) else 0.0 for i in range(m)]
        size = sum(mpmath.mpf(t) ** 2 for t in ratios)
        lam = [known + mpmath.mpf(t) * alone[j] / size for known, t in zip(lam, ratios, strict=True)]
    return list(x[:n]), lam


def _parallel(a: Array, b: Array) -> bool:
    """Return whether two rows of powers of two are one multiple of each other."""
    return bool((a[:, None] * b == b[:, None] * a).all())


class _Oracle:
    """The system in 60 digits: rows in the metric of the mass, kept one by one as long as they are independent."""

    def __init__(self, M: Array, A: Array, level: float) -> None:
        """Take rows into account that are independent by more than `level` of their length."""
        self.n, self.m = M.shape[0], A.shape[0]
        self.M, self.A = mpmath.matrix(M.tolist()), mpmath.matrix(A.tolist())
        self.size = size = _sizes(M, A)
        unit = mpmath.matrix(self.n, self.n)
        for i in range(self.n):
            for j in range(self.n):
                unit[i, j] = self.M[i, j] / (size[i] * size[j])
        rows = mpmath.matrix(self.m, self.n)
        for i in range(self.m):
            for j in range(self.n):
                rows[i, j] = self.A[i, j] / size[j]
        self.kept, self.gap, self.definite = _kept(unit, rows, level)
        self.own_rank = len(_kept(mpmath.eye(self.n), rows, level)[0]) if self.definite else len(self.kept)

    def solve(self, f: Array, c: Array) -> list:
        """Return the accelerations of the kept rows; raises ZeroDivisionError where the matrix is singular."""
        k = len(self.kept)
        K, right = mpmath.matrix(self.n + k, self.n + k), mpmath.matrix(self.n + k, 1)
        for i in range(self.n):
            right[i] = mpmath.mpf(float(f[i])) / self.size[i]
            for j in range(self.n):
                K[i, j] = self.M[i, j] / (self.size[i] * self.size[j])
        for at, row in enumerate(self.kept):
            length = mpmath.sqrt(sum((self.A[row, j] / self.size[j]) ** 2 for j in range(self.n)))
            right[self.n + at] = mpmath.mpf(float(c[row])) / length
            for j in range(self.n):
                K[self.n + at, j] = K[j, self.n + at] = self.A[row, j] / self.size[j] / length
        x = mpmath.lu_solve(K, right)
        return [x[j] / self.size[j] for j in range(self.n)]


def _sizes(M: Array, A: Array) -> list[Any]:
    """Return the square roots of masses; of a massless coordinate the largest entry, beside its row's others."""
    massive = np.diag(M) > 0.0
    size = [mpmath.sqrt(x) if x > 0.0 else mpmath.mpf(0) for x in np.diag(M).tolist()]
    for j in np.flatnonzero(~massive).tolist():
        beside = [
            max([abs(mpmath.mpf(row[k])) / size[k] for k in np.flatnonzero(massive)], default=0) for row in A.tolist()
        ]
        entries = [abs(mpmath.mpf(row[j])) / (b or 1) for row, b in zip(A.tolist(), beside, strict=True)]
        size[j] = max(entries) or mpmath.mpf(1)
    return size


def _kept(M: Any, rows: Any, level: float) -> tuple[list[int], float, bool]:
    """Return indices of independent rows by Gram-Schmidt with pivots, the least independence, and if M is a metric."""
    definite, inverse = True, mpmath.eye(M.rows)
    try:
        inverse = mpmath.inverse(M)
    except ZeroDivisionError:
        definite = False
    if not all(inverse[j, j] > 0 for j in range(M.rows)) or sum(inverse[j, j] for j in range(M.rows)) > METRIC:
        definite, inverse = False, mpmath.eye(M.rows)
    left = {i: [rows[i, j] for j in range(rows.cols)] for i in range(rows.rows)}

    def product(x: list, y: list) -> Any:
        return sum(x[i] * inverse[i, j] * y[j] for i in range(len(x)) for j in range(len(y)))

    lengths = {i: mpmath.sqrt(abs(product(x, x))) for i, x in left.items()}
    left = {i: [v / lengths[i] for v in x] for i, x in left.items() if lengths[i] > 0}
    kept, gap = [], 1.0
    while left:
        sizes = {i: mpmath.sqrt(abs(product(x, x))) for i, x in left.items()}
        best = max(sizes, key=lambda i: sizes[i])
        if sizes[best] <= level:
            break
        gap = min(gap, float(sizes[best]))
        base = [v / sizes[best] for v in left.pop(best)]
        kept.append(best)
        for i, x in left.items():
            along = product(x, base)
            left[i] = [v - along * b for v, b in zip(x, base, strict=True)]
    return kept, gap, definite


def _wrong(case: Case, M: Array, A: Array, status: da.Status, a: Array, lam: Array, bars: Array | None) -> str:
    """Return what is wrong with an answer that is ok, or nothing: some reading of the digits must agree with it."""
    if not np.all(np.isfinite(a)) or not np.all(np.isfinite(lam)):
        return f"{status.name}: not finite"
    reasons = []
    single = case.precision > EPS
    with mpmath.workdps(DIGITS):
        for level in (ROUNDING * len(a) ** 0.5 * case.precision, 1e-30):
            oracle = _Oracle(M, A, level)
            if oracle.definite and oracle.gap < DOUBT[single]:
                reasons.append(f"{status.name}: certified at independence {oracle.gap:.0e}")
                continue
            if oracle.own_rank > len(oracle.kept):
                reasons.append(f"{status.name}: rank {len(oracle.kept)}, {oracle.own_rank} in the units of coordinates")
                continue
            if (status is da.Status.UNIQUE) != (len(oracle.kept) == case.A.shape[0]):
                reasons.append(f"{status.name} at rank {len(oracle.kept)} of {case.A.shape[0]}")
                continue
            reason = _off(oracle, case, a, bars)
            if not reason:
                return ""
            reasons.append(f"{status.name}: {reason}")
    return "; ".join(dict.fromkeys(reasons))


def _off(oracle: _Oracle, case: Case, a: Array, bars: Array | None) -> str:
    """Return how far accelerations are from those of the kept rows, or nothing where three digits or the bars hold."""
    try:
        truth = oracle.solve(case.force, -case.drift)
    except ZeroDivisionError:
        return "answered though singular"
    errors = [abs(mpmath.mpf(float(x)) - y) for x, y in zip(a, truth, strict=True)]
    reach = max(abs(y * s) for y, s in zip(truth, oracle.size, strict=True))
    off = max(e * s for e, s in zip(errors, oracle.size, strict=True))
    caused = max(abs(mpmath.mpf(float(f))) / s for f, s in zip(case.force, oracle.size, strict=True))
    if off <= PROMISED * reach + REST * caused:
        return ""
    if bars is not None and all(e <= 2.0 * b + 1e-12 * abs(y) for e, b, y in zip(errors, bars, truth, strict=True)):
        return ""
    return f"accelerations off by {float(off / (reach + mpmath.mpf(10) ** -300)):.1e}"
