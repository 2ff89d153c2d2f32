"""One step of Drake's discrete dynamics with the same constraints, where pydrake is installed.

Drake has no forward dynamics with hard constraints in continuous time. What it has is `MultibodyPlant` with a time
step: contacts and constraints of one step by SAP, an implicit solver in which ball and weld constraints are very stiff.
One evaluation of that step is the nearest answer to the same question: velocities after 1 ms.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Sequence
from typing import Any

import dalembert as da

STEP = 1e-3
BENT = 0.3
"""Radians or metres of all joints: straight limbs are singular."""

End = tuple[str, Any]
"""A body, and a placement on it (rotation, position)."""


def drake_step(mechanism: da.Mechanism, ends: Sequence[Sequence[End]], rows: int) -> Callable[[], Any] | None:
    """Return what evaluates one step from rest, with bent joints where nothing but the ground is held to.

    None where pydrake is missing. `ends` has one or two places for each constraint; a single one is held where it is.
    """
    try:
        from pydrake.math import RigidTransform, RotationMatrix
    except ImportError:
        return None
    text = re.sub(r'(lower|upper)="[^"]*"', "", mechanism.open_tree().to_urdf())  # a step would bounce off limits
    plain, plant, q = _plant(text, mechanism), _plant(text, mechanism), mechanism.neutral()
    plain.Finalize()
    straight = plain.CreateDefaultContext()
    bent = plain.CreateDefaultContext()
    if all(len(each) == 1 for each in ends):
        _bend(plain, bent)

    def place(end: End) -> tuple[Any, Any]:
        body, where = plain.GetBodyByName(end[0]), end[1]
        R, p = mechanism.kinematics(q, end[0])
        X = RigidTransform(RotationMatrix(R @ where.rotation), p + R @ where.position)
        return body, plain.EvalBodyPoseInWorld(straight, body).inverse() @ X

    for each in ends:
        (one, X1), *more = (place(end) for end in each)
        two, X2 = more[0] if more else (plain.world_body(), plain.EvalBodyPoseInWorld(bent, one) @ X1)
        bodies = plant.get_body(one.index()), plant.get_body(two.index())
        if rows == 3:
            plant.AddBallConstraint(bodies[0], X1.translation(), bodies[1], X2.translation())
        else:
            plant.AddWeldConstraint(bodies[0], X1, bodies[1], X2)
    plant.Finalize()
    context, x = plant.CreateDefaultContext(), plain.GetPositionsAndVelocities(bent).copy()

    def step() -> Any:
        plant.SetPositionsAndVelocities(context, x)  # or the step would be taken from the cache
        return plant.EvalUniquePeriodicDiscreteUpdate(context)

    return step


def _bend(plant: Any, context: Any) -> None:
    """Set all hinges and sliders to `BENT`."""
    q = plant.GetPositions(context).copy()
    for index in plant.GetJointIndices():
        joint = plant.get_joint(index)
        if joint.num_positions() == 1:
            q[joint.position_start()] = BENT
    plant.SetPositions(context, q)


def _plant(text: str, mechanism: da.Mechanism) -> Any:
    """Return a plant with the tree, not yet finished."""
    from pydrake.multibody.parsing import Parser
    from pydrake.multibody.plant import MultibodyPlant

    logging.getLogger("drake").setLevel(logging.ERROR)  # what it leaves out of the file concerns no constraint
    plant = MultibodyPlant(STEP)
    plant.SetUseSampledOutputPorts(False)  # a step is then an update of discrete variables alone
    (model,) = Parser(plant).AddModelsFromString(text, "urdf")
    if mechanism.base == "fixed":
        plant.WeldFrames(plant.world_frame(), plant.GetFrameByName(mechanism.bodies[0].name, model))
    return plant
