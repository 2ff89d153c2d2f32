"""MJCF against MuJoCo: kinematics, mass matrix and inverse dynamics with armature, damping and springs."""

from __future__ import annotations

import re

import mujoco
import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import dalembert as da
from dalembert.readers import state_map
from tests.readers.mjcf_models import CRANE, HUMANOID, MODELS

NAMES = sorted(MODELS)


@pytest.fixture
def load(tmp_path):
    def read(text: str, name: str = "m.xml", **options) -> da.Mechanism:
        (tmp_path / name).write_text(text)
        return da.load(tmp_path / name, **options)

    return read


def random_state(model, rng):
    """Return qpos, qvel, qacc, with rotations anywhere."""
    qpos = np.zeros(model.nq)
    mujoco.mj_integratePos(model, qpos, rng.normal(size=model.nv), 1.0)
    for j in range(model.njnt):
        adr, kind = model.jnt_qposadr[j], model.jnt_type[j]
        if kind < 2:
            start = adr + (3 if kind == 0 else 0)
            qpos[start : start + 4] = Rotation.random(random_state=rng.integers(1 << 30)).as_quat()
        if kind == 0:
            qpos[adr : adr + 3] = rng.normal(size=3)
        if kind >= 2:
            qpos[adr] = rng.normal()
    return qpos, rng.normal(size=model.nv), rng.normal(size=model.nv)


@pytest.mark.parametrize("name", NAMES)
def test_kinematics(load, name):
    """Bodies and sites stand where MuJoCo has them."""
    robot, model = load(MODELS[name]), mujoco.MjModel.from_xml_string(MODELS[name])
    data, states = mujoco.MjData(model), state_map(load(MODELS[name]), "mujoco", model)
    rng = np.random.default_rng(1)
    for _ in range(5):
        data.qpos, _, _ = random_state(model, rng)
        mujoco.mj_forward(model, data)
        q = states.from_q(data.qpos)
        rotation, position = robot.kinematics(q)
        for i in range(1, model.nbody):
            k = robot.body_index(model.body(i).name)
            np.testing.assert_allclose(position[k], data.xpos[i], atol=1e-12)
            np.testing.assert_allclose(rotation[k].ravel(), data.xmat[i], atol=1e-12)
        for i in range(model.nsite):
            R, p = robot.kinematics(q, model.site(i).name)
            np.testing.assert_allclose(p, data.site_xpos[i], atol=1e-12)
            np.testing.assert_allclose(R.ravel(), data.site_xmat[i], atol=1e-12)


@pytest.mark.parametrize("name", NAMES)
def test_dynamics(load, name):
    """M a + bias = tau with everything passive, in MuJoCo's coordinates and back."""
    robot, model = load(MODELS[name]), mujoco.MjModel.from_xml_string(MODELS[name])
    data, states = mujoco.MjData(model), state_map(robot, "mujoco", model)
    rng = np.random.default_rng(2)
    for _ in range(5):
        data.qpos, data.qvel, qacc = random_state(model, rng)
        mujoco.mj_forward(model, data)
        M = np.zeros((model.nv, model.nv))
        mujoco.mj_fullM(model, data, M)
        q, v = states.from_q(data.qpos), states.from_v(data.qpos, data.qvel)
        a = states.from_a(data.qpos, data.qvel, qacc)
        tau = M @ qacc + data.qfrc_bias - data.qfrc_passive
        mine = robot.inverse(q, v, a).tau
        scale = np.abs(tau).max()
        np.testing.assert_allclose(states.to_tau(q, mine), tau, atol=1e-11 * scale)
        np.testing.assert_allclose(robot.forward(q, v, mine).acceleration, a, atol=1e-9 * np.abs(a).max())
        turned = np.array([states.to_tau(q, row) for row in robot.mass_matrix(q)])
        turned = np.array([states.to_tau(q, row) for row in turned.T]).T
        np.testing.assert_allclose(turned, M, atol=1e-12 * np.abs(M).max())


@pytest.mark.parametrize("name", NAMES)
def test_energy(load, name):
    """Kinetic and potential energy; MuJoCo's potential knows nothing of weights that are held up."""
    flag = '<option><flag energy="enable"/></option><worldbody>'
    text = re.sub(r'gravcomp="[^"]*"', "", MODELS[name]).replace("<worldbody>", flag, 1)
    robot, model = load(text), mujoco.MjModel.from_xml_string(text)
    data, states = mujoco.MjData(model), state_map(robot, "mujoco", model)
    data.qpos, data.qvel, _ = random_state(model, np.random.default_rng(3))
    mujoco.mj_forward(model, data)
    kinetic, potential = robot.energy(states.from_q(data.qpos), states.from_v(data.qpos, data.qvel))
    np.testing.assert_allclose([kinetic, potential], data.energy[::-1], rtol=1e-11)


