"""USD: units, masses, joints, drives and loops, against MuJoCo's reading of the same mechanism and OpenUSD's parser."""

from __future__ import annotations

import re
import sys
import warnings

import numpy as np
import pytest

import dalembert as da
from tests.readers.placements import assert_same, placements

pxr = pytest.importorskip("pxr")
from pxr import Gf, Usd, UsdPhysics  # noqa: E402

SINGLE = 3e-6
"""USD keeps masses, inertias and frames in single precision, 6e-8; sums of a few of them differ by less than this."""


def parsed(path) -> dict:
    """Return what OpenUSD's parser says of every joint, by path."""
    stage = Usd.Stage.Open(str(path))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # its successor is named, but cannot be called
        found = UsdPhysics.LoadUsdPhysicsFromRange(stage, ["/"])
    return {str(path): desc for paths, descs in found.values() for path, desc in zip(paths, descs, strict=True)}


@pytest.fixture
def load(tmp_path):
    def read(text: str, name: str = "m.usda", **options) -> da.Mechanism:
        (tmp_path / name).write_text(text)
        return da.load(tmp_path / name, **options)

    return read


def stage(inside: str, length: float = 1.0, mass: float = 1.0, up: str = "Z") -> str:
    inside = re.sub(r"([{}])", r"\n\1\n", inside)  # statements end with their line
    return (
        f'#usda 1.0\n(\n metersPerUnit = {length!r}\n kilogramsPerUnit = {mass!r}\n upAxis = "{up}"\n)\n'
        f'def PhysicsScene "scene" {{}}\n{inside}'
    )


def at(x: float, y: float, z: float, scale: str = "", turn: str = "") -> str:
    ops = ["xformOp:translate"] + ["xformOp:orient"] * bool(turn) + ["xformOp:scale"] * bool(scale)
    lines = f"double3 xformOp:translate = ({x!r}, {y!r}, {z!r})\n"
    lines += f"quatd xformOp:orient = {turn}\n" if turn else ""
    lines += f"double3 xformOp:scale = {scale}\n" if scale else ""
    return lines + "uniform token[] xformOpOrder = [" + ", ".join(f'"{op}"' for op in ops) + "]\n"


def body(name: str, inside: str, more: str = '"PhysicsMassAPI"') -> str:
    return f'def Xform "{name}" (prepend apiSchemas = ["PhysicsRigidBodyAPI", {more}]) {{\n{inside}\n}}\n'


def weight(mass: float, center=(0, 0, 0), moments=(1, 1, 1), axes=(1, 0, 0, 0)) -> str:
    return (
        f"float physics:mass = {mass!r}\npoint3f physics:centerOfMass = {tuple(center)}\n"
        f"float3 physics:diagonalInertia = {tuple(moments)}\nquatf physics:principalAxes = {tuple(axes)}\n"
    )


def joint(name: str, kind: str, one: str, other: str, inside: str = "", schemas: str = "") -> str:
    ends = "".join(f"rel physics:body{k} = <{end}>\n" for k, end in enumerate((one, other)) if end)
    applied = f"(prepend apiSchemas = [{schemas}])" if schemas else ""
    return f'def Physics{kind}Joint "{name}" {applied} {{\n{ends}{inside}\n}}\n'


def frames(first: tuple, second: tuple = (0.0, 0.0, 0.0)) -> str:
    return f"point3f physics:localPos0 = {first}\npoint3f physics:localPos1 = {second}\n"


