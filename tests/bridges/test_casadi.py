"""Kernels in CasADi: expressions, machine code, C; steps on the manifold; an optimum in closed form."""

from __future__ import annotations

import ctypes
import gc
import shutil
import subprocess

import casadi as ca
import numpy as np
import pytest

import dalembert as da
from dalembert.kernel import Kernel
from tests.bridges.models import batch, linkage
from tests.tree.mechanisms import MOVING, random_tree


@pytest.fixture(scope="module", name="linkage")
def made():
    return linkage()


def state(mechanism):
    return (*batch(mechanism, None), np.zeros(1))


def symbols(function):
    return [ca.MX.sym(function.name_in(i), *function.size_in(i)) for i in range(function.n_in())]


def test_expressions_without_the_verdict(linkage):
    kernel = linkage.compile()
    f = kernel.to_casadi()
    assert f.is_a("SXFunction")
    assert f.name_out() == ["acceleration", "multipliers"]
    assert f.n_instructions() < 0.9 * kernel.function.n_instructions()
    x = state(linkage)
    for found, wanted in zip(f(*x), kernel(*x)[:2], strict=True):
        np.testing.assert_allclose(np.array(found).ravel(), wanted, rtol=1e-10)
    assert kernel.to_casadi(["acceleration"]).n_out() == 1
    with pytest.raises(da.ModelError, match="does not exist"):
        kernel.to_casadi(["accelerations"])


def test_machine_code_in_a_graph(linkage):
    """Values bit for bit; Jacobian, products and a second derivative against those that CasADi takes of the SX."""
    kernel = linkage.compile()
    x = state(linkage)
    compiled, plain = kernel.to_casadi("acceleration", compiled=True), kernel.to_casadi("acceleration")
    assert compiled is kernel.to_casadi("acceleration", compiled=True)
    np.testing.assert_array_equal(np.array(compiled(*x)).ravel(), kernel(*x)[0])
    graphs = []
    for f in (compiled, plain):
        q, v, tau, t = symbols(f)
        a = f(q, v, tau, t)
        w = ca.DM(np.arange(1.0, linkage.nv + 1))
        results = [
            ca.jacobian(a, q),
            ca.jtimes(a, v, w),
            ca.jtimes(a, q, w, True),
            ca.hessian(ca.sumsqr(a), tau)[0],
        ]
        graphs.append(ca.Function("g", [q, v, tau, t], results))
    del compiled
    gc.collect()
    for found, wanted in zip(graphs[0](*x), graphs[1](*x), strict=True):
        wanted = np.array(ca.densify(wanted))
        np.testing.assert_allclose(np.array(ca.densify(found)), wanted, rtol=0, atol=1e-9 * np.abs(wanted).max())


def test_matrices_change_their_order():
    """CasADi counts by columns, kernels by rows: values and Jacobians of a matrix of a matrix."""
    X, y = ca.SX.sym("X", 2, 3), ca.SX.sym("y", 2)
    kernel = Kernel(
        ca.Function("f", [X, y], [ca.vertcat(X.T, ca.mtimes(X.T, y).T @ X.T) * y[0], y], ["X", "y"], ["Z", "w"])
    )
    rng = np.random.default_rng(0)
    at = [rng.normal(size=(2, 3)), rng.normal(size=2)]
    compiled, plain = kernel.to_casadi(compiled=True), kernel.to_casadi()
    for found, wanted in zip(compiled(*at), plain(*at), strict=True):
        np.testing.assert_allclose(np.array(found), np.array(wanted), rtol=1e-14)
    out = plain.call(at)
    for found, wanted in zip(compiled.jacobian().call([*at, *out]), plain.jacobian().call([*at, *out]), strict=True):
        np.testing.assert_allclose(np.array(found), np.array(ca.densify(wanted)), rtol=1e-13, atol=1e-14)


def test_single_precision_is_refused(linkage):
    with pytest.raises(da.UnsupportedError, match="double precision"):
        Kernel(linkage.compile("rate").function, dtype="float32").to_casadi(compiled=True)


