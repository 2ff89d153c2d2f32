"""A small writer of LLVM vector code, so that formulas read like formulas.

A `Writer` collects the lines of one LLVM function; its `Value`s overload Python's operators. All real values
are `<W x double>`; no fast-math flag is ever set, and a fused multiply-add is written where it is meant.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field

# Stands for the calling convention of functions on vectors, which the target decides (`compile.Target`).
CONVENTION = "CONVENTION"


def real(x: float) -> str:
    """Return a double as LLVM spells it, bit for bit."""
    return "0x" + struct.pack(">d", x).hex().upper()


def vector(width: int, element: str) -> str:
    """Return the type of `width` elements."""
    return f"<{width} x {element}>"


def alignment(width: int, element: str) -> int:
    """Return the alignment, in bytes, of vectors that lie one after another in a block aligned to 64 bytes."""
    return min(64, width * (8 if element == "double" else 4))


@dataclass
class Writer:
    """The lines of one LLVM function on vectors of `width` lanes."""

    width: int
    lines: list[str] = field(default_factory=list)
    intrinsics: set[str] = field(default_factory=set)
    count: int = 0

    @property
    def real_type(self) -> str:
        """Type of a vector of doubles."""
        return vector(self.width, "double")

    @property
    def int_type(self) -> str:
        """Type of a vector of 64-bit integers."""
        return vector(self.width, "i64")

    @property
    def mask_type(self) -> str:
        """Type of a vector of truth values."""
        return vector(self.width, "i1")

    def emit(self, kind: str, text: str) -> Value:
        """Append an instruction of result type `kind`; return its value."""
        self.count += 1
        name = f"%v{self.count}"
        self.lines.append(f"  {name} = {text}")
        return Value(self, name, kind)

    def value(self, x: Value | float) -> Value:
        """Return x, or the vector that holds the number x in every lane."""
        if isinstance(x, Value):
            return x
        return Value(self, f"splat (double {real(x)})", self.real_type)

    def integer(self, x: int) -> Value:
        """Return the vector that holds the integer x in every lane."""
        return Value(self, f"splat (i64 {x})", self.int_type)

    def intrinsic(self, name: str, *arguments: Value | float) -> Value:
        """Call LLVM's elementwise intrinsic `llvm.<name>`."""
        values = [self.value(x) for x in arguments]
        suffix = f"{name}.v{self.width}f64"
        types = ", ".join([self.real_type] * len(values))
        self.intrinsics.add(f"declare {self.real_type} @llvm.{suffix}({types})")
        operands = ", ".join(f"{self.real_type} {x.name}" for x in values)
        return self.emit(self.real_type, f"call {self.real_type} @llvm.{suffix}({operands})")

    def call(self, name: str, *arguments: Value) -> Value:
        """Call another function on vectors, of this module."""
        operands = ", ".join(f"{x.kind} {x.name}" for x in arguments)
        return self.emit(self.real_type, f"call {CONVENTION} {self.real_type} @{name}({operands})")

    def fma(self, a: Value | float, b: Value | float, c: Value | float) -> Value:
        """Return a b + c, rounded once."""
        return self.intrinsic("fma", a, b, c)

    def polynomial(self, x: Value, coefficients: tuple[float, ...]) -> Value:
        """Return coefficients[0] + coefficients[1] x + ... by Horner's rule, fused."""
        result = self.value(coefficients[-1])
        for coefficient in coefficients[-2::-1]:
            result = self.fma(result, x, coefficient)
        return result

    def select(self, condition: Value, yes: Value | float, no: Value | float) -> Value:
        """Return `yes` in the lanes where the condition holds, else `no`."""
        a, b = self.value(yes), self.value(no)
        return self.emit(a.kind, f"select {condition.kind} {condition.name}, {a.kind} {a.name}, {a.kind} {b.name}")

    def bits(self, x: Value) -> Value:
        """Return the bits of doubles as integers."""
        return self.emit(self.int_type, f"bitcast {x.kind} {x.name} to {self.int_type}")

    def from_bits(self, x: Value) -> Value:
        """Return the doubles whose bits are these integers."""
        return self.emit(self.real_type, f"bitcast {x.kind} {x.name} to {self.real_type}")

    def fabs(self, x: Value) -> Value:
        """Return |x|."""
        return self.intrinsic("fabs", x)

    def sqrt(self, x: Value) -> Value:
        """Return the square root, correctly rounded."""
        return self.intrinsic("sqrt", x)

    def copysign(self, x: Value | float, sign: Value) -> Value:
        """Return |x| with the sign of `sign`."""
        return self.intrinsic("copysign", x, sign)


