"""All URDFs of example-robot-data against Pinocchio: names, sizes, placements, inertias, limits."""

from __future__ import annotations

import numpy as np
import pinocchio as pin
import pytest

import dalembert as da
from dalembert.model import Inertia, Placement
from tests.readers.robots import BROKEN, ROBOTS, UNPHYSICAL, URDFS

GOOD = [name for name in URDFS if name not in BROKEN]


def test_the_collection_is_whole():
    """Version 5 has 77 files, version 6 has 69; names that are gone are not asked for."""
    assert len(URDFS) >= 69


def clusters(robot: da.Mechanism) -> dict[str, tuple[str, Placement]]:
    """Return for every body the moving joint that carries it, and its placement in that joint's frame."""
    found: dict[str, tuple[str, Placement]] = {robot.ground: ("universe", Placement())}
    for joint in robot.joints:
        carrier, place = found[joint.parent]
        fixed = joint.kind == "fixed"
        found[joint.child] = (carrier, place @ joint.placement) if fixed else (joint.name, Placement())
    return found


def joint_placements(robot: da.Mechanism) -> dict[str, Placement]:
    """Return the placement of every moving joint in the frame of the moving joint before it."""
    found = clusters(robot)
    return {joint.name: found[joint.parent][1] @ joint.placement for joint in robot.joints if joint.kind != "fixed"}


def inertias(robot: da.Mechanism) -> dict[str, Inertia]:
    """Return the inertia that every moving joint carries, bodies welded to it included."""
    found, total = clusters(robot), {}
    for body in robot.bodies:
        carrier, place = found[body.name]
        moved = body.inertia.moved(place)
        total[carrier] = total[carrier] + moved if carrier in total else moved
    return total


def same(mine, theirs, scale: float = 1.0, tolerance: float = 1e-12) -> None:
    np.testing.assert_allclose(mine, theirs, rtol=tolerance, atol=tolerance * max(scale, 1e-12))


@pytest.mark.parametrize("name", GOOD)
def test_as_pinocchio_reads_it(name):
    robot, model = loaded(name), pin.buildModelFromUrdf(str(ROBOTS / name))
    assert (robot.nq, robot.nv) == (model.nq, model.nv)
    moving = [joint.name for joint in robot.joints if joint.kind != "fixed"]
    assert moving == list(model.names)[1:]
    places, masses = joint_placements(robot), inertias(robot)
    for i, joint in enumerate(moving, start=1):
        same(places[joint].rotation, model.jointPlacements[i].rotation)
        same(places[joint].position, model.jointPlacements[i].translation)
        theirs = model.inertias[i]
        same(masses[joint].mass, theirs.mass)
        size = abs(theirs.mass) * np.square(theirs.lever).sum() + np.abs(theirs.inertia).max()
        same(masses[joint].mass * masses[joint].center, theirs.mass * theirs.lever, theirs.mass)
        same(masses[joint].about_origin(), theirs.matrix()[3:, 3:], size)
        assert robot.index_q(joint).start == model.joints[i].idx_q
        assert robot.index_v(joint).start == model.joints[i].idx_v
        limits(robot.joint(joint), model, i)
    frames(robot, model)


def loaded(name: str) -> da.Mechanism:
    """Return a robot; if the file has an inertia that no body can have, check that it is named."""
    if name not in UNPHYSICAL:
        return da.load(ROBOTS / name)
    with pytest.raises(da.ModelError, match=f'<link name="{UNPHYSICAL[name]}">.*strict=False'):
        da.load(ROBOTS / name, strict=True)
    with pytest.warns(da.ModelWarning, match=f"no body can have.*'{UNPHYSICAL[name]}'"):
        robot = da.load(ROBOTS / name)
    assert any(f"body '{UNPHYSICAL[name]}': " in note and "the mass matrix" in note for note in robot.notes)
    return robot


def limits(joint, model, i: int) -> None:
    """Compare limits, damping and friction of a joint."""
    q, v = model.joints[i].idx_q, model.joints[i].idx_v
    if joint.kind in ("revolute", "prismatic"):
        assert joint.limits.lower == (model.lowerPositionLimit[q],)
        assert joint.limits.upper == (model.upperPositionLimit[q],)
        assert joint.limits.velocity == (model.velocityLimit[v],)
        assert joint.limits.effort == (model.effortLimit[v],)
    if joint.damping:
        assert joint.damping[0] == model.damping[v]
    if joint.friction:
        assert joint.friction[0] == model.upperDryFrictionLimit[v]


def frames(robot: da.Mechanism, model) -> None:
    """Compare where links stand, those that fixed joints carry included."""
    found = clusters(robot)
    for frame in model.frames:
        if frame.type == pin.FrameType.BODY and frame.name != "universe":
            carrier, place = found[frame.name]
            assert carrier == model.names[frame.parentJoint]
            same(place.rotation, frame.placement.rotation)
            same(place.position, frame.placement.translation)


@pytest.mark.parametrize("name", GOOD)
def test_floating(name):
    """The floating base: one more joint, the same order."""
    robot = da.load(ROBOTS / name, "floating", allow_unphysical=True)
    model = pin.buildModelFromUrdf(str(ROBOTS / name), pin.JointModelFreeFlyer())
    assert (robot.nq, robot.nv) == (model.nq, model.nv)
    assert [joint.name for joint in robot.joints if joint.kind != "fixed"] == list(model.names)[1:]
    own = inertias(robot)["root_joint"]
    same(own.mass, model.inertias[1].mass)
    same(own.mass * own.center, model.inertias[1].mass * model.inertias[1].lever, own.mass)


@pytest.mark.parametrize("name", sorted(set(BROKEN) & set(URDFS)))
def test_broken_files_are_refused_by_place(name):
    with pytest.raises(da.ModelError, match=BROKEN[name]):
        da.load(ROBOTS / name)
    with pytest.raises(ValueError, match="does not contain a valid URDF"):
        pin.buildModelFromUrdf(str(ROBOTS / name))
