"""Springs and dampers that hold a robot where it is: proportional-derivative control of joints, compiled into runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from dalembert.errors import ModelError
from dalembert.model.joints import KINDS
from dalembert.names import lookup

if TYPE_CHECKING:
    import casadi as ca

    from dalembert.model.mechanism.mechanism import Mechanism
    from dalembert.model.mechanism.parts import Joint


def hold(
    robot: Mechanism, kp: float | Mapping[str, float], kd: float | Mapping[str, float] = 0.0, q: Any = None
) -> ca.Function:
    """Return the force (t, q, v) -> kp (q_held - q) - kd v of every joint but a free one that carries a root.

    Parameters
    ----------
    robot
        A mechanism.
    kp, kd
        Stiffness and damping, N m/rad and N m s/rad (of sliding joints N/m and N s/m): numbers, or by joint; joints
        that are not named are let go.
    q
        Where the robot is held; by default where its file draws it (`robot.pose()`).

    Returns
    -------
    casadi.Function
        What `da.simulate(force=)` takes: it runs inside the loop of the steps. Deviations of ball joints are rotation
        vectors in the child's axes.
    """
    from dalembert.tree.algorithms.passive import joint_resistance
    from dalembert.tree.traces import traced

    q = robot.manifold.configuration(robot.pose() if q is None else q)
    stiffness, damping = _by_joint(robot, kp, "kp"), _by_joint(robot, kd, "kd")
    joints = tuple(_held(robot, joint, stiffness[joint.name], damping[joint.name], q) for joint in robot.joints)
    springs = replace(
        robot, joints=joints, springs=(), tendons=(), loops=(), couplings=(), constraints=(), passive=True
    )
    resistance = traced(
        springs, "hold", ("q", "v"), ("force",), lambda tree, posed, q, v, _: [joint_resistance(tree, posed, q, v)]
    )
    import casadi as ca

    t, position, velocity = ca.SX.sym("t"), *resistance.sx_in()[:2]
    force = -resistance(position, velocity)
    return ca.Function("hold", [t, position, velocity], [ca.densify(force)], ["t", "q", "v"], ["force"])


def _by_joint(robot: Mechanism, values: Any, word: str) -> dict[str, float]:
    """Return a gain for every joint: the number for all that are driven, or those of a dict and zero for the rest."""
    names = {joint.name: joint for joint in robot.joints}
    if isinstance(values, Mapping):
        for name in values:
            lookup(name, names, f"joint (of {word})")
        gains = {name: float(values.get(name, 0.0)) for name in names}
    else:
        free = {joint.name for joint in robot.joints if joint.kind == "free" and joint.parent == robot.ground}
        gains = {name: 0.0 if name in free else float(values) for name in names}
    for name, gain in gains.items():
        if not (np.isfinite(gain) and gain >= 0.0):
            raise ModelError(f"{word}={gain!r} of joint {name!r} must be a finite number >= 0", subject=word)
    return gains


def _held(robot: Mechanism, joint: Joint, kp: float, kd: float, q: Any) -> Joint:
    """Return a joint with the spring and damper that hold it, and no others."""
    iq, n = robot.index_q(joint.name), KINDS[joint.kind].nv
    if joint.kind == "planar":
        x, y, c, s = q[iq]
        rest = (float(x), float(y), float(np.arctan2(s, c)))
    else:
        away = robot.difference(robot.neutral(), q)[robot.index_v(joint.name)]
        rest = tuple(float(x) for x in away)
    return replace(joint, stiffness=(kp,) * n, damping=(kd,) * n, rest=rest)
