"""The mechanisms of the gallery: each function returns a run; `python docs/gallery/mechanisms.py` draws them all.

Plane mechanisms lie in the x-z plane; hinges turn about -y: positive angles are counter-clockwise in the pictures.
"""

from __future__ import annotations

import sys
from pathlib import Path

import casadi as ca
import numpy as np

import dalembert as da

AXIS = (0, -1, 0)
PICTURES = Path(__file__).parents[1] / "images" / "gallery"


def bar(b, name, parent, length, at=(0, 0, 0), mass=1.0):
    """Add a uniform bar along x on a hinge `name` at a place of its parent."""
    moment = mass * length**2 / 12
    b.body(name, mass=mass, center=(length / 2 if mass else 0, 0, 0), inertia=(moment / 100, moment, moment))
    b.joint(f"{name} hinge", "revolute", parent=parent, child=name, axis=AXIS, position=at)
    b.frame(f"{name} tip", name, position=(length, 0, 0))


def pin(frame, other=None, at=(0, 0, 0), name=""):
    """Close a loop in the plane: a point of one body stays on a point of another, two rows."""
    return da.PointOnLine(frame, other, at=at, axis=(0, 1, 0), name=name or f"{frame}-{other or 'ground'}")


def moved(m, duration, guess, hold=()):
    """Run a mechanism from a guess: loops closed, velocities that fit its drives."""
    q = m.assemble(guess, hold=hold).q
    return da.simulate(m, duration, q, m.project(q, np.zeros(m.nv))[1])


def double_pendulum():
    """Two bars, released level: chaos in two coordinates."""
    b = da.Builder("double pendulum")
    bar(b, "upper", "world", 1.0)
    bar(b, "lower", "upper", 0.8, at=(1.0, 0, 0))
    return da.simulate(b.build(), 5.0, [0.0, 0.6])


def chain():
    """Twenty bars hung by one end: the cost of a step grows with their number, not with its cube."""
    b = da.Builder("chain of twenty")
    for i in range(20):
        bar(b, f"bar {i}", f"bar {i - 1}" if i else "world", 0.1, at=(0.1 if i else 0, 0, 0), mass=0.1)
    return da.simulate(b.build(), 3.0, np.zeros(20))


def four_bar():
    """A crank, a coupler and a rocker: one loop, closed by a pin."""
    b = da.Builder("four-bar linkage")
    bar(b, "crank", "world", 0.4)
    bar(b, "coupler", "crank", 1.0, at=(0.4, 0, 0), mass=2.0)
    bar(b, "rocker", "coupler", 0.8, at=(1.0, 0, 0), mass=1.5)
    m = b.build().constrain(pin("rocker tip", at=(1.1, 0, 0), name="pin"))
    return moved(m, 2.32, [1.0, -0.7, -1.5], ["crank hinge"])


def crank_slider():
    """A crank-slider whose connecting rod has no mass: M is singular, the motion is not."""
    b = da.Builder("crank-slider with a massless rod")
    bar(b, "crank", "world", 0.4, mass=3.0)
    bar(b, "rod", "crank", 1.0, at=(0.4, 0, 0), mass=0.0)
    b.body("slider", mass=1.0, inertia=(0.01, 0.01, 0.01))
    b.joint("rail", "prismatic", "world", "slider", axis=(1, 0, 0))
    m = b.build().constrain(pin("rod tip", "slider", name="wrist pin"))
    start = m.assemble([1.2, -1.6, 1.0], hold=["crank hinge"])
    v = m.project(start.q, np.array([7.0, 0.0, 0.0]))[1]
    return da.simulate(m, 2.0, start.q, v)


def watt():
    """Watt's linkage: the middle of the coupler follows a line that is almost straight."""
    b = da.Builder("Watt's linkage")
    bar(b, "left", "world", 1.0)
    bar(b, "coupler", "left", 0.5, at=(1.0, 0, 0))
    bar(b, "right", "world", 1.0, at=(2.0, 0, -0.5))
    b.frame("pen", "coupler", position=(0.25, 0, 0))
    m = b.build().constrain(
        pin("coupler tip", "right tip"), da.Servo("left hinge", lambda t: 0.45 * ca.sin(2 * t), name="drive")
    )
    return moved(m, np.pi, [0.0, -1.57, 3.14])


