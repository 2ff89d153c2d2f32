"""One state of a large tree on several threads: the same bits as on one, whatever the shape; and when it is refused."""

from __future__ import annotations

import os
import pickle
import threading

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dalembert as da
from dalembert.large import threads as branches
from dalembert.large.large_tree import LargeTree
from dalembert.large.layout import Layout, depth_first
from dalembert.large.threads import FEWEST, LEAST_GAIN, BranchedTree, Branches
from dalembert.model import Body
from tests import reference as plain
from tests.tree.mechanisms import KINDS, MOVING, random_inertia, random_placement, random_state, random_tree

THREADS = (2, 3, 4)


@pytest.fixture
def fine_cuts(monkeypatch):
    """Cut small trees, too, into branches of a body and more."""
    monkeypatch.setattr(branches, "SMALLEST", 1)
    monkeypatch.setattr(branches, "LEAST_GAIN", 1.0)


def shaped(parents, kinds, seed):
    """Return a tree of this shape, -1 for the ground."""
    rng = np.random.default_rng(seed)
    b = da.Builder("shaped", gravity=(1.0, 2.0, -9.0))
    for i, (p, kind) in enumerate(zip(parents, kinds, strict=True)):
        b.body(f"b{i}", inertia=random_inertia(rng))
        axis, other = (x / np.linalg.norm(x) for x in rng.standard_normal((2, 3)))
        b.joint(
            f"j{i}", kind, parent=f"b{p}" if p >= 0 else "world", child=f"b{i}", axis=tuple(axis), axis2=tuple(other),
            pitch=0.2 * (kind == "helical"), placement=random_placement(rng),
        )  # fmt: skip
        b.frame(f"f{i}", f"b{i}", placement=random_placement(rng))
    return b


def same_bits(mechanism, seed=0, threads=THREADS):
    """Compare all that is left of a call: accelerations, motion, pivots; return the plans."""
    tree = LargeTree(Layout.of(mechanism))
    q, v, tau = (x[0] for x in random_state(mechanism, seed, 1))
    expected, found = np.empty(mechanism.nv), np.empty(mechanism.nv)
    least = tree.forward(q, v, tau, expected)
    K, worst = tree.memory.K.copy(), tree.memory.worst.copy()
    plans = [Branches.of(tree.layout.parent, count, fewest=1) for count in threads]
    for plan, count in zip(plans, threads, strict=True):
        covers(plan, tree.layout)
        split = BranchedTree(tree, plan, count)
        for _ in range(2):
            tree.memory.K[:], tree.memory.A[:], found[:] = np.nan, np.nan, np.nan
            assert split.forward(q, v, tau, found) == least
            assert np.array_equal(found, expected)
            assert np.array_equal(tree.memory.K, K)
            assert np.array_equal(tree.memory.worst, worst)
    return plans


def covers(plan, layout):
    """Every body is in one branch or in the trunk; a branch is whole subtrees; the trunk carries itself."""
    assert [*plan.trunk[:, 0], layout.n] == [0, *plan.trunk[:, 1]]
    assert np.array_equal(plan.trunk[plan.trunk[:, 2] >= 0][:, :2], plan.ranges)
    assert sorted(k for task in plan.tasks for k in range(*task)) == list(range(len(plan.ranges)))
    inside = np.zeros(layout.n, dtype=bool)
    for begin, end in plan.ranges:
        inside[begin:end] = True
        up = layout.parent[begin:end]
        outer = up[(up < begin) | (up >= end)]
        assert np.all(outer == outer[0])  # one parent, or the ground
        assert outer[0] < 0 or len(outer) == 1
    for i in np.flatnonzero(~inside):
        assert layout.parent[i] < 0 or not inside[layout.parent[i]]


