"""Every request that loops answer, beside the unrolled kernel of the same mechanism: same ports, same numbers."""

from __future__ import annotations

import io
import pickle
import sys

import casadi as ca
import numpy as np
import pytest

import dalembert as da
from dalembert import progress
from dalembert.errors import ModelError, ShapeError, UnsupportedError
from dalembert.large.motion_functions import UNROLLED
from dalembert.large.requests import LOOPED, REFUSED
from dalembert.model import REFERENCES
from tests.tree.closed import four_bar
from tests.tree.mechanisms import MOVING, random_state, random_tree

FRAMED = ("velocity", "jacobian", "jacobian_drift")


@pytest.fixture(scope="module")
def mechanism():
    """Return a tree of all kinds of joints with springs, dampers, a lift, a loop, a coupling, a servo, a ball."""
    tree = random_tree([*MOVING, "fixed", "revolute", "prismatic"], 7, armature=True, passive=True)
    b = da.Builder("all of it", gravity=tree.gravity)
    for k, body in enumerate(tree.bodies):
        b.body(body.name, inertia=body.inertia, compensation=0.3 if k == 4 else 0.0)
    b.joints = {joint.name: joint for joint in tree.joints}
    b.frames = {frame.name: frame for frame in tree.frames}
    b.springs = {spring.name: spring for spring in tree.springs}
    b.couple("gear", {"j0": 1.0, "j9": -0.5}, 0.1)
    b.loop("rod", "distance", "b2", "b6", options={"length": 1.2})
    return b.build().constrain(
        da.Servo("j3", lambda t: 0.3 * ca.sin(2 * t), stabilize=1.0),
        da.Point("f5", "f1", stabilize=(3.0, 0.5)),
        da.Rolling("f7", radius=0.3),
    )


@pytest.fixture(scope="module")
def given(mechanism):
    rng = np.random.default_rng(0)
    v, a = rng.standard_normal((2, mechanism.nv))
    t, e = np.array([0.4]), rng.uniform(0, 1, len(mechanism.names))
    return {"q": mechanism.random(rng), "v": v, "a": a, "tau": a, "y1": a, "t": t, "restitution": e, "y2": e, "b": e}


@pytest.mark.parametrize("what", REFUSED)
def test_what_has_no_loops_says_so(mechanism, what):
    with pytest.raises(UnsupportedError, match="are not looped over"):
        mechanism.compile(what, backend="looped")


@pytest.mark.parametrize("what", LOOPED)
def test_loops_equal_straight_line_code(mechanism, given, what):
    for reference in REFERENCES if what in FRAMED else (None,):
        options = {} if reference is None else {"frame": "f6", "reference": reference}
        one, two = mechanism.compile(what, **options), mechanism.compile(what, backend="looped", **options)
        assert (one.inputs, one.outputs) == (two.inputs, two.outputs)
        x = [given[port.name] for port in one.inputs]
        for port, expected, found in zip(one.outputs, one.call(*x).outputs, two.call(*x).outputs, strict=True):
            tolerance = 0 if port.name == "status" else 1e-9 * max(1.0, np.abs(expected).max(initial=0.0))
            assert np.abs(expected - found).max(initial=0.0) <= tolerance, (port.name, reference)
            assert port.name != "status" or da.Status(int(found[0])).answered


def test_one_frame_and_all_bodies(mechanism, given):
    for frame in (None, "f6", "world"):
        one, two = (mechanism.compile("kinematics", frame=frame, **x) for x in ({}, {"backend": "looped"}))
        for expected, found in zip(one(given["q"]), two(given["q"]), strict=True):
            assert np.abs(expected - found).max() < 1e-12


def test_batches_threads_and_out(mechanism, given):
    """A sample's numbers do not depend on its place, the batch or the threads."""
    rng = np.random.default_rng(1)
    q, v, tau = mechanism.random(rng, 5), *rng.standard_normal((2, 5, mechanism.nv))
    kernel = mechanism.compile("forward", backend="looped")
    a, lam, status = kernel(q, v, tau, given["t"])
    alone = kernel(q[3], v[3], tau[3], given["t"])
    shared = mechanism.compile("forward", backend="looped", threads=2)(q, v, tau, given["t"])
    for batch, single, threaded in zip((a, lam, status), alone, shared, strict=True):
        assert np.array_equal(batch[3], single)
        assert np.array_equal(batch, threaded)
    target = np.empty_like(a), np.empty_like(lam), np.empty_like(status)
    assert kernel(q, v, tau, given["t"], out=target)[0] is target[0]
    assert np.array_equal(target[0], a)