@pytest.mark.skipif(shutil.which("gcc") is None, reason="needs gcc")
def test_exported_c_is_external(linkage, tmp_path):
    """`casadi.external` finds values and derivatives in the C that is written, without a warning of the compiler."""
    kernel = linkage.compile("jacobian", frame="b")
    export = kernel.export_c(tmp_path, name="frame", casadi=True)
    export.example.unlink()
    flags = ["-std=c99", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-O1", "-shared", "-fPIC"]
    files = sorted(map(str, tmp_path.glob("*.c")))
    subprocess.run(["gcc", *flags, *files, "-lm", "-o", tmp_path / "model.so"], check=True)
    f, plain = ca.external("frame_casadi", str(tmp_path / "model.so")), kernel.to_casadi()
    assert f.name_in() == ["q"]
    q = state(linkage)[0]
    np.testing.assert_allclose(np.array(f(q)), kernel(q), rtol=1e-12, atol=1e-15)
    np.testing.assert_allclose(
        np.array(f.jacobian()(q, f(q))), np.array(ca.densify(plain.jacobian()(q, f(q)))), rtol=1e-12, atol=1e-14
    )
    (x,) = symbols(f)
    for reverse, seed in ((False, ca.DM.ones(5)), (True, ca.DM.ones(6, linkage.nv))):
        one, two = (ca.Function("d", [x], [ca.jtimes(g(x), x, seed, reverse)])(q) for g in (f, plain))
        np.testing.assert_allclose(np.array(one), np.array(two), rtol=1e-12, atol=1e-14)


@pytest.mark.skipif(shutil.which("gcc") is None, reason="needs gcc")
def test_what_acados_generates_around_exported_c(linkage, tmp_path, monkeypatch):
    """Its C of x' = f(x, u) and of forward sensitivities, casadi_int an int, linked with the kernel's: as from SX."""
    kernel = linkage.compile("forward")
    kernel.export_c(tmp_path, name="arm", casadi=True).example.unlink()
    gcc = ["gcc", "-std=c99", "-Wall", "-Wextra", "-Werror", "-O1", "-shared", "-fPIC"]
    files = sorted(map(str, tmp_path.glob("*.c")))
    subprocess.run([*gcc, *files, "-lm", "-o", tmp_path / "arm.so"], check=True)
    compiled, plain = ca.external("arm_casadi", str(tmp_path / "arm.so")), kernel.to_casadi()
    nq, nv = linkage.nq, linkage.nv
    x, u, S = ca.MX.sym("x", nq + nv), ca.MX.sym("u", nv), ca.MX.sym("S", nq + nv, nq + nv)
    rate = linkage.compile("rate").to_casadi()
    functions = []
    for f in (compiled, plain):
        dx = ca.vertcat(rate(x[:nq], x[nq:]), f(x[:nq], x[nq:], u, 0)[0])
        vde = [ca.densify(each) for each in (dx, ca.jtimes(dx, x, S), ca.jtimes(dx, u, ca.MX.eye(nv)))]
        functions.append(ca.Function("vde", [x, S, u], vde))
    monkeypatch.chdir(tmp_path)
    functions[0].generate("vde.c", {"casadi_int": "int", "casadi_real": "double"})
    subprocess.run(
        [*gcc, "-Wno-unused-parameter", "-Dcasadi_int=int", "vde.c", *files, "-lm", "-o", "vde.so"], check=True
    )
    library = ctypes.CDLL(str(tmp_path / "vde.so"))
    sizes = [ctypes.c_int() for _ in range(4)]
    assert library.vde_work(*map(ctypes.byref, sizes)) == 0  # how acados allocates
    q, v, tau, _ = state(linkage)
    inputs = [np.concatenate([q, v]), np.asfortranarray(np.random.default_rng(0).normal(size=S.shape)), tau]
    results = [np.zeros(functions[0].size_out(k), order="F") for k in range(3)]
    arg = (ctypes.c_void_p * sizes[0].value)(*(each.ctypes.data for each in inputs))
    res = (ctypes.c_void_p * sizes[1].value)(*(each.ctypes.data for each in results))
    iw, w = (ctypes.c_int * (sizes[2].value + 1))(), (ctypes.c_double * (sizes[3].value + 1))()
    assert library.vde(arg, res, iw, w, 0) == 0
    for found, wanted in zip(results, functions[1](*inputs), strict=True):
        np.testing.assert_allclose(found, np.array(wanted), rtol=0, atol=1e-9 * np.abs(found).max())


@pytest.mark.parametrize("size", [1e-9, 1e-3, 0.9])
def test_steps_against_pinocchio(size):
    pin = pytest.importorskip("pinocchio")
    from tests.tree.robots import URDFS, robot

    mechanism, model, _ = robot(next(file for file in URDFS if file.endswith("/go2.urdf")), "floating")
    rng = np.random.default_rng(1)
    q, v = mechanism.random(rng), size * rng.normal(size=mechanism.nv)
    step, back, rate = (mechanism.compile(name) for name in ("integrate", "difference", "rate"))
    end = pin.integrate(model, q, v)
    np.testing.assert_allclose(step(q, v), end, rtol=0, atol=1e-14)
    np.testing.assert_allclose(back(q, end), pin.difference(model, q, end), rtol=0, atol=1e-14)
    _, dv = pin.dDifference(model, q, end)
    np.testing.assert_allclose(back.jacobian(["q1"])(q, end) @ rate(end, v), dv @ v, rtol=0, atol=1e-13 * size)


@pytest.mark.parametrize("kind", MOVING)
def test_steps_of_every_joint(kind):
    """The expressions are the manifold's own integrate, difference and rate; at v = 0 derivatives exist."""
    mechanism = random_tree([kind, "revolute"], seed=2, chain=True)
    rng = np.random.default_rng(4)
    q, v = mechanism.random(rng, 20), rng.normal(size=(20, mechanism.nv)) * np.logspace(-9, 0, 20)[:, None]
    step, back, rate = (mechanism.compile(name) for name in ("integrate", "difference", "rate"))
    np.testing.assert_allclose(step(q, v), mechanism.integrate(q, v), rtol=0, atol=4e-15)
    np.testing.assert_allclose(back(q, step(q, v)), mechanism.difference(q, step(q, v)), rtol=0, atol=4e-15)
    np.testing.assert_allclose(rate(q, v), mechanism.rate(q, v), rtol=0, atol=4e-16)
    still = np.zeros(mechanism.nv)
    np.testing.assert_allclose(step.jacobian(["v"])(q[0], still) @ v[-1], rate(q[0], v[-1]), rtol=0, atol=1e-14)
    np.testing.assert_allclose(back.jacobian(["q1"])(q[0], q[0]) @ rate(q[0], v[-1]), v[-1], rtol=0, atol=1e-14)


def test_optimum_in_closed_form():
    """Least squares of forces that move a lift by d in N steps: IPOPT on machine code finds the pseudo-inverse."""
    N, h, mass, d, g = 8, 0.1, 2.0, 0.5, 9.81
    b = da.Builder("lift", gravity=(0, 0, -g))
    b.body("cab", mass=mass, inertia=(1, 1, 1))
    b.joint("rail", "prismatic", parent="world", child="cab", axis=(0, 0, 1))
    acceleration = b.build().compile().to_casadi("acceleration", compiled=True)
    opti = ca.Opti()
    u, z, w = opti.variable(N), opti.variable(N + 1), opti.variable(N + 1)
    for k in range(N):
        a = acceleration(z[k], w[k], u[k], 0)
        opti.subject_to(z[k + 1] == z[k] + h * w[k] + h**2 / 2 * a)
        opti.subject_to(w[k + 1] == w[k] + h * a)
    opti.subject_to(ca.vertcat(z[0], w[0], z[N], w[N]) == ca.vertcat(0, 0, d, 0))
    opti.minimize(ca.sumsqr(u))
    opti.solver("ipopt", {"print_time": False}, {"print_level": 0, "sb": "yes", "tol": 1e-12})
    found = opti.solve().value(u)
    speed = np.full(N, h / mass)
    place = np.array([h**2 / mass * (N - k - 0.5) for k in range(N)])
    T = N * h
    wanted = np.linalg.pinv(np.array([place, speed])) @ [d + g * T**2 / 2, g * T]
    np.testing.assert_allclose(found, wanted, rtol=1e-9)
