"""Joint forces: against Pinocchio, MuJoCo, and the equations of bodies cut free; uniqueness, choice, cut and root."""

from __future__ import annotations

import itertools

import mujoco
import numpy as np
import pinocchio as pin
import pytest
from scipy.linalg import eigh

import dalembert as da
from dalembert.model.mechanism import calls
from tests.reference.free_bodies import FreeBodies
from tests.simulate import overconstrained
from tests.tree import closed
from tests.tree.contacts import GO2

Z = (0, 0, 1)


@pytest.fixture
def interpreted(monkeypatch):
    """Run kernels by their plain twin: no time is spent on compiling mechanisms that are asked once."""
    compiled = calls.compiled
    monkeypatch.setattr(calls, "compiled", lambda m, what, options: compiled(m, what, {"backend": "numpy", **options}))


def state(mechanism, seed=0, start=None):
    """Return a closed configuration, an admissible velocity and joint forces."""
    rng = np.random.default_rng(seed)
    q = mechanism.assemble(mechanism.neutral() if start is None else start).q
    v = mechanism.project(q, rng.standard_normal(mechanism.nv))[1]
    return q, v, rng.standard_normal(mechanism.nv)


# ----------------------------------------------------------------------------------------------------------------------
# Open trees: others' Newton-Euler.


def test_wrenches_of_a_tree_are_pinocchios_data_f():
    """The parent's force on the child in the joint's axes; Go2 flies, so that its base gets what motors give it."""
    robot, model = GO2.tree(), GO2.pinocchio()
    rng = np.random.default_rng(1)
    q, v, tau = robot.random(rng, 3), rng.standard_normal((3, robot.nv)), rng.standard_normal((3, robot.nv))
    forces = robot.joint_forces(q, v, tau)
    data = model.createData()
    for k in range(3):
        pin.rnea(model, data, q[k], v[k], pin.aba(model, data, q[k], v[k], tau[k]))
        for joint in robot.joints:
            if joint.kind == "revolute":
                expected = data.f[model.getJointId(joint.name)].vector
                np.testing.assert_allclose(forces[joint.name].wrench[k], expected, atol=1e-10)
    assert forces.unique.all()
    np.testing.assert_allclose(forces[robot.joints[0].name].working, tau[:, :6], atol=1e-9)
    knee = forces["FL_calf_joint"]
    axis = np.array([*np.zeros(3), *robot.joint("FL_calf_joint").axis])
    np.testing.assert_allclose(knee.working @ axis, tau[:, robot.index_v("FL_calf_joint")][:, 0], atol=1e-10)
    np.testing.assert_allclose(knee.constraint @ axis, 0, atol=1e-10)


ARM = """
<mujoco><option gravity="0.3 -0.2 -9.81"/><worldbody>
  <body pos="0.1 0 0.2" euler="20 10 0"><joint name="j1" type="hinge" axis="0 0 1" pos="0 0 0.1"/>
    <inertial pos="0.1 0.05 0.1" mass="2" fullinertia="0.03 0.04 0.05 0.002 0.001 0.003"/>
    <body name="plate" pos="0.2 0 0.1"><inertial pos="0 0.1 0" mass="0.5" diaginertia="0.01 0.01 0.02"/>
      <body pos="0.3 0.1 0" euler="0 40 0"><joint name="j2" type="slide" axis="1 0 0"/>
        <inertial pos="0 0 0.2" mass="1" diaginertia="0.02 0.02 0.01"/>
        <body pos="0 0 0.3"><joint name="j3" type="ball"/>
          <inertial pos="0.1 0 0" mass="0.7" diaginertia="0.01 0.03 0.02"/></body></body></body></body>
</worldbody></mujoco>"""


def test_wrenches_with_sliders_balls_and_welds_are_mujocos_cfrc_int(tmp_path):
    """Interaction forces of MuJoCo are in world axes about the centre of mass of the tree, [moment; force]."""
    file = tmp_path / "arm.xml"
    file.write_text(ARM)
    arm = da.load(file)
    model = mujoco.MjModel.from_xml_string(ARM)
    data = mujoco.MjData(model)
    rng = np.random.default_rng(2)
    q, v = arm.random(rng), rng.standard_normal(arm.nv)
    there = da.readers.state_map(arm, "mujoco")
    data.qpos[:], data.qvel[:] = there.to_q(q), there.to_v(q, v)
    mujoco.mj_forward(model, data)
    mujoco.mj_rnePostConstraint(model, data)
    forces = arm.joint_forces(q, v, axes="world")
    for i, at in enumerate(forces.table):
        body = i + 1
        R, p = arm.kinematics(q, at.child)
        point = p + R @ at.place.position
        moment, force = data.cfrc_int[body, :3], data.cfrc_int[body, 3:]
        lever = point - data.subtree_com[model.body_rootid[body]]
        np.testing.assert_allclose(forces.wrenches[i, :3], force, atol=1e-9)
        np.testing.assert_allclose(forces.wrenches[i, 3:], moment - np.cross(lever, force), atol=1e-9)


# ----------------------------------------------------------------------------------------------------------------------
# Loops: bodies cut free.

LINKAGES = {
    "slider-crank": (closed.slider_crank, np.array([0.7, -1.0, 1.1])),
    "four-bar": (lambda: closed.four_bar(da.Revolute, axis=Z), np.array([1.0, -0.5, 1.5])),
    "Stewart platform": (lambda: closed.stewart()[0], None),
    "Bennett": (overconstrained.bennett, None),
    "Bricard": (overconstrained.bricard, None),
    "three cranks": (closed.parallelogram, np.array([1.2, 1.2, 1.2, -1.2])),
    "door": (closed.door, None),
    "foot that is held": (lambda: closed.walker().constrain(da.Weld("foot"), da.Point("trunk")), None),
}