def chebyshev():
    """Chebyshev's lambda linkage: a crank that turns, a foot that walks on a line."""
    b = da.Builder("Chebyshev's lambda linkage")
    bar(b, "crank", "world", 0.4)
    bar(b, "leg", "crank", 2.0, at=(0.4, 0, 0))
    bar(b, "rocker", "world", 1.0, at=(0.8, 0, 0))
    b.frame("knee", "leg", position=(1.0, 0, 0))
    m = b.build().constrain(
        pin("knee", "rocker tip"), da.Servo("crank hinge", lambda t: np.pi / 2 + 2 * t, name="drive")
    )
    return moved(m, np.pi, [np.pi / 2, -0.9, 1.5], ["crank hinge"])


def quick_return():
    """Whitworth's quick return: forth slowly, back fast; a pin slides in a slotted arm."""
    b = da.Builder("quick return")
    bar(b, "crank", "world", 0.4, at=(0, 0, 0.8))
    bar(b, "arm", "world", 1.6)
    b.body("ram", mass=1.0, inertia=(0.01, 0.01, 0.01))
    b.joint("ram rail", "prismatic", "world", "ram", axis=(1, 0, 0), position=(0, 0, 1.5))
    bar(b, "link", "ram", 0.35, mass=0.2)
    m = b.build().constrain(
        da.PointInPlane("crank tip", "arm", normal=(0, 0, 1), name="slot"),
        pin("link tip", "arm tip"),
        da.Servo("crank hinge", lambda t: 3 * t, name="drive"),
    )
    return moved(m, 2 * np.pi / 3, [0.0, 1.1, 0.4, 2.9], ["crank hinge"])


def scotch_yoke():
    """A Scotch yoke: the pin of a crank in a slot turns rotation into an exact sine."""
    b = da.Builder("Scotch yoke")
    bar(b, "crank", "world", 0.5)
    b.body("yoke", mass=2.0, inertia=(0.1, 0.1, 0.1))
    b.joint("rail", "prismatic", "world", "yoke", axis=(1, 0, 0))
    b.visual("yoke", "box", (0.08, 0.1, 1.3), color=(0.88, 0.62, 0.35))
    b.visual("yoke", "box", (1.2, 0.08, 0.08), position=(0.6, 0, 0), color=(0.88, 0.62, 0.35))
    b.visual("crank", "capsule", (0.04, 0.5), position=(0.25, 0, 0), rpy=(0, np.pi / 2, 0), color=(0.3, 0.47, 0.65))
    b.visual("crank", "cylinder", (0.07, 0.2), position=(0.5, 0, 0), rpy=(np.pi / 2, 0, 0), color=(0.22, 0.26, 0.3))
    m = b.build().constrain(
        da.PointInPlane("crank tip", "yoke", normal=(1, 0, 0), name="slot"),
        da.Servo("crank hinge", lambda t: 3 * t, name="drive"),
    )
    return moved(m, 2 * np.pi / 3, [0.0, 0.5])


def pantograph():
    """A scissor lift of three cells, driven by one foot that slides."""
    b = da.Builder("scissor lift")
    b.body("foot", mass=0.5, inertia=(0.01, 0.01, 0.01))
    b.joint("rail", "prismatic", "world", "foot", axis=(1, 0, 0))
    ties, parents, guess = [], ("world", "foot"), [1.2]
    for k in range(3):
        for side, parent in zip("ab", parents, strict=True):
            bar(b, f"{side}{k}", parent, 1.5, at=(1.5 if k else 0, 0, 0))
            b.frame(f"{side}{k} middle", f"{side}{k}", position=(0.75, 0, 0))
        ties.append(pin(f"a{k} middle", f"b{k} middle"))
        parents = (f"b{k}", f"a{k}")
    ties.append(da.Servo("rail", lambda t: 1.05 + 0.25 * ca.cos(2 * t), name="drive"))
    m = b.build().constrain(*ties)
    angle = np.arccos(1.3 / 1.5)
    guess = {"rail": 1.3, "a0 hinge": angle, "b0 hinge": np.pi - angle}
    for k in (1, 2):
        guess |= {f"a{k} hinge": 2 * angle - np.pi, f"b{k} hinge": np.pi - 2 * angle}
    return moved(m, np.pi, [guess[joint.name] for joint in m.joints], ["rail"])


