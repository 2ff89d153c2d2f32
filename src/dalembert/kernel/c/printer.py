"""A program as one C99 file and its header: names, statements, functions."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from dalembert._version import __version__
from dalembert.kernel.program.chunks import CHUNK_SIZE, Chunks, split
from dalembert.kernel.program.lower import Lowering
from dalembert.kernel.program.program import ELEMENTARY, Op, Port, Program

# ----------------------------------------------------------------------------------------------------------------------
# Names that C and C++ accept: function and port names as the model has them, changed only where they must be.


KEYWORDS = """
    auto break case char const continue default do double else enum extern float for goto if inline int long register
    restrict return short signed sizeof static struct switch typedef union unsigned void volatile while _Bool _Complex
    _Imaginary asm bool catch class delete explicit export false friend mutable namespace new operator private
    protected public template this throw true try typeid typename using virtual wchar_t and or not xor main size_t
"""
# What the printed code calls its own.
OWN = "samples status scratch sample element bad state"
# Everything <math.h> may declare, with the suffixes f and l: a parameter of that name would hide the function.
LIBRARY_NAMES = """
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
    name + suffix for name in LIBRARY_NAMES.split() for suffix in ("", "f", "l")
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


# ----------------------------------------------------------------------------------------------------------------------
# A program as C statements: one declaration per operation, in the program's order.
#
# C and CUDA share this printer; they differ in where inputs, outputs and values between chunks lie (`Places`) and in
# the spelling of a few operations (`SPELLING` of each). Value i is called `t<i>`.


TYPE = {"float64": "double", "float32": "float"}

# Spelled with operands {0}, {1}, {2}, the type {real} and the literals {one}, {zero}.
SPELLING: dict[int, str] = {
    Op.ADD: "{0} + {1}",
    Op.SUB: "{0} - {1}",
    Op.MUL: "{0} * {1}",
    Op.DIV: "{0} / {1}",
    Op.NEG: "-{0}",
    Op.SIGN: "{0} < {zero} ? -{one} : ({0} > {zero} ? {one} : {0})",
    Op.FMIN: "({0} < {1} || {1} != {1}) ? {0} : {1}",
    Op.FMAX: "({0} > {1} || {1} != {1}) ? {0} : {1}",
    Op.LT: "({real})({0} < {1})",
    Op.LE: "({real})({0} <= {1})",
    Op.EQ: "({real})({0} == {1})",
    Op.NE: "({real})({0} != {1})",
    Op.NOT: "({real})({0} == {zero})",
    Op.AND: "({real})({0} != {zero} && {1} != {zero})",
    Op.OR: "({real})({0} != {zero} || {1} != {zero})",
    Op.IF_ELSE_ZERO: "{0} != {zero} ? {1} : {zero}",
}
LIBRARY = (Op.SQRT, Op.FABS, Op.FLOOR, Op.CEIL, Op.COPYSIGN, *sorted(ELEMENTARY))


class Places(Protocol):
    """Where values lie that are not local."""

    def input(self, port: int, element: int) -> str:
        """Return the expression of an input element."""
        ...

    def slot(self, slot: int) -> str:
        """Return the expression of a value that passes from chunk to chunk."""
        ...

    def output(self, port: int, element: int) -> str:
        """Return the expression of an output element, to be assigned."""
        ...


def literal(value: float, dtype: str) -> str:
    """Return a constant of type `dtype`: the shortest decimal that is read back as the same number."""
    if dtype == "float32":
        with np.errstate(over="ignore"):
            value = float(np.float32(value))
    if math.isnan(value):
        return "NAN"
    if math.isinf(value):
        return "INFINITY" if value > 0 else "(-INFINITY)"
    text = str(np.float32(value)) + "f" if dtype == "float32" else repr(value)
    return f"({text})" if text.startswith("-") else text