@pytest.mark.parametrize("name", LINKAGES)
def test_wrenches_of_loops_are_those_of_bodies_cut_free(name, interpreted):
    """Unique components agree with maximal coordinates; the others differ by a member of their family."""
    make, start = LINKAGES[name]
    mechanism = make()
    start = closed.closed_configuration(mechanism) if name == "Stewart platform" else start
    q, v, tau = state(mechanism, start=start)
    forces = mechanism.joint_forces(q, v, tau)
    assert forces.status <= da.Status.REDUNDANT
    free = FreeBodies(mechanism, q, v, forces.acceleration, tau)
    size = np.abs(free.wrenches()).max()
    assert free.imbalance < 1e-9 * size
    np.testing.assert_array_equal(forces.unique, free.unique())
    assert len(forces.family) == free.null.shape[1]
    np.testing.assert_allclose(forces.wrenches[forces.unique], free.wrenches()[free.unique()], atol=1e-9 * size)
    rest = (forces.wrenches - free.wrenches()).ravel()
    basis = free.family().reshape(len(forces.family), rest.size).T
    np.testing.assert_allclose(basis @ np.linalg.lstsq(basis, rest, rcond=None)[0], rest, atol=1e-9 * size)
    members = forces.family.reshape(len(forces.family), rest.size).T
    np.testing.assert_allclose(basis @ np.linalg.lstsq(basis, members, rcond=None)[0], members, atol=1e-9)


# ----------------------------------------------------------------------------------------------------------------------
# The same mechanism cut elsewhere, and hung up elsewhere.


class Graph:
    """Bodies and hinges between them, drawn in one closed configuration: body frames are the world's there."""

    def __init__(self, bodies, hinges, gravity=(1.3, -2.1, -9.0)):
        self.bodies, self.hinges, self.gravity = bodies, hinges, gravity

    def cuts(self):
        """Return every set of hinges that can be taken out so that the rest is a tree on the ground."""
        names, count = list(self.hinges), len(self.hinges) - len(self.bodies)
        return [cut for cut in itertools.combinations(names, count) if self._order(cut) is not None]

    def _order(self, cut):
        """Return the tree's hinges from the ground outward, each with parent and child; None if bodies are left out."""
        reached, order = {"world"}, []
        left = [name for name in self.hinges if name not in cut]
        while left:
            found = next((n for n in left if len(reached & set(self.hinges[n][:2])) == 1), None)
            if found is None:
                return None
            left.remove(found)
            one, two = self.hinges[found][:2]
            parent, child = (one, two) if one in reached else (two, one)
            reached.add(child)
            order.append((found, parent, child))
        return order if len(reached) == len(self.bodies) + 1 else None

    def built(self, cut, swap=False):
        """Return the mechanism with these hinges as loops; `swap`: seen from their other bodies."""
        b = da.Builder("graph", gravity=self.gravity)
        for name, (mass, center, moments) in self.bodies.items():
            b.body(name, mass=mass, center=center, inertia=moments)
        for name, parent, child in self._order(cut):
            *_, point, axis = self.hinges[name]
            b.joint(name, "revolute", parent=parent, child=child, axis=axis, placement=point, child_placement=point)
        for name in cut:
            one, two, point, axis = self.hinges[name]
            one, two = (two, one) if swap else (one, two)
            b.loop(name, "revolute", one, two, placement=point, other_placement=point, axis=axis)
        return b.build()


def loop_graph(points, axes):
    """Return a closed chain of links between hinges."""
    count = len(points) - 1
    names = ["world", *(f"link {i}" for i in range(count)), "world"]
    bodies = {}
    for i in range(count):
        middle = (np.asarray(points[i]) + points[i + 1]) / 2 + [0.02 * i, -0.03, 0.01]
        bodies[f"link {i}"] = (1.0 + 0.3 * i, tuple(middle), (0.1, 0.11 + 0.01 * i, 0.09))
    hinges = {f"hinge {i}": (names[i + 1], names[i], tuple(points[i]), tuple(axes[i])) for i in range(count + 1)}
    return Graph(bodies, hinges)


def bricard_graph():
    points = [[0, 0, 0], [1, 0, 0], [1, -1, 0], [1, -1, 1], [0, -1, 1], [0, 0, 1]]
    x, y, z = np.eye(3)
    return loop_graph(points, [y, z, x, y, z, x])


def five_bar_graph():
    """Return a parallel five-bar: two cranks and two rods in a plane, not parallel to the ground's axes."""
    points = [[0, 0, 0], [-0.4, 0.8, 0], [0.5, 1.6, 0], [1.4, 0.9, 0], [1.0, 0, 0]]
    return loop_graph(points, [[0, 0, 1.0]] * 5)


def two_loop_graph():
    """Return three parallel cranks under one coupler: two loops."""
    bodies = {f"crank {i}": (1.0 + i, (i + 0.5, 0.4, 0.05 * i), (0.1, 0.12, 0.1)) for i in range(3)}
    bodies["coupler"] = (3.0, (2.1, 0.8, 0.02), (0.3, 0.9, 1.0))
    hinges = {f"foot {i}": (f"crank {i}", "world", (i, 0, 0), Z) for i in range(3)}
    hinges |= {f"head {i}": ("coupler", f"crank {i}", (i + 1.0, 0.8, 0), Z) for i in range(3)}
    return Graph(bodies, hinges)


