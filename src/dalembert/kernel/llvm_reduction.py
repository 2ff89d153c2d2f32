"""Reduction of large angles, as LLVM text: x - n pi/2 for any finite double (Payne & Hanek 1983).

x = m 2^e with a whole m below 2^53. Of 2/pi = 0.b1 b2 b3 ..., bits whose product with x is a multiple of 4 do not
matter, and bits far below the point do not either: a window of 192 bits that starts with weight 2 leaves x 2/pi mod 4
with an error below 2^-137, and no double comes closer than 2^-62 to a multiple of pi/2 (Muller et al., Handbook of
Floating-Point Arithmetic, section 10.2). Done with 256-bit integers, one lane at a time: such angles are rare.
"""

from __future__ import annotations

from dalembert.kernel.llvm_vector import CONVENTION, real, vector

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
