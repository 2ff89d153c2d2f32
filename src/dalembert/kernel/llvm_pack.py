"""Rows of samples to vectors and back: the transposition at both ends of a block.

`@pack(args, outer, inner, sample, last, to)` reads one input of W samples, `@unpack(args, outer, inner, sample, count,
from)` writes one output of `count` samples; `args` holds the array's address and its strides in bytes (by sample, by
outer axis, by inner axis). Where the inner axis is contiguous, squares of W x W elements are read or written as whole
rows and transposed in registers; otherwise, and at the end of a row, one element of W samples at a time.
"""

from __future__ import annotations

from dalembert.kernel.llvm_vector import alignment, vector

STRIDES = """
  %base = load ptr, ptr %args
  %p1 = getelementptr i64, ptr %args, i64 1
  %by_sample = load i64, ptr %p1
  %p2 = getelementptr i64, ptr %args, i64 2
  %by_outer = load i64, ptr %p2
  %p3 = getelementptr i64, ptr %args, i64 3
  %by_inner = load i64, ptr %p3
  %dense = icmp eq i64 %by_inner, BYTES"""

NEXT = """
next:
  %step = phi i64 [WIDTH, %square], STEPS
  %jump = mul i64 %step, %by_inner
  %offset_next = add i64 %offset, %jump
  %c_next = add i64 %c, %step
  %more = icmp slt i64 %c_next, %inner
  br i1 %more, label %element, label %tail
tail:
  %r_next = add i64 %r, 1
  %again = icmp slt i64 %r_next, %outer
  br i1 %again, label %head, label %done
done:"""

PACK = """
define internal void @pack(ptr %args, i64 %outer, i64 %inner, i64 %sample, i64 %last, ptr %to) noinline #0 {STRIDES
LANES
  br label %head
head:
  %r = phi i64 [0, %0], [%r_next, %tail]
  %row = mul i64 %r, %by_outer
  br label %element
element:
  %c = phi i64 [0, %head], [%c_next, %next]
  %offset = phi i64 [%row, %head], [%offset_next, %next]
  %k0 = mul i64 %r, %inner
  %k = add i64 %k0, %c
  %target = getelementptr VEC, ptr %to, i64 %k
  %end = add i64 %c, WIDTH
  %room = icmp sle i64 %end, %inner
  %go = and i1 %room, %dense
  br i1 %go, label %square, label %one
square:
SQUARE
  br label %next
one:
LOADS
  store VEC %vLAST, ptr %target, align ALIGNED
  br label %next
NEXT
  ret void
}
"""

UNPACK = """
define internal MASK @unpack(ptr %args, i64 %outer, i64 %inner, i64 %sample, i64 %count, ptr %from) noinline #0 {STRIDES
  %full = icmp eq i64 %count, WIDTH
  %whole = and i1 %full, %dense
LANES
  br label %head
head:
  %r = phi i64 [0, %0], [%r_next, %tail]
  %bad0 = phi MASK [zeroinitializer, %0], [%bad_next, %tail]
  %row = mul i64 %r, %by_outer
  br label %element
element:
  %c = phi i64 [0, %head], [%c_next, %next]
  %bad = phi MASK [%bad0, %head], [%bad_next, %next]
  %offset = phi i64 [%row, %head], [%offset_next, %next]
  %k0 = mul i64 %r, %inner
  %k = add i64 %k0, %c
  %source = getelementptr VEC, ptr %from, i64 %k
  %end = add i64 %c, WIDTH
  %room = icmp sle i64 %end, %inner
  %go = and i1 %room, %whole
  br i1 %go, label %square, label %one
square:
SQUARE
  br label %next
one:
  %x = load VEC, ptr %source, align ALIGNED
  %zero = fsub VEC %x, %x
  %odd = fcmp uno VEC %zero, zeroinitializer
  %bad_one = or MASK %bad, %odd
  br i1 %full, label %lanes, label %some
lanes:
STORES
  br label %next
some:
  %l = phi i64 [0, %one], [%l_next, %some]
  %value_at = getelementptr ELEM, ptr %source, i64 %l
  %value = load ELEM, ptr %value_at
  %number = add i64 %sample, %l
  %skip = mul i64 %number, %by_sample
  %shift = add i64 %skip, %offset
  %place = getelementptr i8, ptr %base, i64 %shift
  store ELEM %value, ptr %place, align 1
  %l_next = add i64 %l, 1
  %l_more = icmp slt i64 %l_next, %count
  br i1 %l_more, label %some, label %next
NEXT
  ret MASK %bad_next
}
"""


