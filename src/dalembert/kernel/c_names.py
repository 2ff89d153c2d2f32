"""Names that C and C++ accept: function and port names as the model has them, changed only where they must be."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

KEYWORDS = """
    auto break case char const continue default do double else enum extern float for goto if inline int long register
    restrict return short signed sizeof static struct switch typedef union unsigned void volatile while _Bool _Complex
    _Imaginary asm bool catch class delete explicit export false friend mutable namespace new operator private
    protected public template this throw true try typeid typename using virtual wchar_t and or not xor main size_t
"""
# What the printed code calls its own.
OWN = "samples status scratch sample element bad state"
# Everything <math.h> may declare, with the suffixes f and l: a parameter of that name would hide the function.
LIBRARY = """
    acos acosh asin asinh atan atan2 atanh cbrt ceil copysign cos cosh erf erfc exp exp2 expm1 fabs fdim floor fma
    fmax fmin fmod frexp hypot ilogb ldexp lgamma llrint llround log log10 log1p log2 logb lrint lround modf nan
    nearbyint nextafter nexttoward pow remainder remquo rint round scalbln scalbn sin sinh sqrt tan tanh tgamma trunc
    gamma signgam j0 j1 jn y0 y1 yn INFINITY NAN HUGE_VAL isfinite isinf isnan isnormal signbit fpclassify NULL printf
"""
# Other functions of the standard library that compilers know by name.
BUILTIN = """
    abs labs llabs free malloc calloc realloc exit abort atexit system getenv rand srand qsort bsearch strlen strcpy
    strcat strcmp strncmp strchr strstr memset memcpy memmove memcmp remove rename puts putchar getchar printf fprintf
    sprintf snprintf scanf sscanf fopen fclose fread fwrite time clock signal raise index
"""
LOCAL = re.compile(r"[tr][0-9]+$")  # what the printer calls its values
RESERVED = frozenset((KEYWORDS + OWN + BUILTIN).split()).union(
    name + suffix for name in LIBRARY.split() for suffix in ("", "f", "l")
)


def identifier(name: str) -> str:
    """Return a name as a C identifier; unchanged where it is one that nothing else uses."""
    text = re.sub(r"\W", "_", name, flags=re.ASCII).lstrip("_") or "value"
    if text[0].isdigit():
        text = f"x{text}"
    return f"{text}_" if text in RESERVED or LOCAL.match(text) else text


def identifiers(names: Sequence[str], taken: Iterable[str] = ()) -> list[str]:
    """Return distinct identifiers for names that stand in one scope with those `taken`."""
    used = set(taken)
    result: list[str] = []
    for name in names:
        text = base = identifier(name)
        number = 2
        while text in used:
            text = f"{base}_{number}"
            number += 1
        used.add(text)
        result.append(text)
    return result