def in_units(u: float, w: float) -> str:
    """A cart, a pole with a drive and a ball at its end, y up, in units of u metres and w kilograms."""
    degree = np.pi / 180
    k, d = 3.0 / (w * u**2) * degree, 0.2 / (w * u**2) * degree

    def moments(*values: float) -> tuple[float, ...]:
        return tuple(x / (w * u**2) for x in values)

    parts = (
        body("cart", at(1 / u, 0.0, 0.0) + weight(2 / w, (0, 0.1 / u, 0), moments(0.1, 0.2, 0.3)))
        + body("pole", weight(0.5 / w, (0, -0.3 / u, 0), moments(0.02, 0.01, 0.03),
                              (0.9238795, 0.3826834, 0, 0)))
        + body("ball", weight(0.1 / w, (0.05 / u, 0, 0), moments(0.001, 0.002, 0.0025)))
        + joint("rail", "Prismatic", "", "/cart",
                frames((1 / u, 0.0, 0.0)) + f'token physics:axis = "X"\nfloat physics:lowerLimit = {-2 / u}\n'
                f"float physics:upperLimit = {2 / u}\nfloat physxJoint:armature = {0.7 / w}\n"
                f"float drive:linear:physics:damping = {0.4 / w}\n"
                f"float drive:linear:physics:maxForce = {5 / (w * u)}\n",
                '"PhysicsDriveAPI:linear"')
        + joint("pivot", "Revolute", "/cart", "/pole",
                frames((0.0, 0.1 / u, 0.2 / u)) + 'token physics:axis = "Z"\nfloat physics:lowerLimit = -90\n'
                "quatf physics:localRot0 = (0.9659258, 0, 0, 0.2588190)\n"
                f"float drive:angular:physics:stiffness = {k}\nfloat drive:angular:physics:damping = {d}\n"
                "float drive:angular:physics:targetPosition = 10\n", '"PhysicsDriveAPI:angular"')
        + joint("socket", "Spherical", "/pole", "/ball", frames((0.0, -0.6 / u, 0.0), (0.0, 0.1 / u, 0.0)))
    )  # fmt: skip
    return stage(parts, u, w, "Y")


MJCF = """
<mujoco><option gravity="0 -9.81 0"/><compiler angle="degree" autolimits="true"/><worldbody>
  <body name="cart" pos="1 0 0"><inertial mass="2" pos="0 0.1 0" diaginertia="0.1 0.2 0.3"/>
    <joint name="rail" type="slide" axis="1 0 0" range="-2 2" armature="0.7" damping="0.4"/>
    <body name="pole" pos="0 0.1 0.2" quat="0.9659258 0 0 0.2588190">
      <inertial mass="0.5" pos="0 -0.3 0" quat="0.9238795 0.3826834 0 0" diaginertia="0.02 0.01 0.03"/>
      <joint name="pivot" axis="0 0 1" range="-90 1000" stiffness="3" damping="0.2" springref="10"/>
      <body name="ball" pos="0 -0.7 0"><inertial mass="0.1" pos="0.05 0 0" diaginertia="0.001 0.002 0.0025"/>
        <joint name="socket" type="ball" pos="0 0.1 0"/></body>
    </body>
  </body></worldbody></mujoco>"""


@pytest.mark.parametrize(("u", "w"), [(1.0, 1.0), (0.01, 0.001), (0.0254, 14.593903)])
def test_units_and_drives_against_mujoco(load, tmp_path, u, w):
    """Accelerations of the same mechanism as MuJoCo reads it, whatever the units: cm and g, inch and slug."""
    mine = load(in_units(u, w))
    (tmp_path / "m.xml").write_text(MJCF)
    theirs = da.load(tmp_path / "m.xml")
    assert [j.name for j in mine.joints] == [j.name for j in theirs.joints]
    np.testing.assert_allclose(mine.gravity, theirs.gravity, rtol=1e-12)
    rng = np.random.default_rng(0)
    q, v, tau = mine.random(rng), rng.normal(size=5), rng.normal(size=5)
    np.testing.assert_allclose(
        mine.forward(q, v, tau).acceleration, theirs.forward(q, v, tau).acceleration, rtol=0, atol=2e-3 * SINGLE / 1e-6
    )
    M = theirs.mass_matrix(q)
    np.testing.assert_allclose(mine.mass_matrix(q), M, rtol=0, atol=SINGLE * np.abs(M).max())
    np.testing.assert_allclose(mine.joint("rail").limits.upper, 2.0, rtol=SINGLE)
    np.testing.assert_allclose(mine.joint("rail").limits.effort, 5.0, rtol=SINGLE)
    np.testing.assert_allclose(mine.joint("pivot").limits.lower, -np.pi / 2, rtol=SINGLE)
    notes = "\n".join(mine.notes)
    assert "largest forces of drives" in notes
    assert "y is up" in notes


