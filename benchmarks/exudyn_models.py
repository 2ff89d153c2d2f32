"""The problems of `benchmarks/simulate.py` as Exudyn has them: bodies with six coordinates (three in the plane).

Every function takes a number of steps and settings, and returns (seconds of the solver, what is compared). Redundant
joints need Exudyn's dense solver with `ignoreSingularJacobian`, as its own test of Bricard's mechanism uses them.
"""

from __future__ import annotations

import time
from typing import NamedTuple

import numpy as np


class Way(NamedTuple):
    """Settings of Exudyn's implicit solver that are tried."""

    name: str
    newmark: bool
    index2: bool
    modified: bool
    tolerance: float


WAYS = (
    Way("generalized alpha", False, False, True, 1e-6),
    Way("Newmark, index 2", True, True, True, 1e-10),
)


def solve(exu, mbs, duration, steps, way, redundant=False):
    """Run Exudyn's solver and return its time."""
    settings = exu.SimulationSettings()
    settings.timeIntegration.numberOfSteps = steps
    settings.timeIntegration.endTime = duration
    settings.timeIntegration.verboseMode = 0
    settings.solution.file.write = False
    settings.solution.sensors.writePeriod = duration
    settings.timeIntegration.newton.useModifiedNewton = way.modified
    settings.timeIntegration.newton.relativeTolerance = way.tolerance
    settings.timeIntegration.generalizedAlpha.useIndex2Constraints = way.index2
    settings.timeIntegration.generalizedAlpha.useNewmark = way.newmark
    settings.linearSolver.ignoreSingularJacobian = redundant
    settings.linearSolver.solverType = exu.LinearSolverType.EigenDense
    start = time.process_time()
    mbs.SolveDynamic(settings)
    return time.process_time() - start


def in_plane(bars, joints, gravity=9.81, more=None):
    """Return a system of bodies in the plane.

    `bars` are (x, y, angle, vx, vy, w, mass, inertia), `joints` ((bar, place), (bar or None, place));
    `more(mbs, bodies, ground)` adds what else there is.
    """
    import exudyn as exu
    from exudyn import itemInterface as Item

    mbs = exu.SystemContainer().AddSystem()
    ground = mbs.AddObject(Item.ObjectGround())
    bodies = []
    for x, y, angle, vx, vy, w, mass, inertia in bars:
        node = mbs.AddNode(Item.NodeRigidBody2D(referenceCoordinates=[x, y, angle], initialVelocities=[vx, vy, w]))
        bodies.append(mbs.AddObject(Item.ObjectRigidBody2D(mass=mass, inertia=inertia, nodeNumber=node)))
        if gravity:
            centre = mbs.AddMarker(Item.MarkerBodyPosition(bodyNumber=bodies[-1]))
            mbs.AddLoad(Item.Force(markerNumber=centre, loadVector=[0, -gravity * mass, 0]))
    for sides in joints:
        markers = [
            mbs.AddMarker(
                Item.MarkerBodyPosition(
                    bodyNumber=ground if bar is None else bodies[bar], localPosition=[*place[:2], 0]
                )
            )
            for bar, place in sides
        ]
        mbs.AddObject(Item.RevoluteJoint2D(markerNumbers=markers))
    if more is not None:
        more(mbs, bodies, ground)
    mbs.Assemble()
    return exu, mbs, bodies


def pendulum(steps, way):
    """A01: a point mass at the end of a rod, hinged at the origin."""
    bars = [(-1, 0, 0, 0, 0, 0, 1.0, 1e-12)]
    exu, mbs, bodies = in_plane(bars, [((0, (1, 0)), (None, (0, 0)))])
    seconds = solve(exu, mbs, 10.0, steps, way)
    return seconds, mbs.GetObjectOutputBody(bodies[0], exu.OutputVariableType.Position, localPosition=[0, 0, 0])[:2]


def four_bar(steps, way):
    """A02: three upright rods, two couplers."""
    up, rod = np.pi / 2, (1.0, 1 / 12)
    bars = [(i, 0.5, up, 0.5, 0, -1, *rod) for i in range(3)] + [(i + 0.5, 1, 0, 1, 0, 0, *rod) for i in range(2)]
    joints = [((i, (-0.5, 0)), (None, (i, 0))) for i in range(3)]
    for i in range(2):
        joints += [((i, (0.5, 0)), (3 + i, (-0.5, 0))), ((i + 1, (0.5, 0)), (3 + i, (0.5, 0)))]
    exu, mbs, bodies = in_plane(bars, joints)
    seconds = solve(exu, mbs, 10.0, steps, way, redundant=True)
    return seconds, mbs.GetObjectOutputBody(bodies[0], exu.OutputVariableType.Position, localPosition=[0.5, 0, 0])[:2]


