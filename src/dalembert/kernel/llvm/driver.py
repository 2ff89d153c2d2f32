"""The loop around a program: read rows, run the chunks on W samples at a time, write rows.

`@run(args, first, stop, scratch)` evaluates samples first ... stop - 1. `args` is a table of 64-bit words:
for every input, then every output, its address and its strides in bytes (from sample to sample, along the
outer axis, along the inner axis); then the address of the status bytes, or 0. A stride of 0 broadcasts.

Samples are taken in tiles of T blocks of W: each chunk runs on all blocks of a tile before the next chunk
starts, so that its code is fetched from the second-level cache once per tile. The last block repeats the last
sample in its spare lanes, and does not write them.
"""

from __future__ import annotations

from dalembert.kernel.llvm.body import Outputs
from dalembert.kernel.llvm.packing import elementwise, pack, unpack
from dalembert.kernel.program.program import Port

WORDS_PER_PORT = 4
AT_THE_END = "AT_THE_END"
"""Stands for what `run` does before it returns, which the target decides (`compile.Target`)."""


def extents(port: Port) -> tuple[int, int]:
    """Return the lengths of a port's outer and inner axis; a vector has one row."""
    return (1, port.rows) if port.cols == 1 else (port.rows, port.cols)


def _block_functions(
    inputs: tuple[Port, ...], outputs: tuple[Port, ...], places: Outputs, width: int, kind: str
) -> str:
    """Return `@read` and `@write`: all inputs of a block, all outputs and the status of a block."""
    read = ["define internal void @read(ptr %args, i64 %sample, i64 %last, ptr %in) noinline #0 {"]
    write = [
        "define internal void @write(ptr %args, i64 %sample, i64 %stop, ptr %out) noinline #0 {",
        "  %left = sub i64 %stop, %sample",
        f"  %count = call i64 @llvm.smin.i64(i64 %left, i64 {width})",
    ]
    place = 0
    for k, port in enumerate(inputs):
        if port.size:
            read += _move(k, "pack_{}_{}".format(*extents(port)), kind, f"%in, i64 {place}", "%last")
        place += port.size
    for k, port in enumerate(outputs):
        if port.size:
            name = _unpacker(k, port, places)
            write += _move(len(inputs) + k, name, kind, f"%out, i64 {places.first[k]}", "%count")
    write.append(_status(len(inputs) + len(outputs), places.looked_at, width, kind))
    return "\n".join([*read, "  ret void", "}", *write, ""])


def _unpacker(k: int, port: Port, places: Outputs) -> str:
    """Return the name of the function that writes output k: one per shape, or its own where it has a table."""
    outer, inner = extents(port)
    return f"unpack_{outer}_{inner}" if places.tables[k] is None else f"unpack_port_{k}"


def _unpackers(outputs: tuple[Port, ...], places: Outputs, width: int, element: str) -> list[str]:
    """Return the functions that write outputs, and their tables."""
    texts: dict[str, str] = {}
    for k, port in enumerate(outputs):
        name, table = _unpacker(k, port, places), places.tables[k]
        if not port.size or name in texts:
            continue
        if table is None:
            texts[name] = unpack(*extents(port), width, element, name)
            continue
        numbers = ", ".join(f"i32 {number}" for number in table)
        texts[name] = f"@table_{k} = internal constant [{len(table)} x i32] [{numbers}]\n"
        texts[name] += unpack(*extents(port), width, element, name, f"@table_{k}")
    return list(texts.values())


def _move(k: int, name: str, kind: str, place: str, bound: str) -> list[str]:
    """Return the call that moves port k between its array and its vectors."""
    return [
        f"  %w{k} = getelementptr i64, ptr %args, i64 {WORDS_PER_PORT * k}",
        f"  %v{k} = getelementptr {kind}, ptr {place}",
        f"  call void @{name}(ptr %w{k}, i64 %sample, i64 {bound}, ptr %v{k})",
    ]


def _status(ports: int, elements: int, width: int, kind: str) -> str:
    """Return the end of `@write`: where the status is wanted, one byte per sample, 1 where an output is not finite."""
    mask = f"<{width} x i1>"
    return f"""
  %status_at = getelementptr i64, ptr %args, i64 {WORDS_PER_PORT * ports}
  %status = load ptr, ptr %status_at
  %silent = icmp eq ptr %status, null
  br i1 %silent, label %done, label %look
look:
  %k = phi i64 [0, %0], [%k_next, %next]
  %bad = phi {mask} [zeroinitializer, %0], [%worse, %next]
  %k_more = icmp slt i64 %k, {elements}
  br i1 %k_more, label %next, label %mark
next:
  %x_at = getelementptr {kind}, ptr %out, i64 %k
  %x = load {kind}, ptr %x_at, align 4
  %zero = fsub {kind} %x, %x
  %odd = fcmp uno {kind} %zero, zeroinitializer
  %worse = or {mask} %bad, %odd
  %k_next = add i64 %k, 1
  br label %look
mark:
  %bytes = zext {mask} %bad to <{width} x i8>
  %first = getelementptr i8, ptr %status, i64 %sample
  br label %lane
lane:
  %l = phi i64 [0, %mark], [%l_next, %lane]
  %byte = extractelement <{width} x i8> %bytes, i64 %l
  %target = getelementptr i8, ptr %first, i64 %l
  store i8 %byte, ptr %target
  %l_next = add i64 %l, 1
  %more = icmp slt i64 %l_next, %count
  br i1 %more, label %lane, label %done
done:
  ret void
}}"""


