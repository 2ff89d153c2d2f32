"""As much of CuPy as the CUDA engine uses, on the host: arrays are NumPy's, modules are compiled by g++ with a shim."""

from __future__ import annotations

import ctypes
import re
import subprocess
import tempfile
from pathlib import Path
from types import SimpleNamespace

import numpy as np

from dalembert.errors import DalembertError
from dalembert.kernel.cuda import engine
from dalembert.kernel.cuda.printer import Tuning

SHIM = Path(__file__).with_name("cuda_shim.h")
SIGNATURE = re.compile(r"__global__ void __launch_bounds__\(\d+, \d+\) (\w+)\((.*)\)\n")
SHARED_ITEMS = 48 * 1024 // 4


class Array(np.ndarray):
    """A NumPy array that tells its address the way CuPy does."""

    @property
    def data(self):
        return SimpleNamespace(ptr=self.ctypes.data)

    def get(self):
        return np.asarray(self)


class Function:
    """One `__global__` function; notes how it was launched."""

    num_regs, local_size_bytes = 1, 0

    def __init__(self, run):
        self.run = run
        self.launches: list[tuple[int, int, int]] = []

    def __call__(self, grid, block, words, shared_mem=0):
        assert shared_mem <= SHARED_ITEMS * 4
        self.launches.append((grid[0], block[0], shared_mem))
        values = (ctypes.c_int64 * len(words))(*[int(np.asarray(word).astype(np.int64)) for word in words])
        self.run(grid[0], block[0], values)


class RawModule:
    """CUDA text compiled for this machine."""

    def __init__(self, code, options=()):
        with tempfile.TemporaryDirectory() as text:
            source, library = Path(text) / "module.cpp", Path(text) / "module.so"
            source.write_text(f'#include "{SHIM}"\n{code}\n{"".join(map(_driver, SIGNATURE.findall(code)))}')
            flags = ["-std=c++17", "-O1", "-ffp-contract=off", "-march=native", "-w", "-shared", "-fPIC", "-pthread"]
            subprocess.run(["g++", *flags, str(source), "-o", str(library)], check=True)
            self.library = ctypes.CDLL(str(library))
        self.functions = {}

    def get_function(self, name):
        return self.functions.setdefault(name, Function(self.library[f"launch_{name}"]))


def _driver(signature: tuple[str, str]) -> str:
    """Return a function that takes the arguments as words."""
    name, parameters = signature
    kinds = [text.rpartition(" ")[0] + (" *" if "*" in text else "") for text in parameters.split(", ")]
    casts = [f"({kind})w[{k}]" for k, kind in enumerate(kinds)]
    body = f"shim_launch(blocks, threads, [=] {{ {name}({', '.join(casts)}); }});"
    tile = f"real tile[{SHARED_ITEMS}];\n" if name == "part_0" else ""
    arguments = "unsigned blocks, unsigned threads, const long long *w"
    return f'{tile}extern "C" void launch_{name}({arguments}) {{ {body} }}\n'


def _array(value, *arguments, **options):
    return np.array(value, *arguments, **options).view(Array)


def cupy() -> SimpleNamespace:
    """Return the module."""
    runtime = SimpleNamespace(
        getDeviceProperties=lambda device: {"multiProcessorCount": 1, "clockRate": 1_000_000},
    )
    event = SimpleNamespace(record=lambda stream: None, synchronize=lambda: None)
    cuda = SimpleNamespace(
        runtime=runtime,
        Event=lambda: event,
        Device=lambda: SimpleNamespace(id=0, compute_capability="90"),
        get_current_stream=lambda: None,
        get_elapsed_time=lambda begin, end: 1.0,
    )
    return SimpleNamespace(
        ndarray=Array,
        RawModule=RawModule,
        cuda=cuda,
        asarray=_array,
        ascontiguousarray=lambda x: np.ascontiguousarray(x).view(Array),
        empty=lambda shape, dtype: np.full(shape, 77, dtype).view(Array),
        empty_like=lambda x, order: np.empty_like(x, order=order).view(Array),
        zeros=lambda shape, dtype: np.zeros(shape, dtype).view(Array),
        may_share_memory=np.may_share_memory,
    )


def has_device() -> bool:
    """Say whether there is a device, with CuPy."""
    try:
        engine._cupy()
    except DalembertError:
        return False
    return True


def in_place_of_a_device(patch, arrays=None, **tuning) -> None:
    """Let the engine run on the host, programs being printed with these options."""
    arrays = arrays or cupy()
    patch.setattr(engine, "_cupy", lambda: arrays)
    patch.setattr(engine, "choose_tuning", lambda program, dtype: Tuning(**tuning))
