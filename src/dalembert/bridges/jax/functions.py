"""Kernels as JAX functions: a primitive with rules for jit, vmap, forward and reverse derivatives.

A kernel K is a primitive F(K). Its derivative along tangents is F(K.jvp()), which is linear in the tangents; the
transpose of that is F(K.vjp()). Both are primitives like the first, so that derivatives of any order are there; each
kernel is compiled when JAX first asks for it. Leading axes are a batch to a kernel, so the rule of `vmap` moves axes
and calls nothing twice.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

from dalembert.bridges.chosen import content_name, fitting, guest, leading, smooth_outputs, with_axis_first
from dalembert.bridges.jax.cuda_handler import cuda_handler
from dalembert.bridges.jax.handler import KNOWN_MAJOR, SPOKEN_MINOR, handler, interface_version
from dalembert.errors import ModelError, UnsupportedError, warn_user

if TYPE_CHECKING:
    from dalembert.kernel import Kernel

ROUTES = ("auto", "ffi", "callback")
PLATFORMS = ("cpu", "cuda", "rocm", "tpu")


def to_jax(kernel: Kernel, route: str = "auto") -> Callable[..., Any]:
    """Return a kernel as a function of JAX arrays; see `Kernel.to_jax`."""
    jax = guest("jax", "JAX", "jax", "to_jax")
    if route not in ROUTES:
        raise ModelError(f"route={route!r} is none of {', '.join(map(repr, ROUTES))}")
    primitive = KernelPrimitive.of(kernel, _route(jax, kernel, route))

    def call(*inputs: Any) -> Any:
        if len(inputs) + len(kernel.spare) == len(kernel.inputs):
            inputs = (*inputs, *kernel.spare)
        results = primitive.bind(*_aligned(jax, kernel, inputs))
        return results[0] if len(results) == 1 else tuple(results)

    call.__name__ = call.__qualname__ = kernel.name
    call.__doc__ = f"{kernel!r}, called by XLA ({primitive.route})."
    return call


def _route(jax: Any, kernel: Kernel, route: str) -> str:
    """Return how XLA calls the kernel: its code, or Python with a word that it does."""
    version = interface_version(jax.ffi.include_dir()) if hasattr(jax, "ffi") else None
    compatible = version is not None and version[0] == KNOWN_MAJOR and version[1] >= SPOKEN_MINOR
    why = ""
    if not hasattr(kernel.engine, "single") and kernel.backend != "cuda":
        why = f"a kernel of backend {kernel.backend!r} is not one piece of machine code"
    elif not compatible:
        why = f"JAX {jax.__version__} calls foreign functions by an interface that is not known here ({version})"
    if route == "ffi" and why:
        raise UnsupportedError(f"{why}; route='callback' works, and is slower")
    if route == "auto" and why:
        warn_user(f"{why}: XLA calls Python instead, 15 to 90 times as slow for single samples (jax.pure_callback)")
    return "callback" if why or route == "callback" else "ffi"


def _aligned(jax: Any, kernel: Kernel, inputs: Sequence[Any]) -> list[Any]:
    """Return inputs as arrays of the kernel's type, each one sample or the whole batch."""
    dtype = np.dtype(kernel.options.dtype)
    if dtype == np.float64 and not jax.config.jax_enable_x64:
        raise ModelError(
            f"kernel {kernel.name!r} computes in double precision, which JAX has switched off: call "
            'jax.config.update("jax_enable_x64", True) before anything else, or compile(..., dtype="float32")'
        )
    jnp = jax.numpy
    return fitting(kernel, inputs, lambda x, _: jnp.asarray(x, dtype), jnp.broadcast_to)