@pytest.mark.usefixtures("fine_cuts")
@given(
    st.lists(st.sampled_from(KINDS), min_size=2, max_size=24),
    st.integers(0, 10**6),
    st.integers(1, 24),
    st.booleans(),
    st.booleans(),
)
@settings(max_examples=60)
def test_random_trees_on_threads_give_the_same_bits(kinds, seed, reach, armature, sprung):
    """All kinds of joints, in any shape: several trees on the ground, floating bases, springs between frames."""
    rng = np.random.default_rng(seed)
    parents = [int(rng.integers(max(-1, i - reach), i)) if kind != "free" else -1 for i, kind in enumerate(kinds)]
    b = shaped(parents, kinds, seed)
    if sprung:
        b.spring("across", "f0", f"f{len(kinds) - 1}", stiffness=3.0, rest=0.2, damping=0.4)
    mechanism = b.build(order="added")
    if mechanism.nv:
        same_bits(mechanism, seed)
    mechanism = random_tree(kinds, seed, armature=armature, passive=sprung)
    if mechanism.nv:
        same_bits(mechanism, seed)


def comb(teeth, length):
    return [
        p for k in range(teeth) for p in ((k - 1) * (length + 1), *range(k * (length + 1), (k + 1) * (length + 1) - 1))
    ]