def cart_pole():
    """A cart on a spring, with a bob on a rod that weighs nothing."""
    b = da.Builder("cart, spring and massless rod")
    b.body("cart", mass=2.0, inertia=(0.01, 0.01, 0.01))
    b.joint("rail", "prismatic", "world", "cart", axis=(1, 0, 0))
    bar(b, "rod", "cart", 1.0, mass=0.0)
    b.body("bob", mass=1.0, inertia=(0.01, 0.01, 0.01))
    b.joint("pin", "revolute", "rod", "bob", axis=AXIS, position=(1, 0, 0))
    b.frame("wall", "world", position=(-1.2, 0, 0))
    b.spring("spring", "wall", "cart", 60.0, 1.2)
    return da.simulate(b.build(), 4.0, [0.0, -0.6, 0.0])


def elastic_pendulum():
    """A mass on a spring that swings: two modes that exchange their energy."""
    b = da.Builder("elastic pendulum")
    b.body("mass", mass=1.0, inertia=(0.01, 0.01, 0.01))
    b.joint("plane", "planar", "world", "mass", axis=(0, 1, 0))
    b.frame("hook", "world")
    b.spring("spring", "hook", "mass", 30.0, 0.7)
    m = b.build()
    q = m.neutral()
    q[:2] = np.linalg.lstsq(_plane_directions(m), np.array([0.35, 0, -1.1]), rcond=None)[0]
    return da.simulate(m, 6.0, q)


def _plane_directions(m):
    """Return the world's directions of the two coordinates of a planar joint, (3, 2)."""
    q = m.neutral()
    columns = []
    for k in range(2):
        moved = q.copy()
        moved[k] = 1.0
        columns.append(m.kinematics(moved)[1][0])
    return np.array(columns).T


def ladder():
    """A ladder slides down a wall, without friction, up to the instant at which it would leave the wall."""
    b = da.Builder("sliding ladder")
    b.body("ladder", mass=10.0, center=(0, 0, 0), inertia=(0.1, 7.5, 7.5))
    b.joint("plane", "planar", "world", "ladder", axis=(0, 1, 0))
    b.frame("top", "ladder", position=(-1.5, 0, 0))
    b.frame("foot", "ladder", position=(1.5, 0, 0))
    m = b.build().constrain(
        da.PointInPlane("top", at=(0, 0, 0), normal=(1, 0, 0), name="wall"),
        da.PointInPlane("foot", at=(0, 0, 0), normal=(0, 0, 1), name="floor"),
    )
    directions = _plane_directions(m)
    q = m.neutral()
    q[:2] = np.linalg.lstsq(directions, np.array([0.5, 0, 1.4]), rcond=None)[0]
    q[2:] = np.cos(1.2), np.sin(1.2)
    run = da.simulate(m, 1.05, m.assemble(q).q)
    push = run.reactions["wall: displacement along x"]
    k = int(np.argmax(push < 0.0))  # between samples k - 1 and k the wall would begin to pull
    return run.repeat(duration=float(np.interp(0.0, -push[k - 1 : k + 1], run.t[k - 1 : k + 1])))