def andrews(steps, way, mechanism, q):
    """Andrews' squeezer; bodies and their places are read from our mechanism. Compared: the seven angles."""
    from exudyn import itemInterface as Item

    names = [f"K{k}" for k in range(1, 8)]
    bars, centres, angles = [], {}, {}
    inertias = {body.name: body.inertia for body in mechanism.bodies}
    for name in names:
        rotation, place = mechanism.kinematics(q, name)
        angles[name] = float(np.arctan2(rotation[1, 0], rotation[0, 0]))
        centres[name] = np.asarray(inertias[name].center)
        x, y, _ = place + rotation @ centres[name]
        bars.append((x, y, angles[name], 0, 0, 0, inertias[name].mass, inertias[name].rotational[2, 2]))

    def side(name, place):
        return (names.index(name), np.array([*place, 0.0]) - centres[name]) if name else (None, np.array([*place, 0.0]))

    pairs = [
        (("K1", (0, 0)), (None, (0, 0))), (("K2", (0, 0)), ("K1", (0.007, 0))),
        (("K3", (0, 0)), (None, (-0.03635, 0.03273))), (("K5", (0, 0)), (None, (-0.06934, -0.00227))),
        (("K7", (0, 0)), (None, (-0.06934, -0.00227))), (("K4", (0, 0)), ("K5", (0.04, 0))),
        (("K6", (0, 0)), ("K7", (0, -0.04))), (("K2", (-0.028, 0)), ("K3", (0, -0.035))),
        (("K2", (-0.028, 0)), ("K4", (0, -0.02))), (("K2", (-0.028, 0)), ("K6", (0.02, 0))),
    ]  # fmt: skip

    def more(mbs, bodies, ground):
        D = (np.array([0.02, -0.018, 0]) - centres["K3"]).tolist()
        ends = [
            mbs.AddMarker(Item.MarkerBodyPosition(bodyNumber=ground, localPosition=[0.014, 0.072, 0])),
            mbs.AddMarker(Item.MarkerBodyPosition(bodyNumber=bodies[2], localPosition=D)),
        ]
        mbs.AddObject(Item.SpringDamper(markerNumbers=ends, stiffness=4530.0, referenceLength=0.07785))
        crank = mbs.AddMarker(Item.MarkerBodyRigid(bodyNumber=bodies[0]))
        mbs.AddLoad(Item.Torque(markerNumber=crank, loadVector=[0, 0, 0.033]))

    exu, mbs, bodies = in_plane(bars, [(side(*a), side(*b)) for a, b in pairs], gravity=0.0, more=more)
    seconds = solve(exu, mbs, 0.03, steps, way)
    turned = {
        name: float(mbs.GetNodeOutput(mbs.GetObject(body)["nodeNumber"], exu.OutputVariableType.Coordinates)[2])
        + angles[name]
        for name, body in zip(names, bodies, strict=True)
    }
    carried = {"K2": "K1", "K4": "K5", "K6": "K7"}
    return seconds, [turned[name] - turned.get(carried.get(name, ""), 0.0) for name in names]


def _space():
    import exudyn as exu
    import exudyn.utilities

    mbs = exu.SystemContainer().AddSystem()
    return exu, mbs, mbs.CreateGround()


def _body(mbs, mass, moments, place, velocity=(0, 0, 0), spin=(0, 0, 0), gravity=(0, 0, 0), rotation=None):
    from exudyn.rigidBodyUtilities import RigidBodyInertia

    return mbs.CreateRigidBody(
        inertia=RigidBodyInertia(mass=mass, inertiaTensor=np.diag(moments), com=[0, 0, 0]),
        referencePosition=list(place), initialVelocity=list(velocity), initialAngularVelocity=list(spin),
        referenceRotationMatrix=np.eye(3) if rotation is None else rotation, gravity=list(gravity),
    )  # fmt: skip


def bricard(steps, way):
    """A04: five rods in space."""
    points = np.array([[0, 0, 0], [1, 0, 0], [1, -1, 0], [1, -1, 1], [0, -1, 1], [0, 0, 1]], float)
    unit = {"x": [1, 0, 0], "y": [0, 1, 0], "z": [0, 0, 1]}
    exu, mbs, ground = _space()
    bodies = []
    for i in range(5):
        along = points[i + 1] - points[i]
        moments = np.where(np.abs(along) > 0.5, 0.02, 1.01) / 12
        bodies.append(_body(mbs, 1.0, moments, points[i] + along / 2, gravity=(0, -9.81, 0)))
    for i, axis in enumerate("yzxyzx"):
        pair = [ground if i == 0 else bodies[i - 1], bodies[i] if i < 5 else ground]
        if i < 5:
            mbs.CreateRevoluteJoint(bodyNumbers=pair, position=list(points[i]), axis=unit[axis], useGlobalFrame=True)
        else:
            mbs.CreateGenericJoint(bodyNumbers=pair, position=list(points[i]), constrainedAxes=[1, 1, 1, 0, 1, 1])
    mbs.Assemble()
    seconds = solve(exu, mbs, 2.0, steps, way, redundant=True)
    place = list(points[3] - (points[2] + points[3]) / 2)
    return seconds, mbs.GetObjectOutputBody(bodies[2], exu.OutputVariableType.Position, localPosition=place)


