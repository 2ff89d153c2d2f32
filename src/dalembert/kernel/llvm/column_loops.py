"""Columns in LLVM: the body of a column as a function, and the loop that runs it for every column of a block.

Two layouts of memory, W the lanes of a vector, C the columns of a group:

    a batch            lanes are samples, and two columns are computed side by side, so that a shared value is loaded
                       once for both: entry e of a pair's right sides is 2 W numbers, so are its results; ceil(C / 2)
                       turns
    a single sample    lanes are columns: entry e of the right sides is a row of C numbers, so are the results; shared
                       values are one number each, spread over all lanes; ceil(C / W) turns, the last one ends with the
                       last column

A body is cut into chunks whose code and shared values stay in the first-level caches; each is run for all turns before
the next one, and what one hands to the next waits in scratch memory, turn by turn.

Where columns do not fill the last turn, copies of the last one do. In either case the same instructions work on the
same numbers, so a result does not depend on which it was.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise

from dalembert.kernel.llvm.body import LlvmBody, Outputs, output_layout
from dalembert.kernel.llvm.vector import alignment, vector
from dalembert.kernel.program.chunks import Chunks
from dalembert.kernel.program.columns import NOWHERE, ColumnPart, ColumnProgram
from dalembert.kernel.program.program import ELEMENTARY, Op, Program

BESIDE = 2
"""Columns of a batch that are computed side by side: more would not find registers."""


@dataclass(frozen=True)
class GroupLayout:
    """Where a group of columns lies in the output area of a block, in vectors of the head.

    Attributes
    ----------
    columns
        Columns that there is memory for.
    beside
        Columns that lie side by side, entry after entry: of a single sample all, of a batch those of a turn.
    shared, right, results
        The first vector of the shared values, the right sides, the results.
    spread
        Whether columns are lanes, over which a shared value is spread: of a single sample.
    """

    columns: int
    beside: int
    shared: int
    right: int
    results: int
    spread: bool

    def right_place(self, size: int, entry: int, column: int) -> int:
        """Return the vector of an entry of a right side of `size` entries."""
        return self.right + self._place(size, entry, column)

    def result_place(self, size: int, entry: int, column: int) -> int:
        """Return the vector of one of `size` results."""
        return self.results + self._place(size, entry, column)

    def _place(self, size: int, entry: int, column: int) -> int:
        turn, member = divmod(column, self.beside)
        return (turn * size + entry) * self.beside + member


def column_layout(program: ColumnProgram, lanes: int | None) -> tuple[Outputs, tuple[GroupLayout, ...]]:
    """Return the output area: outputs of the head, results of columns, then what only the columns read.

    `lanes` is how many columns a vector holds, for a single sample; None for batches.
    """
    head = output_layout(program.head, program.direct)
    size = head.size
    zero = size  # a vector of zeros for elements that no column has
    size += 1
    sides = [beside(body) for body in program.bodies]
    counts = [body.alike.count for body in program.bodies]
    columns = [-(-n // s) * s if lanes is None else max(n, lanes) for n, s in zip(counts, sides, strict=True)]
    results = []
    for body, count in zip(program.bodies, columns, strict=True):
        results.append(size)
        size += body.sizes[2] * count
    looked_at, groups = size, []
    for body, count, first, side in zip(program.bodies, columns, results, sides, strict=True):
        shared, right, _ = body.sizes
        together = side if lanes is None else count
        groups.append(GroupLayout(count, together, size, size + shared, first, lanes is not None))
        size += shared + right * count
    outputs = replace(head, size=size, looked_at=looked_at, zeros=(*head.zeros, zero))
    _store_head(program, outputs, groups)
    return _with_tables(program, outputs, groups, zero), tuple(groups)


def _store_head(program: ColumnProgram, outputs: Outputs, groups: list[GroupLayout]) -> None:
    """Add where the head's values wait for the columns that read them."""
    head = program.head
    for port, element, value in head.results():
        g, is_right = divmod(port - program.direct, 2)
        if g < 0:
            continue
        group, places = groups[g], outputs.stores.setdefault(value, [])
        if not is_right:
            places.append(group.shared + element)
            continue
        count = program.bodies[g].alike.count
        entry, column = divmod(element, count)
        last = group.columns if column == count - 1 else column + 1
        size = program.bodies[g].sizes[1]
        places += [group.right_place(size, entry, c) for c in range(column, last)]


def _with_tables(program: ColumnProgram, outputs: Outputs, groups: list[GroupLayout], zero: int) -> Outputs:
    """Return the output area with the first vectors and tables of all outputs of the whole."""
    first, tables = [], []
    made = {k: [zero] * port.size for k, port in enumerate(program.outputs)}
    for body, group in zip(program.bodies, groups, strict=True):
        ports, elements = body.alike.port, body.alike.element
        for u, column in zip(*(ports != NOWHERE).nonzero(), strict=True):
            place = group.result_place(body.sizes[2], int(u), int(column))
            made[int(ports[u, column])][int(elements[u, column])] = place
    for k, there in enumerate(program.places()):
        first.append(outputs.first[there] if there != NOWHERE else 0)
        tables.append(outputs.tables[there] if there != NOWHERE else tuple(made[k]) or None)
    return replace(outputs, first=tuple(first), tables=tuple(tables))


def beside(body: ColumnPart) -> int:
    """Return how many columns of a batch are computed side by side: functions of a library are for one width."""
    return 1 if any(Op(code) in ELEMENTARY for code in body.program.op.tolist()) else BESIDE