COLLIDES = '(prepend apiSchemas = ["PhysicsCollisionAPI"])'
ROUND = 'double radius = 0.1\ndouble height = 0.5\ntoken axis = "Z"'
SHAPES = {
    "Cube": ("double size = 0.4", 'type="box" size="0.2 0.4 0.6"', "(1, 2, 3)"),
    "Sphere": ("double radius = 0.3", 'type="sphere" size="0.6"', "(2, 2, 2)"),
    "Cylinder": (ROUND, 'type="cylinder" size="0.2 0.75"', "(2, 2, 3)"),
    "Capsule": (ROUND, 'type="capsule" size="0.2 0.5"', "(2, 2, 2)"),
    "Mesh": (
        "point3f[] points = [(0,0,0), (1,0,0), (0,1,0), (0,0,1)]\nint[] faceVertexCounts = [3,3,3,3]\n"
        "int[] faceVertexIndices = [0,2,1, 0,1,3, 0,3,2, 1,2,3]",
        'type="mesh" mesh="tetrahedron"',
        "(1, 2, 3)",
    ),
}  # fmt: skip
TETRAHEDRON = (
    '<asset><mesh name="tetrahedron" vertex="0 0 0 1 0 0 0 2 0 0 0 3" face="0 2 1 0 1 3 0 3 2 1 2 3"/></asset>'
)


@pytest.mark.parametrize("kind", SHAPES)
def test_masses_of_shapes_against_mujoco(load, tmp_path, kind):
    """Mass, centre and inertia of scaled, turned shapes of 700 kg/m^3, two on one body."""
    inside, geom, scale = SHAPES[kind]
    place = 'pos="0.1 0.2 0.3" quat="0.1 0.5 -0.7 0.5"'
    shape = (
        f'def {kind} "s" (prepend apiSchemas = ["PhysicsCollisionAPI"]) {{\n{inside}\n'
        f"{at(0.1, 0.2, 0.3, scale, '(0.1, 0.5, -0.7, 0.5)')}}}\n"
        'def Cube "t" (prepend apiSchemas = ["PhysicsCollisionAPI"]) { double size = 0.2 }\n'
    )
    mine = load(stage(body("a", f"float physics:density = 700\n{shape}")))
    (tmp_path / "m.xml").write_text(
        f'<mujoco>{TETRAHEDRON}<default><geom density="700"/></default><worldbody><body name="a"><freejoint/>'
        f'<geom {geom} {place}/><geom type="box" size="0.1 0.1 0.1"/></body></worldbody></mujoco>'
    )
    theirs = da.load(tmp_path / "m.xml").body("a").inertia
    inertia = mine.body("a").inertia
    assert inertia.mass == pytest.approx(theirs.mass, rel=SINGLE)
    np.testing.assert_allclose(inertia.center, theirs.center, atol=SINGLE)
    np.testing.assert_allclose(inertia.rotational, theirs.rotational, atol=SINGLE * np.abs(theirs.rotational).max())
    assert any("collision shapes are not used: 2 on 1" in note for note in mine.notes)


def test_cone(load):
    """m = pi r^2 h rho / 3, its centre a quarter of the height above the base."""
    cone = f'def Cone "c" {COLLIDES} {{double radius = 0.3\ndouble height = 0.8\ntoken axis = "X"}}'
    inertia = load(stage(body("a", cone))).body("a").inertia
    m, r, h = 1000 * np.pi * 0.3**2 * 0.8 / 3, 0.3, 0.8
    assert inertia.mass == pytest.approx(m, rel=1e-12)
    np.testing.assert_allclose(inertia.center, [-h / 4, 0, 0], atol=1e-12)
    across = 3 * m / 80 * (4 * r**2 + h**2)
    np.testing.assert_allclose(inertia.rotational, np.diag([0.3 * m * r**2, across, across]), atol=1e-12)


OWN = {
    "density of a shape": ("", "float physics:density = 3"),
    "density of body and shape": ("float physics:density = 5", "float physics:density = 3"),
    "mass of a shape": ("", "float physics:mass = 7"),
    "mass of the body": ("float physics:mass = 11", "float physics:mass = 7"),
    "centre of a shape": ("float physics:mass = 11", "point3f physics:centerOfMass = (0.1, 0.2, 0.3)"),
    "inertia of a shape": ("", "float3 physics:diagonalInertia = (0.3, 0.4, 0.5)\nfloat physics:mass = 4"),
    "centre of the body": ("point3f physics:centerOfMass = (0.1, 0.2, 0.3)", ""),
    "inertia of the body": ("float3 physics:diagonalInertia = (3, 4, 5)", "float physics:density = 3"),
    "mass and inertia": ("float physics:mass = 11\nfloat3 physics:diagonalInertia = (3, 4, 5)", ""),
}


