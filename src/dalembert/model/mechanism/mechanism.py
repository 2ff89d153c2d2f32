"""A mechanism: bodies on a tree of joints, with what acts between them; immutable once built."""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from dalembert.checks import refuse_masked
from dalembert.errors import ModelError, UnsupportedError
from dalembert.model.joints import KINDS
from dalembert.model.mechanism.assemble import Assembling
from dalembert.model.mechanism.calls import Calls, JointValues
from dalembert.model.mechanism.manifold import Manifold
from dalembert.model.mechanism.parts import Actuator, Body, Coupling, Frame, Joint, Loop, Spring, Tendon
from dalembert.model.mechanism.project import Solving
from dalembert.model.mechanism.rows import Constrained
from dalembert.model.mechanism.text import as_html, as_text, content_key
from dalembert.names import lookup

if TYPE_CHECKING:
    from jaxtyping import Float

    from dalembert.model.constraints.constraint import Constraint

Array = np.ndarray


@dataclass(frozen=True, eq=False, repr=False)
class Mechanism(JointValues, Constrained, Calls, Solving, Assembling):
    """Bodies, joints and what else a model has, in the order in which states are numbered.

    Made by `da.Builder` or `da.load`. A `System`: solvers and integrators take it as it is.

    Attributes
    ----------
    name
        What it is called.
    bodies, joints
        joints[i] carries bodies[i]; parents come before children. The ground is no body.
    frames, springs, tendons, actuators, couplings, loops
        Named places; springs between frames, and along sums of coordinates; motors; linear relations between
        coordinates; joints that close loops.
    constraints
        What `constrain` has added.
    gravity : (3,)
        In m/s^2, axes of the ground.
    ground
        Name of what stands still.
    base
        "fixed" or "floating": what holds the first body.
    passive
        Whether dampers and springs act inside forward and inverse dynamics.
    notes
        What a reader left out, and what one should know.
    source
        The file it was read from, or None.

    Notes
    -----
    States follow Pinocchio: a free joint has q = [x y z, qx qy qz qw] and v = [linear, angular] in the body's axes.
    """

    name: str
    bodies: tuple[Body, ...]
    joints: tuple[Joint, ...]
    frames: tuple[Frame, ...] = ()
    springs: tuple[Spring, ...] = ()
    actuators: tuple[Actuator, ...] = ()
    couplings: tuple[Coupling, ...] = ()
    loops: tuple[Loop, ...] = ()
    constraints: tuple[Constraint, ...] = ()
    gravity: tuple[float, float, float] = (0.0, 0.0, -9.81)
    ground: str = "world"
    base: str = "fixed"
    passive: bool = True
    notes: tuple[str, ...] = field(default=())
    source: str | None = None
    tendons: tuple[Tendon, ...] = ()

    def __post_init__(self) -> None:
        seen = {self.ground}
        for body, joint in zip(self.bodies, self.joints, strict=True):
            if joint.child != body.name or joint.parent not in seen:
                raise ModelError(
                    f"joint {joint.name!r} must carry {body.name!r} from a body that comes before it; "
                    "da.Builder puts the parts in order"
                )
            seen.add(body.name)

    # --- sizes and names ----------------------------------------------------------------------------------------

    @cached_property
    def manifold(self) -> Manifold:
        """The space of configurations."""
        return Manifold(self.joints)

    @property
    def nq(self) -> int:
        """Number of coordinates in a configuration."""
        return self.manifold.nq

    @property
    def nv(self) -> int:
        """Number of velocities: degrees of freedom of the open tree."""
        return self.manifold.nv

    @cached_property
    def coordinates(self) -> tuple[str, ...]:
        """Names of the nv velocities: the joint's name, or "joint.wx" and so on where it has several."""
        return tuple(_named(joint.name, each) for joint in self.joints for each in KINDS[joint.kind].v_names)

    @cached_property
    def configuration_names(self) -> tuple[str, ...]:
        """Names of the nq coordinates."""
        return tuple(_named(joint.name, each) for joint in self.joints for each in KINDS[joint.kind].q_names)

    @cached_property
    def parents(self) -> tuple[int, ...]:
        """Per body the index of its parent, -1 for the ground."""
        index = {self.ground: -1} | {body.name: i for i, body in enumerate(self.bodies)}
        return tuple(index[joint.parent] for joint in self.joints)

    @cached_property
    def _body_index(self) -> dict[str, int]:
        return {body.name: i for i, body in enumerate(self.bodies)}

    @cached_property
    def _joint_index(self) -> dict[str, int]:
        return {joint.name: i for i, joint in enumerate(self.joints)}

    @cached_property
    def _coordinate_index(self) -> dict[str, int]:
        return {name: i for i, name in enumerate(self.coordinates)}

    @cached_property
    def _configuration_index(self) -> dict[str, int]:
        return {name: i for i, name in enumerate(self.configuration_names)}

    @cached_property
    def _frames(self) -> dict[str, Frame]:
        """Every frame by name: joints, bodies and named places, the later winning."""
        table = {joint.name: Frame(joint.name, joint.child, joint.child_placement) for joint in self.joints}
        table |= {name: Frame(name, name) for name in (self.ground, *self._body_index)}
        return table | {frame.name: frame for frame in self.frames}

    def body(self, name: str) -> Body:
        """Return a body by name."""
        return self.bodies[self.body_index(name)]

    def body_index(self, name: str) -> int:
        """Return a body's index in `bodies`; -1 for the ground."""
        return -1 if name == self.ground else lookup(name, self._body_index, "body")

    def joint(self, name: str) -> Joint:
        """Return a joint by name."""
        return self.joints[self.joint_index(name)]

    def joint_index(self, name: str) -> int:
        """Return a joint's index in `joints`, which is that of the body it carries."""
        return lookup(name, self._joint_index, "joint")

    def frame(self, name: str) -> Frame:
        """Return a frame by name; the ground, bodies and joints (on the child's side) are frames, too."""
        return lookup(name, self._frames, "frame")

    def index_q(self, name: str) -> slice:
        """Return where a joint, or one of `configuration_names`, stands in q."""
        return self._index(name, self.manifold.q_start, self.configuration_names)

    def index_v(self, name: str) -> slice:
        """Return where a joint, or one of `coordinates`, stands in v."""
        return self._index(name, self.manifold.v_start, self.coordinates)

    def _index(self, name: str, start: Array, names: tuple[str, ...]) -> slice:
        if isinstance(name, str) and name in self._joint_index:
            i = self._joint_index[name]
            return slice(int(start[i]), int(start[i + 1]))
        table = self._coordinate_index if names is self.coordinates else self._configuration_index
        i = lookup(name, table, "joint or coordinate")
        return slice(i, i + 1)

    # --- configurations -----------------------------------------------------------------------------------------

    def neutral(self) -> Float[Array, " nq"]:
        """Return the configuration in which every joint is at zero."""
        return self.manifold.neutral()

    def random(self, rng: Any = None, size: Any = None) -> Float[Array, "*batch nq"]:
        """Return configurations uniform within the limits; `rng` is a seed or generator, `size` samples of them.

        Without limits angles are within pi and lengths within 1 m of zero; rotations are uniform on SO(3).
        """
        return self.manifold.random(rng, size)

    def integrate(self, q: Any, v: Any) -> Float[Array, "*batch nq"]:
        """Return where the constant velocity v leads from q in unit time."""
        return self.manifold.integrate(q, v)

    def difference(self, q0: Any, q1: Any) -> Float[Array, "*batch nv"]:
        """Return the least v with integrate(q0, v) = q1."""
        return self.manifold.difference(q0, q1)

    def interpolate(self, q0: Any, q1: Any, u: Any) -> Float[Array, "*batch nq"]:
        """Return the configuration at the fraction u of the way from q0 to q1."""
        return self.manifold.interpolate(q0, q1, u)

    def normalize(self, q: Any) -> Float[Array, "*batch nq"]:
        """Return the nearest configuration with unit quaternions and unit (cos, sin)."""
        return self.manifold.normalize(q)

    def rate(self, q: Any, v: Any) -> Float[Array, "*batch nq"]:
        """Return dq/dt = N(q) v."""
        return self.manifold.rate(q, v)

    # --- the whole ----------------------------------------------------------------------------------------------

    @property
    def mass(self) -> float:
        """Total mass in kg."""
        return float(sum(body.inertia.mass for body in self.bodies))

    def content(self) -> str:
        """Return a key of everything that determines the numbers; notes and sources do not."""
        return self._content

    @cached_property
    def _content(self) -> str:
        parts = (self.bodies, self.joints, self.frames, self.springs, self.actuators, self.couplings, self.loops)
        parts = (*parts, self.tendons) if self.tendons else parts
        constraints = tuple(constraint.content() for constraint in self.constraints)
        gravity = np.array(self.gravity, dtype=float)
        return content_key(self.name, parts, constraints, gravity, self.ground, self.base, self.passive)

    def with_gravity(self, gravity: Any) -> Mechanism:
        """Return the same mechanism under another gravity (3,), m/s^2."""
        return replace(self, gravity=checked_gravity(gravity))

    def with_passive(self, passive: bool) -> Mechanism:
        """Return the same mechanism with springs and dampers acting, or only kept as data."""
        return replace(self, passive=bool(passive))

    def open_tree(self) -> Mechanism:
        """Return the tree alone, without couplings, loops and constraints."""
        return replace(self, couplings=(), loops=(), constraints=())

    def to_urdf(self, strict: bool = False) -> str:
        """Return the mechanism as URDF, which `da.load` reads back.

        Comments at its head list what URDF cannot say, and what is said in the syntax of other tools (loops, springs,
        screws). With `strict` the first of these raise `UnsupportedError` instead.
        """
        from dalembert.model.mechanism.urdf import UrdfText

        urdf = UrdfText(self)
        text = urdf.write()
        if strict and urdf.left_out:
            raise UnsupportedError(f"{self.name!r} as URDF: cannot be said: {'; '.join(urdf.left_out)}")
        return text

    def __eq__(self, other: object) -> bool:
        return self._content == other._content if isinstance(other, Mechanism) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._content)

    def __getstate__(self) -> dict[str, Any]:
        """Pickle the parts; kernels are loaded from the cache, or compiled, where it arrives."""
        return {each.name: getattr(self, each.name) for each in fields(self)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)

    def __str__(self) -> str:
        return as_text(self)

    def __repr__(self) -> str:
        return f"Mechanism({self.name!r}: {len(self.bodies)} bodies, nq {self.nq}, nv {self.nv}, {self.base} base)"

    def _repr_html_(self) -> str:
        return as_html(self)


def checked_gravity(gravity: Any) -> tuple[float, float, float]:
    """Return gravity as three finite floats."""
    refuse_masked(gravity, "gravity")
    try:
        g = np.asarray(gravity, dtype=float)
    except (TypeError, ValueError):
        g = np.array(np.nan)
    if g.shape != (3,) or not np.isfinite(g).all():
        raise ModelError(f"gravity is three finite numbers in m/s^2, such as (0, 0, -9.81); got {gravity!r}")
    return (float(g[0]), float(g[1]), float(g[2]))


def _named(joint: str, suffix: str) -> str:
    return f"{joint}.{suffix}" if suffix else joint
