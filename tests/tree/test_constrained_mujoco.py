"""Equality constraints of MJCF files against MuJoCo in the limit of stiff constraints.

MuJoCo leaves the fraction 1 - d of the free acceleration along a constraint, with d at most 0.9999, so two values of d
are extrapolated to 1. It has no term A_dot v: states are at rest, or the rows are linear.
"""

from __future__ import annotations

import mujoco
import numpy as np
import pytest

import dalembert as da
from dalembert.tree.block import constrained
from tests.tree.closed import Traced, numeric

BODIES = """
<mujoco>
  <compiler angle="radian"/>
  <option gravity="0 0 -9.81" tolerance="1e-15" iterations="200" solver="Newton"/>
  <default><geom contype="0" conaffinity="0" density="900"/></default>
  <worldbody>
    <body name="upper" pos="0 0 1">
      <joint name="shoulder" type="hinge" axis="0 1 0"/><joint name="twist" type="hinge" axis="1 0 0"/>
      <geom type="capsule" fromto="0 0 0 0.5 0.1 0" size="0.04"/>
      <body name="lower" pos="0.5 0.1 0">
        <joint name="elbow" type="hinge" axis="0 1 0.2"/><joint name="reach" type="slide" axis="1 0 0"/>
        <geom type="capsule" fromto="0 0 0 0.4 0 0.1" size="0.03"/>
      </body>
    </body>
    <body name="swing" pos="1.2 0.3 1">
      <joint name="a" type="hinge" axis="0 1 0"/><joint name="b" type="hinge" axis="1 0 0.3"/>
      <joint name="c" type="slide" axis="0 0.1 1"/>
      <geom type="box" size="0.1 0.2 0.15" pos="0 0 -0.3"/>
    </body>
  </worldbody>
  <equality>EQUALITY</equality>
</mujoco>
"""

STIFF = 'solref="0.02 1" solimp="{d} {d} 0.001"'

CASES = {
    "connect": '<connect body1="lower" body2="swing" anchor="0.4 0 0.1" SOFT/>',
    "connect to world": '<connect body1="lower" anchor="0.4 0 0.1" SOFT/>',
    "weld": '<weld body1="lower" body2="swing" SOFT/>',
    "joint": '<joint joint1="shoulder" joint2="a" polycoef="0 1.5 0 0 0" SOFT/>',
    "joint alone": '<joint joint1="reach" polycoef="0 0 0 0 0" SOFT/>',
    "two": '<connect body1="lower" body2="swing" anchor="0.4 0 0.1" SOFT/><joint joint1="twist" joint2="b" SOFT/>',
}


def softened(equality, d):
    return BODIES.replace("EQUALITY", equality.replace("SOFT", STIFF.format(d=d)))


def evaluated(equality, d, q, tau):
    """Return MuJoCo's model and data at rest."""
    model = mujoco.MjModel.from_xml_string(softened(equality, d))
    data = mujoco.MjData(model)
    data.qpos[:], data.qfrc_applied[:] = q, tau
    mujoco.mj_forward(model, data)
    return model, data


def extrapolated(equality, q, tau):
    """Return acceleration and constraint forces on coordinates as MuJoCo solves them, extrapolated to d = 1."""
    soft, stiff = (
        np.stack([data.qacc, data.qfrc_constraint])
        for _, data in (evaluated(equality, d, q, tau) for d in (0.9998, 0.9999))
    )
    return 2 * stiff - soft


def hard_limit(equality, q, tau):
    """Return the same from MuJoCo's matrices M, J and forces, by the null space of J."""
    model, data = evaluated(equality, 0.9999, q, tau)
    M = np.zeros((model.nv, model.nv))
    for column, unit in zip(M, np.eye(model.nv), strict=True):
        mujoco.mj_mulM(model, data, column, unit)
    J = data.efc_J.reshape(-1, model.nv)
    f = data.qfrc_smooth.copy()
    _, s, Vt = np.linalg.svd(J)
    N = Vt[np.count_nonzero(s > 1e-10 * s.max()) :].T
    a = N @ np.linalg.solve(N.T @ M @ N, N.T @ f) if N.size else np.zeros(model.nv)
    return a, M @ a - f


ROUGH = ("weld",)
"""Cases whose rows are too ill-conditioned for MuJoCo's regularisation: only the limit itself is compared."""


@pytest.mark.parametrize("name", CASES)
def test_stiff_limit(name, tmp_path):
    file = tmp_path / "robot.xml"
    file.write_text(softened(CASES[name], 0.9999))
    mechanism = da.load(file)
    q, rest = np.zeros(mechanism.nv), np.zeros(mechanism.nv)
    tau = 3 * np.random.default_rng(0).standard_normal(mechanism.nv)
    numbers = Traced(mechanism)
    np.testing.assert_allclose(numbers("constraint", q, 0.0), 0, atol=1e-12)
    a, lam, status = numeric(constrained.forward(mechanism))(q, rest, tau, 0)
    assert status in (da.Status.UNIQUE, da.Status.REDUNDANT)
    held = -numbers.A(q).T @ lam
    limits = [(hard_limit, 1e-8)] if name in ROUGH else [(hard_limit, 1e-8), (extrapolated, 1e-5)]
    for limit, close in limits:
        expected, forces = limit(CASES[name], q, tau)
        np.testing.assert_allclose(a, expected, atol=close * np.abs(expected).max())
        np.testing.assert_allclose(held, forces, atol=close * np.abs(forces).max())


FLOATING = """
<mujoco>
  <worldbody>
    <body name="one" pos="0.1 0.2 0.3" quat="0.8 0.2 -0.4 0.4"><freejoint/><geom type="box" size="0.1 0.2 0.3"/></body>
    <body name="two" pos="1 0 0" quat="0.6 0 0.8 0"><freejoint/><geom type="box" size="0.3 0.1 0.2"/></body>
  </worldbody>
  <equality><weld body1="one" body2="two" anchor="0.1 0 0.2" relpose="0.3 0 0 0.5 0.5 0.5 -0.5"/></equality>
</mujoco>
"""


@pytest.mark.parametrize("angle", [0.0, 1e-6, 1.0, 3.0, np.pi])
def test_a_weld_is_met_where_mujocos_is(angle, tmp_path):
    """MuJoCo's residual of rotation is the sine of half the angle times its axis, ours the angle: one root, the same.

    From any turn, half a turn included, the projected configuration has no residual in MuJoCo either.
    """
    file = tmp_path / "two.xml"
    file.write_text(FLOATING)
    model = mujoco.MjModel.from_xml_string(FLOATING)
    data = mujoco.MjData(model)
    mechanism = da.load(file)

    def residual(q):
        """Return MuJoCo's residual; its quaternions begin with w."""
        data.qpos[:] = q[[0, 1, 2, 6, 3, 4, 5, 7, 8, 9, 13, 10, 11, 12]]
        mujoco.mj_forward(model, data)
        return data.efc_pos.copy()

    rng = np.random.default_rng(0)
    closed = mechanism.project(mechanism.random(rng))
    np.testing.assert_allclose(residual(closed), 0, atol=1e-12)
    turn = rng.standard_normal(12)
    turn *= angle / np.linalg.norm(turn[3:6])
    turn[6:] = 0
    q = mechanism.integrate(closed, turn)
    sine = np.linalg.norm(residual(q)[3:])
    assert sine == pytest.approx(np.sin(angle / 2), abs=1e-9)
    assert np.linalg.norm(mechanism.constraint(q)[3:]) == pytest.approx(angle, abs=1e-9)
    np.testing.assert_allclose(residual(mechanism.project(q)), 0, atol=1e-12)