@pytest.mark.parametrize("case", OWN)
def test_which_number_counts_against_openusd(load, tmp_path, case):
    """What OpenUSD's own ComputeMassProperties makes of masses, centres and densities on bodies and shapes."""
    own, of_shape = OWN[case]
    shapes = "".join(
        f'def Cube "{name}" (prepend apiSchemas = ["PhysicsCollisionAPI", "PhysicsMassAPI"]) {{double size = {size}\n'
        f"{more}\n{at(*place)}}}\n"
        for name, size, place, more in (("s", 0.4, (0.5, 0.0, 0.1), of_shape), ("t", 0.2, (-0.3, 0.2, 0.0), ""))
    )
    inertia = load(stage(body("a", f"{own}\n{shapes}"))).body("a").inertia

    def volume(prim):
        size = float(prim.GetAttribute("size").Get())
        info = UsdPhysics.RigidBodyAPI.MassInformation()
        info.volume, info.inertia = size**3, Gf.Matrix3f(size**5 / 6)
        info.centerOfMass, info.localRot = Gf.Vec3f(0), Gf.Quatf(1)
        info.localPos = Gf.Vec3f(prim.GetAttribute("xformOp:translate").Get())
        return info

    theirs = Usd.Stage.Open(str(tmp_path / "m.usda"))
    mass, moments, center, axes = UsdPhysics.RigidBodyAPI(theirs.GetPrimAtPath("/a")).ComputeMassProperties(volume)
    R = np.array(Gf.Matrix3d(Gf.Rotation(Gf.Quatd(axes)))).T if "inertia" not in case or "shape" in case else np.eye(3)
    assert inertia.mass == pytest.approx(mass, rel=SINGLE)
    np.testing.assert_allclose(inertia.center, center, atol=SINGLE)
    expected = R @ np.diag(moments) @ R.T
    np.testing.assert_allclose(inertia.rotational, expected, atol=30 * SINGLE * np.abs(expected).max())


def test_frames_of_joints_against_openusd(load, tmp_path):
    """Scaled bodies, bodies named by a prim below them, anchors on what stands still and on the world."""
    turn, one, two = "(0.1, 0.5, -0.7, 0.5)", "localRot1 = (0.6, 0.8, 0, 0)", "localRot0 = (0.6, 0, 0.8, 0)"
    parts = (
        body("a", at(1.0, 2.0, 3.0, "(2, 2, 2)", turn) + weight(1.0))
        + body("b", at(0.0, 1.0, 0.0, "(1, 2, 3)") + weight(1.0) + f'def Xform "site" {{ {at(0.1, 0.2, 0.3)} }}')
        + f'def Xform "wall" {{ {at(0.0, 0.0, 5.0, "(3, 3, 3)", turn)} }}'
        + joint("j", "Revolute", "/a", "/b/site", frames((1.0, 0.5, 0.0), (0.0, 1.0, 0.2)) + "quatf physics:" + one)
        + joint("w", "Revolute", "/wall", "/a", frames((0.1, 0.2, 0.3), (0.3, 0.2, 0.1)) + "quatf physics:" + two)
    )  # fmt: skip
    mine = load(stage(parts))
    found = parsed(tmp_path / "m.usda")
    for name in ("j", "w"):
        joint_of, desc = mine.joint(name), found[f"/{name}"]
        for side, X in enumerate((joint_of.placement, joint_of.child_placement)):
            position = getattr(desc, f"localPose{side}Position")
            turned = np.array(Gf.Matrix3d(Gf.Rotation(Gf.Quatd(getattr(desc, f"localPose{side}Orientation"))))).T
            np.testing.assert_allclose(X.position, position, atol=SINGLE)
            np.testing.assert_allclose(X.rotation, turned, atol=SINGLE)


def limits(**bounds) -> str:
    return "".join(
        f"float limit:{k}:physics:low = {a}\nfloat limit:{k}:physics:high = {b}\n" for k, (a, b) in bounds.items()
    )