@pytest.mark.parametrize("name", NAMES)
def test_power(load, name):
    """d/dt (T + V) = tau v - damping, weights that are held up included."""
    text = re.sub(r' (damping|armature)="[^"]*"', "", MODELS[name])
    robot, h, rng = load(text), 1e-6, np.random.default_rng(4)
    q, v, tau = robot.random(0), rng.normal(size=robot.nv), rng.normal(size=robot.nv)
    a = robot.forward(q, v, tau).acceleration
    early, late = (sum(robot.energy(robot.integrate(q, s * h * v), v + s * h * a)) for s in (-1, 1))
    np.testing.assert_allclose((late - early) / (2 * h), tau @ v, rtol=1e-6, atol=1e-7 * abs(early))


def test_order_and_names_are_mujoco_s(load):
    robot, model = load(HUMANOID), mujoco.MjModel.from_xml_string(HUMANOID)
    moving = [joint.name for joint in robot.joints if joint.kind != "fixed"]
    assert moving == [model.joint(i).name for i in range(model.njnt)]
    assert (robot.nq, robot.nv) == (model.nq, model.nv)
    assert {"imu", "sole"} <= {frame.name for frame in robot.frames}
    assert "waist_abdomen_z" in {body.name for body in robot.bodies}
    assert robot.body("waist_abdomen_z").inertia.is_zero()


def test_what_is_read_of_joints(load):
    rail, swing = load(CRANE).joint("rail"), load(CRANE).joint("swing")
    assert (rail.damping, rail.armature, rail.friction) == ((3.0,), (0.5,), (0.2,))
    assert (rail.limits.lower, rail.limits.upper) == ((-2.0,), (2.0,))
    assert (swing.stiffness, swing.rest) == ((7.0,), (0.3,))


def test_actuators_and_notes(load):
    robot = load(HUMANOID)
    assert [(a.name, a.coordinate, a.gear) for a in robot.actuators] == [
        ("knee", "right_knee", 80.0),
        ("hip", "right_hip_y", 1.0),
    ]
    text = "\n".join(robot.notes)
    for words in ("only gear and rotor are read: hip", "<sensor>", "<camera>", "contacts", "qpos0"):
        assert words in text
    assert robot.passive
    assert not load(HUMANOID, passive=False).passive


EQUALITIES = """
<mujoco><worldbody>
 <body name="a"><joint name="ja" axis="0 1 0" ref="10"/><geom size=".1"/><site name="sa" pos="1 0 0" euler="0 0 30"/>
 </body>
 <body name="b" pos="1 0 0"><joint name="jb" axis="0 1 0"/><joint name="jc" type="slide"/><geom size=".1"/>
  <site name="sb"/></body>
</worldbody>
<tendon>
 <fixed name="t1"><joint joint="ja" coef="2"/><joint joint="jb" coef="-3"/></fixed>
 <fixed name="t2"><joint joint="jc" coef="4"/></fixed>
 <spatial name="t3"><site site="sa"/><site site="sb"/></spatial>
</tendon>
<equality>
 <connect name="point" body1="a" body2="b" anchor="0.1 0.2 0.3"/>
 <weld name="weld" body1="a" body2="b" relpose="0 1 0 1 0 0 1" anchor="0.1 0 0"/>
 <connect name="sites" site1="sa" site2="sb"/>
 <weld name="site weld" site1="sa" site2="sb"/>
 <joint name="linear" joint1="ja" joint2="jb" polycoef="0.1 2 0 0 0"/>
 <joint name="held" joint1="jc" polycoef="0.3 0 0 0 0"/>
 <joint name="cubic" joint1="ja" joint2="jb" polycoef="0 1 0 1 0"/>
 <tendon name="lengths" tendon1="t1" tendon2="t2" polycoef="0.5 0.25 0 0 0"/>
 <tendon name="spatial" tendon1="t3"/>
 <weld name="own" body1="a" body2="b" anchor="0.1 0.2 0.4"/>
 <weld name="off" body1="a" body2="b" active="false"/>
</equality></mujoco>
"""