class CBody:
    """The printer of one program for one real type."""

    def __init__(self, program: Program, chunks: Chunks, dtype: str, places: Places, spelling: Mapping[int, str]):
        self.program = program
        self.chunks = chunks
        self.dtype = dtype
        self.places = places
        self.spelling = {**SPELLING, **spelling}
        self.op, self.a, self.b, self.c = program.operands()
        self.leaf_a, self.leaf_b = program.a.tolist(), program.b.tolist()
        self.words = {"real": TYPE[dtype], "one": literal(1.0, dtype), "zero": literal(0.0, dtype)}
        self.stores: dict[int, list[tuple[int, int]]] = {}
        for port, element, value in program.results():
            self.stores.setdefault(value, []).append((port, element))
        self.lines: list[str] = []
        self.names: dict[int, str] = {}

    def begin(self) -> None:
        """Start a scope: no value has a name yet."""
        self.lines = []
        self.names = {}

    def print(self, values: Iterable[int]) -> list[str]:
        """Append the statements of some values to the scope; return its lines so far."""
        for i in values:
            self.value(i)
        return self.lines

    def chunk(self, k: int) -> range:
        """Return the values that chunk k computes."""
        return range(self.chunks.bounds[k], self.chunks.bounds[k + 1])

    def leaves(self) -> list[int]:
        """Return the results that are inputs or constants; no chunk computes them."""
        return [i for i in self.stores if i < self.chunks.bounds[0]]

    def value(self, i: int) -> None:
        """Compute value i; store it where it is a result, or where a later chunk needs it."""
        name = self.operand(i) if self.op[i] in (Op.CONST, Op.INPUT) else self.operation(i)
        for port, element in self.stores.get(i, ()):
            self.lines.append(f"{self.places.output(port, element)} = {name};")
        if self.op[i] not in (Op.CONST, Op.INPUT) and i in self.chunks.slot:
            self.lines.append(f"{self.places.slot(self.chunks.slot[i])} = {name};")

    def operand(self, i: int) -> str:
        """Return the name of value i; the first use of an input or of a value of another chunk reads it."""
        name = self.names.get(i)
        if name is not None:
            return name
        if self.op[i] == Op.CONST:
            name = literal(float(self.program.value[i]), self.dtype)
        elif self.op[i] == Op.INPUT:
            name = self.places.input(self.leaf_a[i], self.leaf_b[i])
        else:
            name = self.declare(i, self.places.slot(self.chunks.slot[i]))
        self.names[i] = name
        return name

    def declare(self, i: int, expression: str) -> str:
        """Declare value i."""
        self.lines.append(f"const {self.words['real']} t{i} = {expression};")
        return f"t{i}"

    def operation(self, i: int) -> str:
        """Declare value i as its operation on its operands."""
        operands = [self.operand(x) for x in (self.a[i], self.b[i], self.c[i]) if x >= 0]
        self.names[i] = self.declare(i, self.expression(i, operands))
        return self.names[i]

    def expression(self, i: int, operands: list[str]) -> str:
        """Return the right-hand side of value i."""
        return self.spelling[self.op[i]].format(*operands, **self.words)


# ----------------------------------------------------------------------------------------------------------------------
# A program as one C99 file and its header: no allocation, nothing but libm.
#
# `<name>(inputs..., outputs...)` evaluates one sample, `<name>_batch` a batch. Chunks of the program are static
# functions, small enough for any compiler; they pass values through an array on the stack.


ITEM_BYTES = {"float64": 8, "float32": 4}
FUSED: dict[int, str] = {
    Op.FMA: "DA_FMA({0}, {1}, {2})",
    Op.FMS: "DA_FMA({0}, {1}, -{2})",
    Op.FNMA: "DA_FMA(-{0}, {1}, {2})",
}
# C leaves fma to software where the processor has none, a hundred times slower: there, product and sum round twice.
FUSED_MACRO = """\
#ifdef FP_FAST_FMA{F}
#define DA_FMA(a, b, c) fma{f}((a), (b), (c))
#else
#define DA_FMA(a, b, c) ((a) * (b) + (c))
#endif
"""
# A rational start and two Halley steps, by erfc where erf is near one; in double for both types.
ERFINV = """\
static REAL da_erfinv(REAL argument)
{
    const double x = (double)argument;
    const double a = fabs(x);
    double y;
    int k;
    if (!(a < 1.0)) {
        return a == 1.0 ? copysignF(INFINITY, argument) : NAN;
    }
    if (a <= 0.7) {
        const double s = a * a;
        y = a * (((-0.140543331 * s + 0.914624893) * s - 1.645349621) * s + 0.886226899)
            / ((((0.012229801 * s - 0.329097515) * s + 1.442710462) * s - 2.118377725) * s + 1.0);
    } else {
        const double z = sqrt(-log((1.0 - a) * 0.5));
        y = (((1.641345311 * z + 3.429567803) * z - 1.624906493) * z - 1.970840454)
            / ((1.637067800 * z + 3.543889200) * z + 1.0);
    }
    for (k = 0; k < 2; ++k) {
        const double excess = a <= 0.5 ? erf(y) - a : (1.0 - a) - erfc(y);
        const double step = excess / (1.1283791670955126 * exp(-y * y));
        y -= step / (1.0 + y * step);
    }
    return (REAL)copysign(y, x);
}
"""


@dataclass(frozen=True)
class CSource:
    """A program in C.

    Attributes
    ----------
    name
        Name of the C function; also of the files.
    inputs, outputs
        Names of its arguments, in order.
    source, header
        Text of `<name>.c` and `<name>.h`.
    chunks, slots
        Static functions the program was cut into; values that pass between them.
    """

    name: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    source: str
    header: str
    chunks: int
    slots: int


