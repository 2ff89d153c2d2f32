"""Kernels in PyTorch: bit-equal values, PyTorch's own checks of operators and gradients, transformations, compile."""

from __future__ import annotations

import numpy as np
import pytest

import dalembert as da
from tests.bridges.models import batch, linkage

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.filterwarnings(  # its own
    "ignore:.*torch.jit.*:DeprecationWarning", "ignore:.*torch.jit.*:FutureWarning", "ignore::UserWarning"
)


def tensors(size, seed=3):
    return [torch.from_numpy(x) for x in batch(linkage(), size, seed)]


def operator(kernel):
    from dalembert.bridges.torch import KernelOperator

    return KernelOperator.of(kernel, torch).operator


@pytest.mark.parametrize("size", [None, 1, 7, 0])
def test_values_are_those_of_the_numpy_call(size):
    kernel = linkage().compile()
    x = tensors(size)
    for found, wanted in zip(kernel.to_torch()(*x), kernel(*(each.numpy() for each in x)), strict=True):
        assert tuple(found.shape) == wanted.shape
        np.testing.assert_array_equal(found.numpy(), wanted)


def test_no_copies(monkeypatch):
    """The kernel is called on the tensors' own memory, and writes that of the result."""
    kernel = linkage().compile("rate")
    f = kernel.to_torch()
    seen = []

    def spy(*inputs, out):
        seen.extend(x.ctypes.data for x in (*inputs, *out))
        return type(kernel).__call__(kernel, *inputs, out=out)

    from dalembert.bridges.torch import KernelOperator

    monkeypatch.setattr(
        KernelOperator.of(kernel, torch),
        "kernel",
        type("Spy", (), {"__call__": staticmethod(spy), "__getattr__": lambda _, name: getattr(kernel, name)})(),
    )
    q, v, _ = tensors(5)
    result = f(q, v)
    assert seen == [q.data_ptr(), v.data_ptr(), result.data_ptr()]


def test_operator_by_the_checker_of_torch():
    x = [each.requires_grad_() for each in tensors(3)]
    torch.library.opcheck(operator(linkage().compile()), (*x, torch.zeros(1, dtype=torch.float64)))


def test_gradients_by_the_checker_of_torch():
    """First and second order of a sample; a batch whose third input is shared; a verdict has none."""
    f = linkage().compile().to_torch()
    x = [each.requires_grad_() for each in tensors(None)]
    smooth = lambda *x: f(*x)[:2]  # noqa: E731
    assert torch.autograd.gradcheck(smooth, x)
    assert torch.autograd.gradgradcheck(smooth, x)
    q, v, _ = (each.requires_grad_() for each in tensors(2))
    assert torch.autograd.gradcheck(smooth, (q, v, x[2]))
    assert torch.autograd.grad(f(*x)[2].sum(), x[1], allow_unused=True) == (None,)


def test_transformations():
    """vmap bit for bit; jacrev, jacfwd and vmap of grad against the kernel's Jacobian."""
    kernel = linkage().compile()
    f = kernel.to_torch()
    q, v, tau = tensors(4)
    x = [each.numpy() for each in (q, v, tau)]
    found = torch.func.vmap(f, (0, 1, None))(q, v.T, tau[0])[0]
    np.testing.assert_array_equal(found.numpy(), kernel(x[0], x[1], x[2][0])[0])
    wanted = kernel.jacobian(["q"], ["acceleration"])(x[0], x[1], x[2], np.zeros(1))
    scale = 1e-11 * np.abs(wanted).max()
    for way in (torch.func.jacrev, torch.func.jacfwd):
        J = way(lambda q: f(q, v[0], tau[0])[0])(q[0])
        np.testing.assert_allclose(J.numpy(), wanted[0], rtol=0, atol=scale)
    slopes = torch.func.vmap(torch.func.grad(lambda q, v, tau: f(q, v, tau)[0].sum()))(q, v, tau)
    np.testing.assert_allclose(slopes.numpy(), wanted.sum(axis=1), rtol=0, atol=10 * scale)


def test_compiled_without_a_break():
    """`torch.compile` keeps one graph, forward and backward."""
    f = linkage().compile().to_torch()
    q, v, tau = tensors(4)

    def loss(q):
        return (2 * f(q, v, tau)[0]).sum()

    one, two = q.clone().requires_grad_(), q.clone().requires_grad_()
    loss(one).backward()
    torch.compile(loss, fullgraph=True, backend="aot_eager")(two).backward()
    np.testing.assert_allclose(one.grad.numpy(), two.grad.numpy(), rtol=1e-13)


def test_forward_mode_by_the_checker_of_torch():
    """Dual tensors outside of `torch.func`: tangents against differences, also forward over reverse."""
    f = linkage().compile().to_torch()
    x = [each.requires_grad_() for each in tensors(2)]
    smooth = lambda *x: f(*x)[:2]  # noqa: E731
    assert torch.autograd.gradcheck(smooth, x, check_forward_ad=True, check_batched_forward_grad=True)
    one = [each[0].detach().requires_grad_() for each in x]
    assert torch.autograd.gradgradcheck(smooth, one, check_fwd_over_rev=True, check_rev_over_rev=True)


@pytest.mark.parametrize("way", ["jvp", "jacfwd", "jacrev", "vmap"])
def test_transformations_that_are_compiled(way):
    """Inside `torch.compile` they have the numbers that they have outside; its graph breaks there."""
    f = linkage().compile().to_torch()
    q, v, tau = tensors(None)
    kinds = torch.func
    calls = {
        "jvp": lambda v: kinds.jvp(lambda v: f(q, v, tau)[0], (v,), (v,))[1],
        "jacfwd": lambda v: kinds.jacfwd(lambda v: f(q, v, tau)[0])(v),
        "jacrev": lambda v: kinds.jacrev(lambda v: f(q, v, tau)[0])(v),
        "vmap": lambda v: kinds.vmap(lambda v: f(q, v, tau)[0])(v[None]),
    }
    found = torch.compile(calls[way], backend="aot_eager")(v)
    assert found.abs().max() > 0
    np.testing.assert_array_equal(found.numpy(), calls[way](v).numpy())


def test_single_precision():
    kernel = linkage().compile(dtype="float32")
    x = [each.float() for each in tensors(5)]
    found = kernel.to_torch()(*x)
    np.testing.assert_array_equal(found[0].numpy(), kernel(*(each.numpy() for each in x))[0])


def test_misuse_is_named():
    f = linkage().compile().to_torch()
    q, v, tau = tensors(3)
    with pytest.raises(da.UnsupportedError, match="float32"):
        f(q.float(), v, tau)
    with pytest.raises(da.ShapeError, match="'v'"):
        f(q, v[:, :2], tau)
    with pytest.raises(da.ShapeError, match="agree"):
        f(q, v[:2], tau)
    with pytest.raises(da.ShapeError, match="takes 4 inputs"):
        f(q)
