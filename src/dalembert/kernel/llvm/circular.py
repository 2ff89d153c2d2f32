"""Sine, cosine, tangent and their inverses on vectors of doubles, with the reduction of large angles."""

from __future__ import annotations

import math

from dalembert.kernel.llvm.vector import CONVENTION, Value, Writer, real, vector

# ----------------------------------------------------------------------------------------------------------------------
# Reduction of large angles, as LLVM text: x - n pi/2 for any finite double (Payne & Hanek 1983).
#
# x = m 2^e with a whole m below 2^53. Of 2/pi = 0.b1 b2 b3 ..., bits whose product with x is a multiple of 4 do not
# matter, and bits far below the point do not either: a window of 192 bits that starts with weight 2 leaves x 2/pi mod 4
# with an error below 2^-137, and no double comes closer than 2^-62 to a multiple of pi/2 (Muller et al., Handbook of
# Floating-Point Arithmetic, section 10.2). Done with 256-bit integers, one lane at a time: such angles are rare.


# The binary digits of 2/pi in words of 64, after one word of zeros.
TWO_OVER_PI_WORDS = (
    0x0,
    0xA2F9836E4E441529,
    0xFC2757D1F534DDC0,
    0xDB6295993C439041,
    0xFE5163ABDEBBC561,
    0xB7246E3A424DD2E0,
    0x06492EEA09D1921C,
    0xFE1DEB1CB129A73E,
    0xE88235F52EBB4484,
    0xE99C7026B45F7E41,
    0x3991D639835339F4,
    0x9C845F8BBDF9283B,
    0x1FF897FFDE05980F,
    0xEF2F118B5A0A6D1F,
    0x6D367ECF27CB09B7,
    0x4F463F669E5FEA2D,
    0x7527BAC7EBE5F17B,
    0x3D0739F78A5292EA,
    0x6BFB5FB11F8D5D08,
    0x56033046FC7B6BAB,
    0xF0CFBC209AF4361D,
    0xA9E391615EE61B08,
    0x6599855F14A06840,
)

REDUCE = """
@two_over_pi = internal constant [COUNT x i64] [TABLE]
declare i256 @llvm.ctlz.i256(i256, i1)
declare double @llvm.fma.f64(double, double, double)
define internal {double, double, i64} @reduce(double %x) noinline {
  %bits = bitcast double %x to i64
  %biased0 = lshr i64 %bits, 52
  %biased = and i64 %biased0, 2047
  %fraction = and i64 %bits, 4503599627370495
  %m = or i64 %fraction, 4503599627370496
  %place = sub i64 %biased, 1013
  %word = lshr i64 %place, 6
  %shift = and i64 %place, 63
  %p = getelementptr i64, ptr @two_over_pi, i64 %word
  %p1 = getelementptr i64, ptr %p, i64 1
  %p2 = getelementptr i64, ptr %p, i64 2
  %p3 = getelementptr i64, ptr %p, i64 3
  %w0 = load i64, ptr %p
  %w1 = load i64, ptr %p1
  %w2 = load i64, ptr %p2
  %w3 = load i64, ptr %p3
  %z0 = zext i64 %w0 to i256
  %z1 = zext i64 %w1 to i256
  %z2 = zext i64 %w2 to i256
  %z3 = zext i64 %w3 to i256
  %s0 = shl i256 %z0, 192
  %s1 = shl i256 %z1, 128
  %s2 = shl i256 %z2, 64
  %o0 = or i256 %s0, %s1
  %o1 = or i256 %s2, %z3
  %all = or i256 %o0, %o1
  %shift_wide = zext i64 %shift to i256
  %aligned = shl i256 %all, %shift_wide
  %window = lshr i256 %aligned, 64
  %m_wide = zext i64 %m to i256
  %product = mul i256 %window, %m_wide
  %turns = shl i256 %product, 64
  %half = shl i256 1, 253
  %rounded = add i256 %turns, %half
  %quadrant_wide = lshr i256 %rounded, 254
  %quadrant = trunc i256 %quadrant_wide to i64
  %whole = shl i256 %quadrant_wide, 254
  %rest = sub i256 %turns, %whole
  %below = icmp slt i256 %rest, 0
  %minus = sub i256 0, %rest
  %size = select i1 %below, i256 %minus, i256 %rest
  %zeros = call i256 @llvm.ctlz.i256(i256 %size, i1 false)
  %normal = shl i256 %size, %zeros
  %top_wide = lshr i256 %normal, 192
  %top = trunc i256 %top_wide to i64
  %next_wide = lshr i256 %normal, 128
  %next = trunc i256 %next_wide to i64
  %head = and i64 %top, -2048
  %tail_bits = and i64 %top, 2047
  %tail_high = shl i64 %tail_bits, 53
  %tail_low = lshr i64 %next, 11
  %tail = or i64 %tail_high, %tail_low
  %zeros64 = trunc i256 %zeros to i64
  %exponent = sub i64 961, %zeros64
  %scale_bits = shl i64 %exponent, 52
  %scale = bitcast i64 %scale_bits to double
  %h0 = uitofp i64 %head to double
  %l0 = uitofp i64 %tail to double
  %h = fmul double %h0, %scale
  %l1 = fmul double %l0, 0x3CA0000000000000
  %l = fmul double %l1, %scale
  %hi = fmul double %h, PI_HIGH
  %minus_hi = fneg double %hi
  %error = call double @llvm.fma.f64(double %h, double PI_HIGH, double %minus_hi)
  %e1 = call double @llvm.fma.f64(double %h, double PI_LOW, double %error)
  %lo = call double @llvm.fma.f64(double %l, double PI_HIGH, double %e1)
  %sum = fadd double %hi, %lo
  %back = fsub double %sum, %hi
  %lost = fsub double %lo, %back
  %negative_x = icmp slt i64 %bits, 0
  %negative = xor i1 %negative_x, %below
  %sum_minus = fneg double %sum
  %lost_minus = fneg double %lost
  %r = select i1 %negative, double %sum_minus, double %sum
  %r_low = select i1 %negative, double %lost_minus, double %lost
  %q_minus = sub i64 0, %quadrant
  %q = select i1 %negative_x, i64 %q_minus, i64 %quadrant
  %a0 = insertvalue {double, double, i64} poison, double %r, 0
  %a1 = insertvalue {double, double, i64} %a0, double %r_low, 1
  %a2 = insertvalue {double, double, i64} %a1, i64 %q, 2
  ret {double, double, i64} %a2
}
"""


