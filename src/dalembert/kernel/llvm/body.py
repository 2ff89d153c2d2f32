"""A program as LLVM functions, one per chunk, with its outputs and constant leaves."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from dalembert.kernel.llvm.vector import CONVENTION, alignment, real, vector
from dalembert.kernel.program.chunks import Chunks
from dalembert.kernel.program.program import ELEMENTARY, Op, Port, Program

# ----------------------------------------------------------------------------------------------------------------------
# Vectors of results before they are written: one for each distinct value of an output.
#
# A matrix with structural zeros, or a symmetric one, has fewer values than elements. Its vectors then hold every value
# once, and a table says which of them each element is; all zeros share one vector. So what is computed stays close to
# the processor until it is written, and nothing has to be cleared before a call.


WORTH_A_TABLE = 0.75  # values over elements, below which the table costs less than the memory it saves


@dataclass(frozen=True)
class Outputs:
    """The output area of a block.

    Attributes
    ----------
    first : (ports,)
        The first vector of each output.
    tables
        Per output the vector of each element, counted from its first one; None where element k is vector k.
    stores
        Per value the vectors that it is written to.
    zeros
        Vectors that are zero throughout.
    size
        Number of vectors.
    looked_at
        Number of vectors, the first ones, that the status of a sample is made from.
    """

    first: tuple[int, ...]
    tables: tuple[tuple[int, ...] | None, ...]
    stores: dict[int, list[int]]
    zeros: tuple[int, ...]
    size: int
    looked_at: int


def output_layout(program: Program, ports: int | None = None) -> Outputs:
    """Return where a program's results wait: of its first outputs, or of all."""
    first: list[int] = []
    tables: list[tuple[int, ...] | None] = []
    stores: dict[int, list[int]] = {}
    zeros: list[int] = []
    size = 0
    for k, port in enumerate(program.outputs[:ports]):
        mine = program.result_port == k
        values = np.full(port.size, -1)
        values[program.result_element[mine]] = program.result_value[mine]
        distinct, places = np.unique(values, return_inverse=True)
        has_zeros = bool(port.size) and int(distinct[0]) < 0
        by_table = has_zeros or len(distinct) <= WORTH_A_TABLE * port.size
        first.append(size)
        tables.append(tuple(places.tolist()) if by_table and port.size else None)
        for place, value in enumerate((distinct if by_table else values).tolist()):
            if value < 0:
                zeros.append(size + place)
            else:
                stores.setdefault(value, []).append(size + place)
        size += len(distinct) if by_table else port.size
    return Outputs(tuple(first), tuple(tables), stores, tuple(zeros), size, size)


# ----------------------------------------------------------------------------------------------------------------------
# Outputs that are inputs or constants, as two loops over tables: no arithmetic, so no code per element.
#
# Thousands of loads and stores in a row cost LLVM milliseconds each, since it brings the loads forward and runs out of
# registers.


LEAVES = """
MOVED_TABLES
define internal void @leaves(ptr noalias %in, ptr noalias %scratch, ptr noalias %out) #0 {
  br label %inputs
inputs:
  %i = phi i64 [0, %0], [%i_next, %input]
  %i_more = icmp slt i64 %i, MOVES
  br i1 %i_more, label %input, label %constants
input:
  %from_at = getelementptr i32, ptr @leaf_from, i64 %i
  %from = load i32, ptr %from_at
  %to_at = getelementptr i32, ptr @leaf_to, i64 %i
  %to = load i32, ptr %to_at
  %x_at = getelementptr VEC, ptr %in, i32 %from
  %x = load VEC, ptr %x_at, align ALIGNED
  %y_at = getelementptr VEC, ptr %out, i32 %to
  store VEC %x, ptr %y_at, align ALIGNED
  %i_next = add i64 %i, 1
  br label %inputs
constants:
  %c = phi i64 [0, %inputs], [%c_next, %constant]
  %c_more = icmp slt i64 %c, CONSTANTS
  br i1 %c_more, label %constant, label %done
constant:
  %value_at = getelementptr ELEM, ptr @leaf_value, i64 %c
  %value = load ELEM, ptr %value_at
  %one = insertelement VEC poison, ELEM %value, i32 0
  %all = shufflevector VEC %one, VEC poison, <WIDTH x i32> zeroinitializer
  %place_at = getelementptr i32, ptr @leaf_place, i64 %c
  %place = load i32, ptr %place_at
  %z_at = getelementptr VEC, ptr %out, i32 %place
  store VEC %all, ptr %z_at, align ALIGNED
  %c_next = add i64 %c, 1
  br label %constants
done:
  ret void
}
"""


