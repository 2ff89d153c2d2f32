"""A program as CUDA C: one thread per sample, one `__global__` function per part."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from dalembert.kernel.c.printer import LIBRARY, TYPE, CBody
from dalembert.kernel.program.chunks import ChunkPlan, plan, split
from dalembert.kernel.program.columns import NOWHERE, ColumnPart, ColumnProgram
from dalembert.kernel.program.program import ARITY, ELEMENTARY, Op, Port, Program

# ----------------------------------------------------------------------------------------------------------------------
# Tuning of a program for a GPU: choices that change its speed and not its results.


THREADS = 64  # per block
BLOCKS = 4  # per multiprocessor: 256 threads leave each its 255 registers
PART = 4500  # operations: with copies and spills 100 KiB of code, and the instruction cache holds 128


@dataclass(frozen=True)
class Tuning:
    """Choices that do not change results.

    Attributes
    ----------
    threads, blocks
        Threads per block; blocks that must fit a multiprocessor at once, which caps the registers of a thread at
        65536 / (threads blocks).
    part
        Operations per part.
    stage
        Whether first-level elementary functions leave their results in shared memory.
    recompute
        What a value that passes between parts costs to store, or to read, in operations: values that are cheaper to
        compute again are (`recompute`); 0 for none.
    fetch
        Whether values of earlier parts are brought to shared memory before the work begins, as far as they fit.
    scratch
        Bytes of the values between parts: longer batches run in pieces. What stays in the second-level cache is cheap.
    meet
        Operations after which the threads of a block wait for each other, so that they share fetched instructions;
        0 for never.
    """

    threads: int = THREADS
    blocks: int = BLOCKS
    part: int = PART
    stage: bool = True
    recompute: int = 0
    fetch: bool = True
    scratch: int = 1 << 30
    meet: int = 0


# ----------------------------------------------------------------------------------------------------------------------
# One part of a program as a `__global__` function: rows in, first stage, the rest, rows out.


SHARED_BYTES = 48 * 1024  # per block, without asking the driver for more
ITEM_BYTES = {"float64": 8, "float32": 4}
POLYNOMIAL = (Op.SIN, Op.COS, Op.TAN)
FUSED: dict[int, str] = {Op.FMA: "fma({0}, {1}, {2})", Op.FMS: "fma({0}, {1}, -{2})", Op.FNMA: "fma(-{0}, {1}, {2})"}
PARTNER = {Op.SIN: Op.COS, Op.COS: Op.SIN}


@dataclass(frozen=True)
class Arrangement:
    """What all functions of a module have in common.

    Attributes
    ----------
    inputs, outputs
        All inputs and outputs, which are arguments.
    direct
        Which of them each output of the head is; of a program without columns, all in their order.
    held
        Further outputs of the head, which columns read: the slot of the first element of each.
    slots
        Values of a sample in scratch memory: those that pass between parts, and those that columns read.
    """

    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]
    direct: tuple[int, ...]
    held: tuple[int, ...]
    slots: int


class Part(CBody):
    """The printer of one part."""

    def __init__(
        self, program: Program, plan: ChunkPlan, dtype: str, tuning: Tuning, number: int, whole: Arrangement
    ) -> None:
        calls: dict[int, str] = {op: f"{op.name.lower()}({', '.join(['{0}', '{1}'][: ARITY[op]])})" for op in LIBRARY}
        calls |= {op: f"da_{op.name.lower()}({{0}})" for op in POLYNOMIAL}
        super().__init__(program, plan.chunks, dtype, self, calls | FUSED)
        self.name = f"part_{number}"
        self.tuning, self.whole = tuning, whole
        count = max(1, len(plan.orders))
        self.is_first, self.is_last = number == 0, number == count - 1
        self.values = list(plan.orders[number]) if plan.orders else []
        self.own = set(self.chunk(number) if plan.orders else []) | set(self.leaves())
        self.members = set(self.values)
        self.written = self.values + (self.leaves() if self.is_last else [])
        self.reciprocals: dict[int, str] = {}
        self.quotients = Counter(program.b[program.op == Op.DIV].tolist())
        self.shared: dict[int, int] = {}  # column of a value that waits in shared memory
        self._lay_out()

    def _lay_out(self) -> None:
        """Give inputs, waiting values and outputs their columns of a thread's row, as far as they fit."""
        room = SHARED_BYTES // (ITEM_BYTES[self.dtype] * self.tuning.threads) - 1
        self.input_column: dict[int, int] = {}
        self.output_column: dict[int, int] = {}
        width = 0
        for port in self._ports_read():
            size = self.program.inputs[port].size
            if width + size <= room:
                self.input_column[port] = width
                width += size
        for port in self._ports_made():
            size = self.program.outputs[port].size
            if width + size <= room:
                self.output_column[port] = width
                width += size
        self.staged = self._stage()
        for value in self.staged:
            if self.op[value] in ELEMENTARY and width < room:
                self.shared[value] = width
                width += 1
        self.fetched: dict[int, int] = {}  # column of a value of an earlier part, brought here before the work begins
        if self.tuning.fetch:
            for value in self._values_read():
                if width < room:
                    self.fetched[value] = width
                    width += 1
        self.width = width | 1
        self.shared_bytes = self.width * self.tuning.threads * ITEM_BYTES[self.dtype] if width else 0

    def _values_read(self) -> list[int]:
        """Return the values of earlier parts that this part reads, in the order of their first use."""
        operands = (x for i in self.values for x in (self.a[i], self.b[i], self.c[i]) if x in self.chunks.slot)
        return list(dict.fromkeys(x for x in operands if x not in self.members))

    def _ports_read(self) -> list[int]:
        """Return the inputs that this part reads."""
        used = {x for i in self.values for x in (self.a[i], self.b[i], self.c[i]) if x >= 0 and self.op[x] == Op.INPUT}
        used |= {i for i in self.written if self.op[i] == Op.INPUT}
        return sorted({self.leaf_a[x] for x in used})

    def _ports_made(self) -> list[int]:
        """Return the outputs of which this part computes every element that is not a structural zero."""
        here = dict.fromkeys(range(len(self.program.outputs)), 0)
        for i in self.written:
            for port, _ in self.stores.get(i, ()) if i in self.own else ():
                here[port] += 1
        total = np.bincount(self.program.result_port, minlength=len(self.program.outputs)).tolist()
        return [
            port
            for port, n in here.items()
            if port < len(self.whole.direct)
            and n == total[port]
            and (n or self.is_first)
            and self.program.outputs[port].size
        ]

    def _stage(self) -> list[int]:
        """Return the leading values up to the last elementary function of the first level; they come first."""
        if not self.tuning.stage:
            return []
        last = -1
        level: dict[int, int] = {}
        for place, i in enumerate(self.values):
            below = max((level.get(x, 0) for x in (self.a[i], self.b[i], self.c[i])), default=0)
            level[i] = below + (self.op[i] in ELEMENTARY)
            if self.op[i] in ELEMENTARY and level[i] == 1:
                last = place
            if level[i] > 1:
                break
        return self.values[: last + 1]

    # Places

    def input(self, port: int, element: int) -> str:
        """Return an input element: in this thread's row, or where it lies."""
        column = self.input_column.get(port)
        return f"in_{port}[sample * step_{port} + {element}]" if column is None else f"row[{column + element}]"

    def output(self, port: int, element: int) -> str:
        """Return an output element: in this thread's row, or where it goes; what columns read is held in scratch."""
        if port >= len(self.whole.direct):
            return self.slot(self.whole.held[port - len(self.whole.direct)] + element)
        column = self.output_column.get(port)
        size = self.program.outputs[port].size
        place = f"out_{self.whole.direct[port]}[sample * {size} + {element}]"
        return place if column is None else f"row[{column + element}]"

    def slot(self, slot: int) -> str:
        """Return a value that passes between parts."""
        return f"between[{slot * self.tuning.threads}]"

    # Statements

    def value(self, i: int) -> None:
        """Compute value i, and watch results for what is not finite: 0 x is NaN where x is not."""
        if i not in self.own:  # computed again: stored where it was computed first
            self.operation(i)
            return
        super().value(i)
        if any(port < len(self.whole.direct) for port, _ in self.stores.get(i, ())):
            self.lines.append(f"watch = fma({self.names[i]}, {self.words['zero']}, watch);")

    def operation(self, i: int) -> str:
        """Declare value i; a sine and a cosine of one value share the work."""
        if i in self.names:
            return self.names[i]
        j = i + 1
        if (
            self.op[i] in PARTNER
            and j in self.members
            and self.op[j] == PARTNER[Op(self.op[i])]
            and self.a[j] == self.a[i]
        ):
            s, c = (i, j) if self.op[i] == Op.SIN else (j, i)
            self.lines.append(f"real t{s}, t{c};")
            self.lines.append(f"da_sincos({self.operand(self.a[i])}, &t{s}, &t{c});")
            self.names[i], self.names[j] = f"t{i}", f"t{j}"
            return self.names[i]
        return super().operation(i)

    def declare(self, i: int, expression: str) -> str:
        """Declare value i."""
        self.lines.append(f"const real t{i} = {expression};")
        return f"t{i}"

    def expression(self, i: int, operands: list[str]) -> str:
        """Return the right-hand side of value i; a quotient through the reciprocal of its divisor."""
        if self.op[i] != Op.DIV:
            return super().expression(i, operands)
        divisor = self.b[i]
        if self.quotients[divisor] == 1:
            return super().expression(i, operands)
        if divisor not in self.reciprocals:
            self.reciprocals[divisor] = f"r{divisor}"
            self.lines.append(f"const real r{divisor} = da_reciprocal({operands[1]});")
        return f"{operands[0]} * r{divisor}"

    # Text

    def text(self) -> str:
        """Return the `__global__` function."""
        bounds = f"__launch_bounds__({self.tuning.threads}, {self.tuning.blocks})"
        return "\n".join(
            [
                f'extern "C" __global__ void {bounds} {self.name}({", ".join(self._arguments())})\n{{',
                *self._opening(),
                *(f"    {line}" for line in self._load()),
                *(f"    {line}" for line in self._body()),
                *(f"    {line}" for line in self._store()),
                "}\n",
            ]
        )

    def _arguments(self) -> list[str]:
        inputs = range(len(self.whole.inputs))
        arguments = ["const long long samples"]
        arguments += [text for k in inputs for text in (f"const real *in_{k}", f"const long long step_{k}")]
        arguments += [f"real *out_{k}" for k in range(len(self.whole.outputs))]
        return [*arguments, "real *scratch", "unsigned char *status"]

    def _opening(self) -> Iterator[str]:
        """Yield where this thread stands. Threads beyond the last sample repeat it: no branch, and the same values."""
        threads = self.tuning.threads
        yield f"    const long long block = blockIdx.x, first = block * {threads};"
        yield f"    const int count = samples - first < {threads} ? (int)(samples - first) : {threads};"
        yield "    const int lane = threadIdx.x;"
        yield "    const long long sample = first + (lane < count ? lane : count - 1);"
        yield f"    real watch = {self.words['zero']};"
        if self.whole.slots:
            rows = f"block * {self.whole.slots * self.tuning.threads}ll"
            yield f"    real *const between = scratch + {rows} + lane;"
        if self.shared_bytes:
            yield f"    extern __shared__ real tile[];\n    real *const row = tile + lane * {self.width};"

    def _load(self) -> Iterator[str]:
        """Yield the loops that bring inputs into shared memory: the common one is the cheap one."""
        threads, width = self.tuning.threads, self.width
        for port, column in self.input_column.items():
            size = self.program.inputs[port].size
            place = f"tile + e / {size} * {width} + {column} + e % {size}"
            yield f"if (count == {threads} && step_{port} == {size}) {{"
            yield "#pragma unroll"
            yield f"    for (int e = lane; e < {threads * size}; e += {threads})"
            yield f"        da_copy({place}, in_{port} + first * {size} + e);"
            yield "} else {"
            yield f"    for (int e = lane; e < {threads * size}; e += {threads}) {{"
            yield f"        const int from = e / {size} < count ? e / {size} : count - 1;"
            yield f"        da_copy({place}, in_{port} + (first + from) * step_{port} + e % {size});"
            yield "    }\n    }"
        for value, column in self.fetched.items():
            yield f"da_copy(row + {column}, &{self.slot(self.chunks.slot[value])});"
        if self.input_column or self.fetched:
            yield "da_copied();\n    __syncthreads();"

    def _body(self) -> list[str]:
        """Return the first stage and the rest; between them the threads of a block meet."""
        self.begin()
        self.reciprocals = {}
        self.names |= {value: f"row[{column}]" for value, column in self.fetched.items()}
        for port, column in self.output_column.items():
            for element in self._zeros(port):
                self.lines.append(f"row[{column + element}] = {self.words['zero']};")
        if self.is_first:
            for port in set(range(len(self.whole.direct))) - set(self.output_column):
                self.lines += [f"{self.output(port, element)} = {self.words['zero']};" for element in self._zeros(port)]
        self.print(self.staged)
        for value, column in self.shared.items():
            self.lines.append(f"row[{column}] = {self.names[value]};")
            self.names[value] = f"row[{column}]"
        if self.shared:
            self.lines.append("__syncthreads();")
        rest = self.written[len(self.staged) :]
        meet = self.tuning.meet or len(rest) + 1
        for start in range(0, len(rest), meet):
            if start:
                self.lines.append("__syncthreads();")
            self.print(rest[start : start + meet])
        before = "" if self.is_first else " | status[sample]"
        self.lines.append(f"if (status) status[sample] = (watch == {self.words['zero']} ? 0 : 1){before};")
        return self.lines

    def _zeros(self, port: int) -> list[int]:
        """Return the structural zeros of an output."""
        known = set(self.program.result_element[self.program.result_port == port].tolist())
        return [element for element in range(self.program.outputs[port].size) if element not in known]

    def _store(self) -> Iterator[str]:
        """Yield the loops that bring outputs from shared memory to where they go."""
        if self.output_column:
            yield "__syncthreads();"
        for port, column in self.output_column.items():
            size = self.program.outputs[port].size
            yield f"for (int e = lane; e < count * {size}; e += {self.tuning.threads})"
            place = f"tile[e / {size} * {self.width} + {column} + e % {size}]"
            yield f"    out_{self.whole.direct[port]}[first * {size} + e] = {place};"


