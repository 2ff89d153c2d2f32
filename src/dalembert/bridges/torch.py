"""Kernels as PyTorch functions: operators of `torch.library` with shapes, gradients and vmap.

An operator is defined by its schema and implemented on tensors where they are: `tensor.numpy()` shares memory with the
tensor, so a kernel of the processor reads and writes it in place; a kernel of `backend="cuda"` takes it by DLPack, on
PyTorch's current stream. Its gradient is the operator of `kernel.vjp()`, which has a gradient in the same way. The
rule of `vmap` moves axes, since leading axes are a batch to a kernel.

Forward mode and transformations of `torch.func` take no rules of operators, only of an `autograd.Function`: there the
operator is called through one, which also has forward derivatives (`kernel.jvp()`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from dalembert.bridges.chosen import content_name, fitting, guest, leading, smooth_outputs, with_axis_first
from dalembert.errors import UnsupportedError

if TYPE_CHECKING:
    from dalembert.kernel import Kernel
    from dalembert.kernel.program.program import Port

SPACE = "dalembert"
DEVICES = {"cpu": "cpu", "c": "cpu", "numpy": "cpu", "cuda": "cuda"}


def to_torch(kernel: Kernel) -> Callable[..., Any]:
    """Return a kernel as a function of tensors; see `Kernel.to_torch`."""
    torch = guest("torch", "PyTorch", "torch", "to_torch")
    operator = KernelOperator.of(kernel, torch)
    spare = [torch.as_tensor(np.array(value)) for value in kernel.spare]
    device = DEVICES[kernel.backend]

    def call(*inputs: Any) -> Any:
        if len(inputs) + len(spare) == len(kernel.inputs):
            inputs = (*inputs, *(value.to(device) for value in spare))
        results = operator.apply(*operator.checked(inputs))
        return results[0] if len(results) == 1 else tuple(results)

    call.__name__ = call.__qualname__ = kernel.name
    call.__doc__ = f"{kernel!r}, the operator {operator.name}."
    return call


class KernelOperator:
    """The operator of a kernel, one for each content in a process."""

    _known: dict[str, KernelOperator] = {}  # noqa: RUF012 - operators live as long as the process

    def __init__(self, kernel: Kernel, torch: Any, name: str) -> None:
        self.kernel, self.torch, self.name = kernel, torch, f"{SPACE}::{name}"
        self.dtype = getattr(torch, kernel.options.dtype)
        self.device = DEVICES[kernel.backend]
        self.single = len(kernel.outputs) == 1
        library = torch.library
        inputs = ", ".join(f"Tensor x{k}" for k in range(len(kernel.inputs)))
        results = "Tensor" if self.single else f"({', '.join(['Tensor'] * len(kernel.outputs))})"
        library.define(self.name, f"({inputs}) -> {results}")
        library.impl(self.name, self.device, self._on_cpu if self.device == "cpu" else self._on_cuda)
        library.register_fake(self.name, self._fake)
        library.register_autograd(self.name, self._backward, setup_context=self._save)
        library.register_vmap(self.name, self._batched)
        self.operator = getattr(getattr(torch.ops, SPACE), name).default

    @classmethod
    def of(cls, kernel: Kernel, torch: Any) -> KernelOperator:
        """Return the operator of a kernel; the one that is there where the content is the same."""
        name = content_name(kernel)
        if name not in cls._known:
            cls._known[name] = cls(kernel, torch, name)
        return cls._known[name]

    def apply(self, *tensors: Any) -> tuple[Any, ...]:
        """Apply the operator to checked tensors."""
        if not self._transformed():
            results = self.operator(*tensors)
        elif self.torch.compiler.is_compiling():
            results = self.outside(*tensors)
        else:
            results = self.function.apply(*tensors)
        return (results,) if self.single else results

    def _transformed(self) -> bool:
        """Return whether a transformation of `torch.func` or forward mode is under way.

        An operator has no rule for either: PyTorch drops tangents at it without a word. Where it cannot be told, say
        yes.
        """
        level = getattr(self.torch.autograd.forward_ad, "_current_level", 0)  # -1 outside of forward mode
        functorch = self.torch._C._functorch  # the calls that torch.compile follows
        return (
            level >= 0 or not hasattr(functorch, "maybe_current_level") or functorch.maybe_current_level() is not None
        )

    @cached_property
    def outside(self) -> Callable[..., Any]:
        """The `autograd.Function` beside a graph of `torch.compile`, which cannot follow its forward derivatives."""
        return self.torch.compiler.disable(self.function.apply)

    @cached_property
    def function(self) -> Any:
        """The operator as `autograd.Function`, for `torch.func`."""
        outer = self

        class Function(self.torch.autograd.Function):
            @staticmethod
            def forward(*inputs: Any) -> Any:
                return outer.operator(*inputs)

            @staticmethod
            def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
                ctx.save_for_forward(*inputs)
                outer._save(ctx, inputs, output)

            @staticmethod
            def backward(ctx: Any, *gradients: Any) -> Any:
                return outer._backward(ctx, *gradients)

            @staticmethod
            def jvp(ctx: Any, *tangents: Any) -> Any:
                return outer._along(ctx, tangents)

            @staticmethod
            def vmap(info: Any, dims: Any, *inputs: Any) -> Any:
                return outer._batched(info, dims, *inputs)

        return Function

    @cached_property
    def along(self) -> KernelOperator:
        """The operator of the Jacobian times a vector."""
        names = [self.kernel.outputs[k].name for k in self.smooth]
        return KernelOperator.of(self.kernel.jvp(outputs=names), self.torch)

    def _along(self, ctx: Any, tangents: Sequence[Any]) -> Any:
        """Return the derivative along tangents; that of a verdict is zero."""
        inputs = ctx.saved_tensors
        seeds = [self.torch.zeros_like(x) if t is None else t for x, t in zip(inputs, tangents, strict=True)]
        rates = dict(zip(self.smooth, self.along.apply(*inputs, *seeds), strict=True))
        zeros = [inputs[0].new_zeros((*ctx.batch, *port.shape)) for port in self.kernel.outputs]
        results = tuple(rates.get(k, zero) for k, zero in enumerate(zeros))
        return results[0] if self.single else results

    @cached_property
    def smooth(self) -> list[int]:
        """Places of the outputs that have gradients."""
        return smooth_outputs(self.kernel, None)

    @cached_property
    def against(self) -> KernelOperator:
        """The operator of a vector times the Jacobian."""
        names = [self.kernel.outputs[k].name for k in self.smooth]
        return KernelOperator.of(self.kernel.vjp(outputs=names), self.torch)

    def checked(self, inputs: Sequence[Any]) -> list[Any]:
        """Return inputs as tensors of the kernel's type, each one sample or the whole batch."""

        def taken(x: Any, port: Port) -> Any:
            tensor = self.torch.as_tensor(x)
            if tensor.dtype != self.dtype or tensor.device.type != self.device:
                raise UnsupportedError(
                    f"input {port.name!r} of kernel {self.kernel.name!r} is {tensor.dtype} on {tensor.device.type!r}; "
                    f"the kernel computes in {self.dtype} on {self.device!r}: convert with .to(...), or compile with "
                    "dtype= and backend='cpu' or 'cuda'"
                )
            return tensor

        return fitting(self.kernel, inputs, taken, lambda x, shape: x.expand(shape))

    def _fake(self, *inputs: Any) -> Any:
        """Return empty results: shapes and types without values."""
        leads = (leading(x, port) for x, port in zip(inputs, self.kernel.inputs, strict=True))
        batch = next((lead for lead in leads if lead), ())
        results = tuple(inputs[0].new_empty((*batch, *port.shape), dtype=self.dtype) for port in self.kernel.outputs)
        return results[0] if self.single else results

    def _on_cpu(self, *inputs: Any) -> Any:
        """Evaluate on the tensors' own memory."""
        results = self._fake(*inputs)
        arrays = (results,) if self.single else results
        self.kernel(*(x.detach().numpy() for x in inputs), out=tuple(x.numpy() for x in arrays))
        return results

    def _on_cuda(self, *inputs: Any) -> Any:
        """Queue on PyTorch's stream of the tensors' device, on their own memory."""
        cupy = self.kernel.engine.cupy  # type: ignore[attr-defined]
        results = self._fake(*inputs)
        arrays = (results,) if self.single else results
        stream = self.torch.cuda.current_stream(inputs[0].device).cuda_stream
        with cupy.cuda.Device(inputs[0].device.index), cupy.cuda.ExternalStream(stream):
            self.kernel(*(x.detach() for x in inputs), out=tuple(x.detach() for x in arrays))
        return results

    def _save(self, ctx: Any, inputs: Any, output: Any) -> None:
        ctx.save_for_backward(*inputs)
        ctx.set_materialize_grads(False)
        leads = (leading(x, port) for x, port in zip(inputs, self.kernel.inputs, strict=True))
        ctx.batch = next((lead for lead in leads if lead), ())

    def _backward(self, ctx: Any, *gradients: Any) -> Any:
        """Return the gradients of the inputs; of one sample for all, the sum over the batch."""
        inputs = ctx.saved_tensors
        chosen = [gradients[k] for k in self.smooth]
        if all(gradient is None for gradient in chosen):
            return (None,) * len(inputs)
        seeds = [
            inputs[0].new_zeros((*ctx.batch, *self.kernel.outputs[k].shape)) if g is None else g.contiguous()
            for k, g in zip(self.smooth, chosen, strict=True)
        ]
        results = self.against.apply(*inputs, *seeds)
        totals = []
        for x, result in zip(inputs, results, strict=True):
            extra = result.ndim - x.ndim
            totals.append(result.sum(dim=tuple(range(extra))) if extra else result)
        return tuple(totals)

    def _batched(self, info: Any, dims: Sequence[Any], *inputs: Any) -> tuple[Any, Any]:
        """Put the new axis before the batch that is there; what has neither stays one sample for all."""
        full = with_axis_first(
            self.kernel, info.batch_size, inputs, dims, lambda x, d: x.movedim(d, 0), lambda x, shape: x.expand(shape)
        )
        outputs = self.apply(*full)
        results = outputs[0] if self.single else outputs
        return results, 0 if self.single else (0,) * len(results)
