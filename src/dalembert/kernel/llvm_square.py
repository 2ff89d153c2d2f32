"""Contiguous rows of W samples to vectors and back, by squares that are transposed in registers.

A row of n elements is covered by pieces of S columns, S a power of two: as many of W as fit, then one or two that end
with the row and may overlap the piece before. A piece of W rows is S vectors, each of W/S rows side by side;
transposing every S x S square of them, halving the blocks that swap, leaves one element of all samples in each vector.
"""

from __future__ import annotations

from dalembert.kernel.llvm_vector import alignment, vector

UNROLLED = 4  # steps of columns; more of them are a loop
LEAST_STEP = 8  # columns in a turn of that loop
COPIED = 8  # columns of a piece where W is 1: nothing is transposed, rows are copied


def pieces(n: int, width: int) -> list[tuple[int, int]]:
    """Return (first column, columns) of the pieces that cover n columns; the columns are powers of two."""
    covered: list[tuple[int, int]] = []
    start = 0
    while start < n:
        size = min(width, _power_above(n - start))
        if size > n:
            size //= 2
        begin = min(start, n - size)
        covered.append((begin, size))
        start = begin + size
    return covered


def _power_above(n: int) -> int:
    """Return the smallest power of two that is not below n."""
    return 1 << (n - 1).bit_length()


class Squares:
    """The lines that move pieces between rows and vectors, inside one LLVM function.

    Rows begin at the pointers `%q0`, `%q1`, ... (one per sample of the block) plus the byte offset of the piece;
    `block` is the pointer to the vectors of the whole row; `table`, where given, the pointer to the number of the
    vector that each column is.
    """

    def __init__(self, width: int, element: str, block: str, table: str | None = None) -> None:
        self.width = width
        self.element = element
        self.kind = vector(width, element)
        self.item = 8 if element == "double" else 4
        self.aligned = alignment(width, element)
        self.block = block
        self.table = table
        self.lines: list[str] = []
        self.count = 0

    def emit(self, text: str) -> str:
        """Append an instruction with a fresh name."""
        self.count += 1
        name = f"%z{self.count}"
        self.lines.append(f"  {name} = {text}")
        return name

    def load(self, begin: int | str, size: int) -> None:
        """Read a piece of all rows into vectors."""
        narrow = self._narrow(size)
        rows = [self.emit(f"load {narrow}, ptr {self._row(lane, begin)}, align 1") for lane in range(self.width)]
        if size == 1:
            joined = "poison"
            for lane, row in enumerate(rows):
                joined = self.emit(f"insertelement {self.kind} {joined}, {self.element} {row}, i32 {lane}")
            turned = [joined]
        else:
            turned = self._transpose([self._join(rows[i::size], size) for i in range(size)], size)
        for k, name in enumerate(turned):
            self.lines.append(f"  store {self.kind} {name}, ptr {self._vector(begin, k)}, align {self.aligned}")

    def store(self, begin: int | str, size: int) -> None:
        """Write a piece of all rows from vectors."""
        vectors = [
            self.emit(f"load {self.kind}, ptr {self._vector(begin, k)}, align {self.aligned}") for k in range(size)
        ]
        turned = self._transpose(vectors, size)
        for lane in range(self.width):
            held, group = turned[lane % size], lane // size
            if size == 1:
                part = self.emit(f"extractelement {self.kind} {held}, i32 {lane}")
            elif size == self.width:
                part = held
            else:
                part = self._shuffle(held, held, list(range(group * size, (group + 1) * size)))
            self.lines.append(f"  store {self._narrow(size)} {part}, ptr {self._row(lane, begin)}, align 1")

    def copy(self, begin: int | str, size: int, move: str) -> None:
        """Move a piece of the only row: one element is one vector."""
        kind, row = self._narrow(size), self._row(0, begin)
        own = self.emit(f"getelementptr {self.element}, ptr {self.block}, i64 {begin}")
        source, target = (row, own) if move == "load" else (own, row)
        moved = self.emit(f"load {kind}, ptr {source}, align 1")
        self.lines.append(f"  store {kind} {moved}, ptr {target}, align 1")

    def _narrow(self, size: int) -> str:
        return self.element if size == 1 else vector(size, self.element)

    def _row(self, lane: int, begin: int | str) -> str:
        """Return a pointer into the row of a sample."""
        return self.emit(f"getelementptr {self.element}, ptr %q{lane}, i64 {begin}")

    def _vector(self, begin: int | str, k: int) -> str:
        """Return a pointer to the vector of column begin + k."""
        if self.table is not None:
            first = self.emit(f"getelementptr i32, ptr {self.table}, i64 {begin}")
            entry = self.emit(f"getelementptr i32, ptr {first}, i64 {k}")
            number = self.emit(f"load i32, ptr {entry}")
            return self.emit(f"getelementptr {self.kind}, ptr {self.block}, i32 {number}")
        if isinstance(begin, int):
            return self.emit(f"getelementptr {self.kind}, ptr {self.block}, i64 {begin + k}")
        first = self.emit(f"getelementptr {self.kind}, ptr {self.block}, i64 {begin}")
        return self.emit(f"getelementptr {self.kind}, ptr {first}, i64 {k}")

    def _shuffle(self, a: str, b: str, places: list[int], lanes: int | None = None) -> str:
        lanes = lanes or self.width
        kind = vector(lanes, self.element)
        mask = ", ".join(f"i32 {place}" for place in places)
        return self.emit(f"shufflevector {kind} {a}, {kind} {b}, <{len(places)} x i32> <{mask}>")

    def _join(self, rows: list[str], size: int) -> str:
        """Return short vectors side by side as one."""
        while len(rows) > 1:
            whole = list(range(2 * size))
            rows = [self._shuffle(a, b, whole, size) for a, b in zip(rows[::2], rows[1::2], strict=True)]
            size *= 2
        return rows[0]

    def _transpose(self, rows: list[str], size: int) -> list[str]:
        """Transpose every size x size square of `size` vectors."""
        distance = size // 2
        while distance:
            turned = list(rows)
            for i in range(size):
                if i & distance:
                    continue
                lower = [k if not k & distance else self.width + k - distance for k in range(self.width)]
                upper = [k + distance if not k & distance else self.width + k for k in range(self.width)]
                turned[i] = self._shuffle(rows[i], rows[i + distance], lower)
                turned[i + distance] = self._shuffle(rows[i], rows[i + distance], upper)
            rows = turned
            distance //= 2
        return rows


def cover(squares: Squares, n: int, move: str) -> None:
    """Append the lines that move (`load` or `store`) rows of n elements; the current block of code must be `%flat`."""
    copied = squares.width == 1 and squares.table is None
    unit = COPIED if copied else squares.width
    step = max(unit, LEAST_STEP)

    def piece(begin: int | str, size: int) -> None:
        if copied:
            squares.copy(begin, size, move)
        else:
            getattr(squares, move)(begin, size)

    parts = pieces(n, unit)
    whole = n // step
    if whole > UNROLLED:
        parts = parts[whole * step // unit :]
        squares.lines += [
            "  br label %squares",
            "squares:",
            "  %column = phi i64 [0, %flat], [%column_next, %squares]",
        ]
        for skip in range(0, step, unit):
            piece(squares.emit(f"add i64 %column, {skip}") if skip else "%column", unit)
        squares.lines += [
            f"  %column_next = add i64 %column, {step}",
            f"  %columns_left = icmp slt i64 %column_next, {whole * step}",
            "  br i1 %columns_left, label %squares, label %rest",
            "rest:",
        ]
    for begin, size in parts:
        piece(begin, size)