def governor(steps, way):
    """A05: shaft, slider, two rods with balls. Compared: angle of a rod, place of the slider."""
    exu, mbs, ground = _space()
    rod, ball, thin, turn, down = 0.3, 5.0, 0.01, 2 * np.pi, (0, 0, -9.81)
    mass = rod + ball
    center = (rod * 0.5 + ball) / mass
    across = rod * (1 + thin**2) / 12 + rod * (center - 0.5) ** 2 + ball * (1 - center) ** 2
    upright = rod * (1 + thin**2) / 12
    shaft = _body(mbs, rod, (upright, upright, rod * thin**2 / 6), (0, 0, 0.5), spin=(0, 0, turn), gravity=down)
    slider = _body(mbs, 3.0, [3.0 * 0.01 / 6] * 3, (0, 0, 0.5), spin=(0, 0, turn), gravity=down)
    mbs.CreateRevoluteJoint(bodyNumbers=[ground, shaft], position=[0, 0, 0], axis=[0, 0, 1], useGlobalFrame=True)
    mbs.CreatePrismaticJoint(bodyNumbers=[shaft, slider], position=[0, 0, 0.5], axis=[0, 0, 1], useGlobalFrame=True)
    c, s = np.cos(np.pi / 6), np.sin(np.pi / 6)
    for side in (1, -1):
        rotation = np.array([[c, 0, side * s], [0, 1, 0], [-side * s, 0, c]])
        place = np.array([side * (0.05 + center * c), 0, 1 - center * s])
        body = _body(mbs, mass, (rod * thin**2 / 6, across, across), place, (0, turn * place[0], 0), (0, 0, turn), down,
                     rotation)  # fmt: skip
        mbs.CreateRevoluteJoint(
            bodyNumbers=[shaft, body], position=[side * 0.05, 0, 1], axis=[0, 1, 0], useGlobalFrame=True
        )
        mbs.CreateSpringDamper(
            bodyNumbers=[slider, body], localPosition0=[side * 0.05, 0, 0],
            localPosition1=[side * (0.5 - center), 0, 0], referenceLength=0.5, stiffness=8e5, damping=4e4,
        )  # fmt: skip
    mbs.Assemble()
    seconds = solve(exu, mbs, 10.0, steps, way)
    ball_end = mbs.GetObjectOutputBody(body, exu.OutputVariableType.Position, localPosition=[center - 1, 0, 0])
    height = mbs.GetObjectOutputBody(slider, exu.OutputVariableType.Position, localPosition=[0, 0, 0])
    return seconds, [float(np.arcsin(1 - ball_end[2])), float(height[2])]


def slider_crank(steps, way):
    """SUNDIALS' slider-crank with three hinges and a rail in space: 20 rows, 3 of them redundant."""
    exu, mbs, ground = _space()
    p = np.arcsin(-0.5)
    x = np.cos(p)
    quarter = np.array([[0, -1, 0], [1, 0, 0], [0, 0, 1.0]])
    tilt = np.array([[np.cos(p), -np.sin(p), 0], [np.sin(p), np.cos(p), 0], [0, 0, 1.0]])
    crank = _body(mbs, 1.0, (1, 1, 1), (0, 0, 0), rotation=quarter)
    slider = _body(mbs, 0.5, (0.1, 0.1, 0.1), (x, 0, 0))
    rod = _body(mbs, 0.5, (2, 2, 2), (x, 0, 0), rotation=tilt)
    for pair, place in (([ground, crank], [0, 0, 0]), ([crank, rod], [0, 0.5, 0]), ([slider, rod], [x, 0, 0])):
        mbs.CreateRevoluteJoint(bodyNumbers=pair, position=place, axis=[0, 0, 1], useGlobalFrame=True)
    mbs.CreatePrismaticJoint(bodyNumbers=[ground, slider], position=[x, 0, 0], axis=[1, 0, 0], useGlobalFrame=True)
    mbs.CreateSpringDamper(
        bodyNumbers=[crank, rod], localPosition0=[0.25, 0, 0], localPosition1=[-0.5, 0, 0], referenceLength=1.0,
        stiffness=1.0, damping=1.0,
    )  # fmt: skip
    mbs.CreateForce(bodyNumber=rod, loadVector=[1, 0, 0], localPosition=[1, 0, 0])
    mbs.Assemble()
    seconds = solve(exu, mbs, 10.0, steps, way, redundant=True)
    tip = mbs.GetObjectOutputBody(crank, exu.OutputVariableType.Position, localPosition=[1, 0, 0])
    far = mbs.GetObjectOutputBody(rod, exu.OutputVariableType.Position, localPosition=[1, 0, 0])
    place = mbs.GetObjectOutputBody(slider, exu.OutputVariableType.Position, localPosition=[0, 0, 0])
    return seconds, [float(np.arctan2(tip[1], tip[0])), float(place[0]), float(np.arcsin(far[1]))]
