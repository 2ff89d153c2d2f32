"""Derivatives against finite differences and against each other."""

from __future__ import annotations

import casadi as ca
import numpy as np
import pytest

from dalembert.errors import ModelError
from dalembert.kernel import Kernel

STEP = 1e-6
DIFFERENCE_ERROR = 1e-8  # of central differences with this step on values of order one


@pytest.fixture(params=["numpy", "cpu"])
def kernel(request):
    q, A = ca.SX.sym("q", 3), ca.SX.sym("A", 2, 3)
    function = ca.Function(
        "f", [q, A], [ca.sin(ca.mtimes(A, q)), ca.mtimes(A.T, A) * ca.exp(q[0])], ["q", "A"], ["y", "S"]
    )
    return Kernel(function, backend=request.param)


def point():
    rng = np.random.default_rng(0)
    return rng.normal(size=3), rng.normal(size=(2, 3))


def differences(kernel, which, values):
    """Return d outputs / d input by central differences, elements in C order."""
    columns = []
    for k in range(values[which].size):
        ends = []
        for sign in (1, -1):
            moved = [v.copy() for v in values]
            moved[which].flat[k] += sign * STEP
            ends.append(kernel(*moved))
        columns.append([(a - b).ravel() / (2 * STEP) for a, b in zip(*ends, strict=True)])
    return [np.stack(c, axis=1) for c in zip(*columns, strict=True)]


def test_jacobian_against_differences(kernel):
    values = point()
    blocks = kernel.jacobian()(*values)
    for which in (0, 1):
        for o, expected in enumerate(differences(kernel, which, values)):
            np.testing.assert_allclose(blocks[2 * o + which], expected, atol=DIFFERENCE_ERROR)


def test_jacobian_by_name_dense_and_sparse(kernel):
    values = point()
    dense = kernel.jacobian(inputs=["A"], outputs="S")
    assert [port.name for port in dense.outputs] == ["dS_dA"]
    sparse = kernel.jacobian(inputs="A", outputs=["S"], sparse=True)
    matrix = sparse(*values)
    assert matrix.format == "csc"
    assert matrix.nnz < matrix.shape[0] * matrix.shape[1]
    np.testing.assert_array_equal(matrix.toarray(), dense(*values))
    batch = sparse(np.stack([values[0]] * 5), values[1])
    assert len(batch) == 5
    np.testing.assert_array_equal(batch[4].toarray(), matrix.toarray())


def test_several_sparse_blocks(kernel):
    values = point()
    dense = kernel.jacobian()(*values)
    for matrix, expected in zip(kernel.jacobian(sparse=True)(*values), dense, strict=True):
        np.testing.assert_array_equal(matrix.toarray(), expected)


def test_jvp_and_vjp_are_products_with_the_jacobian(kernel):
    values = point()
    rng = np.random.default_rng(1)
    dq, dA, wy, wS = rng.normal(size=3), rng.normal(size=(2, 3)), rng.normal(size=2), rng.normal(size=(3, 3))
    y_q, y_A, S_q, S_A = kernel.jacobian()(*values)
    forward = kernel.jvp()(*values, dq, dA)
    np.testing.assert_allclose(forward[0], y_q @ dq + y_A @ dA.ravel(), rtol=1e-12)
    np.testing.assert_allclose(forward[1].ravel(), S_q @ dq + S_A @ dA.ravel(), rtol=1e-12, atol=1e-14)
    reverse = kernel.vjp()(*values, wy, wS)
    np.testing.assert_allclose(reverse[0], y_q.T @ wy + S_q.T @ wS.ravel(), rtol=1e-12)
    np.testing.assert_allclose(reverse[1].ravel(), y_A.T @ wy + S_A.T @ wS.ravel(), rtol=1e-12, atol=1e-14)
    only = kernel.vjp(inputs=["q"], outputs=["y"])
    np.testing.assert_allclose(only(*values, wy), y_q.T @ wy, rtol=1e-12)
    assert [port.name for port in only.inputs] == ["q", "A", "dy"]


def test_a_jacobian_without_nonzeros():
    x = ca.SX.sym("x", 2)
    kernel = Kernel(ca.Function("f", [x], [ca.SX([1.0, 2.0])], ["x"], ["y"]))
    assert kernel.jacobian(sparse=True)(np.ones(2)).nnz == 0
    assert not kernel.jacobian()(np.ones((3, 2))).any()


def test_options_pass_on():
    x = ca.SX.sym("x", 2)
    kernel = Kernel(ca.Function("f", [x], [x * x], ["x"], ["y"]), dtype="float32", threads=2)
    assert kernel.jacobian()(np.ones(2)).dtype == np.float32


def test_unknown_names(kernel):
    with pytest.raises(ModelError, match="input 'z' does not exist; there are 'q', 'A'"):
        kernel.jacobian(inputs=["z"])
    with pytest.raises(ModelError, match="output 'q'"):
        kernel.jvp(outputs=["q"])


def test_seeds_are_named_apart_from_inputs_of_the_same_name():
    """A function of q and dq, as robots have them: the seed of q is not the input dq."""
    q, dq = ca.SX.sym("q", 2), ca.SX.sym("dq", 2)
    kernel = Kernel(ca.Function("f", [q, dq], [ca.sin(q) * dq], ["q", "dq"], ["y"]))
    at, rate, seed = np.array([0.3, 0.4]), np.array([1.0, 2.0]), np.array([1.0, -1.0])
    forward = kernel.jvp(inputs=["q"])
    assert [port.name for port in forward.inputs] == ["q", "dq", "dq_"]
    np.testing.assert_allclose(forward(at, rate, seed), np.cos(at) * rate * seed, rtol=1e-15)
    with pytest.raises(ModelError, match="twice"):
        kernel.jacobian(inputs=["q", "q"])


def test_derivatives_of_a_kernel_by_name_are_traced_once():
    """Of a kernel that has a key, each derivative has one, too: another start with the same key builds nothing."""
    calls = []

    def build():
        calls.append(1)
        x, y = ca.SX.sym("x", 2), ca.SX.sym("y")
        return ca.Function("f", [x, y], [x[0] * x[1] * ca.sin(y), x * y], ["x", "y"], ["s", "p"])

    def starts():
        kernel = Kernel.cached(["a derivative by name", str(np.random.default_rng(0).random())], build)
        x, y = np.array([2.0, 3.0]), np.array([0.5])
        return [
            kernel.jvp(["x"], ["s"])(x, y, np.array([1.0, 0.0])),
            kernel.vjp(["y"], ["s"])(x, y, np.array([1.0])),
            kernel.vjp(["x"], ["s"])(x, y, np.array([1.0])),
            kernel.jacobian(["x"], ["p"])(x, y),
        ]

    first = starts()
    traced = len(calls)
    second = starts()
    assert len(calls) == traced
    for a, b in zip(first, second, strict=True):
        np.testing.assert_array_equal(a, b)
    np.testing.assert_allclose(first[0], 3 * np.sin(0.5))
    np.testing.assert_allclose(first[1], 6 * np.cos(0.5))
    np.testing.assert_allclose(first[2], [3 * np.sin(0.5), 2 * np.sin(0.5)])
    np.testing.assert_allclose(first[3], 0.5 * np.eye(2))