def test_kernels_say_that_they_are_loops(mechanism, given):
    kernel = mechanism.compile("forward", backend="looped")
    kernel(*(given[port.name] for port in kernel.inputs))
    said = str(kernel.report())
    assert "not unrolled as asked" in said
    assert f"{len(mechanism.names)} constraint rows" in said
    assert kernel.report().samples == 1
    with pytest.raises(UnsupportedError, match="loops, not expressions"):
        kernel.jacobian()
    with pytest.raises(UnsupportedError, match="double precision only"):
        mechanism.compile("forward", backend="looped", dtype="float32")
    for wrong in ({"dtype": "complex128"}, {"dtype": "real"}, {"threads": 0}, {"width": 3}):
        with pytest.raises(UnsupportedError, match=next(iter(wrong))):
            mechanism.compile("bias", backend="looped", **wrong)
    with pytest.raises(UnsupportedError, match="is unrolled"):
        mechanism.compile("forward", backend="looped", route="matrix")
    assert set(UNROLLED) == {line.route for line in four_bar().routes("kkt").lines}
    with pytest.raises(ModelError, match="not one of 'auto', 'looped', 'efpa'"):
        mechanism.compile("kkt", backend="looped", route="cabba")
    with pytest.raises(UnsupportedError, match="some joints driven"):
        mechanism.compile("inverse", backend="looped", actuated=["j0"])
    with pytest.raises(ShapeError, match="expected"):
        kernel(np.zeros(3), *(given[port.name] for port in kernel.inputs[1:]))


def test_pickled_kernels_give_the_same(given):
    chain = random_tree(["revolute"] * 4, 2)
    kernel = chain.compile("forward", backend="looped")
    x = np.random.default_rng(0).standard_normal((3, 4))
    assert np.array_equal(pickle.loads(pickle.dumps(kernel))(*x)[0], kernel(*x)[0])
    held = chain.constrain(da.Point("f3")).compile("forward", backend="looped")
    assert np.array_equal(pickle.loads(pickle.dumps(held))(*x)[0], held(*x)[0])  # t may be left off there, too


def test_an_empty_batch_is_an_empty_answer(mechanism, given):
    """Statuses of no samples, with and without rows."""
    for system in (mechanism, mechanism.open_tree()):
        kernel = system.compile("forward", backend="looped")
        x = [np.zeros((0, *given[port.name].shape)) for port in kernel.inputs]
        found = kernel.call(*x)
        assert [y.shape for y in found.outputs] == [(0, *port.shape) for port in kernel.outputs]
        assert found.status.shape == (0,)


@pytest.mark.parametrize("weights", [None, [1.0, 1.0, 1.0, 4.0, 4.0, 4.0]])
def test_redundant_rows_have_a_delassus_matrix_with_a_shift(weights):
    """G + diag(shift) = L D L^T, the least x of G x = b in the metric: as in unrolled code; a block system as well."""
    tree = random_tree(["spherical", "revolute", "revolute", "spherical"], 5, armature=True)
    held = tree.constrain(da.Point("f3", name="one"), da.Point("f3", name="two"))
    rng = np.random.default_rng(0)
    q, y1, b = held.random(rng), rng.standard_normal(held.nv), np.tile(rng.standard_normal(3), 2)
    one, two = ({"metric": weights}, {"metric": weights, "backend": "looped"})
    G = held.compile("delassus", backend="looped")(q)
    (_, _, expected), (L, D, shift) = (held.compile("delassus_factor", **way)(q) for way in (one, two))
    assert np.abs(shift / expected - 1).max() < 1e-9
    assert np.abs(L * D @ L.T - G - np.diag(shift)).max() < 1e-14 * np.abs(G).max()
    x, y = (held.compile("delassus_solve", **way)(q, b) for way in (one, two))
    assert np.abs(G @ y - b).max() < 1e-12
    assert np.abs(x - y).max() < 1e-6 * np.abs(x).max()
    (a, lam, status), (found, force, word) = (held.compile("kkt", **way)(q, y1, b) for way in (one, two))
    assert int(status[0]) == int(word[0]) == da.Status.REDUNDANT
    assert np.abs(a - found).max() < 1e-9 * np.abs(a).max()
    assert np.abs(lam - force).max() < 1e-6 * np.abs(lam).max()


@pytest.mark.parametrize("twice", [False, True])
def test_least_joint_forces_however_many_rows(twice):
    """Least tau = b + A^T lam, then the least lam: the status of unrolled code and its numbers, rows once and twice."""
    tree = random_tree(["spherical", "revolute", "revolute", "spherical"], 5, armature=True)
    held = tree.constrain(da.Point("f3", name="one"), *([da.Point("f3", name="two")] if twice else []))
    rng = np.random.default_rng(0)
    x = held.random(rng), *rng.standard_normal((2, held.nv)), np.zeros(1)
    tau, lam, status = held.compile("inverse", backend="looped")(*x)
    expected = held.compile("inverse")(*x)
    assert int(status[0]) == da.Status.REDUNDANT == int(expected[2][0])  # all joints are driven: a family
    assert not twice or np.allclose(lam[:3], lam[3:])
    assert np.abs(tau - expected[0]).max() < 1e-9 * np.abs(tau).max()
    assert np.abs(lam - expected[1]).max() < 1e-6 * np.abs(lam).max()


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("threads", [1, 2])
def test_a_bar_shows_how_far_a_batch_is(monkeypatch, threads):
    monkeypatch.setattr(progress, "PATIENCE", 0.0)
    monkeypatch.setattr(progress, "EVERY", 0.0)
    mechanism = random_tree(["revolute", "prismatic"], 0)
    kernel = mechanism.compile("bias", backend="looped", threads=threads)
    q, v, _ = random_state(mechanism, 0, 30)
    quiet = kernel(q, v)
    monkeypatch.setattr(sys, "stderr", stream := Terminal())
    assert np.array_equal(kernel(q, v), quiet)
    assert "bias" in stream.getvalue()
    assert "100%" in stream.getvalue()