GENERAL = {
    "fixed": (("transX", "transY", "transZ", "rotX", "rotY", "rotZ"), ["fixed"]),
    "hinge": (("transX", "transY", "transZ", "rotX", "rotZ"), ["revolute"]),
    "slider": (("transX", "transY", "rotX", "rotY", "rotZ"), ["prismatic"]),
    "ball": (("transX", "transY", "transZ"), ["spherical"]),
    "cylinder": (("transX", "transY", "rotX", "rotY"), ["prismatic", "revolute"]),
    "plane": (("transZ", "rotX", "rotY"), ["prismatic", "prismatic", "revolute"]),
    "cross": (("transX", "transY", "transZ", "rotZ"), ["revolute", "revolute"]),
}


@pytest.mark.parametrize("case", GENERAL)
def test_joints_of_free_and_locked_axes(load, case):
    """Axes whose lower limit is above the upper one are held; the others are the chain's coordinates."""
    locked, kinds = GENERAL[case]
    schemas = ", ".join(f'"PhysicsLimitAPI:{word}"' for word in locked)
    held = joint("d", "", "", "/a", limits(**dict.fromkeys(locked, (1, -1))), schemas)
    robot = load(stage(body("a", weight(1.0)) + held))
    assert [j.kind for j in robot.joints] == kinds
    axes = {(j.kind, j.axis.index(1.0)) for j in robot.joints if j.kind in ("revolute", "prismatic")}
    words = {
        ("prismatic" if word[0] == "t" else "revolute", "XYZ".index(word[-1])) for word in all_axes() - set(locked)
    }
    assert axes == (set() if kinds in (["fixed"], ["spherical"]) else words)


def all_axes() -> set[str]:
    return {f"{kind}{axis}" for kind in ("trans", "rot") for axis in "XYZ"}


def test_a_limited_ball_is_three_hinges(load):
    """Angles of three hinges have limits and drives of their own; the order is in the notes."""
    held = joint(
        "d", "", "", "/a",
        limits(transX=(1, -1), transY=(1, -1), transZ=(1, -1), rotY=(-30, 60))
        + "float drive:rotZ:physics:stiffness = 2\n",
        ', '.join(f'"PhysicsLimitAPI:{word}"' for word in ("transX", "transY", "transZ", "rotY"))
        + ', "PhysicsDriveAPI:rotZ"',
    )  # fmt: skip
    robot = load(stage(body("a", weight(1.0)) + held))
    assert [j.name for j in robot.joints] == ["d_rotX", "d_rotY", "d_rotZ"]
    np.testing.assert_allclose(robot.joint("d_rotY").limits.upper, np.pi / 3, rtol=SINGLE)
    np.testing.assert_allclose(robot.joint("d_rotZ").stiffness, 2 * 180 / np.pi, rtol=SINGLE)
    assert any("hinges about x, then y, then z" in note for note in robot.notes)


A = body("a", weight(1.0))


def four_bar(excluded: str = "") -> str:
    """A crank of 0.4, a coupler of 1, a rocker of 0.8 m in the plane of x and z; every hinge turns about -y."""
    turn = (
        "quatf physics:localRot0 = (0, 0, 0, 1)\nquatf physics:localRot1 = (0, 0, 0, 1)\n"
        + 'token physics:axis = "Y"\n'
    )
    lengths = {"crank": 0.4, "coupler": 1.0, "rocker": 0.8}
    parts, last, end = "", "", 0.0
    for name, length in lengths.items():
        parts += body(name, weight(1.0, (length / 2, 0, 0), (0.01, 0.1, 0.1)))
        mark = "bool physics:excludeFromArticulation = true\n" if f"{name}_hinge" == excluded else ""
        parts += joint(f"{name}_hinge", "Revolute", last, f"/{name}", frames((end, 0.0, 0.0)) + turn + mark)
        last, end = f"/{name}", length
    mark = "bool physics:excludeFromArticulation = true\n" if excluded == "pin" else ""
    return stage(
        parts + joint("pin", "Revolute", "", "/rocker", frames((1.1, 0.0, 0.0), (0.8, 0.0, 0.0)) + turn + mark)
    )