class KernelPrimitive:
    """The primitive of a kernel, one for each content and route in a process."""

    _known: dict[str, KernelPrimitive] = {}  # noqa: RUF012 - names of primitives live as long as the process

    def __init__(self, kernel: Kernel, route: str, name: str) -> None:
        jax, ad, batching, mlir = (
            import_module(f"jax{part}")
            for part in ("", ".interpreters.ad", ".interpreters.batching", ".interpreters.mlir")
        )
        self.jax: Any = jax
        self.ad: Any = ad
        self.kernel, self.route, self.name = kernel, route, name
        self.dtype = np.dtype(kernel.options.dtype)
        self.linear_from: int | None = None
        self.transposed: Callable[[], KernelPrimitive] | None = None
        self.primitive = primitive = import_module("jax.extend.core").Primitive(name)
        primitive.multiple_results = True
        primitive.def_abstract_eval(self._abstract)
        compiled = jax.jit(lambda *x: primitive.bind(*x))
        primitive.def_impl(lambda *x: compiled(*x))
        batching.primitive_batchers[primitive] = self._batched
        ad.primitive_jvps[primitive] = self._jvp
        ad.primitive_transposes[primitive] = self._transpose
        if route == "callback":
            mlir.register_lowering(primitive, mlir.lower_fun(self._callback, multiple_results=True))
            return
        device = "cuda" if kernel.backend == "cuda" else "cpu"
        if device == "cuda":
            address, self.machine = cuda_handler(kernel)
        else:
            self.machine = handler(kernel)
            address = self.machine.address  # never freed: XLA keeps it
        jax.ffi.register_ffi_target(name, jax.ffi.pycapsule(address), platform="CUDA" if device == "cuda" else "cpu")
        mlir.register_lowering(primitive, jax.ffi.ffi_lowering(name), platform=device)
        for platform in PLATFORMS:
            if platform != device:
                mlir.register_lowering(primitive, self._refuse, platform=platform)

    @classmethod
    def of(cls, kernel: Kernel, route: str) -> KernelPrimitive:
        """Return the primitive of a kernel; the one that is there where the content is the same."""
        name = content_name(kernel, route)
        if name not in cls._known:
            cls._known[name] = cls(kernel, route, name)
        return cls._known[name]

    def bind(self, *arrays: Any) -> Any:
        """Apply the primitive."""
        return self.primitive.bind(*arrays)

    @cached_property
    def smooth(self) -> list[int]:
        """Places of the outputs that have derivatives."""
        return smooth_outputs(self.kernel, None)

    @cached_property
    def along(self) -> KernelPrimitive:
        """The derivative along tangents, linear in them, with its transpose."""
        return self._product(True)

    @cached_property
    def against(self) -> KernelPrimitive:
        """The derivative against cotangents, linear in them, with its transpose."""
        return self._product(False)

    def _product(self, forward: bool) -> KernelPrimitive:
        names = [self.kernel.outputs[k].name for k in self.smooth]
        kernel = (self.kernel.jvp if forward else self.kernel.vjp)(outputs=names)
        product = KernelPrimitive.of(kernel, self.route)
        product.linear_from = len(self.kernel.inputs)
        product.transposed = (lambda: self.against) if forward else (lambda: self.along)
        return product

    def _abstract(self, *avals: Any) -> list[Any]:
        shaped = import_module("jax.core").ShapedArray
        leads = (leading(aval, port) for aval, port in zip(avals, self.kernel.inputs, strict=True))
        batch = next((lead for lead in leads if lead), ())
        return [shaped(batch + port.shape, self.dtype) for port in self.kernel.outputs]

    def _batched(self, args: Sequence[Any], dims: Sequence[Any]) -> tuple[Any, list[int]]:
        """Put the new axis before the batch that is there; what has neither stays one sample for all."""
        jnp = self.jax.numpy
        size = next(x.shape[d] for x, d in zip(args, dims, strict=True) if d is not None)
        full = with_axis_first(self.kernel, size, args, dims, lambda x, d: jnp.moveaxis(x, d, 0), jnp.broadcast_to)
        results = self.bind(*full)
        return results, [0] * len(results)

    def _jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, list[Any]]:
        """Return values and their derivative along tangents; that of a verdict is zero."""
        jnp = self.jax.numpy
        results = self.bind(*primals)
        seeds = [jnp.zeros_like(x) if type(t) is self.ad.Zero else t for x, t in zip(primals, tangents, strict=True)]
        rates = dict(zip(self.smooth, self.along.bind(*primals, *seeds), strict=True))
        return results, [rates.get(k, jnp.zeros_like(x)) for k, x in enumerate(results)]

    def _transpose(self, cotangents: Sequence[Any], *args: Any) -> list[Any]:
        """Return the cotangents of the linear inputs: of one sample for all, the sum over the batch."""
        n, ad = self.linear_from, self.ad
        if n is None or self.transposed is None or any(ad.is_undefined_primal(x) for x in args[:n]):
            raise UnsupportedError(f"{self.kernel!r} is not linear: JAX cannot transpose it")
        jnp = self.jax.numpy
        seeds = [jnp.zeros(c.aval.shape, self.dtype) if type(c) is ad.Zero else c for c in cotangents]
        results = self.transposed().bind(*args[:n], *seeds)
        totals: list[Any] = [None] * n
        for x, result in zip(args[n:], results, strict=True):
            if not ad.is_undefined_primal(x):
                totals.append(None)
                continue
            extra = result.ndim - len(x.aval.shape)
            totals.append(result.sum(axis=tuple(range(extra))) if extra else result)
        return totals

    def _callback(self, *arrays: Any) -> Any:
        """Call Python from XLA."""
        shapes = [self.jax.ShapeDtypeStruct(aval.shape, aval.dtype) for aval in self._abstract(*arrays)]

        def host(*values: Any) -> tuple[Any, ...]:
            return self.kernel.call(*(np.asarray(value) for value in values)).outputs

        return self.jax.pure_callback(host, tuple(shapes), *arrays)

    def _refuse(self, *_: Any, **__: Any) -> Any:
        raise UnsupportedError(
            f"{self.kernel!r} does not run on this platform of JAX: put its arrays where it does (jax.device_put), "
            "compile it with backend='cpu' or 'cuda', or take to_jax(route='callback'), which copies"
        )