def test_expressions_of_the_whole_mechanism_are_refused():
    tree = random_tree(["revolute", "revolute"], 0)
    held = tree.constrain(da.Expression(lambda k: k.coordinate("j0") + k.coordinate("j1") ** 2, name="sum"))
    with pytest.raises(UnsupportedError, match="couplers and servos"):
        held.compile("forward", backend="looped")


@pytest.mark.parametrize("what", ["forward", "inverse", "kkt", "project"])
def test_arrays_that_may_not_be_written_to(mechanism, given, what):
    """A configuration that serves a whole batch, as `np.broadcast_to` has it, or that is read-only itself."""
    kernel = mechanism.compile(what, backend="looped")
    q, *others = (given[port.name] for port in kernel.inputs)
    expected = kernel.call(q, *others).outputs
    for shape in ((), (2,)):
        found = kernel.call(np.broadcast_to(q, shape + q.shape), *others).outputs
        assert all(
            np.array_equal(np.broadcast_to(one, two.shape), two) for one, two in zip(expected, found, strict=True)
        )


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize(("name", "size"), [("v", 1e160), ("a", 1e308), ("q", 1e200)])
def test_numbers_that_overflow_are_an_outcome(name, size):
    """Finite inputs whose products are not: never a solved status, nor an exception that is not ours."""
    b = da.Builder("pair")
    for i, parent in enumerate(("world", "b0")):
        b.body(f"b{i}", mass=1.0, inertia=(0.1, 0.1, 0.1))
        b.joint(f"j{i}", "revolute", parent=parent, child=f"b{i}", position=(0, 0, -1))
    b.tendon("rope", {"j0": 1.0, "j1": 1.0}, stiffness=2.0)
    pair = b.build().constrain(da.Distance("b1", length=1.3))
    x = {"q": np.ones(2), "v": np.ones(2), "a": np.ones(2)}
    x[name] = size * x[name]
    tau, multipliers, status = pair.compile("inverse", backend="looped")(x["q"], x["v"], x["a"], np.zeros(1))
    finite = np.isfinite(tau).all() and np.isfinite(multipliers).all()
    assert da.Status(int(status[0])) is (da.Status.REDUNDANT if finite else da.Status.NONFINITE)
    assert finite == (name == "q")
    kinetic, potential = pair.compile("energy", backend="looped")(x["q"], x["v"])
    assert np.isinf(potential if name == "q" else kinetic) == (name != "a")


def test_bodies_welded_to_the_ground_do_not_count():
    """As in unrolled code and in Pinocchio: neither for the centre of mass nor for the energy, whatever is on them."""
    rng = np.random.default_rng(3)
    b = da.Builder("plinth")
    hangs = [
        ("plinth", "fixed", "world"),
        ("post", "fixed", "plinth"),
        ("arm", "revolute", "post"),
        ("hand", "fixed", "arm"),
    ]
    for name, kind, parent in (*hangs, ("cart", "prismatic", "world")):
        b.body(name, mass=rng.uniform(1, 2), center=rng.uniform(-1, 1, 3), inertia=(0.1, 0.2, 0.15), compensation=0.3)
        b.joint(f"to {name}", kind, parent=parent, child=name, axis=(0, 0.6, 0.8), position=rng.uniform(-1, 1, 3))
    plinth = b.build()
    q, v, a = rng.standard_normal((3, plinth.nv))
    for what in ("center_of_mass", "center_of_mass_velocity", "momentum", "momentum_rate", "energy"):
        one, two = (plinth.compile(what, backend=backend) for backend in ("cpu", "looped"))
        x = (q, v, a)[: len(one.inputs)]
        for expected, found in zip(one.call(*x).outputs, two.call(*x).outputs, strict=True):
            assert np.abs(expected - found).max() < 1e-12, what
    b.joints = {name: joint for name, joint in b.joints.items() if name in ("to plinth", "to post")}
    b.bodies = {name: body for name, body in b.bodies.items() if name in ("plinth", "post")}
    with pytest.raises(ModelError, match="no centre of mass"):
        b.build().compile("center_of_mass", backend="looped")