def moving(mechanism):
    """Return the velocities of the mechanism's motions, told by the kinetic energy and the speed of the first body."""
    q = mechanism.neutral()
    M, A = mechanism.mass_matrix(q), mechanism.jacobian(q)
    Z = np.linalg.svd(A)[2][np.linalg.matrix_rank(A, tol=1e-9) :].T
    J = np.concatenate(
        [mechanism.frame_jacobian(q, name, "world") for name in sorted(b.name for b in mechanism.bodies)]
    )
    v = Z @ eigh(Z.T @ (J.T @ J) @ Z, Z.T @ M @ Z)[1][:, -1]
    v = v / np.sqrt(v @ M @ v)
    return q, v * np.sign((J @ v)[np.argmax(np.abs(J @ v))])


@pytest.mark.parametrize("make", [bricard_graph, five_bar_graph, two_loop_graph])
def test_no_cut_and_no_root_changes_a_joint_force(make, interpreted):
    """Wrenches, their uniqueness, their family and the member that is chosen: the same for every spanning tree."""
    graph = make()
    known, members = None, None
    cuts = graph.cuts()
    for cut in cuts[:: max(1, len(cuts) // 5)]:
        mechanism = graph.built(cut, swap=len(cut[0]) % 2 == 0)
        q, v = moving(mechanism)
        forces = mechanism.joint_forces(q, v, axes="world")
        signs = {at.name: 1.0 if at.child == graph.hinges[at.name][0] else -1.0 for at in forces.table}
        names = list(graph.hinges)
        W = np.array([signs[name] * forces[name].wrench for name in names])
        unique = np.array([forces[name].unique for name in names])
        T = np.array([[signs[name] * forces[name].family[j] for name in names] for j in range(len(forces.family))])
        T = T.reshape(len(forces.family), -1).T
        if known is None:
            known, members = (W, unique), T
        np.testing.assert_allclose(W, known[0], atol=1e-9 * np.abs(known[0]).max())
        np.testing.assert_array_equal(unique, known[1])
        assert T.shape == members.shape
        np.testing.assert_allclose(members @ np.linalg.lstsq(members, T, rcond=None)[0], T, atol=1e-9)
    assert not unique.all()
    assert unique.any()


# ----------------------------------------------------------------------------------------------------------------------
# Which components are unique: published examples (M. Wojtyra, Multibody System Dynamics 14 (2005) 23-46).


def test_spatial_parallelogram_leaves_all_hinges_open(interpreted):
    """Wojtyra's example with five bodies and hinges alone: in the plane of motion two of three cranks hold the coupler.

    The loop of one crank fewer is determined in its plane, and open across it: forces along the axes, moments about
    the two others.
    """
    mechanism = overconstrained.parallelogram(cranks=2)
    mechanism, q = mechanism if isinstance(mechanism, tuple) else (mechanism, None)
    q = mechanism.assemble(mechanism.neutral()).q if q is None else q
    forces = mechanism.joint_forces(q, np.zeros(mechanism.nv), axes="world")
    assert set(forces.not_unique) == set(forces.names)
    assert all(set(parts) == {"force z", "moment x", "moment y"} for parts in forces.not_unique.values())
    assert len(forces.family) == 3


def test_a_door_on_two_hinges_leaves_the_axial_force_and_two_moments_open(interpreted):
    """Five rows of the second hinge repeat those of the first: of its 10 reactions only few are determined.

    The sum of the axial forces is the weight; radial forces and moments across the axis trade against each other.
    """
    door = hinged_door()
    forces = door.joint_forces(door.neutral(), np.zeros(door.nv))
    assert forces.not_unique == dict.fromkeys(
        ("lower", "upper"), ("force x", "force y", "force z", "moment x", "moment y")
    )
    assert len(forces.family) == 5
    assert forces["lower"].force[2] + forces["upper"].force[2] == pytest.approx(20 * 9.81)
    np.testing.assert_allclose(forces["lower"].force, forces["upper"].force * [-1, -1, 1], atol=1e-9)


def hinged_door():
    """Return a door of 20 kg on two hinges."""
    b = da.Builder("door")
    b.body("leaf", mass=20.0, center=(0.5, 0, 1), inertia=(7, 8.5, 1.7))
    b.joint(
        "lower", "revolute", parent="world", child="leaf", axis=Z, position=(0, 0, 0.2), child_placement=(0, 0, 0.2)
    )
    b.loop("upper", "revolute", "leaf", "world", placement=(0, 0, 1.8), other_placement=(0, 0, 1.8), axis=Z)
    return b.build()


def test_a_parallel_five_bar_is_solvable_with_two_ball_joints_and_names_what_one_leaves_open(interpreted):
    """A rod between balls holds one distance: all reactions are unique. With one ball a direction is held twice."""
    b = da.Builder("five-bar", gravity=(0, -9.81, 0))
    places = {"left crank": (0, 0, 0), "right crank": (1.0, 0, 0)}
    for name, place in places.items():
        b.body(name, mass=1.0, center=(0, 0.4, 0), inertia=(0.05, 0.01, 0.05))
        b.joint(f"{name} foot", "revolute", parent="world", child=name, axis=Z, position=place)
    for side in ("left", "right"):
        b.body(f"{side} rod", mass=0.8, center=(0.1, 0.35, 0), inertia=(0.04, 0.01, 0.04))
    b.joint("left elbow", "revolute", parent="left crank", child="left rod", axis=Z, position=(0, 0.8, 0))
    b.joint("right elbow", "spherical", parent="right crank", child="right rod", position=(0, 0.8, 0))
    b.frame("left tip", "left rod", position=(0.5, 0.6, 0))
    b.frame("right tip", "right rod", position=(-0.5, 0.6, 0))
    tree = b.build()
    balls = tree.constrain(da.Point("right tip", "left tip", name="tip"))
    hinges = tree.constrain(da.Revolute("right tip", "left tip", axis=Z, name="tip"))
    forces = balls.joint_forces(balls.neutral(), np.zeros(balls.nv))
    assert forces.unique.all(), forces.not_unique
    free = FreeBodies(balls, balls.neutral(), np.zeros(balls.nv), forces.acceleration)
    np.testing.assert_allclose(forces.wrenches, free.wrenches(), atol=1e-9)
    forces = hinges.joint_forces(hinges.neutral(), np.zeros(hinges.nv))
    free = FreeBodies(hinges, hinges.neutral(), np.zeros(hinges.nv), forces.acceleration)
    np.testing.assert_array_equal(forces.unique, free.unique())
    assert forces.not_unique["right elbow"] == ("force z",)
    assert "force x" not in forces.not_unique["tip"]


# ----------------------------------------------------------------------------------------------------------------------
# Which member of the family.


def test_flexible_hinges_share_as_bodies_on_springs_do_however_stiff(interpreted):
    """A leaf on two bushings: linear springs give the same forces for every stiffness of one ratio; rigid is the limit.

    The twin holds the leaf by six-component springs and solves for its displacement.
    """
    door = hinged_door()
    soft, stiff = np.array([3e5, 2e5, 1e5, 400.0, 300.0, np.inf]), np.array([7e5, 9e5, 4e5, 900.0, 800.0, np.inf])
    rigid = door.joint_forces(door.neutral(), [0.0], flexible={"lower": soft, "upper": stiff})
    assert rigid.unique.all()
    assert "'lower', 'upper'" in rigid.choice
    for scale in (1.0, 1e3):
        spring = {name: scale * np.where(np.isinf(k), 0.0, k) for name, k in (("lower", soft), ("upper", stiff))}
        K, load = np.zeros((6, 6)), np.concatenate([[0, 0, -20 * 9.81], np.cross([0.5, 0, 1], [0, 0, -20 * 9.81])])
        moves = {name: displacement(np.array([0, 0, z])) for name, z in (("lower", 0.2), ("upper", 1.8))}
        for name, J in moves.items():
            K += J.T @ np.diag(spring[name]) @ J
        held = np.delete(np.arange(6), 5)  # the door swings freely
        x = np.zeros(6)
        x[held] = np.linalg.solve(K[np.ix_(held, held)], load[held])
        for name, J in moves.items():
            np.testing.assert_allclose(-spring[name] * (J @ x), rigid[name].wrench, atol=1e-8)
    one = door.joint_forces(door.neutral(), [0.0], flexible={"upper": 1e6})
    np.testing.assert_allclose(one["upper"].force, 0, atol=1e-9)  # what gives way leaves the load to what is rigid
    assert not one.unique[:, 3:5].any()
    assert "leave open" in one.choice


def displacement(point):
    """Return the map from a body's small displacement (at the origin) and turn to those at a point."""
    x, y, z = point
    return np.block([[np.eye(3), -np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])], [np.zeros((3, 3)), np.eye(3)]])


