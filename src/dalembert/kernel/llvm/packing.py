"""Rows of samples to vectors and back: the transposition at both ends of a block."""

from __future__ import annotations

from dalembert.kernel.llvm.vector import alignment, vector

# ----------------------------------------------------------------------------------------------------------------------
# Contiguous rows of W samples to vectors and back, by squares that are transposed in registers.
#
# A row of n elements is covered by pieces of S columns, S a power of two: as many of W as fit, then one or two that end
# with the row and may overlap the piece before. A piece of W rows is S vectors, each of W/S rows side by side;
# transposing every S x S square of them, halving the blocks that swap, leaves one element of all samples in each
# vector.


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
        place = self.emit(f"getelementptr {self.element}, ptr {self.block}, i64 {begin}")
        source, target = (row, place) if move == "load" else (place, row)
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


# ----------------------------------------------------------------------------------------------------------------------
# Rows of samples to vectors and back, whatever the strides: the transposition at both ends of a block.
#
# `@pack_R_C(args, sample, last, to)` reads one input of R x C elements for W samples, `@unpack_R_C(args, sample, count,
# from)` writes one output for `count` samples. `args` holds the array's address and its strides in bytes (by sample,
# along the outer axis, along the inner axis). Three ways, chosen by the strides:
#
# - flat: the elements of a sample are contiguous and the block is full: squares, transposed in registers
#   (`packing.py`);
# - dense: the samples of an element are contiguous (Fortran order) and the block is full: whole vectors;
# - any: one element of one sample at a time (`@gather`, `@scatter`); spare lanes read the last sample, and are not
#   written.


HEAD = """
define internal void @NAME(ptr %args, i64 %sample, i64 %bound, ptr %block) noinline #0 {
  %base = load ptr, ptr %args
  %p1 = getelementptr i64, ptr %args, i64 1
  %by_sample = load i64, ptr %p1
  %p2 = getelementptr i64, ptr %args, i64 2
  %by_outer = load i64, ptr %p2
  %p3 = getelementptr i64, ptr %args, i64 3
  %by_inner = load i64, ptr %p3
  %skip = mul i64 %sample, %by_sample
  %q0 = getelementptr i8, ptr %base, i64 %skip
FULL
  %samples_close = icmp eq i64 %by_sample, BYTES
  %rows_close = icmp eq i64 %by_outer, ROW_BYTES
  %inner_close = icmp eq i64 %by_inner, BYTES
  %close = and i1 CLOSE
  %go_flat = and i1 %full, %close
  br i1 %go_flat, label %flat, label %other
other:
  %go_dense = and i1 %full, %samples_close
  br i1 %go_dense, label %dense, label %any
flat:
LANES
FLAT
  ret void
dense:
  br label %row
row:
  %r = phi i64 [0, %dense], [%r_next, %row_done]
  %row_skip = mul i64 %r, %by_outer
  %row_at = getelementptr i8, ptr %q0, i64 %row_skip
  %row_first = mul i64 %r, INNER
  br label %element
element:
  %c = phi i64 [0, %row], [%c_next, %element]
  %skip_inner = mul i64 %c, %by_inner
  %there = getelementptr i8, ptr %row_at, i64 %skip_inner
  %k = add i64 %row_first, %c
PLACE
  %here = getelementptr VEC, ptr %block, i64 %at
MOVE
  %c_next = add i64 %c, 1
  %c_more = icmp slt i64 %c_next, INNER
  br i1 %c_more, label %element, label %row_done
row_done:
  %r_next = add i64 %r, 1
  %r_more = icmp slt i64 %r_next, OUTER
  br i1 %r_more, label %row, label %done
any:
ANY
  ret void
done:
  ret void
}
"""

GATHER_FULL = """  %end = add i64 %sample, LAST
  %full = icmp sle i64 %end, %bound"""
SCATTER_FULL = "  %full = icmp eq i64 %bound, WIDTH"
GATHER_ANY = """  %left = sub i64 %bound, %sample
  %lanes = add i64 %left, 1
  %short = icmp slt i64 %lanes, WIDTH
  br i1 %short, label %spare, label %all
spare:
  call void @spread(ptr %args, i64 OUTER, i64 INNER, i64 %bound, i64 1, ptr %block)
  %alone = icmp eq i64 %left, 0
  br i1 %alone, label %done, label %all
all:
  %real = phi i64 [WIDTH, %any], [%left, %spare]
  call void @gather(ptr %args, i64 OUTER, i64 INNER, i64 %sample, i64 %real, ptr %block)"""
SCATTER_ANY = "  call void @scatter(ptr %args, i64 OUTER, i64 INNER, i64 %sample, i64 %bound, ptr %block)"
SCATTER_BY_TABLE = (
    "  call void @scatter_by_table(ptr %args, i64 OUTER, i64 INNER, i64 %sample, i64 %bound, ptr %block, ptr TABLE)"
)
PLAIN_PLACE = "  %at = add i64 %k, 0"
TABLE_PLACE = """  %entry = getelementptr i32, ptr TABLE, i64 %k
  %wanted = load i32, ptr %entry
  %at = zext i32 %wanted to i64"""
GATHER_MOVE = """  %moved = load VEC, ptr %there, align 1
  store VEC %moved, ptr %here, align ALIGNED"""
SCATTER_MOVE = """  %moved = load VEC, ptr %here, align ALIGNED
  store VEC %moved, ptr %there, align 1"""