def test_a_loop_against_the_builder(load):
    """A four-bar in space, whose loop has redundant rows: accelerations of the same linkage made in Python."""
    from tests.bridges.models import four_bar as ours

    mine, other = load(four_bar("pin")), ours()
    assert [loop.name for loop in mine.loops] == ["pin"]
    q = other.assemble([1.0, -0.7, -1.5]).q
    v = np.zeros(3)
    one, two = mine.forward(q, v, [3.0, 0, 0]), other.forward(q, v, [3.0, 0, 0])
    assert da.Status(int(one.status)).ok
    np.testing.assert_allclose(one.acceleration, two.acceleration, atol=1e-4)


def test_excluded_joints_close_loops(load):
    """The file says which joint of a loop is not of the tree, whichever it is."""
    for name in ("crank_hinge", "coupler_hinge", "pin"):
        assert [loop.name for loop in load(four_bar(name)).loops] == [name]
    only = load(
        stage(body("a", weight(1.0)) + joint("j", "Fixed", "", "/a", "bool physics:excludeFromArticulation = 1"))
    )
    assert [j.name for j in only.joints] == ["j"]  # nothing else holds the body


def test_what_holds_a_body(load):
    one, two = body("a", weight(1.0)), body("b", at(1.0, 2.0, 3.0) + weight(1.0))
    robot = load(stage(one + two + joint("j", "Revolute", "/a", "/b")))
    assert [(j.kind, j.child) for j in robot.joints] == [("free", "a"), ("revolute", "b")]
    root = body("b", at(1.0, 2.0, 3.0) + weight(1.0), '"PhysicsMassAPI", "PhysicsArticulationRootAPI"')
    robot = load(stage(one + root + joint("j", "Revolute", "/a", "/b")))
    assert [(j.kind, j.child) for j in robot.joints] == [("free", "b"), ("revolute", "a")]
    still = load(stage(body("a", at(1.0, 2.0, 3.0) + weight(1.0) + "bool physics:kinematicEnabled = 1")))
    assert still.nv == 0
    assert_same(placements(still)["a"], da.Placement(position=(1, 2, 3)))
    assert load(stage(two), base="fixed").nv == 0
    world = load(stage(one + joint("j", "Prismatic", "/a", "", 'token physics:axis = "Y"')))
    assert_same(placements(world, [0.5])["a"], da.Placement(position=(0, -0.5, 0)))  # body1 is the world: a goes back


def test_where_the_file_draws_the_model(load):
    """`pose` puts every body where the file has it, through a hinge, a slider, a ball and a joint that is reversed."""
    spots = {
        "a": (1.0, 2.0, 3.0),
        "b": (1.5, 2.0, 3.0),
        "c": (1.5, 2.0, 3.5),
        "d": (1.5, 2.0, 3.5),
        "e": (0.5, 2.0, 3.0),
    }
    turns = {"b": "(0.8, 0.6, 0, 0)", "c": "(0.8, 0.6, 0, 0)", "d": "(0.1, 0.5, -0.7, 0.5)"}
    parts = "".join(body(name, at(*spot, "", turns.get(name, "")) + weight(1.0)) for name, spot in spots.items())
    parts += joint("ab", "Revolute", "/a", "/b", frames((0.5, 0.0, 0.0)))
    back = "quatf physics:localRot0 = (0.8, -0.6, 0, 0)\nquatf physics:localRot1 = (0.8, -0.6, 0, 0)\n"
    parts += joint("bc", "Prismatic", "/b", "/c", back + 'token physics:axis = "Z"')
    parts += joint("cd", "Spherical", "/c", "/d") + joint("ea", "Prismatic", "/e", "/a", "")
    robot = load(stage(parts))
    found = placements(robot, robot.pose())
    for name, spot in spots.items():
        w, x, y, z = eval(turns.get(name, "(1, 0, 0, 0)"))
        assert_same(found[name], da.Placement.from_quaternion((x, y, z, w), spot), SINGLE)
    assert not any("do not put them" in note for note in robot.notes)
    wrong = load(stage(A + body("b", at(0.0, 1.0, 0.0) + weight(1.0)) + joint("j", "Revolute", "/a", "/b")))
    assert any("do not put them" in note for note in wrong.notes)