@dataclass(frozen=True)
class Value:
    """One SSA value of a `Writer`: reals, integers or truth values."""

    writer: Writer
    name: str
    kind: str

    def _binary(self, instruction: str, other: Value | float, swap: bool = False) -> Value:
        right = self.writer.value(other)
        a, b = (right, self) if swap else (self, right)
        return self.writer.emit(self.kind, f"{instruction} {self.kind} {a.name}, {b.name}")

    def _integer(self, instruction: str, other: Value | int) -> Value:
        right = other if isinstance(other, Value) else self.writer.integer(other)
        return self.writer.emit(self.kind, f"{instruction} {self.kind} {self.name}, {right.name}")

    def _compare(self, condition: str, other: Value | float) -> Value:
        right = self.writer.value(other)
        return self.writer.emit(self.writer.mask_type, f"fcmp {condition} {self.kind} {self.name}, {right.name}")

    def __add__(self, other: Value | float) -> Value:
        return self._binary("fadd", other)

    def __radd__(self, other: float) -> Value:
        return self._binary("fadd", other, swap=True)

    def __sub__(self, other: Value | float) -> Value:
        return self._binary("fsub", other)

    def __rsub__(self, other: float) -> Value:
        return self._binary("fsub", other, swap=True)

    def __mul__(self, other: Value | float) -> Value:
        return self._binary("fmul", other)

    def __rmul__(self, other: float) -> Value:
        return self._binary("fmul", other, swap=True)

    def __truediv__(self, other: Value | float) -> Value:
        return self._binary("fdiv", other)

    def __rtruediv__(self, other: float) -> Value:
        return self._binary("fdiv", other, swap=True)

    def __neg__(self) -> Value:
        return self.writer.emit(self.kind, f"fneg {self.kind} {self.name}")

    def __lt__(self, other: Value | float) -> Value:
        return self._compare("olt", other)

    def __le__(self, other: Value | float) -> Value:
        return self._compare("ole", other)

    def __gt__(self, other: Value | float) -> Value:
        return self._compare("ogt", other)

    def __ge__(self, other: Value | float) -> Value:
        return self._compare("oge", other)

    def equals(self, other: Value | float) -> Value:
        """Compare reals; false where one is NaN."""
        return self._compare("oeq", other)

    def both(self, other: Value) -> Value:
        """Return the lanes where both conditions hold."""
        return self._integer("and", other)

    def plus(self, other: Value | int) -> Value:
        """Add integers."""
        return self._integer("add", other)

    def minus(self, other: Value | int) -> Value:
        """Subtract integers."""
        return self._integer("sub", other)

    def masked(self, other: int) -> Value:
        """Return the bitwise and of integers."""
        return self._integer("and", other)

    def flipped(self, other: Value) -> Value:
        """Return the bitwise exclusive or of integers."""
        return self._integer("xor", other)

    def shifted(self, places: int) -> Value:
        """Shift integers left, or right with the sign where `places` is negative."""
        return self._integer("shl", places) if places > 0 else self._integer("ashr", -places)

    def nonzero(self) -> Value:
        """Return the lanes where integers are not zero."""
        return self.writer.emit(self.writer.mask_type, f"icmp ne {self.kind} {self.name}, zeroinitializer")
