"""How fast kernels are: compile time, one call, a batch; against CasADi's interpreter, its C code and NumPy.

    python benchmarks/kernel.py [--json FILE] [--quick]

Times are the best of several repeats in one run; ratios from one run are what counts. CasADi's C code is compiled with
gcc -O3 -march=native and called in three ways: from a loop in C ("C us"); through `casadi.external` and
`Function.buffer`, without conversions ("C call us"); and as Python users call it, with arrays ("C array us"). Its
interpreter is called through `Function.buffer`. "start s" is a fresh process that imports dalembert, takes the kernel
from the cache by name and calls it once; "cached s" the kernel alone, from its CasADi function.

Three limits. "/ limit": traced operations over what the core can issue, any mix, where a sine counts as one. "/ full":
the same, a function counted as the vector instructions of its usual path. "/ mult.": what the compiled program and its
functions need of the multipliers, which also do the fused operations, alone: no kernel of these operations can be
faster on this core, whatever its order ("bound x C" is what such a kernel would be against the C loop).
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import casadi as ca
import numpy as np

import sample_programs as robots
from dalembert.kernel import Kernel
from dalembert.kernel.llvm.compile import host
from dalembert.kernel.llvm.functions import library
from dalembert.kernel.program.program import ELEMENTARY, Op
from dalembert.kernel.report import peak_operations

BATCH = 1024
REPEATS = 40
LARGEST_FOR_GCC = 12_000  # instructions; gcc -O3 takes minutes beyond
MULTIPLIERS = ("mul", "fma", "fms", "fnma")
SIZES = (1_000, 10_000, 20_000, 100_000, 300_000)

START = """
import sys, time
import casadi as ca
import llvmlite.binding, numpy, dalembert.kernel
function = ca.Function.load(sys.argv[1])
start = time.perf_counter()
kernel = dalembert.kernel.Kernel(function)
print(time.perf_counter() - start, kernel.report().from_cache)
"""

BY_NAME = """
import sys, time
start = time.perf_counter()
import numpy, dalembert
def build():
    import casadi
    return casadi.Function.load(sys.argv[1])
kernel = dalembert.Kernel.cached(["benchmark", sys.argv[2]], build)
kernel(*[numpy.ones(port.shape) for port in kernel.inputs])
print(time.perf_counter() - start, kernel.engine.figures["from_cache"])
"""

LOOP = """
void loop(int n, const double** in, double* out, long long* iw, double* w) {
  const int sizes[] = {SIZES};
  const double* arg[64]; double* res[64];
  for (int k = 0; k < n; ++k) {
    for (int i = 0; i < INPUTS; ++i) arg[i] = in[i] + (long)k * sizes[i];
    res[0] = out + (long)k * OUTPUT;
    FUNCTION(arg, res, iw, w, 0);
  }
}
"""


def best(action: Callable[[], Any], repeats: int = REPEATS) -> float:
    """Return the shortest of several runs, in seconds."""
    shortest = float("inf")
    for _ in range(repeats):
        start = time.perf_counter()
        action()
        shortest = min(shortest, time.perf_counter() - start)
    return shortest


def inputs_of(function: ca.Function, samples: int) -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    return [rng.uniform(-1, 1, (samples, function.size1_in(i))) for i in range(function.n_in())]


def time_interpreter(function: ca.Function, count: int) -> float:
    """Return CasADi's evaluation of one sample, in seconds, called `count` times without conversions."""
    buffer, evaluate = function.buffer()
    held = [x[0].copy() for x in inputs_of(function, 1)]
    out = np.zeros(function.size1_out(0))
    for i, x in enumerate(held):
        buffer.set_arg(i, memoryview(x))
    buffer.set_res(0, memoryview(out))
    return best(lambda: [evaluate() for _ in range(count)]) / count


def time_c(function: ca.Function, folder: Path) -> tuple[float, float] | None:
    """Return seconds per call of CasADi's C code in a C loop, and gcc's compile time."""
    if shutil.which("gcc") is None or function.n_instructions() > LARGEST_FOR_GCC:
        return None
    sizes = [function.size1_in(i) for i in range(function.n_in())]
    loop = LOOP.replace("SIZES", ", ".join(map(str, sizes))).replace("INPUTS", str(len(sizes)))
    loop = loop.replace("OUTPUT", str(function.size1_out(0))).replace("FUNCTION", function.name())
    generator = ca.CodeGenerator("generated.c")
    generator.add(function)
    generator.generate(f"{folder}/")
    source = folder / "generated.c"
    source.write_text(source.read_text() + loop)
    start = time.perf_counter()
    command = ["gcc", "-O3", "-march=native", "-fPIC", "-shared", str(source), "-o", str(folder / "c.so"), "-lm"]
    subprocess.run(command, check=True)
    compile_seconds = time.perf_counter() - start
    run = ctypes.CDLL(str(folder / "c.so")).loop
    data = inputs_of(function, BATCH)
    out = np.zeros((BATCH, function.size1_out(0)))
    pointers = (ctypes.c_void_p * len(data))(*[x.ctypes.data for x in data])
    iw, w = np.zeros(function.sz_iw() + 1, np.int64), np.zeros(function.sz_w() + 1)
    address = [ctypes.c_void_p(x.ctypes.data) for x in (out, iw, w)]
    return best(lambda: run(BATCH, pointers, *address)) / BATCH, compile_seconds