def test_gravity(load):
    """g is in units of the stage; a negative magnitude and no direction are "not given"."""
    for inside, u, expected in (
        ("float physics:gravityMagnitude = 162\nvector3f physics:gravityDirection = (2, 0, 0)", 0.01, (1.62, 0, 0)),
        ("vector3f physics:gravityDirection = (0, 1, 0)", 0.01, (0, 9.81, 0)),
        ("", 0.01, (0, 0, -9.81)),
    ):
        text = stage(body("a", weight(1.0)), u).replace('"scene" {}', f'"scene" {{\n{inside}\n}}')
        np.testing.assert_allclose(load(text).gravity, expected, rtol=1e-6)


def test_mimic_joints(load):
    """Newton's rule q = c0 + c1 leader and PhysX's q + gearing leader + offset = 0; offsets are in degrees."""
    newton = "rel newton:mimicJoint = </one>\nfloat newton:mimicCoef0 = 90\nfloat newton:mimicCoef1 = 2\n"
    physx = "rel physxMimicJoint:rotX:referenceJoint = </one>\nfloat physxMimicJoint:rotX:gearing = 3\n"
    bodies = body("a", weight(1.0)) + body("b", weight(1.0))
    for rule, offset, factor in ((newton, np.pi / 2, -2.0), (physx, 0.0, 3.0)):
        robot = load(stage(bodies + joint("one", "Revolute", "", "/a") + joint("two", "Revolute", "/a", "/b", rule)))
        (row,) = robot.couplings
        assert row.terms == (("two", 1.0), ("one", factor))
        assert row.offset == pytest.approx(offset)


def test_rods_and_ropes(load):
    parts = body("a", weight(1.0))
    rod = load(
        stage(
            parts + joint("r", "Distance", "", "/a", "float physics:minDistance = 50\nfloat physics:maxDistance = 50"),
            0.01,
        )
    )
    assert (rod.loops[0].kind, dict(rod.loops[0].options)) == ("distance", {"length": pytest.approx(0.5)})
    rope = load(stage(parts + joint("r", "Distance", "", "/a", "float physics:maxDistance = 50")))
    assert not rope.loops
    assert any("distances that may vary" in note for note in rope.notes)


def test_visuals_frames_and_names(load):
    shapes = (
        'def Cube "box" { double size = 0.5\ncolor3f[] primvars:displayColor = [(1, 0, 0)]\n'
        f"{at(0.0, 0.0, 1.0, '(1, 2, 3)')} }}"
        'def Capsule "bar" { double radius = 0.1\ndouble height = 1\ntoken axis = "X" }'
        'def Mesh "skin" {}\ndef Xform "tool" { double3 xformOp:translate = (0, 0, 2)\n'
        'uniform token[] xformOpOrder = ["xformOp:translate"] }'
    )
    robot = load(
        stage(
            f'def Xform "one" {{ {body("a", shapes + weight(1.0))} }}\ndef Xform "two" {{ {body("a", weight(1.0))} }}'
        )
    )
    assert [each.name for each in robot.bodies[-2:]] == ["one/a", "two/a"]
    box, bar = robot.visuals
    assert (box.kind, box.size, box.color) == ("box", (0.5, 1.0, 1.5), (1.0, 0.0, 0.0, 1.0))
    np.testing.assert_allclose(bar.placement.rotation @ [0, 0, 1], [1, 0, 0], atol=1e-12)
    assert robot.frames[0].name == "tool"
    assert robot.frames[0].placement.position[2] == 2
    assert any("not drawn: a Mesh: /one/a/skin" in note for note in robot.notes)


def mesh(points: str) -> str:
    """A body whose collision shape is one triangle."""
    faces = "int[] faceVertexCounts = [3]\nint[] faceVertexIndices = [0,1,2]"
    return body("a", f'def Mesh "m" {COLLIDES} {{point3f[] points = [{points}]\n{faces}}}')


def hinge(inside: str, schemas: str = "") -> str:
    return A + joint("j", "Revolute", "", "/a", inside, schemas)


def uneven() -> str:
    """A turned body below scales that differ by axis."""
    turned = body("a", at(0.0, 0.0, 0.0, "", "(0.1, 0.5, -0.7, 0.5)") + weight(1.0))
    return f'def Xform "s" {{ {at(0.0, 0.0, 0.0, "(1, 2, 3)")} {turned} }}'