def leaves(
    moves: Sequence[tuple[int, int]], constants: Sequence[tuple[float, int]], width: int, element: str
) -> list[str]:
    """Return `@leaves`: vector `from` of the inputs goes to vector `to` of the outputs; a constant to its place."""
    tables = [
        _table("leaf_from", "i32", [str(x) for x, _ in moves]),
        _table("leaf_to", "i32", [str(y) for _, y in moves]),
        _table("leaf_value", element, [real(value) for value, _ in constants]),
        _table("leaf_place", "i32", [str(place) for _, place in constants]),
    ]
    text = LEAVES.replace("MOVED_TABLES", "\n".join(tables)).replace("MOVES", str(len(moves)))
    text = text.replace("CONSTANTS", str(len(constants))).replace("VEC", vector(width, element))
    text = text.replace("ELEM", element).replace("WIDTH", str(width))
    return [text.replace("ALIGNED", str(alignment(width, element)))]


def _table(name: str, kind: str, words: list[str]) -> str:
    """Return a constant array; one that is not used holds a zero."""
    words = words or ["0" if kind == "i32" else real(0.0)]
    return f"@{name} = internal constant [{len(words)} x {kind}] [{', '.join(f'{kind} {word}' for word in words)}]"


# ----------------------------------------------------------------------------------------------------------------------
# A program as LLVM functions, one per chunk: straight-line code on vectors that hold one sample per lane.
#
# Chunk k is `@chunk_k(in, scratch, out)`: three blocks of vectors, indexed by the flat number of the input
# element, the slot, and the place of the result (below).


# Operations that are one LLVM instruction or intrinsic.
INSTRUCTION = {Op.ADD: "fadd", Op.SUB: "fsub", Op.MUL: "fmul", Op.DIV: "fdiv", Op.NEG: "fneg"}
INTRINSIC = {Op.SQRT: "sqrt", Op.FABS: "fabs", Op.FLOOR: "floor", Op.CEIL: "ceil", Op.COPYSIGN: "copysign"}
CONDITION = {Op.LT: "olt", Op.LE: "ole", Op.EQ: "oeq", Op.NE: "une"}
PARTNER = {Op.SIN: Op.COS, Op.COS: Op.SIN}


def starts(ports: tuple[Port, ...]) -> list[int]:
    """Return the flat number of each port's first element, and the total."""
    return [0, *np.cumsum([port.size for port in ports]).tolist()]