def test_a_flexible_joint_that_takes_no_part_decides_nothing(interpreted):
    """A lever on a door with two hinges: its own hinge carries its weight whatever the door's do."""
    b = da.Builder("door")
    b.body("leaf", mass=20.0, center=(0.5, 0, 1), inertia=(7, 8.5, 1.7))
    b.joint(
        "lower", "revolute", parent="world", child="leaf", axis=Z, position=(0, 0, 0.2), child_placement=(0, 0, 0.2)
    )
    b.body("lever", mass=0.3, center=(0.05, 0, 0), inertia=(1e-3, 1e-3, 1e-3))
    b.joint("knob", "revolute", parent="leaf", child="lever", axis=(0, 1, 0), position=(0.9, 0, 1))
    b.loop("upper", "revolute", "leaf", "world", placement=(0, 0, 1.8), other_placement=(0, 0, 1.8), axis=Z)
    door = b.build()
    still = door.neutral(), np.zeros(2)
    alike, knob = door.joint_forces(*still), door.joint_forces(*still, flexible={"knob": 1e5})
    assert "knob" not in alike.not_unique
    np.testing.assert_allclose(knob.wrenches, alike.wrenches, atol=1e-9)
    np.testing.assert_array_equal(knob.unique, alike.unique)


def test_flexible_words_that_make_no_sense_are_refused(interpreted):
    door = hinged_door()
    still = door.neutral(), np.zeros(1)
    with pytest.raises(da.ModelError, match="upper"):
        door.joint_forces(*still, flexible={"uper": 1e6})
    with pytest.raises(da.ModelError, match="must be positive"):
        door.joint_forces(*still, flexible={"upper": -1e6})
    with pytest.raises(da.ModelError, match="'child', 'parent', 'world'"):
        door.joint_forces(*still, axes="body")
    assert door.joint_forces(*still, flexible={}).choice == door.joint_forces(*still).choice