def time_arrays(function: ca.Function, count: int = 20) -> float:
    """Return the time of one call with NumPy arrays, converted by CasADi on the way in and out."""
    held = [x[0].copy() for x in inputs_of(function, 1)]
    return best(lambda: [np.array(function(*held)) for _ in range(count)]) / count


def function_cost(name: str) -> tuple[int, int]:
    """Return the vector instructions of an elementary function's usual path, and those that need a multiplier."""
    lines, _ = library([Op.SIN, Op.COS] if name == "sincos" else [Op[name.upper()]], 8, "double")
    text = "\n".join(lines)
    body = text[text.index(f" @da_{name}(") :].partition("br i1")[0].partition("\n}")[0].splitlines()[1:]
    work = [
        line for line in body if not any(word in line for word in ("bitcast", "extractvalue", "insertvalue", "ret "))
    ]
    return len(work), sum("fmul" in line or "llvm.fma" in line for line in work)


def functions_of(operations: dict[str, int]) -> dict[str, int]:
    """Return how often each elementary function is called; a sine and a cosine of one value are one call."""
    calls = {kind: n for kind, n in operations.items() if Op[kind.upper()] in ELEMENTARY}
    pairs = min(calls.get("sin", 0), calls.get("cos", 0))
    for kind in ("sin", "cos"):
        if kind in calls:
            calls[kind] -= pairs
    return {kind: n for kind, n in {**calls, "sincos": pairs}.items() if n}


def time_batch(function: ca.Function, samples: int = BATCH, **options: Any) -> float:
    """Return seconds per sample of a batch, with `out=`."""
    kernel = Kernel(function, **options)
    data = [x.astype(kernel.options.dtype) for x in inputs_of(function, samples)]
    out = kernel(*data)
    return best(lambda: kernel(*data, out=out)) / samples


def time_single(kernel: Kernel, function: ca.Function) -> float:
    data = [x[0].copy() for x in inputs_of(function, 1)]
    count = 2000

    def run() -> None:
        for _ in range(count):
            kernel(*data)

    return best(run) / count


def time_start(function: ca.Function, folder: Path) -> float:
    """Return how long a kernel that is in the cache takes in a fresh process, imports not counted."""
    function.save(str(folder / "function.casadi"))
    return fresh_process([sys.executable, "-c", START, str(folder / "function.casadi")])


def time_start_by_name(function: ca.Function, folder: Path) -> float:
    """Return how long a fresh process takes from nothing to the first result, the kernel named by a key."""
    function.save(str(folder / "function.casadi"))
    command = [sys.executable, "-c", BY_NAME, str(folder / "function.casadi"), function.name()]
    subprocess.check_output(command)
    return fresh_process(command)


def fresh_process(command: list[str]) -> float:
    """Return the shortest time that a process prints, after a check that its kernel came from the cache."""
    times = []
    for _ in range(5):
        seconds, cached = subprocess.check_output(command, text=True).split()
        if cached != "True":
            raise RuntimeError("the kernel did not come from the cache")
        times.append(float(seconds))
    return min(times)