class Columns(Part):
    """The printer of the columns of a group: a thread has one column of one sample.

    Neighbouring threads have neighbouring columns: they read the same shared values, and write side by side. Shared
    values and right sides lie in scratch memory, those of neighbouring samples side by side; results go to where
    two tables say.
    """

    def __init__(self, column: ColumnPart, dtype: str, tuning: Tuning, g: int, whole: Arrangement) -> None:
        program = column.program
        chunks = split(program, max(1, len(program)))
        every = tuple(range(chunks.bounds[0], len(program)))
        super().__init__(program, ChunkPlan(chunks, (every,)), dtype, tuning, 0, whole)
        self.name, self.column, self.g = f"columns_{g}", column, g

    def _lay_out(self) -> None:
        """Nothing waits in shared memory."""
        self.input_column, self.output_column, self.shared, self.fetched = {}, {}, {}, {}
        self.staged, self.width, self.shared_bytes = [], 0, 0

    def input(self, port: int, element: int) -> str:
        """Return a shared value, or an entry of this column's right side."""
        begin, count = self.whole.held[2 * self.g + port], self.column.alike.count
        if port == 0:
            return self.slot(begin + element)
        return f"between[({begin + element * count} + column) * {self.tuning.threads}]"

    def value(self, i: int) -> None:
        """Compute value i; a result goes where its table says, or nowhere."""
        name = self.operand(i) if self.op[i] in (Op.CONST, Op.INPUT) else self.operation(i)
        for _, u in self.stores.get(i, ()):
            place = f"{u * self.column.alike.count} + column"
            into = f"rows[port_{self.g}[{place}]][element_{self.g}[{place}]] = {name};"
            everywhere = bool((self.column.alike.port[u] != NOWHERE).all())
            self.lines.append(into if everywhere else f"if (port_{self.g}[{place}] >= 0) {into}")
            self.lines.append(f"watch = fma({name}, {self.words['zero']}, watch);")

    def text(self) -> str:
        """Return the tables and the `__global__` function."""
        alike = self.column.alike
        tables = [
            f"static __device__ const {kind} {name}_{self.g}[] = {{{', '.join(map(str, rows.ravel().tolist()))}}};"
            for kind, name, rows in (("short", "port", alike.port), ("int", "element", alike.element))
        ]
        return "\n".join([*tables, super().text()])

    def _opening(self) -> Iterator[str]:
        """Yield where this thread stands; threads beyond the last column repeat it."""
        threads, count = self.tuning.threads, self.column.alike.count
        yield f"    const long long own = (long long)blockIdx.x * {threads} + threadIdx.x, all = samples * {count};"
        yield "    const long long mine = own < all ? own : all - 1;"
        yield f"    const long long sample = mine / {count};"
        yield f"    const int column = (int)(mine % {count});"
        yield f"    const long long block = sample / {threads};"
        yield f"    const int lane = (int)(sample % {threads});"
        yield f"    real watch = {self.words['zero']};"
        yield f"    real *const between = scratch + block * {self.whole.slots * threads}ll + lane;"
        rows = ", ".join(f"out_{k} + sample * {port.size}" for k, port in enumerate(self.whole.outputs))
        yield f"    real *const rows[] = {{{rows}}};"

    def _body(self) -> list[str]:
        self.begin()
        self.reciprocals = {}
        self.print(self.written)
        self.lines.append(f"if (status && !(watch == {self.words['zero']})) status[sample] = 1;")
        return self.lines