class LlvmBody:
    """The printer of one program for one vector type.

    Where `lanes` is not 1, a program for single samples: sines and cosines of several values share one call of
    `@wide_sincos`, on a vector of so many.
    """

    blocks = ("in", "scratch", "out")
    """The blocks of memory that a chunk works on."""

    def __init__(
        self, program: Program, chunks: Chunks, outputs: Outputs, width: int, element: str, lanes: int = 1
    ) -> None:
        self.program = program
        self.lanes = lanes
        self.chunks = chunks
        self.width = width
        self.kind = vector(width, element)
        self.alignment = alignment(width, element)
        self.mask = vector(width, "i1")
        self.element = element
        self.suffix = f"v{width}{'f64' if element == 'double' else 'f32'}"
        self.op, self.a, self.b, self.c = program.operands()
        first_in = starts(program.inputs)
        self.input_place = {
            i: first_in[port] + element_
            for i, (code, port, element_) in enumerate(
                zip(self.op, program.a.tolist(), program.b.tolist(), strict=True)
            )
            if code == Op.INPUT
        }
        self.stores = outputs.stores
        self.leaves = [i for i in self.stores if self.op[i] in (Op.CONST, Op.INPUT)]
        self.lines: list[str] = []
        self.names: dict[int, str] = {}
        self.temporaries = 0
        self.stop = 0

    def text(self) -> Iterator[str]:
        """Yield the lines of all chunks, and of `@leaves`, which writes outputs that are inputs or constants."""
        bounds = self.chunks.bounds
        for k in range(len(self.chunks)):
            yield from self._chunk(f"chunk_{k}", range(bounds[k], bounds[k + 1]))
        if self.leaves:
            yield from self._leaves()

    def _leaves(self) -> list[str]:
        """Return the function that writes outputs which are inputs or constants."""
        moves, constants = [], []
        for i in self.leaves:
            for place in self.stores[i]:
                if self.op[i] == Op.INPUT:
                    moves.append((self.input_place[i], place))
                else:
                    constants.append((self._constant(i), place))
        return leaves(moves, constants, self.width, self.element)

    def _constant(self, i: int) -> float:
        """Return a constant as the kernel's type holds it."""
        value = self.program.value[i]
        if self.element == "float":
            with np.errstate(over="ignore"):
                value = np.float32(value)
        return float(value)

    def _chunk(self, name: str, values: range) -> list[str]:
        arguments = ", ".join(f"ptr noalias %{block}" for block in self.blocks)
        self.lines = [f"define internal void @{name}({arguments}) #0 {{"]
        self.names = {}
        self.temporaries = 0
        self.stop = values.stop
        for i in values:
            name_i = self._operation(i)
            for place in self.stores.get(i, ()):
                self.store(name_i, "out", place)
            if i in self.chunks.slot:
                self.store(name_i, "scratch", self.chunks.slot[i])
        return [*self.lines, "  ret void", "}"]

    def store(self, name: str, block: str, place: int) -> None:
        """Write a vector to its place in a block."""
        pointer = self.temporary(f"getelementptr {self.kind}, ptr %{block}, i64 {place}")
        self.lines.append(f"  store {self.kind} {name}, ptr {pointer}, align {self.alignment}")

    def temporary(self, text: str) -> str:
        """Append an instruction with a fresh name."""
        self.temporaries += 1
        name = f"%t{self.temporaries}"
        self.lines.append(f"  {name} = {text}")
        return name

    def operand(self, i: int) -> str:
        """Return the name of value i in this chunk; the first use of an outside value loads it."""
        name = self.names.get(i)
        if name is not None:
            return name
        name = f"splat ({self.element} {real(self._constant(i))})" if self.op[i] == Op.CONST else self.load(i)
        self.names[i] = name
        return name

    def load(self, i: int) -> str:
        """Read an input, or a value of an earlier chunk."""
        inside = self.op[i] == Op.INPUT
        block, place = ("in", self.input_place[i]) if inside else ("scratch", self.chunks.slot[i])
        pointer = self.temporary(f"getelementptr {self.kind}, ptr %{block}, i64 {place}")
        return self.temporary(f"load {self.kind}, ptr {pointer}, align {self.alignment}")

    def _operation(self, i: int) -> str:
        if i in self.names:  # the partner of a sine or cosine computed it
            return self.names[i]
        op = Op(self.op[i])
        operands = [self.operand(x) for x in (self.a[i], self.b[i], self.c[i]) if x >= 0]
        if op in INSTRUCTION:
            name = self.temporary(f"{INSTRUCTION[op]} {self.kind} {', '.join(operands)}")
        elif op in INTRINSIC:
            name = self.intrinsic(INTRINSIC[op], *operands)
        elif op in ELEMENTARY:
            name = self._call(i, op, operands)
        else:
            name = SPELLED[op](self, *operands)
        self.names[i] = name
        return name

    def intrinsic(self, name: str, *operands: str) -> str:
        """Call an elementwise intrinsic."""
        arguments = ", ".join(f"{self.kind} {x}" for x in operands)
        return self.temporary(f"call {self.kind} @llvm.{name}.{self.suffix}({arguments})")

    def compare(self, condition: str, x: str, y: str = "zeroinitializer") -> str:
        """Compare; the result is a mask."""
        return self.temporary(f"fcmp {condition} {self.kind} {x}, {y}")

    def select(self, mask: str, yes: str, no: str = "zeroinitializer") -> str:
        """Choose by a mask."""
        return self.temporary(f"select {self.mask} {mask}, {self.kind} {yes}, {self.kind} {no}")

    def logic(self, mask: str) -> str:
        """Turn a mask into 1.0 and 0.0."""
        return self.select(mask, self.number(1.0))

    def number(self, x: float) -> str:
        """Return a constant in every lane."""
        return f"splat ({self.element} {real(x)})"

    def _call(self, i: int, op: Op, operands: list[str]) -> str:
        """Call an elementary function; a sine and a cosine of one value that follow each other share one call."""
        if self.lanes > 1 and op in PARTNER:
            self._circular_together(i)
            return self.names[i]
        arguments = ", ".join(f"{self.kind} {x}" for x in operands)
        neighbour = i + 1
        if (
            op in PARTNER
            and neighbour < len(self.op)
            and self.op[neighbour] == PARTNER[op]
            and self.a[neighbour] == self.a[i]
            and neighbour not in self.chunks.bounds
        ):
            pair = f"{{{self.kind}, {self.kind}}}"
            both = self.temporary(f"call {CONVENTION} {pair} @da_sincos({arguments})")
            parts = [self.temporary(f"extractvalue {pair} {both}, {k}") for k in (0, 1)]
            if op == Op.COS:
                parts.reverse()
            self.names[neighbour] = parts[1]
            return parts[0]
        return self.temporary(f"call {CONVENTION} {self.kind} @da_{op.name.lower()}({arguments})")

    def _circular_together(self, i: int) -> None:
        """Compute the sines and cosines of up to `lanes` values of this chunk that are known by now, value i first."""
        wanted: dict[int, list[int]] = {}
        for k in range(i, self.stop):
            known = self.a[k] in self.names or self.op[self.a[k]] in (Op.INPUT, Op.CONST)
            if self.op[k] in PARTNER and k not in self.names and known:
                if self.a[k] not in wanted and len(wanted) == self.lanes:
                    continue
                wanted.setdefault(self.a[k], []).append(k)
        wide = vector(self.lanes, self.element)
        packed, x = "poison", ""
        values = list(wanted)
        for lane in range(self.lanes):
            if lane < len(values):
                x = self.temporary(f"extractelement {self.kind} {self.operand(values[lane])}, i32 0")
            packed = self.temporary(f"insertelement {wide} {packed}, {self.element} {x}, i32 {lane}")
        pair = f"{{{wide}, {wide}}}"
        both = self.temporary(f"call {CONVENTION} {pair} @wide_sincos({wide} {packed})")
        parts = {op: self.temporary(f"extractvalue {pair} {both}, {k}") for k, op in enumerate((Op.SIN, Op.COS))}
        for lane, users in enumerate(wanted.values()):
            for k in users:
                part = self.temporary(f"extractelement {wide} {parts[Op(self.op[k])]}, i32 {lane}")
                self.names[k] = self.temporary(f"insertelement {self.kind} poison, {self.element} {part}, i32 0")


