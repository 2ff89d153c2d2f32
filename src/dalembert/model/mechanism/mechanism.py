"""A mechanism: bodies on a tree of joints, with what acts between them; immutable once built.

The class holds the parts, their names and the public methods. Algorithms are functions of a mechanism in the files
beside: `calls` (compiled quantities), `joint_values`, `constraint_rows`, `solve` (the block system), `project`,
`assemble`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from dalembert.errors import ModelError
from dalembert.first_use import CONTACTS, FMI_BRIDGE, MJCF_BRIDGE, PICTURES
from dalembert.model.joints import KINDS
from dalembert.model.mechanism import calls, constraint_rows, joint_values, precision, project, solve
from dalembert.model.mechanism.manifold import Manifold
from dalembert.model.mechanism.parts import (
    FILE_POSE,
    Actuator,
    Body,
    CollisionShape,
    ContactRule,
    Coupling,
    Frame,
    Joint,
    Loop,
    NamedPose,
    Spring,
    Tendon,
    Visual,
)
from dalembert.model.mechanism.tree_text import as_html, as_text, content_key
from dalembert.model.mechanism.validation import checked_gravity
from dalembert.model.requests import RouteTable, route_table
from dalembert.names import lookup
from dalembert.types import Array, Energy

if TYPE_CHECKING:
    from pathlib import Path

    from jaxtyping import Float

    from dalembert.kernel import Kernel
    from dalembert.kkt import KKT, Diagnosis, Solution
    from dalembert.kkt.solution import Impact
    from dalembert.model.constraints.constraint import Constraint
    from dalembert.model.mechanism.assemble import Assembly, Equilibrium
    from dalembert.model.mechanism.base_parameters import BaseParameters
    from dalembert.model.mechanism.distribute import Distribution
    from dalembert.model.mechanism.excite import Excitation
    from dalembert.model.mechanism.identify import Identification
    from dalembert.model.mechanism.inverse_kinematics import InverseKinematics
    from dalembert.model.mechanism.joint_forces import JointForces
    from dalembert.model.mechanism.known_motion import InverseDynamics
    from dalembert.model.mechanism.named_derivatives import Derivatives
    from dalembert.model.mechanism.parametric import ParametricMechanism
    from dalembert.model.mechanism.ranks import GenericRank


@dataclass(frozen=True, eq=False, repr=False)
class Mechanism:
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
    visuals
        Shapes, meshes and colours that bodies are drawn with; no part of `content`.
    poses
        Configurations with a name, see `pose`; no part of `content`.
    collision_shapes, contact_rules
        Shapes by which bodies touch, and pairs that a file leaves out or adds; no part of `content`, for they act in
        runs that are given their `contacts`.

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
    visuals: tuple[Visual, ...] = ()
    poses: tuple[NamedPose, ...] = ()
    collision_shapes: tuple[CollisionShape, ...] = ()
    contact_rules: tuple[ContactRule, ...] = ()

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
        return tuple(_named(joint.name, suffix) for joint in self.joints for suffix in KINDS[joint.kind].v_names)

    @cached_property
    def configuration_names(self) -> tuple[str, ...]:
        """Names of the nq coordinates."""
        return tuple(_named(joint.name, suffix) for joint in self.joints for suffix in KINDS[joint.kind].q_names)

    @cached_property
    def parents(self) -> tuple[int, ...]:
        """Per body the index of its parent, -1 for the ground."""
        index = {self.ground: -1} | {body.name: i for i, body in enumerate(self.bodies)}
        return tuple(index[joint.parent] for joint in self.joints)

    @cached_property
    def negative_bodies(self) -> tuple[str, ...]:
        """Names of bodies whose mass or a principal moment is negative."""
        return tuple(body.name for body in self.bodies if body.inertia.is_negative())

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
        i = lookup(name, {**self._joint_index, **table}, "joint or coordinate")  # a near match may be a joint
        return slice(i, i + 1)

    # --- configurations -----------------------------------------------------------------------------------------

    def neutral(self) -> Float[Array, " nq"]:
        """Return the configuration in which every joint is at zero."""
        return self.manifold.neutral()

    def pose(self, name: str | None = None) -> Float[Array, " nq"]:
        """Return a configuration by name: a keyframe of MJCF, a group state of SRDF, or one given to `Builder.pose`.

        Without a name it is where the file draws the model ("file"), and `neutral` where no file says so. Joints that
        a pose leaves out are at zero.
        """
        poses = {pose.name: pose for pose in self.poses}
        if name is None and FILE_POSE not in poses:
            return self.neutral()
        pose = lookup(FILE_POSE if name is None else name, poses, "pose")
        return joint_values.configuration(self, dict(pose.values))

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

    # --- values of all joints, over the nv velocities ------------------------------------------------------------

    @cached_property
    def damping(self) -> Float[Array, " nv"]:
        """Viscous damping, N s/m or N m s/rad."""
        return joint_values.per_velocity(self, "damping")

    @cached_property
    def friction(self) -> Float[Array, " nv"]:
        """Dry friction, N or N m; data for force laws, no part of the smooth dynamics."""
        return joint_values.per_velocity(self, "friction")

    @cached_property
    def stiffness(self) -> Float[Array, " nv"]:
        """Stiffness of springs in the joints, N/m or N m/rad."""
        return joint_values.per_velocity(self, "stiffness")

    @cached_property
    def rest(self) -> Float[Array, " nv"]:
        """Where those springs are relaxed: the difference from `neutral`."""
        return joint_values.per_velocity(self, "rest")

    @cached_property
    def armature(self) -> Float[Array, " nv"]:
        """Inertia on the diagonal of M beside that of the bodies: of the joints, and gear^2 rotor_inertia of motors."""
        return joint_values.armature(self)

    @property
    def lower(self) -> Float[Array, " nv"]:
        """Lower limits of the coordinates, -inf where there is none."""
        return self.manifold.lower

    @property
    def upper(self) -> Float[Array, " nv"]:
        """Upper limits of the coordinates, inf where there is none."""
        return self.manifold.upper

    @cached_property
    def velocity_limits(self) -> Float[Array, " nv"]:
        """Greatest speeds, inf where there is no limit."""
        return joint_values.limits(self, "velocity")

    @cached_property
    def effort_limits(self) -> Float[Array, " nv"]:
        """Greatest forces and torques, inf where there is no limit."""
        return joint_values.limits(self, "effort")

    @cached_property
    def actuation(self) -> Float[Array, "nv nu"]:
        """The matrix that takes controls of the actuators to joint forces: gears, one column per actuator."""
        return joint_values.actuation(self)

    def torque(self, control: Any, clip: bool = False) -> Float[Array, "*batch nv"]:
        """Return joint forces (nv,) of the controls (nu,) of all actuators, gear * control each.

        With `clip` each motor gives at most its effort, counted at the joint.
        """
        return joint_values.torque(self, control, clip)

    # --- compiled quantities; each takes one state or a batch, with any leading axes ------------------------------

    def compile(self, what: str = "forward", **options: Any) -> Kernel:
        """Return a kernel, the same object when asked again.

        Parameters
        ----------
        what
            One of `dalembert.model.requests.requests()`: "forward" (q, v, tau, t -> acceleration, multipliers, status,
            where t may be left off unless a function of yours may depend on it), "inverse" (q, v, a -> tau), "impact",
            "delassus", "mass_matrix", "coriolis_matrix", "bias", "gravity",
            "kinematics", "jacobian", "energy", "center_of_mass", ...
        options
            `massless` of "forward": "hold" or laws, as in `with_massless`;
            `frame` (a name) and `reference` ("local", "world", "local_world_aligned") where the request has a frame;
            `backend`, `dtype`, `threads`, `width` go to `Kernel`.

        Notes
        -----
        A kernel takes configurations as they are: quaternions must be unit, which the methods below check. A matrix
        with one column (M and J where nv = 1) is a vector in a kernel; the methods give it back as a matrix.
        """
        return calls.compiled(self, what, options)

    def routes(self, what: str = "forward") -> RouteTable:
        """Return the ways in which a request can be computed: `print` shows operations, depth and why for each.

        A route is taken by `compile(what, route=...)`; "auto", the default, takes the one with the fewest operations.
        """
        return route_table(self, what)

    def forward(self, q: Any, v: Any, force: Any = None, t: Any = 0.0, massless: Any = "refuse") -> Solution:
        """Return accelerations (..., nv) and multipliers (..., m) under the joint forces `force` (..., nv).

        One state or a batch in compiled code, each sample with a status (`da.Status`); samples that the code declines
        are solved by `KKT`. Multipliers have length 0 where a mechanism has no constraint rows (`names` lists them; a
        mimic joint is one). Where a state has no answer (a massless motion that nothing holds, contradicting rows,
        numbers beyond the range of doubles) its status says so and its numbers are NaN; `diagnose` names the motion.

        `massless="hold"`, or a dict of laws, gives limbs that have no mass, and that nothing holds, dynamics of their
        own; see `with_massless`. Their rows come last, and the status is `HELD`.

        `acceleration, multipliers, status = mechanism.forward(...)` unpacks it.
        """
        if isinstance(massless, str) and massless == "refuse":
            return solve.forward(self, q, v, force, t)
        return solve.forward(self.with_massless(massless), q, v, force, t, hold=True)

    def inverse(self, q: Any, v: Any, a: Any, t: Any = 0.0, actuated: Any = None) -> InverseDynamics:
        """Return the joint forces tau (nv,) that cause the acceleration a (nv,), multipliers (m,) and status.

        With loops or constraints, or where `actuated` names the driven joints ("actuators": those with motors), tau is
        the least that does it, and joints that are not driven get none. Multipliers have length 0 without rows.
        `tau, multipliers, status = ...` unpacks the answer; its `.unique` says per row and sample whether no other
        multiplier is possible (a standing robot's feet may press against each other), `.joint_forces` has the loads of
        all bearings.
        The constraints must allow the motion, A a + drift = 0; no force can cause any other.
        Couplings alone (mimic joints) are taken to carry nothing: every joint is driven, and the status is `REDUNDANT`.
        For what the motors of such a mechanism must do, name them: `actuated=[...]`.
        """
        return calls.inverse(self, q, v, a, t, actuated)

    def joint_forces(
        self,
        q: Any,
        v: Any,
        force: Any = None,
        t: Any = 0.0,
        *,
        axes: str = "child",
        flexible: Mapping[str, Any] | None = None,
        bearings: Mapping[str, Any] | None = None,
    ) -> JointForces:
        """Return the wrench that every joint transmits: of the tree and of loops, fixed ones, constraints, springs.

        Parameters
        ----------
        q, v, force, t
            As in `forward`: one state or a batch.
        axes
            "child" or "parent", those of the joint's frame on these bodies, or "world". The wrench is the parent's on
            the child, [force; moment], with the moment about the origin of the joint's frame on the child.
        flexible
            Stiffnesses of joints by name: a number (N/m), a pair (N/m, N m/rad), or an array of six along and about the
            child's axes; all other joints are rigid. They decide what redundant constraints leave open. Without them
            all joints give way alike.
        bearings
            Dry friction of bearings that turn or slide, by joint: (radius in metres, coefficient) of a
            hinge, a coefficient of a slider. The torque is coefficient x radius x load across the axis, against the
            velocity, and part of the motion; `.friction` has it. Where several torques are possible (a linkage that
            jams) the status is `DECLINED`.

        Returns
        -------
        JointForces
            `forces["knee"].force`, `.moment`, `.working`, `.constraint`; `.unique` says component by component what the
            constraints determine, `.family` what may be added, `.choice` which member was taken.
        """
        if bearings:
            from dalembert.model.mechanism.bearing_friction import with_bearings

            return with_bearings(self, q, v, force, t, axes, flexible, bearings)
        from dalembert.model.mechanism.known_motion import joint_forces

        return joint_forces(self, q, v, force, t, axes, flexible)

    def derivatives(
        self, q: Any, v: Any, force: Any = None, t: Any = 0.0, *, wrt: str | Sequence[str] = ("q", "v", "force")
    ) -> Derivatives:
        """Return the derivatives of `forward` at one state or a batch: `d["acceleration", "q"]`.

        Parameters
        ----------
        q, v, force, t
            As in `forward`.
        wrt
            What is varied: "q" (along its tangent: column i is d/d eps at integrate(q, eps e_i), as in Pinocchio and
            MuJoCo), "v", "force", "t"; "inertia:<body>", the ten numbers m, m cx, m cy, m cz, Ixx, Ixy, Iyy, Ixz, Iyz,
            Izz of a body, moments about the origin of its frame; any other parameter of `with_parameters`, q and v
            being held: "mass:<body>", "length:<joint>", "stiffness:<spring>", ...

        Returns
        -------
        Derivatives
            Matrices by pairs of names, (..., nv, k) and ("multipliers", ...) (..., m, k); `.status` per sample,
            `.unique` per row: the derivative of a multiplier that is not unique is that of the least one.

        Notes
        -----
        Constraints hold the motion, not the point of differentiation: directions may leave the constraint manifold,
        where the rows that forward dynamics keeps decide.
        """
        from dalembert.model.mechanism.named_derivatives import derivatives

        return derivatives(self, q, v, force, t, wrt)

    def mass_matrix(self, q: Any, t: float = 0.0) -> Array:
        """Return M (nv, nv), symmetric; armature included."""
        return calls.square_matrix(self, "mass_matrix", q)

    def bias(self, q: Any, v: Any, t: float = 0.0) -> Array:
        """Return C v + gravity - passive forces, (nv,): M a + bias = tau."""
        return calls.call(self, "bias", q, v)

    def coriolis_matrix(self, q: Any, v: Any, t: float = 0.0) -> Array:
        """Return C (nv, nv): bias = C v + N, N(q, v) gravity and passive forces, and M' - 2 C is skew-symmetric.

        Of the matrices with this property it is the one of Christoffel's symbols, C_ij = Gamma_ijk v_k, carried over to
        velocities that are no rates of coordinates (ball joints, free bases) as a sum over particles.
        """
        return calls.square_matrix(self, "coriolis_matrix", q, v)

    def gravity_torque(self, q: Any) -> Array:
        """Return the joint forces (nv,) that hold the mechanism still against gravity."""
        return calls.call(self, "gravity", q)

    def kinematics(self, q: Any, frame: str | None = None) -> tuple[Array, Array]:
        """Return rotation (3, 3) and position (3,) of a frame in the world; of all bodies, (n, ...), without one."""
        return calls.kinematics(self, q, frame)

    def frame_velocity(self, q: Any, v: Any, frame: str, reference: str = "local") -> Array:
        """Return a frame's velocity [linear; angular], (6,)."""
        return calls.call(self, "velocity", q, v, frame=frame, reference=reference)

    def frame_jacobian(self, q: Any, frame: str, reference: str = "local") -> Array:
        """Return J (6, nv): a frame's velocity is J v."""
        return calls.frame_jacobian(self, q, frame, reference)

    def energy(self, q: Any, v: Any, t: float = 0.0) -> Energy:
        """Return kinetic and potential energy in joules; `.total` is their sum."""
        return calls.energy(self, q, v)

    def center_of_mass(self, q: Any) -> Array:
        """Return the centre of mass in the world, (3,)."""
        return calls.call(self, "center_of_mass", q)

    def momentum(self, q: Any, v: Any) -> Array:
        """Return linear and angular momentum about the centre of mass, world axes, (6,)."""
        return calls.call(self, "momentum", q, v)

    # --- limbs without mass ---------------------------------------------------------------------------------------

    def with_massless(self, law: Any = "hold") -> Mechanism:
        """Return the mechanism in which motions without mass that nothing holds have dynamics of their own.

        Each is a coordinate, named "massless <coordinate>" among the rows, whose velocity is that of its law; the rest
        moves as if the limb were not there (seed 000, after eq. 35). Forces on the limb are borne by these rows.

        Parameters
        ----------
        law
            "hold", or a dict of coordinates: a velocity, or a function of the mechanism in motion that returns one as a
            CasADi expression of place and time, `{"knee": lambda k: -20 * (k.coordinate("knee") - 0.3)}` (a spring of
            stiffness 20 c beside a damper c). Free motions that are not named are held.
        """
        from dalembert.model.mechanism.limbs import with_massless

        return with_massless(self, law)

    # --- shapes that touch --------------------------------------------------------------------------------------

    def contacts(  # the usual name of the first argument is a keyword here
        mechanism,  # noqa: N805  # pyright: ignore[reportSelfClsParameterName]
        /,
        ground: Any = True,
        self: bool = False,
        pairs: Sequence[tuple[str, str]] = (),
        friction: float | None = None,
        restitution: float | None = None,
        q: Any = None,
        **options: Any,
    ) -> Any:
        """Return the contacts of `collision_shapes`: with the ground z = 0, each other, and pairs that are named.

        Parameters
        ----------
        ground
            True for the plane z = 0, False for none, or heights as a `da.Plane` or `da.Heightfield`.
        self
            Whether bodies of the mechanism touch each other: all that neither a joint nor a rule of the file leaves
            out, and that do not overlap at `q`.
        pairs
            Names of bodies, or of shapes, that touch besides.
        friction, restitution
            For all pairs; by default what the file says of the shapes, and MuJoCo's 1 and 0 where it says nothing.
        q
            Where pairs that overlap are looked for; `neutral` by default.
        options
            `most_vertices` of a hull, after which it is made coarser, with the error as a note; `decompose`, a function
            that returns the convex parts [(n, 3), ...] of a mesh (vertices, faces).

        Returns
        -------
        CollisionScene
            Shapes, pairs and tables of the loops; `notes` names what was left out.
        """
        return CONTACTS.scene_of(mechanism, ground, self, pairs, friction, restitution, q, **options)

    def on_ground(self, q: Any = None, height: float = 0.0) -> Array:
        """Return a configuration with the free base moved along z: the lowest point of its shapes is at z = height."""
        return CONTACTS.on_ground(self, self.neutral() if q is None else q, height)

    # --- constraint rows ----------------------------------------------------------------------------------------

    def constrain(self, *constraints: Constraint) -> Mechanism:
        """Return a new mechanism with these constraints beside those it has.

        Names of rows must be unique: a second constraint on the same frames needs a `name`.
        """
        return constraint_rows.constrained(self, constraints)

    @cached_property
    def massless_rows(self) -> tuple[str, ...]:
        """Names of the rows that give limbs without mass dynamics of their own (`with_massless`)."""
        return tuple(row.label for row in self.constraints if row.kind == "massless limb")

    @cached_property
    def all_constraints(self) -> tuple[Constraint, ...]:
        """Couplings and loops of the model as constraints, then those that were added."""
        return constraint_rows.all_constraints(self)

    @property
    def cacheable(self) -> bool:
        """Whether `content` says it all: not where a constraint is made of a Python function."""
        return not any(constraint.private for constraint in self.constraints)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Names of the m constraint rows."""
        return tuple(name for constraint in self.all_constraints for name in constraint.row_names())

    @cached_property
    def row_groups(self) -> tuple[int, ...]:
        """Per row the number of the constraint it belongs to, in `all_constraints`."""
        return tuple(i for i, constraint in enumerate(self.all_constraints) for _ in constraint.row_names())

    @cached_property
    def scale_groups(self) -> tuple[int, ...]:
        """Per row the number of the scale it shares: rows of lengths and rows of angles of a constraint have each one.

        Rows of an expression are what the user takes them for: each has its own.
        """
        return constraint_rows.scale_groups(self)

    @cached_property
    def holonomic(self) -> tuple[bool, ...]:
        """Per row, whether it has a residual: whether it constrains the configuration itself."""
        return tuple(holds for constraint in self.all_constraints for holds in constraint.holonomic())

    @cached_property
    def of_accelerations(self) -> tuple[str, ...]:
        """Names of rows that constrain accelerations (`Expression(acceleration=True)`): A may depend on velocities."""
        return tuple(name for c in self.all_constraints if c.of_accelerations for name in c.row_names())

    def jacobian(self, q: Any, t: Any = 0.0, v: Any = None) -> Array:
        """Return A (m, nv) of the constraint rows, at v where some depend on it; a frame's is `frame_jacobian`."""
        return constraint_rows.jacobian(self, q, t, v)

    def drift(self, q: Any, v: Any, t: Any = 0.0) -> Array:
        """Return what remains of the rows' accelerations at a = 0, (m,), with stabilisation where it is on."""
        return constraint_rows.evaluated(self, "constraint_drift", (len(self.names),), q, v, t)

    def constraint(self, q: Any, t: Any = 0.0) -> Array:
        """Return phi of the holonomic rows, (h,); zero where they hold."""
        return constraint_rows.evaluated(self, "constraint", (sum(self.holonomic),), q, t)

    def constraint_velocity(self, q: Any, v: Any, t: Any = 0.0) -> Array:
        """Return the rates of the rows, (m,); zero where they hold."""
        return constraint_rows.evaluated(self, "constraint_velocity", (len(self.names),), q, v, t)

    def without_rounding(self, A: Array, q: Array) -> Array:
        """Return A, changed in place: zero where rounding is all that is left of entries that cancel.

        A row whose entries cancel altogether, as that across a plane linkage, has no size of its own by which a rank
        could be decided. Entries of rotations are components of unit axes; those of displacements are components of a
        joint's lever, seen in other rows, in the model's size, or computed from places far from the origin. A
        configuration that is not finite has no rows.
        """
        return constraint_rows.without_rounding(self, A, q)

    def drift_size(self, A: Array, v: Any) -> Array:
        """Return lever times speed squared, (...,): the size that accelerations of the rows have at a = 0."""
        return constraint_rows.drift_size(self, A, v)

    @cached_property
    def reach(self) -> float:
        """The model's size, metres: the largest distance between joints, or to a place of a constraint; one if none."""
        return constraint_rows.reach(self)

    @cached_property
    def row_sizes(self) -> Array:
        """Per row what its residual is measured against, (m,): the model's size in metres, or one radian."""
        return constraint_rows.row_sizes(self)

    @cached_property
    def angular_rows(self) -> tuple[bool, ...]:
        """Per row whether its residual is an angle."""
        return constraint_rows.angular_rows(self)

    @cached_property
    def row_units(self) -> Array:
        """Per row the size in which rows of lengths and of angles can be compared, (m,)."""
        return constraint_rows.row_units(self)

    @cached_property
    def velocity_sizes(self) -> Array:
        """Per velocity one, or the model's size where it is that of a length, (nv,)."""
        return constraint_rows.velocity_sizes(self)

    @property
    def slack(self) -> float:
        """Part of `row_sizes` by which redundant rows may contradict each other: the digits that the model has."""
        return precision.slack(self)

    def generic_rank(self, q: Any = None, t: float = 0.0) -> GenericRank:
        """Return the rank that the rows have around a configuration (the neutral one by default), decided once.

        A property of the mechanism: next to a singular configuration, and off the constraints, all that goes through
        time keeps so many rows. See `ranks.py`.
        """
        from dalembert.model.mechanism.ranks import generic_rank

        return generic_rank(self, q, t)

    def idle_rows(self, A: Array, gap: float = 0.0) -> constraint_rows.Idle:
        """Return which rows move nothing within the model's digits, from A (N, m, nv) where they are open by a gap."""
        return constraint_rows.idle_rows(self, A, gap)

    @property
    def rank_doubt(self) -> str:
        """Why the rank is in doubt, in words, or nothing: loops tilted by more than rounding and less than is clear.

        The one verdict of a mechanism, which all answers have: none is called ok.
        """
        surveyed = self.names and 0 < self.nv <= solve.LARGEST_SURVEYED
        return self.generic_rank(None, 0.0).doubt if surveyed else ""

    @property
    def rows_between_frames(self) -> list[tuple[Array, bool]]:
        """Rows of constraints between frames: those of lengths, those of angles, each with whether they are angles."""
        return self._levers.geometric

    @cached_property
    def _levers(self) -> constraint_rows.Levers:
        return constraint_rows.Levers.of(self)

    # --- the constrained system solved ---------------------------------------------------------------------------

    def block_system(self, q: Any, t: Any = 0.0, metric: Any = None) -> KKT:
        """Return the block matrix at one configuration or a batch, with the names of rows and coordinates.

        Rows that only rounding of the model's numbers tells apart are made dependent; see `precision.py`.
        """
        return solve.block_system(self, q, t, metric)

    def solve(self, q: Any, v: Any, force: Any = None, t: Any = 0.0, metric: Any = None, **options: Any) -> Solution:
        """Solve one state, or a batch, through `KKT`; `options` go to `KKT.solve`.

        Parameters
        ----------
        force : (nv,)
            Joint forces; none by default.
        metric : (m,)
            Weights of the squares of redundant multipliers.

        Raises `SolvabilityError` where one state has no answer, with the names of rows and coordinates.
        """
        return solve.solve(self, q, v, force, t, metric, options)

    def diagnose(self, q: Any, v: Any = None, t: float = 0.0) -> Diagnosis:
        """Say in words what is redundant, conflicting, massless or not unique at one state; at rest without v."""
        return solve.diagnose(self, q, v, t)

    def impact(self, q: Any, v: Any, restitution: Any = 0.0, t: float = 0.0) -> Impact:
        """Return the velocity after the constraints have closed at once, and their impulses; see `KKT.impact`.

        The answer has a `status` like every other; take its velocity where it is `ok`.
        """
        return self.block_system(q, t).impact(v, restitution)

    def project(self, q: Any, v: Any = None, t: float = 0.0, tolerance: float = 1e-12) -> Any:
        """Return the nearest admissible configuration and velocity, (q, v), or q alone without v.

        Newton's method with steps of least kinetic energy, until no residual is larger than `tolerance` (parts of the
        model's size, radians), or, where redundant rows contradict each other by less than the model's digits (1e-8 of
        its size, 1e-6 where it was read from a file), until their squares are least; then the velocity of least
        kinetic energy from v (seed 000, sec. 3). One state or a batch. Raises `SolvabilityError`, with the rows that
        stay open, where a single configuration cannot be reached; in a batch such samples become NaN.
        """
        return project.project(self, q, v, t, tolerance)

    def assemble(self, q: Any, v: Any = None, *, hold: Sequence[str] = (), t: float = 0.0, rng: Any = 0) -> Assembly:
        """Close the loops from a guess.

        Parameters
        ----------
        q, v
            A guess (nq,), as far off as it may be, and the velocity that one would like to have (nv,); or the name of
            a pose, and dicts of values by joint or coordinate.
        hold
            Joints and coordinates that keep their values, and their speeds where v is given.
        rng
            Seed of the other guesses that are tried where the first leads nowhere.

        Returns
        -------
        Assembly
            Also where the loops cannot be closed: `gap` and `open` say what remains.
        """
        from dalembert.model.mechanism.assemble import assemble

        return assemble(self, q, v, hold, t, rng)

    def equilibrium(self, q: Any = None, torque: Any = None, t: float = 0.0) -> Equilibrium:
        """Find a position of rest near a configuration (by default `pose()`), under constant joint forces.

        Loops are closed first. Goes down the potential along the constraints, so that it ends where a mechanism with
        dampers would come to rest; `stable` and `stiffness` tell what was found. Raises `SolvabilityError` where
        there is none to be found.
        """
        from dalembert.model.mechanism.assemble import equilibrium

        return equilibrium(self, q, torque, t)

    def inverse_kinematics(
        self,
        q0: Any,
        tasks: Mapping[str, Any],
        *,
        limits: bool = True,
        priority: Sequence[str] | None = None,
        t: float = 0.0,
    ) -> InverseKinematics:
        """Find a configuration near q0 that brings frames to places; loops and constraints hold exactly.

        Parameters
        ----------
        q0
            Where the search begins, (nq,): `neutral()`, `pose("home")`, `random(0)`.
        tasks
            By frame, joint or body: a position (3,), a pair (rotation, position) as `kinematics` returns it, a
            `Placement` or a 4 x 4 pose, in world axes; "com": the centre of mass.
        limits
            Whether joints with one velocity keep to their limits.
        priority
            Tasks in the order in which they count, each before all that come later; the others together at the end.

        Returns
        -------
        InverseKinematics
            `.q`, `.ok`, `.residuals`; where tasks cannot be met, the place where their squares are least (from q0 on),
            and `.conflicts`: which loops, limits and tasks stand against them.
        """
        from dalembert.model.mechanism.inverse_kinematics import inverse_kinematics

        return inverse_kinematics(self, q0, tasks, limits, priority, t)

    def distribute(
        self,
        q: Any,
        v: Any = None,
        a: Any = None,
        *,
        minimise: str = "squares",
        contacts: Sequence[str] | Mapping[str, Any] = (),
        friction: float = 0.6,
        actuated: Any = None,
        t: float = 0.0,
    ) -> Distribution:
        """Share a motion's forces among constraints: the least squares, or the least peak, that friction cones allow.

        Parameters
        ----------
        q, v, a
            One state and its acceleration; at rest without them.
        minimise
            "squares": of all reactions; "peak": the largest reaction of a constraint, then the squares.
        contacts
            Constraints that can only push, by name: `Point` rows on the ground; a mapping gives their normals (3,), by
            default the vertical.
        friction
            Coefficient of the contacts.
        actuated
            Coordinates that motors drive; "actuators": those with motors; all by default, a free base excepted.

        Returns
        -------
        Distribution
            Reactions by constraint, motor forces, `unique` per row, `family` of all others that do the same, `margin`
            to the friction cones, `ok`. Needs the extra `identify` (Clarabel).
        """
        from dalembert.model.mechanism.distribute import distribute

        return distribute(self, q, v, a, minimise, contacts, friction, actuated, t)

    @property
    def parameter_column(self) -> Any:
        """Symbols that stand for numbers of the model while it is traced; None: there are none."""
        return None

    def with_parameters(self, *names: str) -> ParametricMechanism:
        """Return the mechanism with some of its numbers left open: kernels take them as their last input.

        Parameters
        ----------
        names
            "mass:<body>", "inertia:<body>" (ten numbers), "length:<joint or frame>", "position:<joint or frame>" (3),
            "geometry:<joint or frame>" (6: slides along and turns about its own axes, zero where it stands),
            "stiffness:", "damping:", "armature:<joint>", "stiffness:", "damping:", "rest:<spring>".

        Returns
        -------
        ParametricMechanism
            `.compile("forward")` and others; `.parameters.pack({"mass:load": 2.0})` is their input, one row or a batch;
            `.at({"mass:load": 2.0})` the mechanism with other numbers.
        """
        from dalembert.model.mechanism.parametric import ParametricMechanism

        return ParametricMechanism.of(self, names)

    # --- identification -----------------------------------------------------------------------------------------

    def base_parameters(self, terms: str | Sequence[str] = (), rng: Any = 0) -> BaseParameters:
        """Return which inertial numbers forces and motion determine, alone or in sums: `print` names them.

        Parameters
        ----------
        terms
            Terms of the joints beside the ten numbers of every body: "viscous", "coulomb", "armature".
        rng
            Seed of the random states, which meet the constraints, at which ranks are looked at.

        Notes
        -----
        Of a mechanism with loops or constraints, forces of the constraints are taken out by projection onto the
        motions that they allow; rows may be redundant.
        """
        from dalembert.model.mechanism.base_parameters import base_parameters

        return base_parameters(self, terms, rng)

    def identify(
        self,
        t: Any,
        q: Any,
        v: Any,
        force: Any,
        a: Any = None,
        *,
        terms: str | Sequence[str] = (),
        noise: Any = None,
        actuated: Any = None,
        consistent: bool = True,
    ) -> Identification:
        """Return inertial numbers and friction that explain measured forces, with what the data leave open.

        Parameters
        ----------
        t, q, v, force
            Times (N,), configurations (N, nq), velocities and joint forces (N, nv).
        a
            Accelerations (N, nv); without them slopes of a cubic spline through v, which noise in v spoils.
        terms
            Terms of the joints that are estimated as well: "viscous", "coulomb", "armature".
        noise
            Standard deviation of the forces, one for all or (nv,); their sizes beside each other count.
        actuated
            Coordinates whose forces are measured, of a mechanism with loops ("actuators": those with motors); at the
            others no force acts.
        consistent
            Whether the inertia of every body must be one that a body can have (extra `identify`).

        Returns
        -------
        Identification
            `.base` with names, `.estimates`, `.covariance`, `.intervals(0.95)`; `.parameters` and `.mechanism`: the
            numbers nearest to the model's that fit.
        """
        from dalembert.model.mechanism.identify import identify

        return identify(self, t, q, v, force, a, terms, noise, actuated, consistent=consistent)

    def excite(
        self,
        duration: float,
        *,
        samples: int = 200,
        harmonics: int = 5,
        terms: str | Sequence[str] = (),
        tries: int = 200,
        rng: Any = 0,
    ) -> Excitation:
        """Return a periodic motion of an arm, within its limits, from which `identify` can tell its parameters best.

        Parameters
        ----------
        duration, samples, harmonics
            Length of the period in seconds, samples in it, and terms of the Fourier series of each joint.
        terms
            Terms of the joints that are to be identified as well, as in `identify`.
        tries
            Motions that are looked at.

        Returns
        -------
        Excitation
            `.t`, `.q`, `.v`, `.a`, and the `condition` number of the regressor.
        """
        from dalembert.model.mechanism.excite import excite

        return excite(self, duration, samples, harmonics, terms, tries, rng)

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
        from dalembert.model.mechanism.urdf_writer import urdf_text

        return urdf_text(self, strict)

    def to_mjcf(self, strict: bool = False) -> str:
        """Return the mechanism as MJCF, with loops, armature, springs, dampers and dry friction of joints.

        What MuJoCo cannot say is named in a warning, or refused with `strict=True`. Loops and constraints become
        `equality` elements, which MuJoCo holds softly.
        """
        return MJCF_BRIDGE.to_mjcf(self, strict)

    def to_fmu(
        self,
        path: str | Path,
        q: Any = None,
        v: Any = None,
        *,
        parameters: Sequence[str] = (),
        version: str = "3.0",
        kinds: Sequence[str] = ("model_exchange", "co_simulation"),
        platforms: Sequence[str] | None = None,
        step: float = 1e-3,
        hold: float | None = None,
    ) -> Any:
        """Write a functional mock-up unit: C sources, binaries and a description in one file; return its `MockupUnit`.

        States are q and v, inputs the joint forces `tau.<coordinate>`, outputs states, `multiplier.<row>` and `status`.

        Parameters
        ----------
        q, v
            Where it starts, moved onto the loops; an assembled neutral configuration at rest where None.
        parameters
            Names as in `with_parameters`: they become tunable parameters.
        version
            "3.0" or "2.0".
        kinds
            "model_exchange": the importer integrates, the unit asks for an event where a step left the loops.
            "co_simulation": the unit integrates by Runge-Kutta of order four with a fixed `step`, in seconds.
        platforms
            "linux64", "win64", "linux-aarch64", "darwin64", "darwin-aarch64". This one is compiled by the system's C
            compiler, others by Zig (extra `fmi`). None: this one, and Linux and Windows where Zig is installed.
        hold
            How far off its loops a state may be before an event, in their units; 1e-7 of the reach where None.

        Notes
        -----
        A sample without an answer is discarded (`fmi3Discard`) and its verdict is logged by name. Directional
        derivatives are those of the equations, in the stored coordinates of q. `bridges.fmi.unit.check_fmu` validates
        the file by fmpy.
        """
        return FMI_BRIDGE.to_fmu(self, path, q, v, parameters, version, kinds, platforms, step, hold)

    def __eq__(self, other: object) -> bool:
        return self._content == other._content if isinstance(other, Mechanism) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._content)

    def __getstate__(self) -> dict[str, Any]:
        """Pickle the parts; kernels are loaded from the cache, or compiled, where it arrives."""
        return {part.name: getattr(self, part.name) for part in fields(self)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)

    def __str__(self) -> str:
        return as_text(self)

    def __repr__(self) -> str:
        return f"Mechanism({self.name!r}: {len(self.bodies)} bodies, nq {self.nq}, nv {self.nv}, {self.base} base)"

    # --- pictures -----------------------------------------------------------------------------------------------

    def show(self, path: Any = None, q: Any = None, **options: Any) -> Any:
        """Show the mechanism: in the notebook, in the browser, or in a file.

        Parameters
        ----------
        path
            Where to write it: "page.html" is one self-contained page with a camera that can be moved, "robot.svg" a
            drawing, "robot.png" a picture (extra `view`). Without a path the page is opened.
        q : (nq,) or (N, nq)
            A configuration; further ones are drawn pale over it. By default `pose()` with its loops closed.
        options
            `title`, `caption`, `view` (the direction from which one looks, three numbers), `meshes=False` (draws no
            meshes), `forces=False` (marks no constraints).

        Returns
        -------
        Path or Animation
            The file, or the page, which notebooks show.

        Notes
        -----
        Bodies are drawn with the shapes and meshes of their file, or with generated ones. Massless links are
        see-through; a ring marks each constraint, green where its reactions are unique, orange where they are not.
        """
        return PICTURES.show(self, path, q, **options)

    def view(self, q: Any = None, **options: Any) -> Any:
        """Show the mechanism live in the browser, with a slider for each joint; loops stay closed (extra `view3d`).

        Parameters
        ----------
        q : (nq,)
            Where to begin; by default `pose()` with its loops closed.
        options
            `port`, `host` ("127.0.0.1": nobody else can look; anything else needs the `token` that is printed),
            `block` (wait until the viewer is closed).
        """
        return PICTURES.live(self, q=q, **options)

    def _repr_html_(self) -> str:
        return PICTURES.notebook_html(self) + as_html(self)


def _named(joint: str, suffix: str) -> str:
    return f"{joint}.{suffix}" if suffix else joint