SHAPES = {
    "a trunk of one body": [-1, *(p for k in range(4) for p in (0, *range(5 * k + 1, 5 * k + 5)))],
    "trees side by side": [p for k in range(9) for p in (-1, *range(4 * k, 4 * k + 3))],
    "bodies on the ground": [-1] * 23,
    "a broom": [*range(-1, 30), *([30] * 12)],
    "a broom upside down": [-1] * 12 + list(range(11, 40)),
    "halves": [-1, *((i - 1) // 2 for i in range(1, 63))],
    "a comb": comb(6, 5)[:1] + [max(p, 0) for p in comb(6, 5)[1:]],
    "a star": [-1, *([0] * 20)],
}


@pytest.mark.usefixtures("fine_cuts")
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("kinds", [("revolute",), ("free", *("revolute",) * 3, "spherical", "prismatic"), MOVING[:-1]])
def test_shapes_give_the_same_bits(shape, kinds):
    parents = SHAPES[shape]
    used = [kinds[i % len(kinds)] for i in range(len(parents))]
    used = ["revolute" if kind == "free" and p >= 0 else kind for kind, p in zip(used, parents, strict=True)]
    plans = same_bits(shaped(parents, used, 3).build())
    assert plans[0].pays
    assert plans[0].gain > 1.1


@pytest.mark.usefixtures("fine_cuts")
def test_an_independent_answer():
    """The plain twin (Featherstone 2008, ch. 7) gives the same accelerations to rounding."""
    mechanism = random_tree(["free", *MOVING[:-1], *MOVING[:-1]], 5, armature=True)
    tree = LargeTree(Layout.of(mechanism))
    q, v, tau = (x[0] for x in random_state(mechanism, 1, 1))
    plan, found = Branches.of(tree.layout.parent, 2, fewest=1), np.empty(mechanism.nv)
    assert plan.pays
    BranchedTree(tree, plan, 2).forward(q, v, tau, found)
    assert np.allclose(found, plain.aba(plain.State.at(mechanism, q, v), v, tau), rtol=0, atol=1e-10)


@pytest.mark.usefixtures("fine_cuts")
def test_the_first_pivot_that_fails_is_the_same():
    """Massless leaves on two branches: the body that is named does not depend on threads."""
    b = shaped([-1, 0, 1, 0, 3, 4, -1, 6], ["revolute"] * 8, 2)
    for k in (2, 5, 7):
        b.bodies[f"b{k}"] = Body(f"b{k}")  # of no mass
    mechanism = b.build()
    tree = LargeTree(Layout.of(mechanism))
    q, v, tau = (x[0] for x in random_state(mechanism, 1, 1))
    out = np.empty(mechanism.nv)
    tree.forward(q, v, tau, out)
    worst = tree.memory.worst.copy()
    for threads in THREADS:
        plan = Branches.of(tree.layout.parent, threads, fewest=1)
        assert plan.pays
        BranchedTree(tree, plan, threads).forward(q, v, tau, out)
        assert np.array_equal(tree.memory.worst, worst, equal_nan=True)


@pytest.fixture(scope="module")
def pair():
    """Return two chains on a floating base, long enough to be split, and kernels for one and two threads."""
    half = FEWEST // 2
    parents = [-1, 0, *range(1, half), 0, *range(half + 1, 2 * half)]
    mechanism = shaped(parents, ["free", *("revolute",) * (2 * half)], 4).build()
    return mechanism, mechanism.compile("forward"), mechanism.compile("forward", threads=2)


def test_compile_splits_one_state_and_says_so(pair):
    mechanism, one, two = pair
    assert "one state: 2 branches on 2 threads, carried by 1 of" in str(two.report())
    assert two.report().memory_bytes > one.report().memory_bytes
    assert "threads" not in str(one.report())
    x = random_state(mechanism, 0, 3)
    expected = one(*x)[0]
    assert np.array_equal(two(*x)[0], expected)
    assert np.array_equal(two(*(each[1] for each in x))[0], expected[1])
    assert np.array_equal(two(*(each[2:] for each in x))[0], expected[2:])
    assert np.array_equal(mechanism.compile("forward", threads=4)(*(each[:2] for each in x))[0], expected[:2])
    assert np.array_equal(pickle.loads(pickle.dumps(two))(*(each[0] for each in x))[0], expected[0])


def test_several_callers_do_not_meet(pair):
    """Two threads of the user's call one kernel: each has memory of its own."""
    mechanism, one, two = pair
    x = random_state(mechanism, 1, 2)
    expected, found = one(*x)[0], [[], []]

    def call(k):
        found[k] += [two(*(each[k] for each in x))[0] for _ in range(5)]

    callers = [threading.Thread(target=call, args=(k,)) for k in range(2)]
    for each in callers:
        each.start()
    for each in callers:
        each.join()
    assert all(len(found[k]) == 5 and np.array_equal(a, expected[k]) for k in range(2) for a in found[k])


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_forked_process_has_threads_of_its_own(pair):
    mechanism, one, two = pair
    x = [each[0] for each in random_state(mechanism, 2, 1)]
    expected = one(*x)[0]
    two(*x)
    child = os.fork()
    if child == 0:
        os._exit(0 if np.array_equal(two(*x)[0], expected) else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_what_is_not_split_says_why(pair):
    few, chain = [-1, *(i // 2 for i in range(1, 30))], list(range(-1, FEWEST))
    twig = [*range(-1, 9 * FEWEST // 10), 0, *range(9 * FEWEST // 10 + 1, FEWEST)]
    leaves = [*range(-1, FEWEST // 2), *range(FEWEST // 2)]
    reasons = {}
    for name, parents in (("few", few), ("chain", chain), ("twig", twig), ("leaves", leaves)):
        plan = Branches.of(depth_first_parents(np.array(parents)), 2)
        assert not plan.pays
        assert plan.gain < LEAST_GAIN
        reasons[name] = plan.words
    assert f"below {FEWEST} handing over" in reasons["few"]
    assert "one chain" in reasons["chain"]
    assert "no two branches of 32 bodies" in reasons["leaves"]
    assert "1.11 times as fast at best" in reasons["twig"]
    mechanism = pair[0]
    assert "for forward dynamics of open trees" in str(mechanism.compile("inverse", threads=2).report())
    held = mechanism.constrain(da.Point(f"f{FEWEST}"))
    assert "one state is not split" in str(held.compile("forward", threads=2).report())


def test_where_it_is_cut():
    """The largest branch is at most n / (2 threads) where the tree allows it; little is left for the trunk."""
    halves = np.array([-1, *((i - 1) // 2 for i in range(1, 2**14 - 1))])
    n = len(halves)
    for threads in (2, 4, 8):
        plan = Branches.of(depth_first_parents(halves), threads)
        assert (plan.ranges[:, 1] - plan.ranges[:, 0]).max() <= n / (2 * threads)
        assert plan.gain > 0.9 * threads
    many = np.array([p for k in range(100) for p in (-1, *range(200 * k, 200 * k + 199))])
    plan = Branches.of(many, 2)
    assert len(plan.ranges) <= 20
    assert plan.gain > 1.9


def depth_first_parents(parents):
    """Return a tree's parents with its bodies in depth-first order."""
    rank, order = depth_first(parents)
    return np.where(parents >= 0, rank[parents], -1)[order]