def test_equalities(load):
    """Residuals of the relations at a random state are MuJoCo's own, efc_pos, where it has the same rows."""
    robot, model = load(EQUALITIES), mujoco.MjModel.from_xml_string(EQUALITIES)
    assert [(loop.name, loop.kind) for loop in robot.loops] == [
        ("point", "point"), ("weld", "weld"), ("sites", "point"), ("site weld", "weld"),
        ("own", "weld")]  # fmt: skip
    assert [coupling.name for coupling in robot.couplings] == ["linear", "held", "lengths"]
    for words in (
        "'cubic' (joint), which is not a linear",
        "'spatial' (tendon)",
        "'off' (weld), which the file switches off",
    ):
        assert any(words in note for note in robot.notes)
    data, states = mujoco.MjData(model), state_map(robot, "mujoco", model)
    data.qpos = [0.3, -0.7, 0.2]
    mujoco.mj_forward(model, data)
    q = states.from_q(data.qpos)
    rows = {model.equality(i).name: data.efc_pos[: data.ne][data.efc_id[: data.ne] == i] for i in range(model.neq)}
    for coupling in robot.couplings:
        residual = sum(factor * q[robot.index_q(name)] for name, factor in coupling.terms) - coupling.offset
        np.testing.assert_allclose(abs(residual), abs(rows[coupling.name]), atol=1e-12)
    R, p = robot.kinematics(q)
    for loop in robot.loops:
        i, j = robot.body_index(loop.body), robot.body_index(loop.other)
        one = p[i] + R[i] @ loop.placement.position
        two = p[j] + R[j] @ loop.other_placement.position
        np.testing.assert_allclose(np.abs(one - two), np.abs(rows[loop.name][:3]), atol=1e-12)
        if loop.kind == "weld":
            turn = Rotation.from_matrix((R[i] @ loop.placement.rotation).T @ R[j] @ loop.other_placement.rotation)
            vector = turn.as_quat(canonical=True)[:3]
            np.testing.assert_allclose(np.linalg.norm(vector), np.linalg.norm(rows[loop.name][3:6]), atol=1e-12)


def test_rows_of_constraints_are_mujoco_s(load):
    """At qpos0, where it holds, the rows of every relation span the space that MuJoCo's span."""
    robot, model = load(EQUALITIES), mujoco.MjModel.from_xml_string(EQUALITIES)
    data, states = mujoco.MjData(model), state_map(robot, "mujoco", model)
    data.qpos = model.qpos0
    mujoco.mj_forward(model, data)
    own = robot.jacobian(states.from_q(data.qpos))
    J, ids = data.efc_J.reshape(-1, model.nv)[: data.ne], data.efc_id[: data.ne]
    for name in ("linear", "held", "lengths", "point", "own"):
        theirs = J[ids == mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_EQUALITY, name)]
        mine = own[[k for k, row in enumerate(robot.names) if name in row]]
        ranks = [np.linalg.matrix_rank(rows, tol=1e-9) for rows in (theirs, mine, np.vstack([theirs, mine]))]
        assert ranks[0] == ranks[1] == ranks[2] > 0


def test_base(load):
    assert (load(HUMANOID).base, load(HUMANOID, base="fixed").nq) == ("floating", load(HUMANOID).nq - 7)
    _, p = load(HUMANOID, base="fixed").kinematics(np.r_[np.zeros(7), 0, 0, 0, 1], "torso")
    assert p.tolist() == [0, 0, 1.4]
    held = '<mujoco><worldbody><body name="a"><geom size="1"/></body></worldbody></mujoco>'
    assert (load(held).nq, load(held, base="floating").nq) == (0, 7)


def test_includes_defaults_and_lines(load, tmp_path):
    (tmp_path / "parts").mkdir()
    (tmp_path / "parts" / "arm.xml").write_text(
        '<mujocoinclude><body name="x"><joint name="j"/><geom size=".1"/></body></mujocoinclude>'
    )
    robot = load('<mujoco><worldbody><include file="parts/arm.xml"/></worldbody></mujoco>')
    assert robot.nq == 1
    assert robot.joint("j").source is not None
    assert robot.joint("j").source.file.endswith("arm.xml")
    with pytest.raises(da.ModelError, match=r'm.xml:3 <joint name="k">: MuJoCo says: .*invalid keyword'):
        load('<mujoco>\n<worldbody><body>\n<joint name="k" type="wobbly"/></body></worldbody></mujoco>')


def test_meshes_are_not_needed_where_inertias_are_given(load, tmp_path):
    body = '<body name="x"><joint/><geom type="mesh" mesh="shape"/>{}</body>'
    text = f'<mujoco><asset><mesh name="shape" file="no.stl"/></asset><worldbody>{body}</worldbody></mujoco>'
    robot = load(text.format('<inertial mass="1" pos="0 0 0" diaginertia="1 1 1"/>'))
    assert any("no.stl" in note for note in robot.notes)
    with pytest.raises(da.ModelError, match="inertia of its body comes from it"):
        load(text.format(""))
    still = load(text.replace("<joint/>", "").format('<body name="y"><joint/><geom size="1"/></body>'))
    assert still.body("x").inertia.is_zero()
    assert any("nothing moves it" in note for note in still.notes)
    (tmp_path / "no.stl").write_bytes(tetrahedron())
    assert load(text.format("")).mass == pytest.approx(1000 / 6)
    unnamed = '<mesh file="far.stl"/><mesh file="no.stl"/>'
    text = text.replace('<mesh name="shape" file="no.stl"/>', unnamed).replace('mesh="shape"', 'mesh="no"')
    assert load(text.format("")).mass == pytest.approx(1000 / 6)