ELEMENTWISE = """
define internal void @NAME(ptr %args, i64 %outer, i64 %inner, i64 %sample, i64 %lanes, ptr %blockTABLE) noinline #0 {
  %base = load ptr, ptr %args
  %p1 = getelementptr i64, ptr %args, i64 1
  %by_sample = load i64, ptr %p1
  %p2 = getelementptr i64, ptr %args, i64 2
  %by_outer = load i64, ptr %p2
  %p3 = getelementptr i64, ptr %args, i64 3
  %by_inner = load i64, ptr %p3
  br label %lane
lane:
  %l = phi i64 [0, %0], [%l_next, %lane_done]
  %number = add i64 %sample, %l
  %skip = mul i64 %number, %by_sample
  br label %row
row:
  %r = phi i64 [0, %lane], [%r_next, %row_done]
  %row_skip = mul i64 %r, %by_outer
  %row_at = add i64 %skip, %row_skip
  %row_first = mul i64 %r, %inner
  br label %element
element:
  %c = phi i64 [0, %row], [%c_next, %element]
  %skip_inner = mul i64 %c, %by_inner
  %offset = add i64 %row_at, %skip_inner
  %there = getelementptr i8, ptr %base, i64 %offset
  %k = add i64 %row_first, %c
PLACE
  %place = mul i64 %at, WIDTH
  %spot = add i64 %place, %l
  %here = getelementptr ELEM, ptr %block, i64 %spot
MOVE
  %c_next = add i64 %c, 1
  %c_more = icmp slt i64 %c_next, %inner
  br i1 %c_more, label %element, label %row_done
row_done:
  %r_next = add i64 %r, 1
  %r_more = icmp slt i64 %r_next, %outer
  br i1 %r_more, label %row, label %lane_done
lane_done:
  %l_next = add i64 %l, 1
  %l_more = icmp slt i64 %l_next, %lanes
  br i1 %l_more, label %lane, label %done
done:
  ret void
}
"""


def elementwise(width: int, element: str) -> str:
    """Return `@gather`, `@scatter`, `@scatter_by_table` and `@spread`, for any strides and blocks that are not full.

    All but the last move `lanes` samples; that one puts one sample into every lane.
    """
    moves = {
        "gather": "  %moved = load ELEM, ptr %there, align 1\n  store ELEM %moved, ptr %here",
        "scatter": "  %moved = load ELEM, ptr %here\n  store ELEM %moved, ptr %there, align 1",
        "spread": "  %moved = load ELEM, ptr %there, align 1\n  %one = insertelement VEC poison, ELEM %moved, i32 0\n"
        "  %all = shufflevector VEC %one, VEC poison, <WIDTH x i32> zeroinitializer\n"
        "  store VEC %all, ptr %here, align ALIGNED",
    }
    texts = [
        ELEMENTWISE.replace("NAME", name).replace("MOVE", move).replace("PLACE", PLAIN_PLACE).replace("TABLE", "")
        for name, move in moves.items()
    ]
    text = ELEMENTWISE.replace("NAME", "scatter_by_table").replace("MOVE", moves["scatter"])
    texts.append(text.replace("TABLE", ", ptr %table").replace("PLACE", TABLE_PLACE.replace("TABLE", "%table")))
    return _fill("".join(texts), width, element)


def pack(outer: int, inner: int, width: int, element: str) -> str:
    """Return `@pack_<outer>_<inner>`: lane l of vector k is element k of sample + l, or of the last sample."""
    text = HEAD.replace("NAME", f"pack_{outer}_{inner}").replace("FULL", GATHER_FULL).replace("MOVE", GATHER_MOVE)
    text = text.replace("ANY", GATHER_ANY).replace("PLACE", PLAIN_PLACE)
    return _port(text, Squares(width, element, "%block"), "load", outer, inner)


def unpack(outer: int, inner: int, width: int, element: str, name: str, table: str | None = None) -> str:
    """Return the function `name`, the way back; `table` is the name of the table of vectors, where there is one."""
    text = HEAD.replace("NAME", name).replace("FULL", SCATTER_FULL).replace("MOVE", SCATTER_MOVE)
    if table is None:
        text = text.replace("ANY", SCATTER_ANY).replace("PLACE", PLAIN_PLACE)
    else:
        text = text.replace("ANY", SCATTER_BY_TABLE).replace("PLACE", TABLE_PLACE).replace("TABLE", table)
    return _port(text, Squares(width, element, "%block", table), "store", outer, inner)


def _port(text: str, squares: Squares, move: str, outer: int, inner: int) -> str:
    """Fill in what depends on the shape of a port."""
    width, element = squares.width, squares.element
    cover(squares, outer * inner, move)
    lanes = [f"  %q{lane} = getelementptr i8, ptr %q{lane - 1}, i64 %by_sample" for lane in range(1, width)]
    item = 8 if element == "double" else 4
    text = text.replace("LANES", "\n".join(lanes)).replace("FLAT", "\n".join(squares.lines))
    close = ("true" if outer == 1 else "%rows_close", "true" if inner == 1 else "%inner_close")
    if outer * inner == 1:
        close = ("false", "true")  # one element is read as a whole vector, or by itself
    text = text.replace("ROW_BYTES", str(inner * item)).replace("CLOSE", ", ".join(close))
    return _fill(text.replace("OUTER", str(outer)).replace("INNER", str(inner)), width, element)


def _fill(text: str, width: int, element: str) -> str:
    """Put types into a template."""
    return (
        text.replace("LAST", str(width - 1))
        .replace("VEC", vector(width, element))
        .replace("ELEM", element)
        .replace("BYTES", "8" if element == "double" else "4")
        .replace("WIDTH", str(width))
        .replace("ALIGNED", str(alignment(width, element)))
    )
