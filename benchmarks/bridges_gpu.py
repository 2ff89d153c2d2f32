"""Arrays of the GPU in and out of kernels without copies, shown by their addresses: CuPy, PyTorch, JAX.

    python benchmarks/bridges_gpu.py

Needs a GPU of NVIDIA and the extra `gpu`. For each guest that is installed and sees the device: the kernel is called on
its arrays, a spy notes the addresses that the launch gets, and they are compared with those of the guest's arrays; the
numbers are compared with the processor's. PyTorch is run on a stream of its own.
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

import numpy as np

import dalembert as da

RTOL = 1e-12
"""GPU and processor round alike but for elementary functions, which differ in the last bits."""


def arm() -> da.Mechanism:
    b = da.Builder("arm")
    parent = "world"
    for k in range(3):
        b.body(f"link {k}", mass=1.0, center=(0, 0, -0.25), inertia=(0.02, 0.02, 0.001))
        b.joint(f"joint {k}", "revolute", parent, f"link {k}", axis=(0, 1, 0), position=(0, 0, -0.5 if k else 0))
        parent = f"link {k}"
    return b.build()


class Spy:
    """Notes the addresses of arrays that launches of an engine get."""

    def __init__(self, engine: Any) -> None:
        self.engine, self.launch, self.seen = engine, engine._launch, []
        engine._launch = self

    def __call__(self, arguments: Any, outputs: Any, status: Any) -> None:
        """Note addresses, and launch."""
        self.seen = [array.data.ptr for array in (*arguments.inputs, *outputs)]
        self.launch(arguments, outputs, status)


def report(label: str, spy: Spy, addresses: list[int], found: np.ndarray, wanted: np.ndarray) -> None:
    same = all(address in spy.seen for address in addresses)
    error = np.abs(found - wanted).max() / np.abs(wanted).max()
    print(f"{label:<10} {len(addresses)} arrays at their addresses: {same}; relative difference {error:.1e}")
    assert same, (addresses, spy.seen)
    assert error < RTOL


def inside(kernel: da.Kernel, plain: da.Kernel, jax: Any, arrays: list[Any], x: list[np.ndarray], spy: Spy) -> None:
    """Show the kernel inside jit: XLA's memory at the launch, vmap, and a Jacobian."""
    f = kernel.to_jax()
    jitted = jax.jit(f)
    result = jax.block_until_ready(jitted(*arrays))
    pointers = [a.unsafe_buffer_pointer() for a in (*arrays, result)]
    report("JAX, jit", spy, pointers, np.asarray(result), plain(*x))
    mapped = jax.jit(jax.vmap(f, (0, 0, None)))(*arrays[:2], arrays[2][0])
    print("           vmap:", np.abs(np.asarray(mapped) - plain(x[0], x[1], x[2][0])).max())
    slope = jax.jit(jax.vmap(jax.jacrev(f)))(*arrays)
    wanted = plain.jacobian(["q"])(*x)
    print("           jacrev:", np.abs(np.asarray(slope) - wanted).max() / np.abs(wanted).max())

    def loop(q: Any) -> Any:
        return jax.lax.scan(lambda q, _: (q + 1e-3 * f(q, arrays[1], arrays[2]), None), q, None, length=100)[0]

    print("           scan:", bool(jax.numpy.isfinite(jax.jit(loop)(arrays[0])).all()))


def main() -> None:
    robot = arm()
    rng = np.random.default_rng(0)
    x = [rng.normal(size=(4096, 3)) for _ in range(3)]
    plain = robot.compile("inverse", backend="numpy")
    wanted = plain(*x)
    kernel = robot.compile("inverse", backend="cuda")
    spy = Spy(kernel.engine)
    cupy = kernel.engine.cupy
    given = [cupy.asarray(each) for each in x]
    result = kernel(*given)
    report("CuPy", spy, [a.data.ptr for a in (*given, result)], cupy.asnumpy(result), wanted)
    if find_spec("torch"):
        import torch

        if torch.cuda.is_available():
            f = kernel.to_torch()
            stream = torch.cuda.Stream()
            with torch.cuda.stream(stream):
                tensors = [torch.from_numpy(each).cuda() for each in x]
                result = f(*tensors)
            stream.synchronize()
            report("PyTorch", spy, [t.data_ptr() for t in (*tensors, result)], result.cpu().numpy(), wanted)
            q = tensors[0].clone().requires_grad_()
            f(q, *tensors[1:]).sum().backward()
            slope = plain.jacobian(["q"])(*x).sum(axis=1)
            print("           gradient:", np.abs(q.grad.cpu().numpy() - slope).max() / np.abs(slope).max())
    if find_spec("jax"):
        import jax

        jax.config.update("jax_enable_x64", True)
        if jax.default_backend() == "gpu":
            arrays = [jax.numpy.asarray(each) for each in x]
            result = jax.numpy.from_dlpack(kernel(*arrays))
            pointers = [a.unsafe_buffer_pointer() for a in (*arrays, result)]
            report("JAX", spy, pointers, np.asarray(result), wanted)
            inside(kernel, plain, jax, arrays, x, spy)


if __name__ == "__main__":
    main()