def print_c(lowering: Lowering, dtype: str, name: str | None = None, size: int = CHUNK_SIZE) -> CSource:
    """Return the C text of a lowered function.

    Parameters
    ----------
    dtype
        `"float64"` or `"float32"`: double or float.
    name
        Name of the C function; that of the model where None.
    size
        Operations per static function.
    """
    return _Printer(lowering, dtype, name, size).run()


class _Places:
    """Inputs and outputs are arguments, values between chunks an array; notes which of them a chunk uses."""

    def __init__(self, inputs: list[str], outputs: list[str]) -> None:
        self.inputs, self.outputs = inputs, outputs
        self.used: set[str] = set()

    def input(self, port: int, element: int) -> str:
        return self._element(self.inputs[port], element)

    def output(self, port: int, element: int) -> str:
        return self._element(self.outputs[port], element)

    def slot(self, slot: int) -> str:
        return self._element("scratch", slot)

    def _element(self, array: str, place: int) -> str:
        self.used.add(array)
        return f"{array}[{place}]"


def loop(port: Port, statement: str) -> str:
    """Return a loop over the elements of a port."""
    return f"    for (element = 0; element < {port.size}; ++element) {{\n        {statement}\n    }}"


class _Printer:
    """The parts of both files."""

    def __init__(self, lowering: Lowering, dtype: str, name: str | None, size: int) -> None:
        self.lowering, self.dtype = lowering, dtype
        self.program = program = lowering.program
        self.real = TYPE[dtype]
        self.suffix = "f" if dtype == "float32" else ""
        self.name = identifier(program.name if name is None else name)
        ports = program.inputs + program.outputs
        taken = [self.name, f"{self.name}_batch"]
        names = identifiers([port.name for port in ports], taken)
        self.inputs, self.outputs = names[: len(program.inputs)], names[len(program.inputs) :]
        self.steps = identifiers([f"{x}_step" for x in self.inputs], [*taken, *names])
        self.chunks = split(program, size)
        self.places = _Places(self.inputs, self.outputs)
        calls: dict[int, str] = {op: f"{op.name.lower()}{self.suffix}({{0}})" for op in LIBRARY}
        binary = (Op.COPYSIGN, Op.FMOD, Op.REMAINDER, Op.POW, Op.ATAN2, Op.HYPOT)
        calls |= {op: f"{op.name.lower()}{self.suffix}({{0}}, {{1}})" for op in binary}
        self.body = CBody(program, self.chunks, dtype, self.places, calls | FUSED | {Op.ERFINV: "da_erfinv({0})"})

    def run(self) -> CSource:
        """Print both files."""
        source = "\n".join([*self._opening(), *self._functions(), *self._sample(), *self._batch(), ""])
        return CSource(
            self.name,
            tuple(self.inputs),
            tuple(self.outputs),
            source,
            self._header(),
            len(self.chunks),
            self.chunks.slots,
        )

    def _opening(self) -> Iterator[str]:
        """Yield what stands before the first function: includes, and helpers that the program needs."""
        yield f"/* {self.name}.c: written by dalembert {__version__}; see {self.name}.h. */\n"
        yield f'#include "{self.name}.h"\n\n#include <math.h>\n'
        used = set(np.unique(self.program.op).tolist())
        if used & set(FUSED):
            yield FUSED_MACRO.format(f=self.suffix, F=self.suffix.upper())
        if Op.ERFINV in used:
            yield ERFINV.replace("REAL", self.real).replace("copysignF", f"copysign{self.suffix}")

    def _arguments(self, names: set[str] | None = None, restrict: str = " restrict") -> list[str]:
        """Return the declarations of inputs, outputs and scratch; of those in `names` where that is given."""
        declared = [(f"const {self.real} *", x) for x in self.inputs]
        declared += [(f"{self.real} *", x) for x in [*self.outputs, "scratch"]]
        wanted = {*self.inputs, *self.outputs} if names is None else names
        return [f"{kind}{restrict.strip()} {x}" if restrict else f"{kind}{x}" for kind, x in declared if x in wanted]

    def _functions(self) -> Iterator[str]:
        """Yield the static functions, one per chunk."""
        self.calls: list[str] = []
        parts = [self.body.chunk(k) for k in range(len(self.chunks))]
        for k, values in enumerate([*parts, self.body.leaves()]):
            if not values:
                continue
            self.places.used = set()
            self.body.begin()
            lines = self.body.print(values)
            used = self.places.used
            function = f"{self.name}_chunk_{k}"
            yield f"static void {function}({', '.join(self._arguments(used)) or 'void'})\n{{"
            yield from (f"    {line}" for line in lines)
            yield "}\n"
            passed = [x for x in [*self.inputs, *self.outputs, "scratch"] if x in used]
            self.calls.append(f"{function}({', '.join(passed)});")

    def _sample(self) -> Iterator[str]:
        """Yield the function that evaluates one sample."""
        yield f"int {self.name}({', '.join(self._arguments()) or 'void'})\n{{"
        sized = [(x, port) for x, port in zip(self.outputs, self.program.outputs, strict=True) if port.size]
        if self.chunks.slots:
            yield f"    {self.real} scratch[{self.chunks.slots}];"
        if sized:
            yield "    int element, bad = 0;"
        for x in self.inputs + [x for x, port in zip(self.outputs, self.program.outputs, strict=True) if not port.size]:
            yield f"    (void){x};"
        written = np.bincount(self.program.result_port, minlength=len(self.outputs))
        for (x, port), count in zip(zip(self.outputs, self.program.outputs, strict=True), written, strict=True):
            if count < port.size:
                yield loop(port, f"{x}[element] = {literal(0.0, self.dtype)};")
        yield from (f"    {call}" for call in self.calls)
        for x, port in sized:
            yield loop(port, f"bad |= !isfinite({x}[element]);")
        yield f"    return {'bad' if sized else '0'};\n}}\n"

    def _batch_arguments(self, restrict: str) -> str:
        arguments = ["size_t samples"]
        declared = self._arguments(restrict=restrict)
        for argument, step in zip(declared, self.steps, strict=False):
            arguments += [argument, f"size_t {step}"]
        return ", ".join([*arguments, *declared[len(self.inputs) :], "unsigned char *status"])

    def _batch(self) -> Iterator[str]:
        """Yield the function that evaluates a batch."""
        inputs = [f"{x} + sample * {step}" for x, step in zip(self.inputs, self.steps, strict=True)]
        outputs = [f"{x} + sample * {port.size}" for x, port in zip(self.outputs, self.program.outputs, strict=True)]
        yield f"size_t {self.name}_batch({self._batch_arguments(' restrict')})\n{{"
        yield "    size_t sample, bad = 0;\n    for (sample = 0; sample < samples; ++sample) {"
        yield f"        const int state = {self.name}({', '.join(inputs + outputs)});"
        yield "        bad += (size_t)state;\n        if (status) {\n            status[sample] = (unsigned char)state;"
        yield "        }\n    }\n    return bad;\n}"

    def _header(self) -> str:
        guard = f"DALEMBERT_{self.name.upper()}_H"
        plain = ", ".join(self._arguments(restrict="")) or "void"
        scratch = self.chunks.slots * ITEM_BYTES[self.dtype]
        kinds = ", ".join(f"{number} {kind}" for kind, number in self.program.count().items())
        total = self.program.operations
        return "\n".join(
            [
                f"/* {self.name}: the function {self.program.name} in C99, {self.real} precision.",
                "",
                *self._table("Inputs", self.inputs, self.program.inputs),
                *self._table("Outputs", self.outputs, self.program.outputs),
                "   Matrices lie by rows. Outputs must not overlap each other or an input.",
                f"   Cost: {total} operations a sample{f' ({kinds})' if kinds else ''}.",
                f"   Memory: {scratch} bytes of scratch on the stack, no allocation. Needs libm.",
                f"   Written by dalembert {__version__}: change the model, not this file. */\n",
                f"#ifndef {guard}\n#define {guard}\n\n#include <stddef.h>\n",
                '#ifdef __cplusplus\nextern "C" {\n#endif\n',
                "/* One sample. Returns 0, or 1 where an output is not finite. */",
                f"int {self.name}({plain});\n",
                "/* A batch. Sample k of an input begins at k times its step (its size; 0 where one serves all), of an",
                "   output at k times its size. status[k] is what the sample returned; status may be NULL.",
                "   Returns the number of samples that are not finite. */",
                f"size_t {self.name}_batch({self._batch_arguments('')});\n",
                "#ifdef __cplusplus\n}\n#endif\n\n#endif\n",
            ]
        )

    def _table(self, title: str, names: list[str], ports: tuple[Port, ...]) -> Iterator[str]:
        """Yield names and shapes as lines of a comment."""
        yield f"   {title}:" if ports else f"   {title}: none"
        for x, port in zip(names, ports, strict=True):
            shape = f"{port.rows}" if port.cols == 1 else f"{port.rows} x {port.cols}"
            note = "" if x == port.name else f"  ({port.name!r} in the model)"
            yield f"     {x}  {shape}{note}"
        yield ""
