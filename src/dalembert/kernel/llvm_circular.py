"""Sine, cosine, tangent and their inverses on vectors of doubles.

Polynomials and reductions follow Sun's fdlibm (k_sin.c, k_cos.c, s_atan.c, e_asin.c, e_acos.c, e_atan2.c;
1993), with selections in place of branches. Error bounds, in units in the last place, are in
`llvm_math.BOUNDS` and are tested.

Symbols: n nearest multiple of pi/2, r = hi + lo the reduced argument.
"""

from __future__ import annotations

import math

from dalembert.kernel.llvm_vector import CONVENTION, Value, Writer

MAGIC = 1.5 * 2.0**52  # adding it rounds to an integer and leaves that integer in the low bits
TWO_OVER_PI = float.fromhex("0x1.45F306DC9C883p-1")
PIO2 = (
    float.fromhex("0x1.921FB54442D18p0"),
    float.fromhex("0x1.1A62633145C07p-54"),
    float.fromhex("-0x1.F1976B7ED8FBCp-110"),
)  # pi/2 to 160 bits
PI_LO = float.fromhex("0x1.1A62633145C07p-53")
LARGEST = 2.0**31  # beyond this the argument is reduced lane by lane (`llvm_reduction`)

SIN = (
    -1.66666666666666324348e-01,
    8.33333333332248946124e-03,
    -1.98412698298579493134e-04,
    2.75573137070700676789e-06,
    -2.50507602534068634195e-08,
    1.58969099521155010221e-10,
)
COS = (
    4.16666666666666019037e-02,
    -1.38888888888741095749e-03,
    2.48015872894767294178e-05,
    -2.75573143513906633035e-07,
    2.08757232129817482790e-09,
    -1.13596475577881948265e-11,
)
ATAN = (
    3.33333333333329318027e-01,
    -1.99999999998764832476e-01,
    1.42857142725034663711e-01,
    -1.11111104054623557880e-01,
    9.09088713343650656196e-02,
    -7.69187620504482999495e-02,
    6.66107313738753120669e-02,
    -5.83357013379057348645e-02,
    4.97687799461593236017e-02,
    -3.65315727442169155270e-02,
    1.62858201153657823623e-02,
)
# upper end of the interval, atan of its centre (high and low part), centre
ATAN_INTERVALS = (
    (11 / 16, 4.63647609000806093515e-01, 2.26987774529616870924e-17, 0.5),
    (19 / 16, 7.85398163397448278999e-01, 3.06161699786838301793e-17, 1.0),
    (39 / 16, 9.82793723247329054082e-01, 1.39033110312309984516e-17, 1.5),
)
ASIN_P = (
    1.66666666666666657415e-01,
    -3.25565818622400915405e-01,
    2.01212532134862925881e-01,
    -4.00555345006794114027e-02,
    7.91534994289814532176e-04,
    3.47933107596021167570e-05,
)
ASIN_Q = (
    1.0,
    -2.40339491173441421878e00,
    2.02094576023350569471e00,
    -6.88283971605453293030e-01,
    7.70381505559019352791e-02,
)


def sincos(w: Writer, x: Value) -> tuple[Value, Value]:
    """Return sin x and cos x for |x| <= LARGEST; one reduction serves both.

    x - n pi/2 is exact in its first part: n pi/2's leading 53 bits are subtracted by one fused operation, and the
    difference is a multiple of 2^-53 below 1 (Cody & Waite 1980, with fused operations).
    """
    shifted = w.fma(x, TWO_OVER_PI, MAGIC)
    n = shifted - MAGIC
    first = w.fma(-n, PIO2[0], x)
    second = n * PIO2[1]
    hi = first - second
    virtual = first - hi  # what was subtracted; the two differences are what was lost (Knuth's two-sum)
    lost = (first - (hi + virtual)) - (second - virtual)
    lo = lost - w.fma(n, PIO2[2], w.fma(n, PIO2[1], -second))
    return reduced_sincos(w, hi, lo, w.bits(shifted))


def reduced_sincos(w: Writer, hi: Value, lo: Value, quadrant: Value) -> tuple[Value, Value]:
    """Return sin and cos of quadrant pi/2 + hi + lo for |hi| <= pi/4."""
    z = hi * hi
    sine, cosine = _sin_kernel(w, hi, lo, z), _cos_kernel(w, hi, lo, z)
    odd = quadrant.masked(1).nonzero()
    sin_sign = quadrant.masked(2).shifted(62)
    cos_sign = quadrant.plus(1).masked(2).shifted(62)
    s = w.bits(w.select(odd, cosine, sine)).flipped(sin_sign)
    c = w.bits(w.select(odd, sine, cosine)).flipped(cos_sign)
    return w.from_bits(s), w.from_bits(c)