def bouncing_ball():
    """A ball that bounces: every impact is located, with its impulse and its loss."""
    b = da.Builder("bouncing ball")
    b.body("ball", mass=1.0, inertia=(0.004, 0.004, 0.004))
    b.joint("plane", "planar", "world", "ball", axis=(0, 1, 0))
    m = b.build()
    directions, q = _plane_directions(m), m.neutral()
    q[:2] = np.linalg.lstsq(directions, np.array([0, 0, 1.0]), rcond=None)[0]
    v = np.zeros(3)
    v[:2] = np.linalg.lstsq(directions, np.array([0.5, 0, 0.0]), rcond=None)[0]
    contact = da.Contact(da.Sphere("ball", 0.1), da.Plane(), friction=0.3, restitution=0.8)
    return da.simulate(m, 3.0, q, v, contacts=[contact])


def tumbling_box():
    """A box thrown onto the ground: corners that hit, slide and stick."""
    b = da.Builder("tumbling box")
    b.body("box", mass=2.0, inertia=(0.03, 0.05, 0.06))
    m = b.build("floating")
    q, v = m.neutral(), np.zeros(6)
    q[:3], q[3:7] = (-0.6, 0, 0.7), (0.1, 0.35, 0.05, 0.93)
    q[3:7] /= np.linalg.norm(q[3:7])
    v[0], v[4] = 1.5, 6.0
    contact = da.Contact(da.Box("box", (0.4, 0.3, 0.2)), da.Plane(), friction=0.4, restitution=0.3)
    return da.simulate(m, 1.6, q, v, contacts=[contact], method="moreau", step=1e-3)


def cradle():
    """Newton's cradle: four balls on massless rods; the impact solver passes the blow on."""
    b = da.Builder("Newton's cradle")
    for i in range(4):
        b.body(f"ball {i}", mass=1.0, center=(0, 0, -1.0), inertia=(0.004, 0.004, 0.004))
        b.joint(f"hinge {i}", "revolute", "world", f"ball {i}", axis=AXIS, position=(0.2002 * i, 0, 0))
        b.visual(f"ball {i}", "sphere", 0.1, position=(0, 0, -1), color=(0.3, 0.47, 0.65))
        b.visual(f"ball {i}", "capsule", (0.008, 0.9), position=(0, 0, -0.45), color=(0.5, 0.55, 0.6))
    m = b.build()
    spheres = [da.Sphere(f"ball {i}", 0.1, (0, 0, -1.0)) for i in range(4)]
    contacts = [da.Contact(spheres[i], spheres[i + 1], restitution=1.0, name=f"{i}-{i + 1}") for i in range(3)]
    return da.simulate(m, 4.0, [-0.7, 0, 0, 0], contacts=contacts)


def rolling_wheel():
    """A disc that rolls and leans: two rows on velocities that no function of position replaces."""
    b = da.Builder("rolling disc")
    b.body("disc", mass=1.0, inertia=(0.0226, 0.045, 0.0226))
    b.visual("disc", "cylinder", (0.3, 0.03), rpy=(np.pi / 2, 0, 0), color=(0.3, 0.47, 0.65))
    b.visual("disc", "box", (0.5, 0.05, 0.05), color=(0.88, 0.62, 0.35))
    m = b.build("floating").constrain(da.Rolling("disc", radius=0.3, axis=(0, 1, 0), name="ground"))
    q = m.neutral()
    q[2], q[3:7] = 0.3, (np.sin(0.1), 0, 0, np.cos(0.1))
    q = m.project(q)
    v = m.project(q, np.array([1.8, 0, 0, 0, 6.0, 0.8]))[1]
    return da.simulate(m, 4.0, q, v)


def spinning_top():
    """A heavy top: it precesses and nods; the energy stays."""
    b = da.Builder("spinning top")
    b.body("top", mass=1.0, center=(0, 0, 0.3), inertia=(0.01, 0.01, 0.015))
    b.joint("tip", "spherical", "world", "top")
    b.visual("top", "cylinder", (0.2, 0.06), position=(0, 0, 0.3), color=(0.3, 0.47, 0.65))
    b.visual("top", "capsule", (0.02, 0.45), position=(0, 0, 0.22), color=(0.22, 0.26, 0.3))
    b.visual("top", "sphere", 0.04, position=(0.15, 0, 0.33), color=(0.88, 0.62, 0.35))
    return da.simulate(b.build(), 3.0, [np.sin(0.25), 0, 0, np.cos(0.25)], [0, 0, 60.0])


