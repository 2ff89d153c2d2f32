"""The elementary functions of a module as LLVM text."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable

from dalembert.kernel.llvm import circular
from dalembert.kernel.llvm.circular import MAGIC, reduction
from dalembert.kernel.llvm.code_in_memory import LIBM_PREFIX
from dalembert.kernel.llvm.vector import CONVENTION, Value, Writer, vector
from dalembert.kernel.program.program import ARITY, Op

# ----------------------------------------------------------------------------------------------------------------------
# Exponentials, logarithms and hyperbolic functions on vectors of doubles.
#
# The logarithm and the hyperbolic identities follow Sun's fdlibm (e_log.c, s_log1p.c, e_sinh.c, s_asinh.c;
# 1993); the exponential is a Taylor polynomial of degree 13 on |r| <= ln2 / 2, whose remainder is below 2^-57.
#
# Symbols: n nearest multiple of ln 2, r the reduced argument, k the exponent of a logarithm's argument.


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


# ----------------------------------------------------------------------------------------------------------------------
# The library of elementary functions that a module needs, as LLVM text.
#
# Frequent functions are vector polynomials (`circular.py`, and above); rare ones call the C library
# once per lane. In single precision every function is evaluated in double and rounded, which costs little
# (functions are few among thousands of operations) and leaves an error just above 0.5 ulp.


POLYNOMIAL: dict[Op, Callable[..., Value]] = {
    Op.ATAN: circular.atan,
    Op.ATAN2: circular.atan2,
    Op.ASIN: circular.asin,
    Op.ACOS: circular.acos,
    Op.EXP: exp,
    Op.EXPM1: expm1,
    Op.LOG: log,
    Op.LOG1P: log1p,
    Op.SINH: sinh,
    Op.COSH: cosh,
    Op.TANH: tanh,
    Op.ASINH: asinh,
    Op.ACOSH: acosh,
    Op.ATANH: atanh,
}
CIRCULAR = (Op.SIN, Op.COS, Op.TAN)
# Called lane by lane: exact or rare.
LIBM = (Op.FMOD, Op.REMAINDER, Op.POW, Op.HYPOT, Op.ERF)
LIBM_ARITY = {op.name.lower(): ARITY[op] for op in LIBM} | {"erfc": 1}

# Largest error in units in the last place, double precision; the tests hold each function to it.
BOUNDS: dict[Op, float] = {
    Op.SIN: 1.0,
    Op.COS: 1.0,
    Op.TAN: 2.0,
    Op.ASIN: 1.0,
    Op.ACOS: 1.0,
    Op.ATAN: 1.0,
    Op.ATAN2: 2.0,
    Op.EXP: 1.0,
    Op.EXPM1: 2.0,
    Op.LOG: 1.0,
    Op.LOG1P: 2.0,
    Op.SINH: 2.0,
    Op.COSH: 2.0,
    Op.TANH: 2.5,
    Op.ASINH: 3.0,
    Op.ACOSH: 3.0,
    Op.ATANH: 3.0,
    Op.POW: 1.0,
    Op.HYPOT: 1.0,
    Op.ERF: 1.0,
    Op.ERFINV: 4.0,
}


def library(ops: Iterable[Op], width: int, element: str) -> tuple[list[str], set[str]]:
    """Return the text of the functions for `ops`, and the declarations they need.

    Function `@da_<name>` takes and returns `<width x element>`; `@da_sincos` returns both values.
    """
    wanted = set(ops)
    text: list[str] = []
    declarations: set[str] = set()
    circular_names = [op.name.lower() for op in CIRCULAR if op in wanted]
    libm = {op.name.lower() for op in wanted & set(LIBM)}
    if Op.ERFINV in wanted:
        libm |= {"erf", "erfc"}
    if circular_names:
        circular_names.append("sincos")
        text += reduction(width, *circular.PIO2[:2])
    for name in sorted(libm):
        text += _lanes(name, width)
        declarations.add(f"declare double @{LIBM_PREFIX}{name}({', '.join(['double'] * LIBM_ARITY[name])})")
    for op in sorted(wanted - set(CIRCULAR)):
        text += _function(op, width, element, declarations)
    for name in circular_names:
        text += _circular(name, width, element, declarations)
    return text, declarations


def wide_sincos(width: int, element: str) -> tuple[list[str], set[str]]:
    """Return `@wide_sincos` on vectors of `width`, for a module whose own functions are of another width."""
    declarations: set[str] = set()
    text = [*reduction(width, *circular.PIO2[:2]), *_circular("sincos", width, element, declarations)]
    names = re.compile(r"@(?:da_)?(sincos|far_sincos|reduce_lanes|reduce|two_over_pi)\b")
    whole = "\n".join(text).splitlines()
    lines = [names.sub(r"@wide_\1", line) for line in whole if not line.startswith("declare")]
    return lines, declarations


def _lanes(name: str, width: int) -> list[str]:
    """Return a function that calls the C library once per lane."""
    kind = vector(width, "double")
    arguments = "xy"[: LIBM_ARITY[name]]
    parameters = ", ".join(f"{kind} %{x}" for x in arguments)
    lines = [f"define internal {CONVENTION} {kind} @lanes_{name}({parameters}) noinline {{"]
    last = "poison"
    for lane in range(width):
        lines += [f"  %{x}{lane} = extractelement {kind} %{x}, i32 {lane}" for x in arguments]
        operands = ", ".join(f"double %{x}{lane}" for x in arguments)
        lines.append(f"  %f{lane} = call double @{LIBM_PREFIX}{name}({operands})")
        lines.append(f"  %r{lane} = insertelement {kind} {last}, double %f{lane}, i32 {lane}")
        last = f"%r{lane}"
    return [*lines, f"  ret {kind} {last}", "}"]


def _function(op: Op, width: int, element: str, declarations: set[str]) -> list[str]:
    """Return the function of one operation."""
    w = Writer(width)
    arguments = _arguments(w, ARITY[op], element)
    if op in POLYNOMIAL:
        result = POLYNOMIAL[op](w, *arguments)
    elif op == Op.ERFINV:
        result = _erfinv(w, *arguments)
    else:
        result = w.call(f"lanes_{op.name.lower()}", *arguments)
    declarations |= w.intrinsics
    return _define(w, f"da_{op.name.lower()}", ARITY[op], element, [result])


def _arguments(w: Writer, number: int, element: str) -> list[Value]:
    """Return the arguments of a function as doubles."""
    if element == "double":
        return [Value(w, f"%{x}", w.real_type) for x in "xy"[:number]]
    kind = vector(w.width, element)
    return [w.emit(w.real_type, f"fpext {kind} %{x} to {w.real_type}") for x in "xy"[:number]]


def _define(w: Writer, name: str, number: int, element: str, results: list[Value]) -> list[str]:
    """Close a function: round the results to `element`, return one or a pair."""
    kind = vector(w.width, element)
    if element != "double":
        results = [w.emit(kind, f"fptrunc {w.real_type} {x.name} to {kind}") for x in results]
    arguments = ", ".join(f"{kind} %{x}" for x in "xyz"[:number])
    returned, closing = kind, [f"  ret {kind} {results[0].name}"]
    if len(results) == 2:
        returned = f"{{{kind}, {kind}}}"
        pair = w.emit(returned, f"insertvalue {returned} poison, {kind} {results[0].name}, 0")
        pair = w.emit(returned, f"insertvalue {returned} {pair.name}, {kind} {results[1].name}, 1")
        closing = [f"  ret {returned} {pair.name}"]
    return [f"define internal {CONVENTION} {returned} @{name}({arguments}) noinline {{", *w.lines, *closing, "}"]


def _circular(name: str, width: int, element: str, declarations: set[str]) -> list[str]:
    """Return sin, cos, tan or the pair, as two functions: where a lane holds a large angle, the second one follows.

    Apart from each other, since a branch inside one function would take registers from the way that is always gone.
    """
    w, second = Writer(width), Writer(width)
    (x,) = _arguments(w, 1, element)
    near = _pick(name, *circular.sincos(w, x))
    far = w.fabs(x) > circular.LARGEST
    bits = w.emit(f"i{width}", f"bitcast {far.kind} {far.name} to i{width}")
    some = w.emit("i1", f"icmp ne i{width} {bits.name}, 0")
    w.lines += [f"  br i1 {some.name}, label %far, label %done, !prof !0", "far:"]
    pair = f"{{{w.real_type}, {w.real_type}}}" if len(near) == 2 else w.real_type
    operands = ", ".join(f"{w.real_type} {value.name}" for value in (x, *near))
    again = w.emit(pair, f"call {CONVENTION} {pair} @far_{name}({operands})")
    both = [again]
    if len(near) == 2:
        both = [w.emit(w.real_type, f"extractvalue {pair} {again.name}, {k}") for k in (0, 1)]
    w.lines += ["  br label %done", "done:"]
    merged = [
        w.emit(w.real_type, f"phi {w.real_type} [{y.name}, %0], [{z.name}, %far]")
        for y, z in zip(near, both, strict=True)
    ]
    declarations |= w.intrinsics
    text = _define(w, f"da_{name}", 1, element, merged)
    x, *parameters = (Value(second, f"%{letter}", w.real_type) for letter in "xyz"[: 1 + len(near)])
    far = second.fabs(x) > circular.LARGEST
    results = _pick(name, *circular.far_sincos(second, x))
    chosen = [second.select(far, z, y) for y, z in zip(parameters, results, strict=True)]
    declarations |= second.intrinsics
    return [*_define(second, f"far_{name}", 1 + len(near), "double", chosen), *text]


def _pick(name: str, sine: Value, cosine: Value) -> list[Value]:
    """Return the results of sin, cos, tan or sincos."""
    if name == "tan":
        return [sine / cosine]
    return {"sin": [sine], "cos": [cosine], "sincos": [sine, cosine]}[name]


def _erfinv(w: Writer, x: Value) -> Value:
    """Return the inverse error function: a rational start and two Halley steps, by erfc where erf is near 1."""
    a = w.fabs(x)
    z = w.sqrt(-log(w, (1.0 - a) * 0.5))
    far = w.polynomial(z, (-1.970840454, -1.624906493, 3.429567803, 1.641345311)) / w.polynomial(
        z, (1.0, 3.543889200, 1.637067800)
    )
    s = a * a
    near = (
        a
        * w.polynomial(s, (0.886226899, -1.645349621, 0.914624893, -0.140543331))
        / w.polynomial(s, (1.0, -2.118377725, 1.442710462, -0.329097515, 0.012229801))
    )
    y = w.select(a <= 0.7, near, far)
    for _ in range(2):
        slope = 2.0 / math.sqrt(math.pi) * exp(w, -(y * y))
        excess = w.select(a <= 0.5, w.call("lanes_erf", y) - a, (1.0 - a) - w.call("lanes_erfc", y))
        step = excess / slope
        y = y - step / (1.0 + y * step)
    y = w.select(a.equals(1.0), math.inf, y)
    return w.copysign(y, x)