def far_sincos(w: Writer, x: Value) -> tuple[Value, Value]:
    """Return sin x and cos x for |x| > LARGEST, NaN where x is infinite; other lanes are meaningless."""
    size = w.fabs(x)
    usable = (size > LARGEST).both(size < math.inf)
    packed = f"{{{w.real_type}, {w.real_type}, {w.int_type}}}"
    argument = w.select(usable, x, 2 * LARGEST)
    parts = w.emit(packed, f"call {CONVENTION} {packed} @reduce_lanes({argument.kind} {argument.name})")
    kinds = (w.real_type, w.real_type, w.int_type)
    hi, lo, quadrant = (w.emit(kind, f"extractvalue {packed} {parts.name}, {k}") for k, kind in enumerate(kinds))
    sine, cosine = reduced_sincos(w, hi, lo, quadrant)
    infinite = size.equals(math.inf)
    return w.select(infinite, math.nan, sine), w.select(infinite, math.nan, cosine)


def _sin_kernel(w: Writer, hi: Value, lo: Value, z: Value) -> Value:
    """Return sin(hi + lo) for |hi| <= pi/4."""
    v = z * hi
    r = w.polynomial(z, SIN[1:])
    tail = w.fma(z, 0.5 * lo - v * r, -lo)
    return hi - w.fma(v, -SIN[0], tail)


def _cos_kernel(w: Writer, hi: Value, lo: Value, z: Value) -> Value:
    """Return cos(hi + lo) for |hi| <= pi/4."""
    r = z * w.polynomial(z, COS)
    half = 0.5 * z
    lead = 1.0 - half
    return lead + (((1.0 - lead) - half) + w.fma(z, r, -(hi * lo)))


def atan(w: Writer, x: Value) -> Value:
    """Return the arc tangent."""
    a = w.fabs(x)
    numerator, denominator = w.value(-1.0), a
    high, low = w.value(PIO2[0]), w.value(PIO2[1])
    for end, hi, lo, centre in reversed(ATAN_INTERVALS):
        inside = a < end
        numerator = w.select(inside, a - centre, numerator)
        denominator = w.select(inside, w.fma(a, centre, 1.0), denominator)
        high, low = w.select(inside, hi, high), w.select(inside, lo, low)
    small = a < 7 / 16
    t = w.select(small, a, numerator / w.select(small, 1.0, denominator))
    high, low = w.select(small, 0.0, high), w.select(small, 0.0, low)
    s = t * t * w.polynomial(t * t, ATAN)
    return w.copysign(high - (w.fma(t, s, -low) - t), x)


def atan2(w: Writer, y: Value, x: Value) -> Value:
    """Return the angle of the point (x, y), in (-pi, pi]; signed zeros and infinities as in C99, annex F."""
    ay, ax = w.fabs(y), w.fabs(x)
    ratio = ay / ax
    ratio = w.select(ay.equals(ax), 1.0, ratio)  # also both infinite
    ratio = w.select(ay.equals(0.0).both(ax.equals(0.0)), 0.0, ratio)
    angle = atan(w, ratio)
    negative = w.copysign(1.0, x) < 0.0
    return w.copysign(w.select(negative, 2 * PIO2[0] - (angle - PI_LO), angle), y)


def _asin_parts(w: Writer, x: Value) -> tuple[Value, Value, Value, Value, Value, Value]:
    """Return |x| < 1/2, R, s, s truncated, and the rest of s, where s = sqrt((1 - |x|)/2); shared by asin and acos."""
    a = w.fabs(x)
    small = a < 0.5
    t = w.select(small, x * x, (1.0 - a) * 0.5)
    r = t * w.polynomial(t, ASIN_P) / w.polynomial(t, ASIN_Q)
    s = w.sqrt(t)
    head = w.from_bits(w.bits(s).masked(-(1 << 32)))
    total = s + head
    rest = w.fma(-head, head, t) / w.select(total.equals(0.0), 1.0, total)
    return a, small, r, s, head, rest


def asin(w: Writer, x: Value) -> Value:
    """Return the arc sine; NaN outside [-1, 1]."""
    _, small, r, s, head, rest = _asin_parts(w, x)
    p = 2.0 * s * r - (PIO2[1] - 2.0 * rest)
    q = PIO2[0] / 2 - 2.0 * head
    large = PIO2[0] / 2 - (p - q)
    return w.select(small, w.fma(x, r, x), w.copysign(large, x))


def acos(w: Writer, x: Value) -> Value:
    """Return the arc cosine; NaN outside [-1, 1]."""
    _, small, r, s, head, rest = _asin_parts(w, x)
    middle = PIO2[0] - (x - (PIO2[1] - x * r))
    left = 2 * PIO2[0] - 2.0 * (s + (r * s - PIO2[1]))
    right = 2.0 * (head + (r * s + rest))
    return w.select(small, middle, w.select(x < 0.0, left, right))