def universal_joint():
    """Two shafts and a Cardan joint: the second turns unevenly, twice a turn."""
    b = da.Builder("Cardan shaft")
    b.body("drive", mass=1.0, center=(0.5, 0, 0), inertia=(0.01, 0.1, 0.1))
    b.joint("drive bearing", "revolute", "world", "drive", axis=(1, 0, 0))
    b.body("output", mass=1.0, center=(0.5, 0, 0), inertia=(0.01, 0.1, 0.1))
    b.joint("output bearing", "revolute", "world", "output", axis=(1, 0, 0), position=(1, 0, 0), rpy=(0, -0.6, 0))
    for name, arm, color in (
        ("drive", (0.08, 0.5, 0.08), (0.3, 0.47, 0.65)),
        ("output", (0.08, 0.08, 0.5), (0.88, 0.62, 0.35)),
    ):
        b.visual(name, "capsule", (0.04, 1.0), position=(0.5, 0, 0), rpy=(0, np.pi / 2, 0), color=color)
        b.visual(name, "box", arm, position=(1.0 if name == "drive" else 0.0, 0, 0), color=color)
    m = b.build().constrain(
        da.Expression(lambda k: k.frame("drive").rotation[:, 1].T @ k.frame("output").rotation[:, 2], name="cross"),
        da.Servo("drive bearing", lambda t: 3 * t, name="drive"),
    )
    return moved(m, 2 * np.pi / 3, [0.0, 0.0])


def bennett():
    """Bennett's linkage: four hinges in space that could not move by counting, and do: three rows are redundant."""
    a, twist = 1.0, 0.6
    b = da.Builder("Bennett linkage")
    parent = "world"
    q = np.array([1.1, 0.0, 0.0])
    for i in range(3):
        name = f"link {i}"
        b.body(name, mass=1.0, center=(a / 2, 0, 0), inertia=(0.01, 0.08, 0.08))
        turn = twist if i % 2 else -twist
        placement = {} if i == 0 else {"position": (a, 0, 0), "rpy": (-turn, 0, 0)}
        b.joint(f"hinge {i}", "revolute", parent, name, axis=(0, 0, 1), **placement)
        parent = name
    b.frame("last", "link 2", position=(a, 0, 0), rpy=(-twist, 0, 0))
    b.frame("base", "world", position=(a, 0, 0), rpy=(twist, 0, 0))
    m = b.build().constrain(da.Revolute("last", "base", axis=(0, 0, 1), name="closing hinge"))
    return moved(m, 3.0, q, ["hinge 0"])


def hung_platform():
    """A platform on three massless rods: each is one row; it swings without turning."""
    b = da.Builder("platform on three rods")
    b.body("platform", mass=5.0, inertia=(0.2, 0.2, 0.4))
    b.visual("platform", "box", (0.9, 0.8, 0.06), color=(0.3, 0.47, 0.65))
    corners = [(0.4, 0, 0.03), (-0.4, 0.35, 0.03), (-0.4, -0.35, 0.03)]
    rods = [
        da.Distance("platform", placement=c, at=(c[0], c[1], 1.2), length=1.2 - 0.03, name=f"rod {k}")
        for k, c in enumerate(corners)
    ]
    m = b.build("floating").constrain(*rods)
    q = m.neutral()
    q[0], q[1], q[2] = 0.45, 0.2, 0.1
    return da.simulate(m, 4.0, m.project(q))


def door():
    """A door on three hinges: how it turns is unique, how they share its weight is not."""
    b = da.Builder("door on three hinges")
    b.body("door", mass=20.0, center=(0.45, 0, 1.0), inertia=(6.7, 8.0, 1.4))
    b.visual("door", "box", (0.9, 0.04, 2.0), position=(0.45, 0, 1.0), color=(0.88, 0.72, 0.5))
    hinges = [
        da.Revolute("door", at=(0, 0, z), placement=(0, 0, z), axis=(0, 0, 1), name=f"hinge {z:g} m")
        for z in (0.2, 1.0, 1.8)
    ]
    m = b.build("floating").constrain(*hinges)
    v = np.zeros(6)
    v[5] = 1.5
    return da.simulate(m, 2.0, m.neutral(), v)


