"""How fast kernels are on a GPU: samples per second, registers, spills, share of peak, error; all sizes in one call.

    python benchmarks/gpu.py [--json FILE] [--tune] [--quick]

Robots in contact (`contacts`) and the quadruped without (`robots`), single and double precision, batches of 2^12 to
2^22 samples. Times are the median of repeated launches between events, inputs on the device. Errors are against the
NumPy twin in double precision on the same inputs: |y - y'| / |y'| of all outputs of a sample, median and worst of
CHECKED samples. The share of peak counts compiled operations, a fused one once; local memory is what a thread spills.
`--tune` compares ways to print the same program.
"""

from __future__ import annotations

import argparse
import json
import statistics
from pathlib import Path
from typing import Any

import casadi as ca
import cupy
import numpy as np

import contacts
import sample_programs as robots
from dalembert.kernel.cuda.engine import CudaEngine
from dalembert.kernel.cuda.printer import Tuning
from dalembert.kernel.engine import KernelOptions
from dalembert.kernel.numpy_twin import evaluate

SIZES = tuple(1 << k for k in range(12, 23, 2))
REPEATS = 9
CHECKED = 500
FUNCTIONS = {"quadruped, free": robots.quadruped, **contacts.FUNCTIONS}
TUNINGS = [
    Tuning(threads=threads, blocks=blocks, part=part, recompute=recompute, fetch=fetch)
    for threads, blocks in ((64, 4), (128, 2), (64, 6))
    for part in (2000, 3000, 4500, 100_000)
    for recompute in (0, 4, 8, 15)
    for fetch in (True, False)
]


def inputs_of(function: ca.Function, samples: int, dtype: str) -> list[Any]:
    rng = cupy.random.default_rng(0)
    return [
        (2 * rng.random((samples, function.size1_in(i)), dtype=np.float32) - 1).astype(dtype)
        for i in range(function.n_in())
    ]


def seconds(engine: CudaEngine, inputs: list[Any]) -> float:
    """Return the median time of a call, after a warm-up."""
    out, _ = engine.call(inputs, None, False)
    engine.call(inputs, out, True)
    times = []
    for _ in range(REPEATS):
        engine.call(inputs, out, True)
        times.append(engine.elapsed() or 0.0)
    return statistics.median(times)


def errors(engine: CudaEngine, inputs: list[Any]) -> tuple[float, float]:
    """Return the median and the worst relative error of a sample, against the NumPy twin."""
    rows = [x[:CHECKED].get().astype(np.float64) for x in inputs]
    expected = np.concatenate(evaluate(engine.program, rows), axis=1)
    outputs, status = engine.call(inputs, None, True)
    found = np.concatenate([y[:CHECKED].get().reshape(len(expected), -1) for y in outputs], axis=1)
    if int(status.sum()):
        raise RuntimeError(f"{int(status.sum())} samples are not finite")
    relative = np.linalg.norm(found - expected, axis=1) / np.linalg.norm(expected, axis=1)
    return float(np.median(relative)), float(relative.max())


def measure(
    name: str, function: ca.Function, dtype: str, sizes: tuple[int, ...], tuning: Tuning | None
) -> dict[str, Any]:
    """Return all figures of one function in one precision."""
    engine = CudaEngine(function, KernelOptions(dtype), tuning)
    figures, used = engine.figures, engine.source.tuning
    compiled = engine.program.operations
    row: dict[str, Any] = {"name": name, "dtype": dtype, "traced": figures["traced_operations"], "compiled": compiled}
    row |= {key: figures[key] for key in ("registers", "local_bytes", "shared_bytes", "compile_seconds")}
    row |= {"parts": figures["chunks"], "slots": figures["scratch_slots"]}
    row |= {
        "threads": used.threads,
        "blocks": used.blocks,
        "part": used.part,
        "recompute": used.recompute,
        "fetch": used.fetch,
    }
    inputs = inputs_of(function, sizes[-1], dtype)
    row["error"], row["worst"] = errors(engine, [x[: sizes[0]] for x in inputs])
    row["rates"] = {n: n / seconds(engine, [x[:n] for x in inputs]) for n in sizes}
    row["rate"] = max(row["rates"].values())
    row["share"] = row["rate"] * compiled / (engine.peak() or float("nan"))
    return row


COLUMNS = (
    ("name", "function", "{}"),
    ("dtype", "type", "{}"),
    ("traced", "traced", "{}"),
    ("compiled", "compiled", "{}"),
    ("parts", "parts", "{}"),
    ("slots", "slots", "{}"),
    ("threads", "thr", "{}"),
    ("blocks", "blk", "{}"),
    ("recompute", "again", "{}"),
    ("fetch", "fetch", "{}"),
    ("registers", "regs", "{}"),
    ("local_bytes", "local B", "{}"),
    ("shared_bytes", "shared B", "{}"),
    ("compile_seconds", "comp s", "{:.1f}"),
    ("error", "error", "{:.1e}"),
    ("worst", "worst", "{:.1e}"),
    ("rate", "samples/s", "{:.3g}"),
    ("share", "of peak", "{:.0%}"),
)


def table(rows: list[dict[str, Any]]) -> str:
    sizes = sorted({n for row in rows for n in row["rates"]})
    lines = [[title for _, title, _ in COLUMNS] + [f"2^{n.bit_length() - 1}" for n in sizes]]
    for row in rows:
        cells = [shape.format(row[key]) for key, _, shape in COLUMNS]
        lines.append(cells + [f"{row['rates'][n]:.2g}" if n in row["rates"] else "-" for n in sizes])
    widths = [max(len(line[k]) for line in lines) for k in range(len(lines[0]))]
    return "\n".join("  ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True)) for line in lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write all figures here")
    parser.add_argument("--tune", action="store_true", help="compare ways to print each program, at one batch size")
    parser.add_argument("--quick", action="store_true", help="the smallest function only")
    arguments = parser.parse_args()
    functions = dict(list(FUNCTIONS.items())[: 1 if arguments.quick else None])
    sizes = (1 << 19,) if arguments.tune else SIZES
    tunings: list[Tuning | None] = list(TUNINGS) if arguments.tune else [None]
    rows: list[dict[str, Any]] = []
    for name, make in functions.items():
        function = make()
        for dtype in ("float32", "float64"):
            for tuning in tunings:
                rows.append(measure(name, function, dtype, sizes, tuning))
                print(table(rows[-1:]).splitlines()[-1], flush=True)
    properties = cupy.cuda.runtime.getDeviceProperties(0)
    machine = {"device": properties["name"].decode(), "cupy": cupy.__version__}
    print(f"{machine['device']}, CuPy {machine['cupy']}\n{table(rows)}")
    if arguments.json:
        arguments.json.write_text(json.dumps({"machine": machine, "rows": rows}, indent=2) + "\n")


if __name__ == "__main__":
    main()
