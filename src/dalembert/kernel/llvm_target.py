"""The machine that runs the code: its name, its features, how many samples a vector holds."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

# Bytes of a vector register by feature, widest first.
REGISTER_BYTES = (("avx512f", 64), ("avx", 32))
SMALLEST_REGISTER = 16  # SSE2, NEON


@dataclass(frozen=True)
class Target:
    """A processor: LLVM triple, processor name, features as LLVM spells them (`+avx2,-sse4a,...`)."""

    triple: str
    cpu: str
    features: str
    register_bytes: int

    @property
    def convention(self) -> str:
        """How functions on vectors are called: on x86-64 so that half of the vector registers keep their values."""
        return "intel_ocl_bicc" if self.triple.startswith("x86_64") else "ccc"

    def machine(self) -> Any:
        """Return LLVM's target machine."""
        llvm = binding()
        target = llvm.Target.from_triple(self.triple)
        return target.create_target_machine(
            cpu=self.cpu, features=self.features, opt=2, reloc="pic", codemodel="small", jit=True
        )


@cache
def binding() -> Any:
    """Return llvmlite's binding, with the native target initialized."""
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    return llvm


@cache
def host() -> Target:
    """Return the machine this runs on."""
    llvm = binding()
    features = llvm.get_host_cpu_features()
    size = next((n for name, n in REGISTER_BYTES if features.get(name)), SMALLEST_REGISTER)
    return Target(llvm.get_process_triple(), llvm.get_host_cpu_name(), features.flatten(), size)