def hopper():
    """A torso on a leg without mass: thigh and shank are held by the foot that stands."""
    b = da.Builder("torso on a massless leg")
    b.body("torso", mass=5.0, center=(0.02, 0, 0.2), inertia=(0.2, 0.3, 0.15))
    b.joint("plane", "planar", "world", "torso", axis=(0, 1, 0))
    for name, parent, at in (("thigh", "torso", 0.0), ("shank", "thigh", -0.4)):
        b.body(name)
        joint, rest = ("hip", 0.5) if at == 0 else ("knee", -1.1)
        spring = {"damping": 2.0, "stiffness": 160.0, "rest": rest}
        b.joint(joint, "revolute", parent, name, axis=(0, 1, 0), position=(0, 0, at), **spring)
    b.frame("foot", "shank", position=(0, 0, -0.4))
    m = b.build().constrain(da.Point("foot", at=(0, 0, 0), name="foot"))
    q = m.neutral()
    q[-2:] = 0.75, -1.5
    q = m.assemble(q, hold=["hip", "knee"]).q
    return da.simulate(m, 1.0, q)


def stanford():
    """The Stanford arm on six servos, the third one a slide."""
    motions = {1: (0, 1.2, 1), 2: (-1.2, 0.5, 2), 3: (0.5, 0.25, 2), 4: (0, 1, 1), 5: (0.4, 0.6, 2), 6: (0, 2, 1)}
    servos = [
        da.Servo(f"joint{k}", lambda t, a=a, b=b, w=w: a + b * ca.sin(w * t), name=f"servo {k}")
        for k, (a, b, w) in motions.items()
    ]
    arm = da.examples.stanford_arm().constrain(*servos)
    return moved(arm, 2 * np.pi, [0, -1.2, 0.5, 0, 0.4, 0])


def gears():
    """A pair of gears with a flywheel: a linear relation between two angles is one row."""
    b = da.Builder("gear pair")
    for name, x, r, mass in (("pinion", 0.0, 0.25, 1.0), ("wheel", 0.75, 0.5, 4.0)):
        b.body(name, mass=mass, inertia=(mass * r * r / 4, mass * r * r / 2, mass * r * r / 4))
        b.joint(f"{name} shaft", "revolute", "world", name, axis=AXIS, position=(x, 0, 0))
        b.visual(
            name, "cylinder", (r, 0.1), rpy=(np.pi / 2, 0, 0), color=(0.3, 0.47, 0.65) if x else (0.88, 0.62, 0.35)
        )
        b.visual(name, "box", (1.8 * r, 0.12, 0.04), color=(0.22, 0.26, 0.3))
    b.couple("mesh", {"pinion shaft": 1.0, "wheel shaft": 2.0})
    return da.simulate(b.build(), 4.0, [0, 0], [2 * np.pi, -np.pi])


GALLERY = (
    double_pendulum, chain, elastic_pendulum, cart_pole, four_bar, crank_slider, watt, chebyshev, quick_return,
    scotch_yoke, pantograph, gears, ladder, bouncing_ball, cradle, tumbling_box, rolling_wheel, spinning_top,
    universal_joint, bennett, hung_platform, door, hopper, stanford,
)  # fmt: skip
"""The gallery, in its order."""


def picture(make):
    """Draw one mechanism; return its file."""
    PICTURES.mkdir(parents=True, exist_ok=True)
    return make().animate(PICTURES / f"{make.__name__}.svg", rate=20.0)


if __name__ == "__main__":
    for make in GALLERY:
        if len(sys.argv) < 2 or make.__name__ in sys.argv[1:]:
            path = picture(make)
            print(f"{path.name}: {path.stat().st_size / 1e3:.0f} kB")
