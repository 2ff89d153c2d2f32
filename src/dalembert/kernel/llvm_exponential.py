"""Exponentials, logarithms and hyperbolic functions on vectors of doubles.

The logarithm and the hyperbolic identities follow Sun's fdlibm (e_log.c, s_log1p.c, e_sinh.c, s_asinh.c;
1993); the exponential is a Taylor polynomial of degree 13 on |r| <= ln2 / 2, whose remainder is below 2^-57.

Symbols: n nearest multiple of ln 2, r the reduced argument, k the exponent of a logarithm's argument.
"""

from __future__ import annotations

import math

from dalembert.kernel.llvm_circular import MAGIC
from dalembert.kernel.llvm_vector import Value, Writer

LOG2E = float.fromhex("0x1.71547652B82FEp0")
LN2 = (float.fromhex("0x1.62E42FEFA39EFp-1"), float.fromhex("0x1.ABC9E3B39803Fp-56"))
LN2_SHORT = (6.93147180369123816490e-01, 1.90821492927058770002e-10)  # k times the first is exact
MAGIC_BITS = 0x4338000000000000
SQRT_HALF_BITS = 0x3FE6A09E667F3BCD
TAYLOR = tuple(1.0 / math.factorial(k) for k in range(2, 14))
LOG = (
    6.666666666666735130e-01,
    3.999999999940941908e-01,
    2.857142874366239149e-01,
    2.222219843214978396e-01,
    1.818357216161805012e-01,
    1.531383769920937332e-01,
    1.479819860511658591e-01,
)
SMALLEST_NORMAL = 2.0**-1022
HUGE = 1e150  # the square still fits, and 1/x no longer matters


def _reduce(w: Writer, x: Value) -> tuple[Value, Value]:
    """Return e^r - 1 and the bits of n, where x = n ln2 + r."""
    shifted = w.fma(x, LOG2E, MAGIC)
    minus_n = MAGIC - shifted
    first = w.fma(minus_n, LN2[0], x)
    r = w.fma(minus_n, LN2[1], first)
    lost = w.fma(minus_n, LN2[1], first - r)
    return r + w.fma(r * r, w.polynomial(r, TAYLOR), lost), w.bits(shifted).minus(MAGIC_BITS)


def _power_of_two(w: Writer, n: Value) -> Value:
    """Return 2^n for -1023 < n < 1024."""
    return w.from_bits(n.plus(1023).shifted(52))


def _clamp(w: Writer, x: Value, low: float, high: float) -> Value:
    """Return x within bounds; NaN stays."""
    x = w.select(x < low, low, x)
    return w.select(x > high, high, x)


def exp(w: Writer, x: Value, halvings: int = 0) -> Value:
    """Return e^x / 2^halvings, which may fit where e^x does not."""
    e, n = _reduce(w, _clamp(w, x, -746.0, 711.0))
    n = n.minus(halvings)
    half = n.shifted(-1)
    return (1.0 + e) * _power_of_two(w, half) * _power_of_two(w, n.minus(half))


def expm1(w: Writer, x: Value) -> Value:
    """Return e^x - 1 without cancellation: 2 (s e + (s - 1/2)) with s = 2^(n-1), e = e^r - 1."""
    e, n = _reduce(w, _clamp(w, x, -50.0, 710.0))
    s = _power_of_two(w, n.minus(1))
    return w.copysign(2.0 * w.fma(s, e, s - 0.5), x)


def log(w: Writer, x: Value) -> Value:
    """Return the natural logarithm; -inf at zero, NaN below."""
    tiny = x < SMALLEST_NORMAL
    bits = w.bits(w.select(tiny, x * 2.0**54, x))
    k_bits = bits.minus(SQRT_HALF_BITS).shifted(-52)
    f = w.from_bits(bits.minus(k_bits.shifted(52))) - 1.0
    k = w.from_bits(k_bits.plus(MAGIC_BITS)) - w.select(tiny, MAGIC + 54.0, MAGIC)
    s = f / (2.0 + f)
    z = s * s
    series = z * w.polynomial(z, LOG)
    half = 0.5 * f * f
    inner = w.fma(s, half + series, k * LN2_SHORT[1])
    result = k * LN2_SHORT[0] - ((half - inner) - f)
    result = w.select(x.equals(math.inf), math.inf, result)
    result = w.select(x.equals(0.0), -math.inf, result)
    return w.select(x >= 0.0, result, w.select(x < 0.0, math.nan, x))


def log1p(w: Writer, x: Value) -> Value:
    """Return log(1 + x): the logarithm of the rounded sum, corrected for its rounding."""
    u = 1.0 + x
    lost = w.select(x < 1.0, x - (u - 1.0), 1.0 - (u - x))
    plain = log(w, u)
    corrected = w.copysign(plain + lost / u, x)
    return w.select((u > 0.0).both(u < math.inf), corrected, plain)


def sinh(w: Writer, x: Value) -> Value:
    """Return the hyperbolic sine."""
    a = w.fabs(x)
    small = a < 1.0
    t = expm1(w, w.select(small, a, 0.0))
    near = 0.5 * (2.0 * t - t * t / (t + 1.0))
    half = exp(w, a, halvings=1)
    return w.copysign(w.select(small, near, half - 0.25 / half), x)


def cosh(w: Writer, x: Value) -> Value:
    """Return the hyperbolic cosine."""
    half = exp(w, w.fabs(x), halvings=1)
    return half + 0.25 / half


def tanh(w: Writer, x: Value) -> Value:
    """Return the hyperbolic tangent."""
    a = w.fabs(x)
    large = a >= 1.0
    t = expm1(w, w.select(large, 2.0 * a, -2.0 * a))
    fraction = w.select(large, 2.0, -t) / (t + 2.0)
    return w.copysign(w.select(large, 1.0 - fraction, fraction), x)


def asinh(w: Writer, x: Value) -> Value:
    """Return the inverse hyperbolic sine."""
    a = w.fabs(x)
    square = a * a
    near = log1p(w, a + square / (1.0 + w.sqrt(1.0 + square)))
    return w.copysign(w.select(a > HUGE, log(w, a) + LN2[0], near), x)


def acosh(w: Writer, x: Value) -> Value:
    """Return the inverse hyperbolic cosine; NaN below 1."""
    t = x - 1.0
    near = log1p(w, t + w.sqrt(w.fma(t, t, 2.0 * t)))
    result = w.select(x > HUGE, log(w, x) + LN2[0], near)
    return w.select(x < 1.0, math.nan, result)


def atanh(w: Writer, x: Value) -> Value:
    """Return the inverse hyperbolic tangent; infinite at -1 and 1, NaN beyond."""
    a = w.fabs(x)
    double = 2.0 * a
    argument = w.select(a < 0.5, double + double * a / (1.0 - a), double / (1.0 - a))
    return w.copysign(0.5 * log1p(w, argument), x)