# ----------------------------------------------------------------------------------------------------------------------
# Other questions: parts of a wrench, axes, springs and motors, rest, inverse dynamics, kernels.


def test_parts_axes_springs_and_motors(interpreted):
    """Of a screw, a cardan joint and a spring: power is that of the working part; turning axes turns the wrench."""
    b = da.Builder("parts")
    kinds = {"screw": "helical", "cardan": "universal", "hinge": "revolute", "bolt": "fixed"}
    parent = "world"
    for name, kind in kinds.items():
        b.body(f"{name} body", mass=1.0, center=(0.1, 0.2, 0.05), inertia=(0.02, 0.03, 0.04))
        b.joint(name, kind, parent=parent, child=f"{name} body", axis=(0.2, 0.3, 1.0), axis2=(1, 0.2, 0), pitch=0.05,
                position=(0.3, 0.1, 0.2), rotation=(0.1, 0.2, 0.3, 0.9), child_placement=(0.05, 0, 0.1),
                **({"damping": 0.3, "armature": 0.1} if name == "hinge" else {}))  # fmt: skip
        parent = f"{name} body"
    b.frame("anchor", "world", position=(1, 1, 1))
    b.spring("wire", "bolt body", "anchor", stiffness=100.0, rest=0.5)
    b.actuator("motor", "hinge", gear=2.0)
    m = b.build()
    rng = np.random.default_rng(0)
    q, v, tau = m.random(rng), rng.standard_normal(m.nv), rng.standard_normal(m.nv)
    forces = m.joint_forces(q, v, tau)
    a = forces.acceleration
    resist = np.zeros(m.nv)
    resist[m.index_v("hinge")] = 0.3 * v[m.index_v("hinge")] + 0.1 * a[m.index_v("hinge")]
    free = FreeBodies(m, q, v, a, tau - resist)
    R, p = m.kinematics(q, "bolt body")
    pull = np.array([1.0, 1, 1]) - p
    length = np.linalg.norm(pull)
    wire = 100 * (length - 0.5) * pull / length
    np.testing.assert_allclose(forces["wire"].force, R.T @ wire, atol=1e-10)
    free.b[-6:] -= np.concatenate([wire, np.cross(-R @ m.body("bolt body").inertia.center, wire)])
    free.x = np.linalg.lstsq(free.E, free.b, rcond=None)[0]
    assert free.imbalance < 1e-9
    for i, name in enumerate(kinds):
        np.testing.assert_allclose(forces[name].wrench, free.wrenches()[i], atol=1e-9)
        world, other = forces.in_axes("world")[name], forces.in_axes("parent")[name]
        assert np.linalg.norm(world.force) == pytest.approx(np.linalg.norm(other.force))
        R, _ = m.kinematics(q, m.joint(name).child)
        np.testing.assert_allclose(R @ forces[name].force, world.force, atol=1e-10)
        np.testing.assert_allclose(forces[name].constraint + forces[name].working, forces[name].wrench)
    assert not forces["bolt"].working.any()
    assert forces["wire"].constraint == pytest.approx(np.zeros(6))
    axis = np.array(m.joint("hinge").axis)
    np.testing.assert_allclose(forces["motor"].moment, tau[m.index_v("hinge")] * axis, atol=1e-12)
    assert "wire" in str(forces)
    assert "force x" in str(forces["screw"])


@pytest.mark.parametrize("axes", ["child", "parent", "world"])
def test_the_kernel_says_what_the_method_says(axes, interpreted):
    """One function for forward dynamics and wrenches: of a tree, and of a loop whose wrenches are unique."""
    slider = closed.slider_crank()
    trees = [(closed.branched(), None)] if axes == "world" else []
    for mechanism, q in ((slider, slider.assemble([0.7, -1.0, 1.1]).q), *trees):
        q = mechanism.random(0) if q is None else q
        rng = np.random.default_rng(1)
        v, tau = mechanism.project(q, rng.standard_normal(mechanism.nv))[1], rng.standard_normal(mechanism.nv)
        W, a, _lam, status, unique = mechanism.compile("joint_forces", axes=axes)(q, v, tau, np.zeros(1))
        forces = mechanism.joint_forces(q, v, tau, axes=axes)
        np.testing.assert_allclose(a, forces.acceleration, atol=1e-8)
        assert int(status[0]) == forces.status
        size = np.abs(W).max()
        np.testing.assert_allclose(W, forces.wrenches, atol=1e-9 * size)
        np.testing.assert_array_equal(unique, forces.unique)
        some = mechanism.compile("joint_forces", axes=axes, joints=forces.names[:1])(q, v, tau, np.zeros(1))[0]
        np.testing.assert_allclose(some.ravel(), W[0], atol=1e-9 * size)