def pack(width: int, element: str) -> str:
    """Return `@pack`: lane l of vector k is element k of sample + l, or of the last sample."""
    kind = vector(width, element)
    lanes, loads, rows = [], [], []
    before = "poison"
    for lane in range(width):
        lanes += [
            f"  %n{lane} = add i64 %sample, {lane}",
            f"  %m{lane} = call i64 @llvm.smin.i64(i64 %n{lane}, i64 %last)",
            f"  %j{lane} = mul i64 %m{lane}, %by_sample",
            f"  %q{lane} = getelementptr i8, ptr %base, i64 %j{lane}",
        ]
        loads += [
            f"  %a{lane} = getelementptr i8, ptr %q{lane}, i64 %offset",
            f"  %e{lane} = load {element}, ptr %a{lane}, align 1",
            f"  %v{lane} = insertelement {kind} {before}, {element} %e{lane}, i32 {lane}",
        ]
        rows += [
            f"  %ra{lane} = getelementptr i8, ptr %q{lane}, i64 %offset",
            f"  %s{lane} = load {kind}, ptr %ra{lane}, align 1",
        ]
        before = f"%v{lane}"
    turned, names = _transpose(width, kind, [f"%s{lane}" for lane in range(width)])
    for k, name in enumerate(names):
        turned += [
            f"  %t{k} = getelementptr {kind}, ptr %target, i64 {k}",
            f"  store {kind} {name}, ptr %t{k}, align {alignment(width, element)}",
        ]
    parts = {"LANES": lanes, "LOADS": loads, "SQUARE": rows + turned}
    return _fill(PACK, parts, width, element, "[1, %one]")


def unpack(width: int, element: str) -> str:
    """Return `@unpack`, whose result says which lanes hold a non-finite value."""
    kind, mask = vector(width, element), vector(width, "i1")
    lanes, stores, rows = [], [], []
    bad = "%bad"
    for lane in range(width):
        lanes += [
            f"  %n{lane} = add i64 %sample, {lane}",
            f"  %j{lane} = mul i64 %n{lane}, %by_sample",
            f"  %q{lane} = getelementptr i8, ptr %base, i64 %j{lane}",
        ]
        stores += [
            f"  %e{lane} = extractelement {kind} %x, i32 {lane}",
            f"  %a{lane} = getelementptr i8, ptr %q{lane}, i64 %offset",
            f"  store {element} %e{lane}, ptr %a{lane}, align 1",
        ]
        rows += [
            f"  %sa{lane} = getelementptr {kind}, ptr %source, i64 {lane}",
            f"  %s{lane} = load {kind}, ptr %sa{lane}, align {alignment(width, element)}",
            f"  %z{lane} = fsub {kind} %s{lane}, %s{lane}",
            f"  %o{lane} = fcmp uno {kind} %z{lane}, zeroinitializer",
            f"  %bad_{lane} = or {mask} {bad}, %o{lane}",
        ]
        bad = f"%bad_{lane}"
    turned, names = _transpose(width, kind, [f"%s{lane}" for lane in range(width)])
    for lane, name in enumerate(names):
        turned += [
            f"  %t{lane} = getelementptr i8, ptr %q{lane}, i64 %offset",
            f"  store {kind} {name}, ptr %t{lane}, align 1",
        ]
    parts = {"LANES": lanes, "STORES": stores, "SQUARE": rows + turned}
    text = _fill(UNPACK, parts, width, element, "[1, %lanes], [1, %some]")
    after = f"  %bad_next = phi {mask} [{bad}, %square], [%bad_one, %lanes], [%bad_one, %some]"
    return text.replace("  %jump = mul", after + "\n  %jump = mul")


def _transpose(width: int, kind: str, rows: list[str]) -> tuple[list[str], list[str]]:
    """Return lines that transpose `width` vectors, and the names of the results; blocks swap, halving in size."""
    lines: list[str] = []
    distance = width // 2
    while distance:
        turned = list(rows)
        for i in range(width):
            if i & distance:
                continue
            a, b = rows[i], rows[i + distance]
            lower = [k if not k & distance else width + k - distance for k in range(width)]
            upper = [k + distance if not k & distance else width + k for k in range(width)]
            for row, places in ((i, lower), (i + distance, upper)):
                turned[row] = f"%x{distance}_{row}"
                mask = ", ".join(f"i32 {place}" for place in places)
                lines.append(f"  {turned[row]} = shufflevector {kind} {a}, {kind} {b}, <{width} x i32> <{mask}>")
        rows = turned
        distance //= 2
    return lines, rows


def _fill(text: str, parts: dict[str, list[str]], width: int, element: str, steps: str) -> str:
    """Put lines and types into a template."""
    text = text.replace("STRIDES", STRIDES).replace("NEXT", NEXT.replace("STEPS", steps))
    for name, lines in parts.items():
        text = text.replace(name, "\n".join(lines))
    return (
        text.replace("MASK", vector(width, "i1"))
        .replace("LAST", str(width - 1))
        .replace("VEC", vector(width, element))
        .replace("ELEM", element)
        .replace("BYTES", "8" if element == "double" else "4")
        .replace("WIDTH", str(width))
        .replace("ALIGNED", str(alignment(width, element)))
    )
