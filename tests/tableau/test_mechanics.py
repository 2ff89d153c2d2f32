"""Ledger Y4, Y12: tableaux of a `Mechanism`, against its own compiled dynamics, which Pinocchio vouches for."""

from __future__ import annotations

from dataclasses import replace

import casadi as ca
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.linalg import null_space

import dalembert as da
from dalembert.errors import ModelError, UnsupportedError
from dalembert.examples import CENTRES, stanford_arm
from dalembert.model import Frame, Placement
from dalembert.tableau import (
    body_positions,
    coordinates,
    least_norm,
    maximal,
    newton_euler,
    reduce_index,
    redundant_rows,
    signature,
    without_rows,
)
from dalembert.tableau.mechanics.welded import welded
from tests.model.test_constrained_motion import turntable
from tests.tableau.test_stanford import smooth_motion
from tests.tree.mechanisms import random_inertia, random_placement
from tests.tree.robots import ROBOTS

TWO = ("essential", "products")
SINGLE = ("revolute", "continuous", "prismatic", "helical")
SEVERAL = ("universal", "spherical", "planar")


def moves(kinds: list[str]) -> bool:
    """Whether any of the joints moves."""
    return set(kinds) != {"fixed"}


def tree(kinds: list[str], seed: int, passive: bool = True, chain: bool = False) -> da.Mechanism:
    """A tree with these joints; armature, motors and dampers, springs where no angle can wind."""
    rng = np.random.default_rng(seed)
    b = da.Builder("tree", gravity=tuple(rng.standard_normal(3) * 5))
    for i, kind in enumerate(kinds):
        free = kind == "free"
        parent = "world" if i == 0 or free else f"b{i - 1 if chain else rng.integers(max(0, i - 3), i)}"
        rotors = kind in (*SINGLE, *SEVERAL)
        values = {"armature": rng.uniform(0.1, 1), "damping": rng.uniform(0.1, 1)} if rotors else {}
        values |= (
            {"pitch": 0.3} if kind == "helical" else {"axis2": rng.standard_normal(3)} if kind == "universal" else {}
        )
        if kind in ("prismatic", "revolute", "helical"):
            values |= {"stiffness": rng.uniform(1, 2), "rest": 0.3}
        b.body(f"b{i}", inertia=random_inertia(rng))
        b.joint(f"j{i}", kind, parent=parent, child=f"b{i}", axis=tuple(rng.standard_normal(3)),
                placement=random_placement(rng), child_placement=random_placement(rng), **values)  # fmt: skip
    if kinds[0] in SINGLE:
        b.actuator("motor", "j0", gear=3.0, rotor_inertia=0.05)
    return b.build(passive=passive)