def reduction(width: int, high: float, low: float) -> list[str]:
    """Return `@reduce_lanes`: the reduced angle in two parts, and its quadrant, of each lane of a vector.

    Parameters
    ----------
    high, low
        pi/2 in two parts.

    Notes
    -----
    Every lane must hold a finite value of at least 2^31 in magnitude.
    """
    reals, integers = vector(width, "double"), vector(width, "i64")
    returned = f"{{{reals}, {reals}, {integers}}}"
    lines = [f"define internal {CONVENTION} {returned} @reduce_lanes({reals} %x) noinline {{"]
    parts = ((reals, "double", "h"), (reals, "double", "l"), (integers, "i64", "q"))
    for lane in range(width):
        lines.append(f"  %x{lane} = extractelement {reals} %x, i32 {lane}")
        lines.append(f"  %r{lane} = call {{double, double, i64}} @reduce(double %x{lane})")
        for k, (kind, element, letter) in enumerate(parts):
            before = f"%{letter}{lane - 1}" if lane else "poison"
            lines.append(f"  %p{letter}{lane} = extractvalue {{double, double, i64}} %r{lane}, {k}")
            lines.append(f"  %{letter}{lane} = insertelement {kind} {before}, {element} %p{letter}{lane}, i32 {lane}")
    last = width - 1
    lines += [
        f"  %a0 = insertvalue {returned} poison, {reals} %h{last}, 0",
        f"  %a1 = insertvalue {returned} %a0, {reals} %l{last}, 1",
        f"  %a2 = insertvalue {returned} %a1, {integers} %q{last}, 2",
        f"  ret {returned} %a2",
        "}",
    ]
    table = ", ".join(f"i64 {word}" for word in TWO_OVER_PI_WORDS)
    text = REDUCE.replace("COUNT", str(len(TWO_OVER_PI_WORDS))).replace("TABLE", table)
    return [text.replace("PI_HIGH", real(high)).replace("PI_LOW", real(low)), *lines]


# ----------------------------------------------------------------------------------------------------------------------
# Sine, cosine, tangent and their inverses on vectors of doubles.
#
# Polynomials and reductions follow Sun's fdlibm (k_sin.c, k_cos.c, s_atan.c, e_asin.c, e_acos.c, e_atan2.c;
# 1993), with selections in place of branches. Error bounds, in units in the last place, are in
# `functions.BOUNDS` and are tested.
#
# Symbols: n nearest multiple of pi/2, r = hi + lo the reduced argument.


MAGIC = 1.5 * 2.0**52  # adding it rounds to an integer and leaves that integer in the low bits
TWO_OVER_PI = float.fromhex("0x1.45F306DC9C883p-1")
PIO2 = (
    float.fromhex("0x1.921FB54442D18p0"),
    float.fromhex("0x1.1A62633145C07p-54"),
    float.fromhex("-0x1.F1976B7ED8FBCp-110"),
)  # pi/2 to 160 bits
PI_LO = float.fromhex("0x1.1A62633145C07p-53")
LARGEST = 2.0**31  # beyond this the argument is reduced lane by lane (`REDUCE`)

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
