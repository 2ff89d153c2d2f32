"""Loops over large mechanisms against the plain NumPy twins and `KKT`: random trees, rows, redundancy; both routes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import dalembert as da
from dalembert.large.block_system import LargeSystem
from dalembert.large.fronts.front_block import FrontBlock
from dalembert.large.large_tree import LargeTree
from dalembert.large.layout import Layout
from dalembert.model import Mechanism
from tests import reference as plain
from tests.tree.mechanisms import KINDS, MOVING, random_state, random_tree

ROUTES = ("auto", "sparse")

trees = st.builds(
    random_tree,
    st.lists(st.sampled_from(KINDS), min_size=1, max_size=9),
    st.integers(0, 10**6),
    armature=st.booleans(),
)


def close(x, y, tolerance):
    return np.abs(x - y).max(initial=0.0) <= tolerance * max(1.0, np.abs(y).max(initial=0.0))


@given(trees, st.integers(0, 10**6))
@settings(max_examples=40)
def test_trees_equal_the_plain_twins(mechanism, seed):
    """Featherstone's RNEA, CRBA, ABA for every kind of joint, in any order of bodies."""
    if not mechanism.nv:
        return
    tree = LargeTree(Layout.of(mechanism))
    q, v, a = (x[0] for x in random_state(mechanism, seed, 1))
    state = plain.State.at(mechanism, q, v)
    out, M = np.empty(mechanism.nv), plain.crba(state)
    tree.inverse(q, v, a, out)
    assert close(out, plain.rnea(state, v, a), 1e-12)
    tree.forward(q, v, a, out)
    assert close(out, plain.aba(state, v, a), max(1e-12, 1e-14 * np.linalg.cond(M)))


def test_bodies_that_come_in_breadth_are_put_in_depth():
    """The order of a mechanism is the user's; loops go depth first, and answers come in the user's order."""
    tree = random_tree(["revolute"] * 6, 3)
    parents = {joint.child: joint.parent for joint in tree.joints}

    def depth(name):
        return 0 if name == "world" else 1 + depth(parents[name])

    order = sorted(range(6), key=lambda i: depth(tree.bodies[i].name))
    assert order != list(range(6))
    wide = Mechanism(
        "wide", tuple(tree.bodies[i] for i in order), tuple(tree.joints[i] for i in order), gravity=tree.gravity
    )
    rng = np.random.default_rng(0)
    q, v, tau = rng.standard_normal((3, 6))
    expected = plain.aba(plain.State.at(tree, q, v), v, tau)[order]
    out = np.empty(6)
    LargeTree(Layout.of(wide)).forward(q[order], v[order], tau[order], out)
    assert close(out, expected, 1e-11)


def constrained(kinds, seed, picks, twice):
    """Return a tree with points, welds, distances and couplers at random places; some of them twice."""
    tree = random_tree(kinds, seed, armature=True)
    rng = np.random.default_rng(seed)
    n, added = len(kinds), []
    single = [joint.name for joint in tree.joints if joint.kind in ("revolute", "prismatic", "helical")]
    for k, pick in enumerate(picks):
        i, j = rng.choice(n, 2, replace=False) if n > 1 else (0, 0)
        if pick == "held":
            added.append(da.Point(f"f{i}", name=f"c{k}"))
        elif pick == "point" and i != j:
            added.append(da.Point(f"f{i}", f"f{j}", name=f"c{k}"))
        elif pick == "distance" and i != j:
            added.append(da.Distance(f"f{i}", f"f{j}", length=0.5 + rng.random(), name=f"c{k}", stabilize=2.0))
        elif pick == "revolute" and i != j:
            added.append(da.Revolute(f"f{i}", f"f{j}", axis=(0, 0, 1), name=f"c{k}"))
        elif pick == "coupler" and len(single) > 1:
            one, two = rng.choice(single, 2, replace=False)
            added.append(da.Coupler({str(one): 1.0, str(two): -2.0}, name=f"c{k}"))
    again = [type(c)(**{**vars(c), "name": f"{c.name} again"}) for c in added] if twice else []
    return tree.constrain(*added, *again)


mechanisms = st.builds(
    constrained,
    st.lists(st.sampled_from(MOVING), min_size=2, max_size=9),
    st.integers(0, 10**6),
    st.lists(st.sampled_from(("held", "point", "distance", "revolute", "coupler")), min_size=1, max_size=4),
    st.booleans(),
)


@given(mechanisms, st.integers(0, 10**6), st.sampled_from(ROUTES))
@example(constrained(["revolute", "free", "planar"], 15156, ["point", "point"], False), 0, "auto")
@settings(max_examples=60)
def test_constrained_equals_the_dense_block_matrix(mechanism, seed, route):
    """M a + A^T lam = f, A a = -drift against `KKT`, least norm among redundant multipliers (W3, O3)."""
    if not mechanism.names:
        return
    q, v, tau = (x[0] for x in random_state(mechanism, seed, 1))
    state, rows = plain.State.at(mechanism, q, v), plain.constraint_rows(mechanism, q, v)
    M, f = plain.crba(state), tau - plain.rnea(state, v, np.zeros_like(v))
    system = da.KKT(M, rows.jacobian, mechanism.names)
    diagnosis = system.diagnose()
    large = LargeSystem(LargeTree(Layout.of(mechanism)), route=route)
    if large.fronts is not None and seed % 2:  # sweeps take turns every three bodies
        large.block = FrontBlock(large, large.fronts, large.limits, piece=3)
    found = large.forward(q, v, tau, 0.0)
    singular = np.linalg.svd(rows.jacobian, compute_uv=False)
    if diagnosis.rank < min(singular.size, len(mechanism.names)) and singular[diagnosis.rank - 1] < 1e-4 * singular[0]:
        return  # near a change of rank both may be right
    drift = np.where(np.abs(rows.drift[:, 0]) < 1e-14, 0.0, rows.drift[:, 0])  # rounding demands nothing
    expected = system.solve(f[None], drift[None], inconsistent="least_squares")
    status = da.Status(int(np.ravel(expected.status)[0]))
    if status is da.Status.ILL_CONDITIONED:
        return  # `KKT` itself is in doubt
    if status is da.Status.LEAST_SQUARES:
        assert found.status in (da.Status.INCONSISTENT, da.Status.ILL_CONDITIONED)
        return
    assert found.status == (da.Status.REDUNDANT if status is da.Status.REDUNDANT else da.Status.UNIQUE)
    tolerance = 1e-7 if route == "sparse" else 1e-8
    assert close(found.acceleration, expected.acceleration[0], tolerance)
    assert close(found.multipliers, expected.multipliers[0], tolerance * 10)
    assert max(found.residuals) < 1e-9


@pytest.mark.parametrize("route", ROUTES)
def test_metric_weighs_redundant_multipliers(route):
    """Two equal rows share a force in inverse proportion to their weights."""
    tree = random_tree(["spherical", "spherical"], 5, armature=True)
    twice = tree.constrain(da.Point("f1", name="one"), da.Point("f1", name="two"))
    weights = np.array([1.0, 1.0, 1.0, 3.0, 3.0, 3.0])
    q, v, tau = (x[0] for x in random_state(twice, 0, 1))
    found = LargeSystem(LargeTree(Layout.of(twice)), weights, route).forward(q, v, tau, 0.0)
    assert found.status == da.Status.REDUNDANT
    assert close(found.multipliers[:3], 3 * found.multipliers[3:], 1e-7)