def tetrahedron() -> bytes:
    """Return the corner of a unit cube as a binary STL."""
    corners = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]], dtype="<f4")
    faces = [(0, 2, 1), (0, 1, 3), (0, 3, 2), (1, 2, 3)]
    triangles = b"".join(np.zeros(3, "<f4").tobytes() + corners[list(f)].tobytes() + b"\0\0" for f in faces)
    return bytes(80) + np.array([4], "<u4").tobytes() + triangles


@pytest.mark.parametrize(
    ("inside", "words"),
    [
        ('<flexcomp name="f"/>', "soft bodies"),
        ('<composite type="grid"/>', "composite"),
        ('<attach model="m" prefix="p"/>', "attached"),
    ],
)
def test_unsupported(load, inside, words):
    with pytest.raises(da.UnsupportedError, match=f"m.xml:1 <.*{words}"):
        load(f"<mujoco><worldbody><body>{inside}</body></worldbody></mujoco>")


def test_switched_off_forces(load):
    flags = '<option><flag gravity="disable" spring="disable" damper="disable"/></option>'
    robot = load(HUMANOID.replace("<default>", flags + "<default>", 1))
    assert robot.gravity == (0.0, 0.0, 0.0)
    assert not any(joint.damping or joint.stiffness for joint in robot.joints)


def test_missing_extra(load, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "mujoco", None)
    with pytest.raises(da.MissingExtraError, match=r"dalembert\[mujoco\]"):
        load(HUMANOID)


FIXED_TENDONS = """<mujoco><compiler angle="radian"/><worldbody>
  <body name="a" pos="0 0 1"><joint name="a" axis="0 1 0"/><geom size=".1" pos=".2 0 -.3"/>
    <body name="b" pos="0 0 -.5"><joint name="b" axis="0 1 0"/><geom size=".1" pos="0 0 -.3"/></body></body>
  <body name="c" pos="1 0 1"><joint name="c" type="slide" axis="0 0 1"/><geom size=".1"/></body></worldbody>
 <tendon>
  <fixed name="t" stiffness="30" damping="2" springlength="0.1"><joint joint="a" coef="1"/>
   <joint joint="c" coef="-2"/></fixed>
  <fixed name="slack" stiffness="50" springlength="-.2 .3"><joint joint="a" coef="1"/>
   <joint joint="b" coef=".5"/></fixed>
 </tendon></mujoco>"""


@pytest.mark.parametrize("seed", range(4))
def test_springs_and_dampers_of_fixed_tendons(tmp_path, seed):
    """Forces k (length - rest) + c rate along length = sum of coef * q, nothing within a dead band; as MuJoCo's."""
    (tmp_path / "m.xml").write_text(FIXED_TENDONS)
    robot, model = da.load(tmp_path / "m.xml"), mujoco.MjModel.from_xml_string(FIXED_TENDONS)
    data = mujoco.MjData(model)
    rng = np.random.default_rng(seed)
    q, v, tau = (0.05 if seed == 0 else 1.0) * rng.standard_normal((3, 3))
    data.qpos[:], data.qvel[:], data.qfrc_applied[:] = q, v, tau
    mujoco.mj_forward(model, data)
    np.testing.assert_allclose(robot.forward(q, v, tau).acceleration, data.qacc, rtol=1e-10)
    np.testing.assert_allclose(robot.inverse(q, v, data.qacc).tau, tau, atol=1e-10)
    assert not any("tendon" in note for note in robot.notes)
    free = robot.with_passive(False)
    assert not np.allclose(free.forward(q, v, tau).acceleration, data.qacc)
    energy = robot.energy(q, v)[1] - free.energy(q, v)[1]
    stretch = q[0] + 0.5 * q[1]
    beyond = max(stretch - 0.3, 0) + min(stretch + 0.2, 0)
    np.testing.assert_allclose(energy, 15 * (q[0] - 2 * q[2] - 0.1) ** 2 + 25 * beyond**2, rtol=1e-12)


def test_a_tendon_on_a_ball_is_refused():
    b = da.Builder()
    b.body("a", mass=1.0, inertia=(1, 1, 1))
    b.joint("ball", "spherical", "world", "a")
    b.tendon("t", {"ball.wx": 1.0}, stiffness=1.0)
    with pytest.raises(da.ModelError, match="spherical joint"):
        b.build()