def assert_inverse(mechanism: da.Mechanism, q, v, a, granularity: str) -> None:
    """Inverse dynamics of the tableau equals `mechanism.inverse` to 1e-9."""
    tableau = newton_euler(mechanism, granularity)
    known = {"q": coordinates(mechanism, q), "qd": v, "qdd": a} | {f"lam {name}": 0.0 for name in mechanism.names}
    found = tableau.solve(known, newton=tableau.newton(engine="loop"), conditions=False)  # a may leave the constraints
    assert found.converged.all()
    tau = found["tau"].reshape(np.shape(v))
    np.testing.assert_allclose(tau, mechanism.open_tree().inverse(q, v, a).tau, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("granularity", TWO)
def test_Y12_inverse_dynamics_of_the_panda(granularity):
    panda = da.load(ROBOTS / "panda_description/urdf/panda.urdf", passive=True).open_tree()
    assert panda.damping.any()
    rng = np.random.default_rng(0)
    assert_inverse(panda, panda.random(rng, 3), *rng.standard_normal((2, 3, panda.nv)), granularity)


@pytest.mark.parametrize("granularity", TWO)
@pytest.mark.parametrize("reading", CENTRES)
def test_Y12_inverse_dynamics_of_the_stanford_arm_is_that_of_the_compiled_mechanism(reading, granularity):
    assert_inverse(stanford_arm(reading), *smooth_motion(3), granularity)


@settings(max_examples=10, deadline=None)
@given(
    kinds=st.lists(st.sampled_from((*SINGLE, *SEVERAL, "fixed", "free")), min_size=1, max_size=4),
    seed=st.integers(0, 1000),
    passive=st.booleans(),
    granularity=st.sampled_from(TWO),
)
def test_Y12_inverse_dynamics_of_random_trees(kinds, seed, passive, granularity):
    """Every kind of joint, frames anywhere, armature, motors, dampers, springs, welded bodies."""
    mechanism = tree(["revolute", *kinds], seed, passive)
    rng = np.random.default_rng(seed)
    assert_inverse(mechanism, mechanism.random(rng, 2), *rng.standard_normal((2, 2, mechanism.nv)), granularity)


def with_centres(mechanism: da.Mechanism) -> da.Mechanism:
    """The mechanism with a frame at the centre of mass of each body of the tableau, along the body's axes there."""
    places = {joint.child: joint.child_placement for joint in mechanism.joints}
    centres = {body.name: Placement(np.eye(3), body.inertia.center) for body in welded(mechanism).bodies}
    frames = (Frame(f"centre of {name}", name, places[name] @ centre) for name, centre in centres.items())
    return replace(mechanism, frames=tuple(frames))


def width(mechanism: da.Mechanism, joint) -> int:
    """How many of the tableau's coordinates a joint has."""
    place = mechanism.index_q(joint.name)
    return 1 if joint.kind == "continuous" else place.stop - place.start


def body_states(mechanism: da.Mechanism, q, v, tau, a) -> tuple[dict[str, float], dict[str, float]]:
    """p, e, v, w and tau of the tableau by element name; accelerations of centres (world) and bodies (own axes)."""
    values, accelerations = {}, {}
    for joint in mechanism.joints:
        own, angles = tau[mechanism.index_v(joint.name)], coordinates(mechanism, q)
        names = [f"tau {joint.name}"] if len(own) == 1 else [f"tau {joint.name}[{k}]" for k in range(len(own))]
        values |= dict(zip(names, own, strict=True))
        if joint.kind in ("revolute", "continuous", "helical"):
            before = mechanism.joints[: mechanism.joints.index(joint)]
            values[f"q {joint.name}"] = angles[sum(width(mechanism, j) for j in before)]
    for frame in mechanism.frames:
        R, p = mechanism.kinematics(q, frame.name)
        options = {"frame": frame.name, "reference": "local_world_aligned"}
        twist = mechanism.compile("velocity", **options)(q, v)
        rate = mechanism.frame_jacobian(q, **options) @ a + mechanism.compile("jacobian_drift", **options)(q, v)
        state = {"p": p, "e": Placement(R, p).quaternion(), "v": twist[:3], "w": R.T @ twist[3:]}
        values |= {f"{letter} {frame.body}[{k}]": x for letter, xs in state.items() for k, x in enumerate(xs)}
        for letter, vector in (("v", rate[:3]), ("w", R.T @ rate[3:])):
            accelerations |= {f"{letter} {frame.body}[{k}]'": x for k, x in enumerate(vector)}
    return values, accelerations


def assert_balanced(mechanism: da.Mechanism, q, v, tau, a, tableau=None) -> np.ndarray:
    """Joint rows hold at q, and with accelerations `a` some multipliers balance all forces and moments."""
    tableau = tableau or maximal(mechanism)
    values, accelerations = body_states(with_centres(mechanism.open_tree()), q, v, tau, a)
    x = np.array([values.get(name, 0.0) for name in tableau.unknowns])
    x_dot = [accelerations.get(f"{tableau.unknowns[k]}'", 0.0) for k in tableau.differential]
    u = [values.get(name, 0.0) for name in tableau.inputs]
    inputs = [tableau.x, tableau.x_dot, ca.vertcat(*tableau.inputs.values())]
    f = ca.Function("G", inputs, [tableau.residual, ca.jacobian(tableau.residual, tableau.x)])
    G, J = (np.array(each) for each in f(x, x_dot, u))
    begins = np.array([name.split()[0] for name in tableau.equations])
    assert np.abs(G[np.isin(begins, ("joint", "angle", "row", "coupling"))]).max(initial=0.0) < 1e-12
    multipliers = np.array([name.startswith("lam ") for name in tableau.unknowns])
    rows = np.isin(begins, ("force", "moment"))
    A = J[np.ix_(rows, multipliers)]
    balance = G[rows] - A @ np.linalg.lstsq(A, G[rows], rcond=None)[0]
    np.testing.assert_allclose(balance, 0.0, atol=1e-10 * max(1.0, np.abs(G[rows]).max()))
    return A


@settings(max_examples=10, deadline=None)
@given(
    kinds=st.lists(st.sampled_from((*SINGLE, *SEVERAL, "fixed", "free")), min_size=1, max_size=4).filter(moves),
    seed=st.integers(0, 1000),
    passive=st.booleans(),
)
def test_Y4_maximal_coordinates_of_random_trees_balance_what_forward_gives(kinds, seed, passive):
    """Rotors, dampers and springs act; a free body is one without a joint."""
    mechanism = tree(kinds, seed, passive)
    rng = np.random.default_rng(seed)
    q, (v, tau) = mechanism.random(rng), rng.standard_normal((2, mechanism.nv))
    for joint in mechanism.joints:
        tau[mechanism.index_v(joint.name)] *= joint.kind != "free"
    assert_balanced(mechanism, q, v, tau, mechanism.forward(q, v, tau).acceleration)


@pytest.mark.parametrize("kinds", [["revolute", "prismatic"], ["free", "revolute"], ["helical", "universal"]])
def test_Y4_maximal_coordinates_of_a_tree_agree_with_forward(kinds):
    """Index 3; reduced by dummy derivatives and solved for accelerations."""
    mechanism = tree(kinds, 5)
    rng = np.random.default_rng(2)
    q, (v, tau) = mechanism.random(rng), rng.standard_normal((2, mechanism.nv))
    tau[mechanism.index_v("j0")] *= kinds[0] != "free"
    tableau = maximal(mechanism)
    found = signature(tableau)
    assert (found.index, found.freedom) == (3, 2 * mechanism.nv)
    values, accelerations = body_states(with_centres(mechanism), q, v, tau, mechanism.forward(q, v, tau).acceleration)
    values = {name: x for name, x in values.items() if name in tableau.variables.names}
    reduced = reduce_index(tableau, values)
    at = reduced.tableau.with_known([*reduced.states, *reduced.tableau.known], instant=True)
    known = {name: values[name] for name in (*reduced.states, *reduced.tableau.known)}
    probed = {name: x for name, x in values.items() if name in at.variables.names}
    guess = [values.get(name, 0.0) for name in at.unknowns]
    solved = at.solve(known, guess=guess, newton=at.newton(values=probed, engine="loop"))
    for name, expected in accelerations.items():
        assert solved[name] == pytest.approx(expected, rel=1e-8, abs=1e-8)


def spatial_loop() -> tuple[da.Mechanism, np.ndarray]:
    """Seven hinges with random axes in a ring, closed where it was built: one way to move."""
    rng = np.random.default_rng(3)
    b = da.Builder("ring")
    axes, places = rng.standard_normal((7, 3)), rng.uniform(-1, 1, (7, 3))
    for i in range(6):
        b.body(f"b{i}", inertia=random_inertia(rng))
        step = places[i] - (places[i - 1] if i else 0)
        b.joint(f"j{i}", "revolute", parent=f"b{i - 1}" if i else "world", child=f"b{i}", axis=axes[i], position=step)
    at = Placement(np.eye(3), places[6] - places[5])
    b.loop("closing", "revolute", "b5", "world", at, Placement(np.eye(3), places[6]), axis=axes[6])
    return b.build(), rng.standard_normal(6)


def test_Y4_maximal_coordinates_of_a_loop_agree_with_forward():
    ring, tau = spatial_loop()
    q = ring.neutral()
    v = np.linalg.svd(ring.jacobian(q))[2][-1]
    assert np.abs(ring.jacobian(q) @ v).max() < 1e-12
    a, _, status = ring.forward(q, v, tau)
    assert int(status) == da.Status.UNIQUE
    assert signature(maximal(ring)).freedom == 2
    assert_balanced(ring, q, v, tau, a)
    assert_forward(ring, q, v, tau)


def assert_forward(mechanism: da.Mechanism, q, v, tau, t: float = 0.0) -> np.ndarray:
    """Forward dynamics in joint coordinates: accelerations and multipliers of `mechanism.forward`."""
    a, lam, status = mechanism.forward(q, v, tau, t)
    assert int(status) == da.Status.UNIQUE
    tableau = newton_euler(mechanism, "essential", ("q", "qd", "tau"))
    known = {"q": coordinates(mechanism, q), "qd": v, "tau": tau}
    found = tableau.solve(known, t=t, newton=tableau.newton(engine="loop"))
    size = max(1.0, np.abs(a).max(), np.abs(lam).max())
    np.testing.assert_allclose(found["qdd"], a, atol=1e-9 * size)
    np.testing.assert_allclose([found[f"lam {name}"] for name in mechanism.names], lam, atol=1e-9 * size)
    return np.array(found["qdd"])


def rolling_ball() -> tuple[da.Mechanism, np.ndarray, np.ndarray]:
    """A ball that rolls on a plate which turns with 3 rad/s, with place and velocities at 0.4 s."""
    mechanism, turn, t = turntable(), np.array([0, 0, 3.0]), 0.4
    position, velocity = np.array([0.3, -0.8, 0.0]), np.array([0.5, 0.2, 0.0])
    across = (velocity - np.cross(turn, position)) / 0.1  # no slip: velocity - turn x position = 0.1 w x e_z
    w = np.array([-across[1], across[0], 0.7])
    return mechanism, np.array([3.0 * t, *position[:2], 0.1, 0, 0, 0, 1]), np.array([3.0, *velocity, *w])


def test_Y4_rolling_on_a_plate_that_a_servo_turns():
    """Non-holonomic rows and rows with time, in joint coordinates; a = 2/7 Omega x v (Earnshaw 1844)."""
    mechanism, q, v = rolling_ball()
    a = assert_forward(mechanism, q, v, np.zeros(7), 0.4)
    np.testing.assert_allclose(a[1:4] + np.cross(v[4:], v[1:4]), 2 / 7 * np.cross([0, 0, 3.0], v[1:4]), atol=1e-9)
    with pytest.raises(UnsupportedError, match=r"servo spindle.*newton_euler"):
        maximal(mechanism)


def test_Y4_rolling_in_maximal_coordinates():
    """Rows of velocities between bodies: no rate of positions, the same balance of forces."""
    driven, q, v = rolling_ball()
    rolling = driven.open_tree().constrain(da.Rolling("ball", "plate", radius=0.1))
    tau = np.array([0.3, 0, 0, 0, 0, 0, 0])
    assert_forward(rolling, q, v, tau)
    assert_balanced(rolling, q, v, tau, rolling.forward(q, v, tau).acceleration)


CONSTRAINTS = {
    "held point": lambda at: da.Point("b3"),
    "point": lambda at: da.Point("b3", "b0", at=at.position),
    "weld": lambda at: da.Weld("b3", "b0", at=at),
    "revolute": lambda at: da.Revolute("b3", "b0", at=at, axis=(0, 1, 0)),
    "prismatic": lambda at: da.Prismatic("b3", "b0", at=at, axis=(0, 1, 0)),
    "cylindrical": lambda at: da.Cylindrical("b3", "b0", at=at, axis=(0, 0, 1)),
    "planar": lambda at: da.Planar("b3", "b0", at=at, axis=(0, 0, 1)),
    "universal": lambda at: da.Universal("b3", "b0", at=at, axis=(1, 0, 0), axis2=(0, 1, 0)),
    "point on line": lambda at: da.PointOnLine("b3", "b0", at=at, axis=(0, 1, 0)),
    "point in plane": lambda at: da.PointInPlane("b3", "b0", at=at, normal=(0, 1, 0)),
    "distance": lambda at: da.Distance("b3", "b0", at=at.position + np.array([0, 0, 1]), length=1.0),
}


def closed_tree(kind: str) -> tuple[da.Mechanism, np.ndarray, np.random.Generator]:
    """A tree with a loop that a constraint closes where the tree happens to be."""
    open_tree = tree(["revolute", "spherical", "prismatic", "universal"], 11, chain=True)
    rng = np.random.default_rng(4)
    q = open_tree.random(rng)
    one, two = (Placement(*open_tree.kinematics(q, name)) for name in ("b3", "b0"))
    return open_tree.constrain(CONSTRAINTS[kind](two.inverse() @ one)), q, rng


@pytest.mark.parametrize("kind", CONSTRAINTS)
def test_Y4_constraints_of_a_mechanism_in_both_kinds_of_coordinates(kind):
    """Rows, names and multipliers of the mechanism itself."""
    mechanism, q, rng = closed_tree(kind)
    v, tau = rng.standard_normal((2, mechanism.nv))
    A = mechanism.jacobian(q)
    v -= np.linalg.pinv(A) @ A @ v
    assert_forward(mechanism, q, v, tau)
    assert_balanced(mechanism, q, v, tau, mechanism.forward(q, v, tau).acceleration)
    assert_inverse(mechanism, q, v, rng.standard_normal(mechanism.nv), "essential")


def test_Y4_couplings_in_both_kinds_of_coordinates():
    """The Panda's fingers, and a gear between a hinge, a slider and a screw."""
    panda = da.load(ROBOTS / "panda_description/urdf/panda.urdf")
    geared = tree(["revolute", "prismatic", "helical"], 3).constrain(
        da.Coupler({"j0": 2.0, "j1": -1.5, "j2": 1.0}, offset=0.3, name="gear")
    )
    for mechanism in (panda, geared):
        rng = np.random.default_rng(1)
        q, (v, tau) = mechanism.random(rng), rng.standard_normal((2, mechanism.nv))
        A = mechanism.jacobian(q)
        q = mechanism.project(q)
        v -= np.linalg.pinv(A) @ A @ v
        assert_forward(mechanism, q, v, tau)
        assert_balanced(mechanism, q, v, tau, mechanism.forward(q, v, tau).acceleration)


def test_Y4_springs_between_frames_and_compensated_weights():
    b = da.Builder("hung", gravity=(1.0, 2.0, -9.0))
    rng = np.random.default_rng(8)
    for i, kind in enumerate(("free", "revolute", "universal")):
        b.body(f"b{i}", inertia=random_inertia(rng), compensation=0.3 * i)
        b.joint(f"j{i}", kind, parent=f"b{i - 1}" if i else "world", child=f"b{i}", placement=random_placement(rng),
                child_placement=random_placement(rng))  # fmt: skip
    b.spring("rubber", "b2", "world", stiffness=30.0, rest=0.4, damping=2.0)
    b.spring("band", "b2", "b0", stiffness=10.0)
    mechanism = b.build()
    q, (v, tau) = mechanism.random(rng), rng.standard_normal((2, mechanism.nv))
    tau[:6] = 0.0
    assert_inverse(mechanism, q, v, rng.standard_normal(mechanism.nv), "essential")
    assert_balanced(mechanism, q, v, tau, mechanism.forward(q, v, tau).acceleration)


def four_bar() -> da.Mechanism:
    """A planar four-bar linkage of hinges in space: three of its rows are redundant."""
    b = da.Builder("four-bar")
    for i, (length, at) in enumerate(((1.0, 0.0), (1.5, 1.0), (1.2, 1.5))):
        b.body(f"b{i}", mass=1.0 + i, center=(length / 2, 0, 0), inertia=(0.1, 0.2, 0.3))
        b.joint(f"j{i}", "revolute", parent=f"b{i - 1}" if i else "world", child=f"b{i}", axis=(0, 0, 1),
                position=(at, 0, 0))  # fmt: skip
    b.loop("pin", "revolute", "b2", "world", Placement(np.eye(3), np.array([1.2, 0, 0])),
           Placement(np.eye(3), np.array([2.0, 0, 0])), axis=(0, 0, 1))  # fmt: skip
    return b.build()


def test_redundant_rows_are_named_and_can_be_left_out():
    """Wojtyra: without the redundant rows multipliers are unique, and bodies move as before."""
    mechanism = four_bar()
    q, v = mechanism.project(np.array([1.0, -0.8, -1.2]), np.array([1.0, 0.0, 0.0]))
    tableau = maximal(mechanism)
    found = redundant_rows(tableau, body_positions(mechanism, q))
    assert len(found) == 3
    assert all(name.startswith("joint ") for name in found)
    left = without_rows(tableau, found)
    assert len(left.unknowns) == len(left.equations) == len(tableau.equations) - 3
    assert signature(left).freedom == 2
    tau = np.array([1.0, 0.0, 0.0])
    a, _, status = mechanism.forward(q, v, tau)
    assert int(status) == da.Status.REDUNDANT
    A = assert_balanced(mechanism, q, v, tau, a, left)
    assert np.linalg.matrix_rank(A) == A.shape[1]
    full = assert_balanced(mechanism, q, v, tau, a)
    assert np.linalg.matrix_rank(full) == full.shape[1] - 3
    assert not redundant_rows(left, body_positions(mechanism, q))


def test_reactions_of_least_norm_do_not_depend_on_the_rows_left_out():
    """Forces on the bodies stay; no part along the null space of the rows, which SciPy finds."""
    mechanism = four_bar()
    q, v = mechanism.project(np.array([1.0, -0.8, -1.2]), np.array([1.0, 0.0, 0.0]))
    tau = np.array([1.0, 0.0, 0.0])
    tableau = maximal(mechanism)
    place = body_positions(mechanism, q)
    B = assert_balanced(mechanism, q, v, tau, mechanism.forward(q, v, tau).acceleration)
    names = [name for name in tableau.unknowns if name.startswith("lam ")]
    left_out = {f"lam {row.split(' ', 1)[1]}" for row in redundant_rows(tableau, place)}
    lam = np.random.default_rng(0).standard_normal(len(names)) * [name not in left_out for name in names]
    found = least_norm(tableau, place, dict(zip(names, lam, strict=True)))
    shared = np.array([found[name] for name in names])
    np.testing.assert_allclose(B @ shared, B @ lam, atol=1e-12)
    free = null_space(B, rcond=1e-9)
    assert free.shape[1] == 3
    np.testing.assert_allclose(free.T @ shared, 0.0, atol=1e-12)
    assert np.linalg.norm(shared) < 0.99 * np.linalg.norm(lam)
    other = least_norm(tableau, place, dict(zip(names, lam + free @ [1.0, -2.0, 0.5], strict=True)))
    np.testing.assert_allclose([other[name] for name in names], shared, atol=1e-12)
    with pytest.raises(ModelError, match="'lam j9': no multiplier"):
        least_norm(tableau, place, {"lam j9": 1.0})


def test_redundancy_refuses_what_it_cannot_decide():
    tableau = maximal(four_bar())
    with pytest.raises(ModelError, match="no value for 'p b0'"):
        redundant_rows(tableau, {})
    with pytest.raises(ModelError, match="'force b0\\[0\\]': no row of a joint"):
        without_rows(tableau, ["force b0[0]"])


def test_what_a_tableau_cannot_express_is_refused_by_name():
    with pytest.raises(ModelError, match="not from str"):
        newton_euler("panda.urdf")  # type: ignore[arg-type]
    plain = tree(["revolute", "universal"], 0)
    with pytest.raises(ModelError, match=r"level 'jerk'.*'acceleration', 'velocity', 'position'"):
        newton_euler(plain, level="jerk")
    half = plain.constrain(da.Coupler({"j1.1": 1.0}, name="half"))
    with pytest.raises(UnsupportedError, match=r"coupling 'half' of 'j1.1'.*newton_euler"):
        maximal(half)
    written = plain.constrain(da.Expression(lambda k: k.q[0] - 0.1, name="own"))
    with pytest.raises(UnsupportedError, match=r"'own' \(expression\).*newton_euler"):
        maximal(written)
    newton_euler(written)


def one_body(kind: str = "revolute", **values) -> da.Builder:
    b = da.Builder("one")
    b.body("rod", mass=1.0, center=(0, 0, -0.5), inertia=(0.1, 0.1, 0.01), compensation=values.pop("compensation", 0))
    b.joint("hinge", kind, parent="world", child="rod", axis=(0, 1, 0), **values)
    return b


def test_passive_forces_that_are_refused_by_name():
    b = one_body()
    b.tendon("rubber", {"hinge": 1.0}, stiffness=3.0)
    with pytest.raises(UnsupportedError, match=r"'rubber'.*with_passive"):
        newton_euler(b.build())
    with pytest.raises(UnsupportedError, match="'hinge' is continuous with a spring"):
        newton_euler(one_body("continuous", stiffness=1.0).build())
    with pytest.raises(UnsupportedError, match="'hinge' is spherical with a spring"):
        newton_euler(one_body("spherical", stiffness=1.0).build())
    with pytest.raises(UnsupportedError, match="'hinge' is free and has armature and damping"):
        maximal(one_body("free", armature=1.0, damping=1.0).build())
    with pytest.raises(UnsupportedError, match=r"'hinge' is universal with a spring.*newton_euler"):
        maximal(one_body("universal", stiffness=1.0, axis2=(1, 0, 0)).build())
    with pytest.raises(ModelError, match="no body that moves"):
        newton_euler(one_body("fixed").build())


def test_a_loop_on_one_rigid_body_is_refused():
    b = one_body()
    b.body("tip", mass=0.1)
    b.joint("weld", "fixed", parent="rod", child="tip")
    b.loop("knot", "revolute", "rod", "tip", axis=(0, 1, 0))
    with pytest.raises(ModelError, match="'loop knot' joins two frames of one rigid body"):
        maximal(b.build())