def test_rest_and_inverse_dynamics_of_a_standing_robot(interpreted):
    """Feet may press against each other: 6 internal forces, so that no foot's force and no knee's torque is unique."""
    robot = GO2.in_contact()
    motors = [joint.name for joint in robot.joints if joint.kind == "revolute"]
    q = np.tile(robot.neutral(), (2, 1))
    q[:, 7:] = [0.0, 0.8, -1.6] * 4
    still = np.zeros_like(q[:, 1:])
    answer = robot.inverse(q, still, still, actuated=motors)
    tau, _lam, status = answer
    assert (status == da.Status.REDUNDANT).all()
    assert answer.unique.shape == (2, 12)
    assert not answer.unique.any()
    assert answer.tau_unique[:, :6].all()
    assert not answer.tau_unique[:, 6:].any()
    forces = answer.joint_forces
    assert forces.family.shape[1] == 6
    assert not forces["FL_foot"].unique[:, :3].any()
    weight = sum(forces[foot].force for foot in GO2.frames)
    np.testing.assert_allclose(np.linalg.norm(weight, axis=1), robot.mass * 9.81, rtol=1e-9)
    np.testing.assert_allclose(
        forces["FL_calf_joint"].working[:, 4], tau[:, robot.index_v("FL_calf_joint")][:, 0], atol=1e-9
    )
    np.testing.assert_allclose(forces[robot.joints[0].name].wrench, 0, atol=1e-9)  # nothing else holds the trunk
    again = robot.joint_forces(q, still, tau)  # under these torques the feet's forces are determined
    assert again.unique.all()
    np.testing.assert_allclose(again.wrenches, forces.wrenches, atol=1e-7)
    with pytest.raises(da.ModelError, match="motors' forces"):
        forces.with_flexible({"FL_foot": 1e5})


def test_joint_forces_at_rest(interpreted):
    """A crank that hangs: its hinge bears the weight of all that the other hinge does not."""
    four_bar = closed.four_bar(da.Revolute, axis=Z)
    rest = four_bar.equilibrium(np.array([-1.0, 0.5, -1.5]))
    forces = rest.joint_forces.in_axes("world")
    weight = -four_bar.mass * np.array(four_bar.gravity)
    np.testing.assert_allclose(forces["A"].force + forces["D"].force, weight, atol=1e-6)
    free = FreeBodies(four_bar, rest.q, np.zeros(3), np.zeros(3))
    np.testing.assert_allclose(rest.joint_forces.wrenches[:, :2], free.wrenches()[:, :2], atol=1e-6)


def test_an_expression_acts_on_the_bodies_of_its_frames(interpreted):
    """The same rod as a distance between frames and as an expression: hinges bear the same."""
    import casadi as ca

    b = da.Builder("arm", gravity=(0, -9.81, 0.5))
    for i, parent in enumerate(("world", "link 0")):
        b.body(f"link {i}", mass=1.0, center=(0.5, 0.1, 0), inertia=(0.1, 0.2, 0.2))
        b.joint(f"hinge {i}", "revolute", parent=parent, child=f"link {i}", axis=(0, 0.1, 1), position=(i, 0, 0))
    b.frame("hand", "link 1", position=(1, 0, 0.1))
    arm = b.build()

    def rod(k):
        d = k.frame("hand").position - np.array([[1.0], [2.0], [0.0]])
        return (ca.dot(d, d) - 2.0) / 2

    q = np.array([0.3, 0.4])
    length = float(np.linalg.norm(arm.kinematics(q, "hand")[1] - [1, 2, 0]))
    one = arm.constrain(da.Distance("hand", at=(1, 2, 0), length=length))
    other = arm.constrain(da.Expression(rod, name="rod"))
    v = one.project(q, np.array([1.0, -0.3]))[1]
    expected, found = (m.joint_forces(q, v) for m in (one, other))
    assert set(found.names) == {"hinge 0", "hinge 1"}
    np.testing.assert_allclose(found.wrenches, expected.wrenches[:2], atol=1e-9)


def test_two_equal_gears_share_a_torque_that_no_wrench_shows(interpreted):
    """Multipliers of the gears are a family; what the wheels' hinges bear is unique. Samples agree with `solve`."""
    b = da.Builder("gears")
    for i in range(2):
        b.body(f"wheel {i}", mass=1.0, center=(0.1, 0, 0), inertia=(0.1, 0.1, 0.1))
        b.joint(f"hinge {i}", "revolute", parent="world", child=f"wheel {i}", axis=Z, position=(i, 0, 0))
    for name in ("mesh", "again"):
        b.couple(name, {"hinge 0": 1.0, "hinge 1": 2.0})
    b.frame("rim", "wheel 1", position=(0.2, 0, 0))
    gears = b.build()
    q, v = np.zeros((3, 2)), np.tile([1.0, -0.5], (3, 1))
    forces = gears.joint_forces(q, v, [3.0, 0.0])
    assert forces.unique.all()
    assert not forces.multipliers_unique.any()
    np.testing.assert_array_equal(forces.multipliers_unique[0], gears.solve(q[0], v[0], [3.0, 0.0]).certificate.unique)
    door = hinged_door()
    swinging = door.joint_forces(np.zeros((3, 1)), np.ones((3, 1)))
    expected = door.solve([0.0], [1.0]).certificate.unique
    np.testing.assert_array_equal(swinging.multipliers_unique, np.tile(expected, (3, 1)))


def test_a_rigid_frame_has_no_motion_and_a_family_of_six(interpreted):
    """Welded to the ground at both ends: nothing moves, the sum of the feet is the weight, the rest is a choice."""
    b = da.Builder("frame")
    b.body("post", mass=2.0, center=(0.1, 0, 1), inertia=(1, 1, 1))
    b.joint("foot", "fixed", parent="world", child="post")
    b.body("arm", mass=1.0, center=(0.5, 0, 0))
    b.joint("bolt", "fixed", parent="post", child="arm", position=(0, 0, 2))
    open_frame = b.build()
    np.testing.assert_allclose(open_frame.joint_forces([], [])["bolt"].wrench, [0, 0, 9.81, 0, -4.905, 0], atol=1e-12)
    b.loop("strut", "weld", "arm", "world", placement=(1, 0, 0), other_placement=(1, 0, 2))
    forces = b.build().joint_forces([], [])
    assert forces.family.shape == (6, 3, 6)
    assert not forces.unique.any()
    np.testing.assert_allclose(forces["foot"].force + forces["strut"].force, [0, 0, 3 * 9.81], atol=1e-9)