class LlvmColumn(LlvmBody):
    """The printer of the body of a column.

    Blocks are addressed by numbers, not vectors: a shared value is one number that is spread over all lanes, or a
    vector of the head that is repeated for every column of a turn; entries of columns are as far from each other as the
    layout says.
    """

    blocks = ("in", "column", "scratch", "out")

    def __init__(
        self, body: ColumnPart, chunks: Chunks, group: GroupLayout, width: int, head_width: int, element: str
    ) -> None:
        program = body.program
        outputs = Outputs((0,), (None,), _stores(program), (), body.sizes[2], body.sizes[2])
        super().__init__(program, chunks, outputs, width, element)
        self.shared_width = head_width
        self.pitch = group.beside * head_width
        item = 8 if element == "double" else 4
        self.alignment = item if group.spread else alignment(head_width, element)

    def functions(self, name: str) -> Iterator[str]:
        """Yield the lines of all chunks, `@<name>_<k>`."""
        bounds = self.chunks.bounds if len(self.chunks) else (len(self.program), len(self.program))
        for k, (first, stop) in enumerate(pairwise(bounds)):
            lines = self._chunk(f"{name}_{k}", range(first, stop))
            if stop == bounds[-1]:  # results that are shared values, entries of the right side, constants
                lines, self.lines = lines[:-2], []
                for i in self.leaves:
                    value = self.operand(i)
                    for place in self.stores[i]:
                        self.store(value, "out", place)
                lines += [*self.lines, "  ret void", "}"]
            yield from lines

    def load(self, i: int) -> str:
        """Read a shared value, an entry of the right side, or a value of an earlier chunk."""
        if self.op[i] != Op.INPUT:
            return self._vector("scratch", self.chunks.slot[i] * self.width)
        port, element = int(self.program.a[i]), int(self.program.b[i])
        if port == 1:
            return self._vector("column", element * self.pitch)
        width = self.shared_width
        if width == self.width:
            return self._vector("in", element * width)
        kind = vector(width, self.element)
        pointer = self.temporary(f"getelementptr {self.element}, ptr %in, i64 {element * width}")
        value = self.temporary(f"load {kind}, ptr {pointer}, align {self.alignment}")
        lanes = ", ".join(f"i32 {k % width}" for k in range(self.width))
        return self.temporary(f"shufflevector {kind} {value}, {kind} poison, <{self.width} x i32> <{lanes}>")

    def _vector(self, block: str, place: int) -> str:
        pointer = self.temporary(f"getelementptr {self.element}, ptr %{block}, i64 {place}")
        return self.temporary(f"load {self.kind}, ptr {pointer}, align {self.alignment}")

    def store(self, name: str, block: str, place: int) -> None:
        """Write a vector to its place in a block."""
        skip = place * (self.pitch if block == "out" else self.width)
        pointer = self.temporary(f"getelementptr {self.element}, ptr %{block}, i64 {skip}")
        self.lines.append(f"  store {self.kind} {name}, ptr {pointer}, align {self.alignment}")


def _stores(program: Program) -> dict[int, list[int]]:
    """Return the entries of the results that each value is."""
    stores: dict[int, list[int]] = {}
    for _, element, value in program.results():
        stores.setdefault(value, []).append(element)
    return stores


LOOP = """
define internal void @NAME_turns(ptr %in, ptr %scratch, ptr %out) #0 {
  %shared = getelementptr ELEM, ptr %out, i64 SHARED
  %right = getelementptr ELEM, ptr %out, i64 RIGHT
  %results = getelementptr ELEM, ptr %out, i64 RESULTS
  br label %turn
turn:
  %k = phi i64 [0, %0], [%k_next, %turn]
PLACES
  %column = getelementptr ELEM, ptr %right, i64 %right_skip
  %result = getelementptr ELEM, ptr %results, i64 %result_skip
  %mid_skip = mul i64 %k, MID_STEP
  %mid = getelementptr ELEM, ptr %scratch, i64 %mid_skip
  call void @NAME(ptr %shared, ptr %column, ptr %mid, ptr %result)
  %k_next = add i64 %k, 1
  %more = icmp slt i64 %k_next, TURNS
  br i1 %more, label %turn, label %done
done:
  ret void
}
"""

BY_TURN = """  %right_skip = mul i64 %k, RIGHT_STEP
  %result_skip = mul i64 %k, RESULT_STEP"""

BY_ENTRY = """  %begin = mul i64 %k, WIDTH
  %right_skip = call i64 @llvm.smin.i64(i64 %begin, i64 LAST)
  %result_skip = add i64 %right_skip, 0"""


def turns(body: ColumnPart, group: GroupLayout, width: int) -> int:
    """Return how often the functions of a body of this width are run for a block."""
    return -(-body.alike.count // width) if group.spread else group.columns // group.beside


def column_loop(
    name: str, body: ColumnPart, slots: int, group: GroupLayout, width: int, head_width: int, element: str
) -> str:
    """Return `@<name>_turns`, which runs the function `@<name>`, a chunk of a body, for every turn of a block.

    `width` is that of the body's vectors, `head_width` that of the head's; every turn has `slots` vectors of scratch.
    """
    _, right, results = body.sizes
    if group.spread:
        places = BY_ENTRY.replace("LAST", str(group.columns - width))
    else:
        places = BY_TURN.replace("RIGHT_STEP", str(right * width)).replace("RESULT_STEP", str(results * width))
    text = LOOP.replace("NAME", name).replace("PLACES", places).replace("TURNS", str(turns(body, group, width)))
    text = text.replace("SHARED", str(group.shared * head_width)).replace("RIGHT", str(group.right * head_width))
    text = text.replace("RESULTS", str(group.results * head_width)).replace("MID_STEP", str(slots * width))
    return text.replace("ELEM", element).replace("WIDTH", str(width))
