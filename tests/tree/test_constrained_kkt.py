"""Constrained forward dynamics by every route against `kkt`: dense matrices in numbers, all kinds of constraints."""

from __future__ import annotations

from dataclasses import replace

import casadi as ca
import numpy as np
import pytest

import dalembert as da
from dalembert.tree.block import constrained
from dalembert.tree.routes.route_table import ROUTES
from tests.model.test_constraints import EXAMPLES
from tests.tree.closed import Traced, branched, hopper, numeric, routes
from tests.tree.robots import ROBOTS

HEIGHT = da.Expression(lambda k: k.frame("f3").position[2] - 0.1 * ca.sin(k.t), name="height")
SLIP = da.Expression(lambda k: k.frame("f3").velocity[0] - k.t * k.v[1], name="slip", velocity=True)
STABLE = [replace(EXAMPLES[0], stabilize=5.0), replace(EXAMPLES[3], stabilize=(3.0, 2.0))]
HELD = [da.Point("f4"), da.Weld("f5"), da.Revolute("f4", axis=(1, 2, 3))]


def state(mechanism, seed=0):
    rng = np.random.default_rng(seed)
    return mechanism.random(rng), rng.standard_normal(mechanism.nv), 5 * rng.standard_normal(mechanism.nv), 0.7


def assert_same(found, exact, rtol=1e-9):
    a, lam, status = found
    np.testing.assert_allclose(a, exact.acceleration, rtol=0, atol=rtol * np.abs(exact.acceleration).max())
    np.testing.assert_allclose(lam, exact.multipliers, rtol=0, atol=rtol * np.abs(exact.multipliers).max())
    assert status == exact.status


@pytest.mark.parametrize("example", [*EXAMPLES, HEIGHT, SLIP, *STABLE, *HELD], ids=lambda x: f"{x.kind} {x.label}")
def test_every_kind_by_every_route(example):
    mechanism = branched().constrain(example)
    exact = Traced(mechanism).solve(*state(mechanism))
    assert exact.status == da.Status.UNIQUE
    for solve in routes(mechanism).values():
        assert_same(solve(*state(mechanism)), exact)


def test_several_at_once():
    """A contact, a loop joint, a coupling and a drive together."""
    mechanism = branched().constrain(*[replace(EXAMPLES[i], name=f"c{i}") for i in (1, 7, 13, 14)])
    numbers, found = Traced(mechanism), routes(mechanism)
    for seed in (0, 1):
        exact = numbers.solve(*state(mechanism, seed))
        for solve in found.values():
            assert_same(solve(*state(mechanism, seed)), exact)


@pytest.mark.parametrize("metric", [None, (1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 0.1, 0.2, 0.3)])
def test_redundant_rows_in_a_metric(metric):
    """A weld and a ball at one place: three rows too many, the least multipliers in the user's metric."""
    mechanism = branched().constrain(da.Weld("f3"), da.Point("f3", name="again"))
    numbers, found = Traced(mechanism), routes(mechanism, metric=metric)
    for seed in range(3):
        exact = numbers.solve(*state(mechanism, seed), metric=metric)
        assert exact.status == da.Status.REDUNDANT
        for solve in found.values():
            assert_same(solve(*state(mechanism, seed)), exact, rtol=1e-8)


FILES = [
    ("panda_description/urdf/panda.urdf", "fixed", da.Point("panda_hand_tcp")),
    ("pr2_description/urdf/pr2.urdf", "fixed", da.Weld("l_gripper_tool_frame")),
]


@pytest.mark.parametrize(("file", "base", "contact"), FILES, ids=[file.split("/")[-1] for file, *_ in FILES])
def test_couplings_of_files(file, base, contact):
    """Mimic joints are rows like others; dampers and springs of the file act."""
    mechanism = da.load(ROBOTS / file, base=base, allow_unphysical=True)
    assert mechanism.couplings
    mechanism = mechanism.constrain(contact)
    exact = Traced(mechanism).solve(*state(mechanism))
    assert_same(numeric(constrained.forward(mechanism))(*state(mechanism)), exact)
    A = Traced(mechanism).A(mechanism.neutral())
    for row, coupling in zip(A, mechanism.couplings, strict=False):
        assert row @ exact.acceleration == pytest.approx(0, abs=1e-9 * np.abs(exact.acceleration).max())
        assert mechanism.names[list(mechanism.couplings).index(coupling)] == coupling.name


DRIVEN = (da.Point("foot"), da.Servo("knee", lambda t: ca.cos(t)))


@pytest.mark.parametrize("route", ROUTES)
def test_compiled_batches(route):
    mechanism = hopper(0.5).constrain(*DRIVEN)
    numbers = Traced(mechanism)
    q, v, tau, t = (np.array(x) for x in zip(*(state(mechanism, seed) for seed in range(6)), strict=True))
    a, lam, status = mechanism.compile("forward", route=route)(q, v, tau, t[:, None])
    for i in range(6):
        assert_same((a[i], lam[i], status[i, 0]), numbers.solve(q[i], v[i], tau[i], t[i]))


@pytest.mark.parametrize("constraints", [DRIVEN, (da.Weld("torso"), da.Point("torso", name="again"))])
def test_single_precision(constraints):
    """Half the digits; redundant rows keep enough of them."""
    mechanism = hopper(0.5).constrain(*constraints)
    numbers = Traced(mechanism)
    q, v, tau, t = (np.array(x) for x in zip(*(state(mechanism, seed) for seed in range(4)), strict=True))
    kernel = mechanism.compile("forward", dtype="float32")
    a, lam, status = kernel(*(x.astype(np.float32) for x in (q, v, tau, t[:, None])))
    assert a.dtype == np.float32
    for i in range(4):
        exact = numbers.solve(q[i], v[i], tau[i], t[i])
        assert status[i, 0] == exact.status
        np.testing.assert_allclose(a[i], exact.acceleration, rtol=0, atol=2e-4 * np.abs(exact.acceleration).max())
        np.testing.assert_allclose(lam[i], exact.multipliers, rtol=0, atol=2e-3 * np.abs(exact.multipliers).max())


def test_too_much_at_once_is_contradictory():
    """A weld, a hinge and a slider between the same frames agree; two drives and a gear on two joints do not."""
    mechanism = branched().constrain(*[replace(EXAMPLES[i], name=f"c{i}") for i in (1, 2, 3, 4, 13, 14, 15)])
    q, v, tau, t = state(mechanism)
    numbers = Traced(mechanism)
    assert numbers.system(q, t).diagnose(numbers.drift(q, v, t)).verdict == da.Status.INCONSISTENT
    assert numeric(constrained.forward(mechanism, "matrix"))(q, v, tau, t)[-1] == da.Status.INCONSISTENT