def _fma(body: LlvmBody, a: str, b: str, c: str) -> str:
    return body.intrinsic("fma", a, b, c)


def _fms(body: LlvmBody, a: str, b: str, c: str) -> str:
    return body.intrinsic("fma", a, b, body.temporary(f"fneg {body.kind} {c}"))


def _fnma(body: LlvmBody, a: str, b: str, c: str) -> str:
    return body.intrinsic("fma", body.temporary(f"fneg {body.kind} {a}"), b, c)


def _sign(body: LlvmBody, a: str) -> str:
    positive = body.select(body.compare("ogt", a), body.number(1.0), a)
    return body.select(body.compare("olt", a), body.number(-1.0), positive)


def _extremum(condition: str) -> Callable[[LlvmBody, str, str], str]:
    """Return fmin or fmax: a where it wins or b is NaN, else b. The inner choice is one instruction."""

    def choose(body: LlvmBody, a: str, b: str) -> str:
        better = body.select(body.compare(condition, a, b), a, b)
        return body.select(body.compare("uno", b), a, better)

    return choose


def _both(instruction: str) -> Callable[[LlvmBody, str, str], str]:
    """Return logical and, or: operands count as true where they are not zero."""

    def combine(body: LlvmBody, a: str, b: str) -> str:
        x, y = body.compare("une", a), body.compare("une", b)
        return body.logic(body.temporary(f"{instruction} {body.mask} {x}, {y}"))

    return combine


def _comparison(condition: str) -> Callable[[LlvmBody, str, str], str]:
    return lambda body, a, b: body.logic(body.compare(condition, a, b))


SPELLED: dict[Op, Callable[..., str]] = {
    Op.FMA: _fma,
    Op.FMS: _fms,
    Op.FNMA: _fnma,
    Op.SIGN: _sign,
    Op.FMIN: _extremum("olt"),
    Op.FMAX: _extremum("ogt"),
    Op.NOT: lambda body, a: body.logic(body.compare("oeq", a)),
    Op.AND: _both("and"),
    Op.OR: _both("or"),
    Op.IF_ELSE_ZERO: lambda body, a, b: body.select(body.compare("une", a), b),
    **{op: _comparison(condition) for op, condition in CONDITION.items()},
}