# ----------------------------------------------------------------------------------------------------------------------
# Friction that depends on the load.


def test_friction_of_bearings_follows_the_load(interpreted):
    """A loaded rotor by hand: torque mu r |F|, F from its weight and its own acceleration; a slider on its guide."""
    b = da.Builder("rotor", gravity=(0, -9.81, 0))
    b.body("disc", mass=3.0, center=(0.2, 0, 0), inertia=(0.1, 0.1, 0.2))
    b.joint("shaft", "revolute", parent="world", child="disc", axis=Z)
    rotor = b.build()
    w, mu, r = 5.0, 0.2, 0.03
    forces = rotor.joint_forces([0.3], [w], [2.0], bearings={"shaft": (r, mu)})
    torque, a = float(forces.friction["shaft"]), float(forces.acceleration[0])
    load = np.linalg.norm(forces["shaft"].force[:2])
    assert torque == pytest.approx(-mu * r * load, rel=1e-12)
    assert (0.2 + 3.0 * 0.04) * a == pytest.approx(2.0 + torque - 3.0 * 9.81 * 0.2 * np.cos(0.3))
    acceleration = 0.2 * a * np.array([-np.sin(0.3), np.cos(0.3)]) - 0.2 * w**2 * np.array([np.cos(0.3), np.sin(0.3)])
    assert load == pytest.approx(np.linalg.norm(3.0 * (acceleration + np.array([0, 9.81]))))
    assert float(rotor.joint_forces([0.3], [-w], bearings={"shaft": (r, mu)}).friction["shaft"]) > 0
    b = da.Builder("sled", gravity=(0, 0, -9.81))
    b.body("sled", mass=2.0)
    b.joint("rail", "prismatic", parent="world", child="sled", axis=(1, 0, 0))
    sled = b.build().joint_forces(np.zeros((2, 1)), [[1.0], [-1.0]], bearings={"rail": 0.3})
    np.testing.assert_allclose(sled.acceleration[:, 0], [-0.3 * 9.81, 0.3 * 9.81])


def test_friction_of_bearings_is_refused_where_it_is_no_answer(interpreted):
    """A load that is a choice, a bearing at rest, a linkage that jams, words that make no sense."""
    door = hinged_door()
    with pytest.raises(da.ModelError, match="not unique"):
        door.joint_forces([0.0], [1.0], bearings={"lower": (0.01, 0.1)})
    stiff = {"lower": (1e6, 1e3), "upper": (1e6, 1e3)}
    sure = door.joint_forces([0.0], [1.0], flexible=stiff, bearings={"lower": (0.01, 0.1)})
    assert float(sure.friction["lower"]) == pytest.approx(-1e-3 * np.linalg.norm(sure["lower"].force[:2]))
    with pytest.raises(da.ModelError, match="at rest"):
        door.joint_forces([0.0], [0.0], flexible=stiff, bearings={"lower": (0.01, 0.1)})
    upper = door.joint_forces([0.0], [1.0], flexible=stiff, bearings={"upper": (0.01, 0.1)})
    turn = float(upper.friction["upper"])  # of the parent on the child, which are the other way round in the loop
    assert abs(turn) == pytest.approx(1e-3 * np.linalg.norm(upper["upper"].force[:2]))
    assert turn * upper["upper"].moment[2] > 0.0
    with pytest.raises(da.ModelError, match="radius in metres, coefficient"):
        door.joint_forces([0.0], [1.0], flexible=stiff, bearings={"lower": 0.1})
    slider = closed.slider_crank()
    q = slider.assemble([0.7, -1.0, 1.1]).q
    v = slider.project(q, np.array([1.0, 0, 0]))[1]
    pins = slider.open_tree().constrain(da.PointOnLine("rod end", "block", axis=Z, name="wrist pin"))
    with pytest.raises(da.ModelError, match="'wrist pin' closes a loop and is no hinge"):
        pins.joint_forces(q, v, bearings={"wrist pin": (0.01, 0.1)})
    jammed = pins.joint_forces(q, v, [10.0, 0, 0], bearings={"slide": 50.0})
    assert jammed.status == da.Status.DECLINED
    assert np.isnan(jammed.wrenches).all()
    assert np.isnan(jammed.multipliers).all()
    assert not jammed.multipliers_unique.any()
    moving = pins.joint_forces(q, v, [10.0, 0, 0], bearings={"slide": 0.1, "A": (0.02, 0.1)})
    guide = np.linalg.norm(moving["slide"].force[1:])
    assert float(moving.friction["slide"]) == pytest.approx(-np.sign(v[2]) * 0.1 * guide)
    drive = np.array([10.0 + float(moving.friction["A"]), 0, float(moving.friction["slide"])])
    np.testing.assert_allclose(pins.forward(q, v, drive).acceleration, moving.acceleration, rtol=1e-9)


# ----------------------------------------------------------------------------------------------------------------------
# Inverse dynamics where straight-line code declines.