# ----------------------------------------------------------------------------------------------------------------------
# A program as CUDA C: one thread per sample, one `__global__` function per part of the program.
#
# Rows of inputs are read by neighbouring threads together into shared memory, where each thread has a row of its own;
# its odd length keeps threads on different banks. Outputs go the same way back. What does not fit is read and written
# in place. Elementary functions of the first level come first and leave their results in shared memory: they need
# registers of their own, and their results are needed late. A long program is cut into parts that the instruction cache
# holds; values pass between them through memory in which the threads of a block lie side by side, or are computed again
# where that is cheaper (`recompute`).
#
# Divisions by one value share its reciprocal: one operation each, within 1.5 ulp instead of 0.5.


ONE_PART = {"float64": 3000, "float32": 4500}  # operations up to which a program is one part
PARTS = {"float64": (2500, 1800), "float32": (4500, 3000)}  # operations of a part: of programs up to LONG, and longer
LONG = 9000
RECOMPUTE, RECOMPUTE_LONG = 8, 3  # operations that passing a value between parts is worth; long parts lack registers
REGISTERS = {"float64": 115, "float32": 240}  # values that a thread holds in its 255 registers


@dataclass(frozen=True)
class CudaSource:
    """A program in CUDA C.

    Attributes
    ----------
    text
        Source of one module.
    functions
        Names of its `__global__` functions, in the order in which they run.
    shared_bytes
        Dynamic shared memory of each.
    columns
        Columns of each, of which every sample has a thread: 1 for those that compute what all share.
    slots
        Values of a sample in scratch memory.
    cleared
        Outputs that have elements which no function writes.
    tuning
        How it was printed.
    """

    text: str
    functions: tuple[str, ...]
    shared_bytes: tuple[int, ...]
    columns: tuple[int, ...]
    slots: int
    cleared: tuple[int, ...]
    tuning: Tuning