def laughs() -> str:
    """Forty prims that refer twice to the next one."""
    prims = (
        f'def "l{k}" {{ def "p" (references = </l{k + 1}>) {{}} def "q" (references = </l{k + 1}>) {{}} }}'
        for k in range(40)
    )
    return A + "".join(prims) + 'def "l40" {}'


STIFF = "float drive:angular:physics:stiffness = -1"
REFUSED = {
    "no bodies": ('def Xform "a" {}', "nothing to move"),
    "unknown joint": (A + 'def PhysxPhysicsGearJoint "g" {}', r"</g>: joints of type PhysxPhysicsGearJoint"),
    "missing body": (A + joint("j", "Fixed", "/a", "/b"), r"</j>: physics:body1 = </b>, which is not there"),
    "itself": (A + joint("j", "Fixed", "/a", "/a"), r"</j>: joins 'a' to itself"),
    "limits": (hinge("float physics:lowerLimit = 3\nfloat physics:upperLimit = 2"), "</j>.*above"),
    "axis": (hinge('token physics:axis = "Q"'), "</j>: physics:axis"),
    "not finite": (hinge("point3f physics:localPos0 = (nan, 0, 0)"), "</j>.*finite"),
    "negative mass": (body("a", weight(-1.0)), "</a>: physics:mass"),
    "negative drive": (hinge(STIFF, '"PhysicsDriveAPI:angular"'), "</j>.*negative"),
    "shear": (uneven(), "</s/a>.*shears"),
    "mirror": (body("a", at(0.0, 0.0, 0.0, "(-1, 1, 1)") + weight(1.0)), "</a>.*mirrors"),
    "flat": (body("a", at(0.0, 0.0, 0.0, "(0, 1, 1)") + weight(1.0)), "</a>.*zero scale"),
    "open mesh": (mesh("(0,0,0), (1,0,0), (0,1,0)"), "</a/m>.*not closed"),
    "wild mesh": (mesh("(0,0,0)"), "</a/m>.*fit together"),
    "text": (A + "}", "m.usda"),
    "deep": ('def "x" {' * 300 + "}" * 300, "deep"),
    "absolute path": (A + 'def "x" (references = @/etc/hostname@) {}', "not found"),
    "above": (A + 'def "x" (payload = @../../other.usda@) {}', "not found"),
    "missing": (A + 'def "x" (prepend references = @missing.usda@</y>) {}', "not found"),
    "clips": (A + 'def "x" (clips = {dictionary default = {asset[] assetPaths = [@./c.usd@]}}) {}', "clips"),
    "laughs": (laughs(), "more than"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refusals_name_file_and_prim(load, case, capfd):
    text, words = REFUSED[case]
    with pytest.raises(da.DalembertError, match=words) as caught:
        load(stage(text))
    assert "m.usda" in str(caught.value)
    assert len(str(caught.value)) < 2000


def test_layers_beside_the_file(load, tmp_path):
    """References inside the model's folder and declared packages are composed."""
    (tmp_path / "parts").mkdir()
    (tmp_path / "parts" / "arm.usda").write_text('#usda 1.0\n(defaultPrim = "a")\n' + body("a", weight(2.0)))
    robot = load(
        stage('def "first" (references = @parts/arm.usda@) {}\ndef "second" (references = @./parts/arm.usda@</a>) {}')
    )
    assert [(each.name, each.inertia.mass) for each in robot.bodies[-2:]] == [("first", 2.0), ("second", 2.0)]


def test_kinds_of_files(load, tmp_path, monkeypatch):
    """The content decides: crate files, endings that OpenUSD does not know, XML named as USD; the extra is named."""
    load(stage(A))
    Usd.Stage.Open(str(tmp_path / "m.usda")).Export(str(tmp_path / "m.usd"))
    assert da.load(tmp_path / "m.usd").body("a").inertia.mass == 1.0
    with pytest.raises(da.ModelError, match="by its ending"):
        load(stage(A), "m.txt")
    with pytest.raises(da.UnsupportedError, match="unzip"):
        load("PK", "m.usdz")
    assert load('<robot name="r"><link name="a"/></robot>', "r.usda").nv == 0
    monkeypatch.setitem(sys.modules, "pxr", None)
    with pytest.raises(da.MissingExtraError, match=r"dalembert\[usd\]"):
        load(stage(A))