def test_inverse_dynamics_says_why_it_has_no_answer():
    """A parallelogram laid flat: two rows of its loop become one; beside it they do not."""
    b = da.Builder("parallelogram", gravity=(0, -9.81, 0))
    for name, length in (("crank", 0.5), ("coupler", 1.0), ("rocker", 0.5)):
        b.body(name, mass=1.0, center=(length / 2, 0, 0), inertia=(1e-3, 0.1, 0.1))
    axis = (0, 0, 1)
    b.joint("A", "revolute", "world", "crank", axis=axis)
    b.joint("B", "revolute", "crank", "coupler", axis=axis, position=(0.5, 0, 0))
    b.joint("D", "revolute", "world", "rocker", axis=axis, position=(1.0, 0, 0))
    b.loop("C", "revolute", "coupler", "rocker", placement=(1.0, 0, 0), other_placement=(0.5, 0, 0), axis=axis)
    m = b.build()
    q = np.array([[0.5, -0.5, 0.5], [0.0, 0.0, 0.0], [1e-10, -1e-10, 1e-10]])
    still = np.zeros((3, 3))
    answer = m.inverse(q, still, still, actuated=["A"])
    assert list(answer.status > da.Status.ILL_CONDITIONED) == [False, True, True]
    assert answer.reason.startswith("2 of 3 samples, the first is number 1: the configuration is singular")
    assert "'loop C x'" in answer.reason
    beside = m.inverse(q[2], still[2], still[2], actuated=["A"])
    assert "next to a singular one" in beside.reason
    assert not m.inverse(q[0], still[0], still[0]).reason
    weak = m.open_tree().inverse(q[0], still[0], still[0], actuated=["A"])
    assert weak.reason == "no forces of these motors cause this motion"


def test_a_driven_crank_has_its_loads_at_dead_centres(interpreted):
    """All five rows of the wrist pin: pivots of a kernel vanish where the rod is in line, and nothing is singular."""
    r, rod = 0.12, 0.37
    b = da.Builder("slider-crank", gravity=(0, -9.81, 0))
    for name in ("crank", "rod", "block"):
        b.body(name, mass=1.0, center=(0.0 if name == "block" else 0.05, 0, 0), inertia=(0.01, 0.01, 0.01))
    b.joint("A", "revolute", "world", "crank", axis=Z)
    b.joint("B", "revolute", "crank", "rod", axis=Z, position=(r, 0, 0))
    b.joint("guide", "prismatic", "world", "block")
    b.loop("pin", "revolute", "rod", "block", placement=(rod, 0, 0), axis=Z)
    m = b.build()
    theta, w = np.linspace(0, 2 * np.pi, 9), 10.0
    phi = -np.arcsin(r * np.sin(theta) / rod)
    rate = -r * w * np.cos(theta) / (rod * np.cos(phi))
    q = np.stack([theta, phi - theta, r * np.cos(theta) + rod * np.cos(phi)], axis=1)
    v = np.stack([w + 0 * theta, rate - w, -r * w * np.sin(theta) - rod * rate * np.sin(phi)], axis=1)
    drive = np.array([2.0, 0.0, 0.0])
    known = m.joint_forces(q, v, drive)
    answer = m.inverse(q, v, known.acceleration, actuated=["A"])
    np.testing.assert_array_equal(answer.status, da.Status.REDUNDANT)
    np.testing.assert_allclose(answer.tau, np.broadcast_to(drive, q.shape), atol=1e-9)
    for name in ("A", "B", "pin"):
        np.testing.assert_allclose(answer.joint_forces[name].force, known[name].force, atol=1e-9)
    impossible = m.inverse(q, v, known.acceleration + np.array([0.0, 1.0, 0.0]), actuated=[])
    assert not np.isin(impossible.status, [da.Status.UNIQUE, da.Status.REDUNDANT]).any()


def test_friction_of_flexible_bearings_does_not_depend_on_the_cut(interpreted):
    """Bricard's linkage, whose loads stiffnesses decide: mu r |F| of the same answer, wherever it is cut."""
    graph = bricard_graph()
    stiff = dict.fromkeys(graph.hinges, (1e7, 1e5))
    answers = []
    for cut in ("hinge 0", "hinge 3"):
        m = graph.built((cut,))
        q, v = moving(m)
        forces = m.joint_forces(q, v, flexible=stiff, bearings={"hinge 0": (0.05, 0.3)})
        axis = np.array(graph.hinges["hinge 0"][3]) / np.linalg.norm(graph.hinges["hinge 0"][3])
        F = forces["hinge 0"].force
        load = np.linalg.norm(F - (F @ axis) * axis)
        assert abs(float(forces.friction["hinge 0"])) == pytest.approx(0.05 * 0.3 * load, rel=1e-9)
        answers.append(abs(float(forces.friction["hinge 0"])))
    assert answers[0] == pytest.approx(answers[1], rel=1e-9)


def test_inverse_dynamics_prints_its_answer_or_the_reason():
    """Torques by coordinate; where a joint that has no motor would fall, that is said instead."""
    b = da.Builder("arm")
    for name, parent, x in (("upper", "world", 0.0), ("lower", "upper", 1.0)):
        b.body(name, mass=1.0, center=(0.5, 0, 0), inertia=(0.1, 0.1, 0.1))
        b.joint(name, "revolute", parent, name, axis=(0, 1, 0), position=(x, 0, 0))
    arm, rest = b.build(), np.zeros(2)
    assert str(arm.inverse(rest, rest, rest)) == "upper: -19.62\nlower: -4.905"  # 9.81 (0.5 + 1.5), 9.81 0.5
    assert str(arm.inverse(rest, rest, rest, actuated=["upper"])) == (
        "no answer: no forces of these motors cause this motion"
    )