def _address(k: int, name: str, size: int, start: int, kind: str) -> str:
    """Return the lines that compute where block k's part of an area begins."""
    return f"""
  %{name}_skip{k} = mul i64 %b{k}, {size}
  %{name}_from{k} = add i64 %{name}_skip{k}, {start}
  %{name}{k} = getelementptr {kind}, ptr %scratch, i64 %{name}_from{k}"""


def _loop(k: int, body: str) -> str:
    """Return the k-th loop over the blocks of a tile; in its body, %b<k> is the number of the block."""
    return f"""
  br label %loop{k}
loop{k}:
  %b{k} = phi i64 [0, %{"entry" if k == 0 else f"after{k - 1}"}], [%b{k}_next, %loop{k}]
{body}
  %b{k}_next = add i64 %b{k}, 1
  %b{k}_more = icmp slt i64 %b{k}_next, %blocks
  br i1 %b{k}_more, label %loop{k}, label %after{k}
after{k}:"""


def _loops(chunks: list[str], sizes: tuple[int, int, int], tile: int, width: int, kind: str) -> list[str]:
    """Return the loops over a tile: read, one per chunk, write."""
    names = ("in", "mid", "out")
    begins = (0, sizes[0] * tile, (sizes[0] + sizes[1]) * tile)

    def areas(k: int) -> str:
        return "".join(_address(k, *area, kind) for area in zip(names, sizes, begins, strict=True))

    def sample(k: int) -> str:
        return f"\n  %s{k} = mul i64 %b{k}, {width}\n  %sample{k} = add i64 %s{k}, %base\n"

    read = "  call void @read(ptr %args, i64 %sample0, i64 %last, ptr %in0)"
    loops = [_loop(0, areas(0) + sample(0) + read)]
    for k, name in enumerate(chunks, start=1):
        call = f"\n  call void @{name}(ptr %in{k}, ptr %mid{k}, ptr %out{k})"
        loops.append(_loop(k, areas(k) + call))
    k = len(loops)
    write = f"  call void @write(ptr %args, i64 %sample{k}, i64 %stop, ptr %out{k})"
    return [*loops, _loop(k, areas(k) + sample(k) + write)]


def _clear(places: Outputs, sizes: tuple[int, int, int], tile: int, kind: str) -> str:
    """Return the lines that write the vectors of structural zeros, in every block of a tile."""
    begin = (sizes[0] + sizes[1]) * tile
    lines = []
    for block in range(tile if places.zeros else 0):
        for zero in places.zeros:
            name = f"%zero_{block}_{zero}"
            lines += [
                f"  {name} = getelementptr {kind}, ptr %scratch, i64 {begin + block * sizes[2] + zero}",
                f"  store {kind} zeroinitializer, ptr {name}, align 4",
            ]
    return "\n".join(lines)


def _run(chunks: list[str], sizes: tuple[int, int, int], places: Outputs, tile: int, width: int, kind: str) -> str:
    """Return `@run`. Structural zeros of the outputs are written once, at its start."""
    loops = _loops(chunks, sizes, tile, width, kind)
    return f"""
define void @run(ptr %args, i64 %first, i64 %stop, ptr %scratch) #0 {{
  %last = sub i64 %stop, 1
{_clear(places, sizes, tile, kind)}
  br label %entry
entry:
  %base = phi i64 [%first, %0], [%base_next, %after{len(loops) - 1}]
  %left = sub i64 %stop, %base
  %up = add i64 %left, {width - 1}
  %whole = sdiv i64 %up, {width}
  %blocks = call i64 @llvm.smin.i64(i64 %whole, i64 {tile})
{"".join(loops)}
  %base_next = add i64 %base, {tile * width}
  %more = icmp slt i64 %base_next, %stop
  br i1 %more, label %entry, label %done
done:
  {AT_THE_END}
  ret void
}}"""


def driver(
    inputs: tuple[Port, ...],
    outputs: tuple[Port, ...],
    places: Outputs,
    chunks: list[str],
    sizes: tuple[int, int, int],
    tile: int,
    width: int,
    element: str,
) -> str:
    """Return `@run` and the functions that read and write blocks.

    Parameters
    ----------
    places
        The output area.
    chunks
        Names of the functions to call, in order.
    sizes
        Vectors per block in the input area, the scratch area and the output area.
    tile
        Number of blocks T that pass through a chunk together.
    width, element
        Lanes W and their LLVM type.
    """
    kind = f"<{width} x {element}>"
    return "\n".join(
        [
            elementwise(width, element),
            *(pack(*shape, width, element) for shape in sorted({extents(port) for port in inputs if port.size})),
            *_unpackers(outputs, places, width, element),
            _block_functions(inputs, outputs, places, width, kind),
            _run(chunks, sizes, places, tile, width, kind),
        ]
    )
