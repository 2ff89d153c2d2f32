"""Kernels in JAX: bit-equal values, every transformation, derivatives by JAX's own checker and by Pinocchio."""

from __future__ import annotations

import numpy as np
import pytest

import dalembert as da
from tests.bridges.models import batch, four_bar, linkage

jax = pytest.importorskip("jax")
jnp = jax.numpy


@pytest.fixture(autouse=True)
def double_precision():
    before = jax.config.jax_enable_x64
    jax.config.update("jax_enable_x64", True)
    yield
    jax.config.update("jax_enable_x64", before)


ROUTES = ("ffi", "callback")


@pytest.mark.parametrize("route", ROUTES)
@pytest.mark.parametrize("size", [None, 1, 7, 0])
def test_values_are_those_of_the_numpy_call(route, size):
    kernel = linkage().compile()
    x = batch(linkage(), size)
    for found, wanted in zip(jax.jit(kernel.to_jax(route=route))(*x), kernel(*x), strict=True):
        assert found.shape == wanted.shape
        np.testing.assert_array_equal(np.asarray(found), wanted)


def test_working_memory_from_the_heap(monkeypatch):
    """Kernels that need more than a stack holds allocate: same numbers."""
    from dalembert.bridges.jax import handler

    monkeypatch.setattr(handler, "STACK_BYTES", 0)
    kernel = four_bar().compile("mass_matrix")
    q = four_bar().random(0, 5)
    np.testing.assert_array_equal(np.asarray(kernel.to_jax()(q)), kernel(q))


def test_vmap_is_a_batch():
    """Any axes, nested, with inputs that serve all samples: bit for bit the calls one by one."""
    kernel = linkage().compile()
    f = kernel.to_jax()
    q, v, tau = batch(linkage(), 4)
    grid = jax.jit(jax.vmap(jax.vmap(f, (None, 1, None)), (0, None, None)))(q, v.T, tau[0])
    for i in range(4):
        for j in range(4):
            np.testing.assert_array_equal(np.asarray(grid[0][i, j]), kernel(q[i], v[j], tau[0])[0])


@pytest.mark.parametrize("route", ROUTES)
def test_derivatives_by_the_checker_of_jax(route):
    """Forward and reverse, first and second order, against differences; a batch whose third input is shared."""
    from jax.test_util import check_grads

    f = linkage().compile().to_jax(route=route)
    q, v, tau = batch(linkage(), 3)
    smooth = lambda *x: f(*x)[:2]  # noqa: E731
    check_grads(smooth, (q[0], v[0], tau[0]), order=2 if route == "ffi" else 1, modes=["fwd", "rev"])
    check_grads(smooth, (q, v, tau[0]), order=1, modes=["fwd", "rev"])


def test_jacobians_both_ways_and_a_verdict_without_slope():
    f = linkage().compile().to_jax()
    q, v, tau = batch(linkage(), None)
    forward, reverse = (way(lambda q: f(q, v, tau)[0])(q) for way in (jax.jacfwd, jax.jacrev))
    np.testing.assert_allclose(forward, reverse, rtol=0, atol=1e-11 * np.abs(forward).max())
    assert not jax.grad(lambda v: f(q, v, tau)[2][0])(v).any()


def test_derivatives_against_pinocchio():
    """Go2 in the air: d(a)/d(q, v, tau) of ABA, the configuration along its tangent."""
    pin = pytest.importorskip("pinocchio")
    from tests.tree.robots import URDFS, robot

    mechanism, model, data = robot(next(file for file in URDFS if file.endswith("/go2.urdf")), "floating")
    f, step = mechanism.compile("aba").to_jax(), mechanism.compile("integrate").to_jax()
    q, v, tau = batch(mechanism, None)
    still = jnp.zeros(mechanism.nv)
    found = jax.jit(jax.jacfwd(lambda d, v, tau: f(step(q, d), v, tau), (0, 1, 2)))(still, v, tau)
    pin.computeABADerivatives(model, data, q, v, tau)
    for mine, theirs in zip(found, (data.ddq_dq, data.ddq_dv, data.Minv), strict=True):
        theirs = np.triu(theirs) + np.triu(theirs, 1).T if theirs is data.Minv else theirs
        np.testing.assert_allclose(mine, theirs, rtol=0, atol=1e-9 * np.abs(theirs).max())


def test_gradient_through_a_simulation():
    """Semi-implicit Euler in a scan; the gradient of its end by the start, against differences."""
    m = linkage()
    f, step = m.compile().to_jax(), m.compile("integrate").to_jax()
    q, v, _ = batch(m, None)

    @jax.jit
    def end(v):
        def one(state, _):
            q, v = state
            v = v + 1e-2 * f(q, v, jnp.zeros(m.nv))[0]
            return (step(q, 1e-2 * v), v), None

        return jax.lax.scan(one, (q, v), None, length=20)[0][0].sum()

    slope = jax.grad(end)(v)
    for i, e in enumerate(np.eye(m.nv)):
        h = 1e-6
        assert float(slope[i]) == pytest.approx(float(end(v + h * e) - end(v - h * e)) / (2 * h), rel=1e-6, abs=1e-8)


def test_single_precision():
    jax.config.update("jax_enable_x64", False)
    kernel = linkage().compile(dtype="float32")
    x = [np.float32(each) for each in batch(linkage(), 5)]
    found = jax.jit(kernel.to_jax())(*x)
    assert found[0].dtype == np.float32
    np.testing.assert_array_equal(np.asarray(found[0]), kernel(*x)[0])


def test_no_copies():
    """The handler reads the argument's memory and writes the result's: donated memory comes back at its address."""
    kernel = linkage().compile("rate")
    f = jax.jit(kernel.to_jax())
    q, v = (jnp.asarray(x) for x in batch(linkage(), 5)[:2])
    text = f.lower(q, v).compile().as_text()
    assert text.count(" custom-call(") == 1
    assert "copy" not in text


def test_misuse_is_named():
    kernel = linkage().compile()
    f = kernel.to_jax()
    q, v, tau = batch(linkage(), 3)
    with pytest.raises(da.ShapeError, match="'v'"):
        f(q, v[:, :2], tau)
    with pytest.raises(da.ShapeError, match="takes 4 inputs"):
        f(q)
    with pytest.raises(da.ShapeError, match="agree"):
        f(q, v[:2], tau)
    with pytest.raises(da.ModelError, match="'ffi'"):
        kernel.to_jax(route="fast")
    jax.config.update("jax_enable_x64", False)
    with pytest.raises(da.ModelError, match="jax_enable_x64"):
        f(q, v, tau)


def test_an_unknown_interface_falls_back_aloud(monkeypatch):
    from dalembert.bridges.jax import functions

    monkeypatch.setattr(functions, "interface_version", lambda folder: (1, 0))
    kernel = linkage().compile("rate")
    q, v, _ = batch(linkage(), 3)
    with pytest.warns(da.ModelWarning, match="XLA calls Python"):
        f = kernel.to_jax()
    np.testing.assert_array_equal(np.asarray(jax.jit(f)(q, v)), kernel(q, v))
    with pytest.raises(da.UnsupportedError, match="callback"):
        kernel.to_jax(route="ffi")