def choose_tuning(program: Program | ColumnProgram, dtype: str) -> Tuning:
    """Return what ran fastest for programs of this size, measured on an H200 (`benchmarks/gpu.py --tune`)."""
    program = program.head if isinstance(program, ColumnProgram) else program
    if program.operations <= ONE_PART[dtype]:
        return Tuning(part=ONE_PART[dtype])
    part = PARTS[dtype][program.operations > LONG]
    return Tuning(part=part, recompute=RECOMPUTE_LONG if program.operations > LONG else RECOMPUTE)


def print_cuda(program: Program | ColumnProgram, dtype: str, tuning: Tuning | None = None) -> CudaSource:
    """Return the CUDA text of a scheduled program, with columns or without.

    Every function takes the same arguments: number of samples; per input its address and the distance of samples (its
    size, or 0 where one serves all); per output its address; values in scratch memory; the status, or null.
    """
    tuning = tuning or Tuning()
    head = program.head if isinstance(program, ColumnProgram) else program
    layout = plan(head, split(head, tuning.part), tuning.recompute, REGISTERS[dtype])
    whole, cleared = _arranged(program, layout.chunks.slots)
    parts = [Part(head, layout, dtype, tuning, k, whole) for k in range(max(1, len(layout.orders)))]
    columns = [1] * len(parts)
    if isinstance(program, ColumnProgram):
        parts += [Columns(x, dtype, tuning, g, whole) for g, x in enumerate(program.bodies)]
        columns += [column.alike.count for column in program.bodies]
    single = "#define DA_SINGLE\n" if dtype == "float32" else ""
    opening = f"{single}typedef {TYPE[dtype]} real;\n\n{(Path(__file__).parent / 'cuda_math.cuh').read_text()}"
    text = "\n".join([opening, *(part.text() for part in parts)])
    return CudaSource(
        text,
        tuple(part.name for part in parts),
        tuple(part.shared_bytes for part in parts),
        tuple(columns),
        whole.slots,
        cleared,
        tuning,
    )


def _arranged(program: Program | ColumnProgram, slots: int) -> tuple[Arrangement, tuple[int, ...]]:
    """Return what the functions of a program share, and the outputs that columns do not fill."""
    if not isinstance(program, ColumnProgram):
        return Arrangement(program.inputs, program.outputs, tuple(range(len(program.outputs))), (), slots), ()
    places, held = program.places(), []
    for port in program.head.outputs[program.direct :]:
        held.append(slots)
        slots += port.size
    filled = [0] * len(program.outputs)
    for body in program.bodies:
        for port in body.alike.port[body.alike.port != NOWHERE].tolist():
            filled[port] += 1
    made = [k for k, place in enumerate(places) if place == NOWHERE]
    cleared = tuple(k for k in made if filled[k] < program.outputs[k].size)
    direct = tuple(places.index(k) for k in range(program.direct))
    return Arrangement(program.head.inputs, program.outputs, direct, tuple(held), slots), cleared