def measure(name: str, function: ca.Function, quick: bool) -> dict[str, Any]:
    """Return all figures of one function."""
    with tempfile.TemporaryDirectory() as text:
        folder = Path(text)
        os.environ["DALEMBERT_CACHE"] = str(folder / "cache")
        kernel = Kernel(function)
        report = kernel.report()
        row: dict[str, Any] = {"name": name, "instructions": function.n_instructions()}
        row |= {"traced": report.traced_operations, "compiled": sum(report.operations.values())}
        row |= {"live_before": report.live_before, "live_after": report.live_after, "width": report.width}
        row |= {"chunks": report.chunks, "code_bytes": report.code_bytes}
        row |= {"cold_s": report.start_seconds, "cached_s": time_start(function, folder)}
        row["start_s"] = time_start_by_name(function, folder)
        row |= {"lower_s": report.lower_seconds, "compile_s": report.compile_seconds}
        row["compile_us_per_operation"] = 1e6 * row["compile_s"] / row["compiled"]
        row["single_us"] = 1e6 * time_single(kernel, function)
        row["batch_us"] = 1e6 * time_batch(function)
        row["limit_us"] = 1e6 * row["traced"] / peak_operations()
        row["over_limit"] = row["batch_us"] / row["limit_us"]
        calls = {kind: (n, *function_cost(kind)) for kind, n in functions_of(report.operations).items()}
        row["full"] = row["traced"] + sum(n * work for n, work, _ in calls.values())
        row["over_full"] = row["batch_us"] / (1e6 * row["full"] / peak_operations())
        multiplications = sum(n for kind, n in report.operations.items() if kind in MULTIPLIERS)
        multiplications += sum(n * work for n, _, work in calls.values())
        row["bound_us"] = 1e6 * multiplications / peak_operations(only_fma=True)
        row["over_multipliers"] = row["batch_us"] / row["bound_us"]
        row["interpreter_us"] = 1e6 * time_interpreter(function, max(1, 200_000 // function.n_instructions()))
        row["times_interpreter"] = row["interpreter_us"] / row["batch_us"]
        if row["traced"] <= 25_000 and not quick:
            row["batch_w1_us"] = 1e6 * time_batch(function, width=1)
            row["batch_float32_us"] = 1e6 * time_batch(function, dtype="float32")
            row["batch_2_threads_us"] = 1e6 * time_batch(function, 16 * BATCH, threads=2)
            row["batch_1_thread_large_us"] = 1e6 * time_batch(function, 16 * BATCH)
            row["numpy_us"] = 1e6 * time_batch(function, backend="numpy")
        c = time_c(function, folder)
        if c is not None:
            row |= {"c_us": 1e6 * c[0], "gcc_s": c[1], "times_c": 1e6 * c[0] / row["batch_us"]}
            external = ca.external(function.name(), str(folder / "c.so"))
            row["c_call_us"] = 1e6 * time_interpreter(external, 1000)
            row["times_c_call"] = row["c_call_us"] / row["batch_us"]
            row["c_array_us"] = 1e6 * time_arrays(external)
            row["times_c_array"] = row["c_array_us"] / row["batch_us"]
            row["bound_times_c"] = row["c_us"] / row["bound_us"]
    return row


COLUMNS = (
    ("name", "function", "{}"),
    ("traced", "operations", "{}"),
    ("cold_s", "cold s", "{:.2f}"),
    ("cached_s", "cached s", "{:.3f}"),
    ("start_s", "start s", "{:.3f}"),
    ("single_us", "single us", "{:.2f}"),
    ("batch_us", "batch us", "{:.4f}"),
    ("batch_w1_us", "W=1 us", "{:.3f}"),
    ("batch_2_threads_us", "2 thr us", "{:.4f}"),
    ("c_us", "C us", "{:.3f}"),
    ("times_c", "x C", "{:.1f}"),
    ("c_call_us", "C call us", "{:.2f}"),
    ("times_c_call", "x C call", "{:.1f}"),
    ("c_array_us", "C array us", "{:.1f}"),
    ("times_c_array", "x C array", "{:.0f}"),
    ("interpreter_us", "VM us", "{:.1f}"),
    ("times_interpreter", "x VM", "{:.0f}"),
    ("numpy_us", "NumPy us", "{:.2f}"),
    ("over_limit", "/ limit", "{:.2f}"),
    ("over_full", "/ full", "{:.2f}"),
    ("over_multipliers", "/ mult.", "{:.2f}"),
    ("bound_times_c", "bound x C", "{:.1f}"),
)


def table(rows: list[dict[str, Any]]) -> str:
    lines = [[title for _, title, _ in COLUMNS]]
    lines += [[shape.format(row[key]) if key in row else "-" for key, _, shape in COLUMNS] for row in rows]
    widths = [max(len(line[k]) for line in lines) for k in range(len(COLUMNS))]
    return "\n".join("  ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True)) for line in lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write all figures here")
    parser.add_argument("--quick", action="store_true", help="robots and 1k operations only, fewer variants")
    arguments = parser.parse_args()
    rows = [measure(name, make(), arguments.quick) for name, make in robots.FUNCTIONS.items()]
    sizes = SIZES[:1] if arguments.quick else SIZES
    rows += [measure(f"synthetic {size // 1000}k", robots.synthetic(size), arguments.quick) for size in sizes]
    machine = {"cpu": host().cpu, "python": platform.python_version(), "casadi": ca.__version__, "batch": BATCH}
    machine["peak_gops"] = peak_operations() / 1e9
    print(f"{machine['cpu']}, peak {machine['peak_gops']:.1f} G operations/s on one core, batch of {BATCH}")
    print(table(rows))
    if arguments.json:
        arguments.json.write_text(json.dumps({"machine": machine, "rows": rows}, indent=2) + "\n")


if __name__ == "__main__":
    main()
