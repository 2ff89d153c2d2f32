"""Calls of a mechanism's kernels, and joint values over the nv velocities."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from dalembert.errors import ModelError, ShapeError, SolvabilityError
from dalembert.model.mechanism.manifold import reals
from dalembert.model.requests import make_kernel, plain, refuse_unhashable, route_table

if TYPE_CHECKING:
    from jaxtyping import Float

    from dalembert.kernel import Kernel
    from dalembert.model.requests import RouteTable

# ----------------------------------------------------------------------------------------------------------------------
# What a mechanism computes: one compiled kernel per quantity, made on first use and kept.


Array = np.ndarray

KERNEL_OPTIONS = ("backend", "dtype", "threads", "width")


class Calls:
    """The compiled side of a mechanism; every method takes one state or a batch, with any leading axes."""

    nv: Any
    bodies: Any
    manifold: Any
    names: Any
    loops: Any
    constraints: Any
    _constrained_forward: Any
    diagnose: Any

    @cached_property
    def _kernels(self) -> dict[Any, Kernel]:
        return {}

    def compile(self, what: str = "forward", **options: Any) -> Kernel:
        """Return a kernel, the same object when asked again.

        Parameters
        ----------
        what
            One of `dalembert.model.requests.requests()`: "forward" (q, v, tau -> a; of a constrained mechanism
            q, v, tau, t -> acceleration, multipliers, status, where t may be left off unless a function of yours may
            depend on it), "inverse" (q, v, a -> tau), "impact", "delassus", "mass_matrix", "bias", "gravity",
            "kinematics", "jacobian", "energy", "center_of_mass", ...
        options
            `frame` (a name) and `reference` ("local", "world", "local_world_aligned") where the request has a frame;
            `backend`, `dtype`, `threads`, `width` go to `Kernel`.

        Notes
        -----
        A kernel takes configurations as they are: quaternions must be unit, which the methods below check. A matrix
        with one column (M and J where nv = 1) is a vector in a kernel; the methods give it back as a matrix.
        """
        options = {name: plain(value) for name, value in options.items()}
        key = (what, *sorted(options.items(), key=lambda option: option[0]))
        refuse_unhashable(key)
        if key not in self._kernels:
            kernel = {name: value for name, value in options.items() if name in KERNEL_OPTIONS}
            rest = {name: value for name, value in options.items() if name not in KERNEL_OPTIONS}
            self._kernels[key] = make_kernel(self, what, rest, kernel)  # type: ignore[arg-type]
        return self._kernels[key]

    def routes(self, what: str = "forward") -> RouteTable:
        """Return the ways in which a request can be computed: `print` shows operations, depth and why for each.

        A route is taken by `compile(what, route=...)`; "auto", the default, takes the one with the fewest operations.
        """
        return route_table(self, what)  # type: ignore[arg-type]

    def forward(self, q: Any, v: Any, tau: Any, t: Any = 0.0) -> Any:
        """Return the acceleration a (nv,) under the joint forces tau (nv,).

        Of a mechanism with constraint rows, which a mimic joint is enough for (`names` lists them): acceleration,
        multipliers (m,) and status (`da.Status`); samples that the compiled code declines are solved by `KKT`.
        `open_tree()` has no rows.

        Without rows there is no status: where a state has no finite acceleration (a massless motion that nothing
        holds, numbers beyond the range of doubles) a single one raises `SolvabilityError`, with the motion by name, and
        a sample of a batch becomes NaN throughout.
        """
        if self.names:
            return self._constrained_forward(q, v, tau, t)
        q = self.manifold.configuration(q)
        self.manifold.refuse_off_manifold(q)
        (a,), bad = self.compile("forward").call(q, v, tau)
        return self._refused(a, q, v, tau) if bad.any() else a

    def _refused(self, a: Array, q: Array, v: Any, tau: Any) -> Array:
        """Return a batch with NaN for the samples that have no finite answer; refuse a single one, by name."""
        if a.ndim > 1:
            a[~np.isfinite(a).all(axis=-1)] = np.nan
            return a
        for name, x in (("q", q), ("v", reals(v, "v")), ("tau", reals(tau, "tau"))):
            if not np.isfinite(x).all():
                raise ModelError(f"{name}[{np.flatnonzero(~np.isfinite(x))[0]}] is not finite, so neither is forward")
        diagnosis = self.diagnose(q)
        raise SolvabilityError(
            f"forward has no finite answer at this state: {diagnosis}\nA motion without mass moves at once under any "
            "force: give its body mass or its joint armature, or constrain it; where there is none, v or tau is "
            "beyond the range of numbers",
            diagnosis,
        )

    def inverse(self, q: Any, v: Any, a: Any, t: Any = 0.0, actuated: Any = None) -> Any:
        """Return the joint forces tau (nv,) that cause the acceleration a (nv,).

        With loops or constraints, or where `actuated` names the driven joints ("actuators": those with motors): tau,
        multipliers (m,) and status. tau is then the least that does it, and joints that are not driven get none.
        The motion is taken to be one that the rows allow, A a + drift = 0; no forces cause another.
        Couplings alone (mimic joints) are taken to carry nothing, so that tau, alone, is unique: every joint is driven.
        For what the motors of such a mechanism must do, name them: `actuated=[...]`.
        """
        if actuated is None and not self.loops and not self.constraints:
            return self._call("inverse", q, v, a)
        t = reals(t, "t")[..., None]
        tau, lam, status = self._call("inverse", q, v, a, t, actuated=actuated)
        return tau, lam, status[..., 0].astype(int)

    def mass_matrix(self, q: Any, t: float = 0.0) -> Array:
        """Return M (nv, nv), symmetric; armature included."""
        if self.nv == 0:
            return np.zeros((*self.manifold.configuration(q).shape[:-1], 0, 0))
        return self._with_columns(self._call("mass_matrix", q))

    def bias(self, q: Any, v: Any, t: float = 0.0) -> Array:
        """Return C v + gravity - passive forces, (nv,): M a + bias = tau."""
        return self._call("bias", q, v)

    def gravity_torque(self, q: Any) -> Array:
        """Return the joint forces (nv,) that hold the mechanism still against gravity."""
        return self._call("gravity", q)

    def kinematics(self, q: Any, frame: str | None = None) -> tuple[Array, Array]:
        """Return rotation (3, 3) and position (3,) of a frame in the world; of all bodies, (n, ...), without one."""
        rotation, position = self._call("kinematics", q, frame=frame)
        if frame is not None:
            return rotation, position
        batch = np.shape(q)[:-1]
        return rotation.reshape(*batch, len(self.bodies), 3, 3), position.reshape(*batch, len(self.bodies), 3)

    def frame_velocity(self, q: Any, v: Any, frame: str, reference: str = "local") -> Array:
        """Return a frame's velocity [linear; angular], (6,)."""
        return self._call("velocity", q, v, frame=frame, reference=reference)

    def frame_jacobian(self, q: Any, frame: str, reference: str = "local") -> Array:
        """Return J (6, nv): a frame's velocity is J v."""
        J = self._call("jacobian", q, frame=frame, reference=reference)
        return self._with_columns(J) if self.nv else np.zeros((*self.manifold.configuration(q).shape[:-1], 6, 0))

    def energy(self, q: Any, v: Any) -> tuple[Array, Array]:
        """Return kinetic and potential energy in joules."""
        kinetic, potential = self._call("energy", q, v)
        return kinetic[..., 0], potential[..., 0]

    def center_of_mass(self, q: Any) -> Array:
        """Return the centre of mass in the world, (3,)."""
        return self._call("center_of_mass", q)

    def momentum(self, q: Any, v: Any) -> Array:
        """Return linear and angular momentum about the centre of mass, world axes, (6,)."""
        return self._call("momentum", q, v)

    def _call(self, what: str, q: Any, *rest: Any, **options: Any) -> Any:
        """Compile on first use, check that q is on its manifold, and call."""
        q = self.manifold.configuration(q)
        self.manifold.refuse_off_manifold(q)
        return self.compile(what, **options)(q, *rest)

    def _with_columns(self, x: Array) -> Array:
        """Return a matrix of nv columns; kernels give one with a single column as a vector."""
        return x[..., None] if self.nv == 1 else x


# ----------------------------------------------------------------------------------------------------------------------
# Values of all joints as vectors over the nv velocities, and what motors do to them.


class JointValues:
    """Damping, friction, stiffness, armature, limits and actuation of a mechanism, each over its velocities."""

    nv: Any
    joints: Any
    actuators: Any
    manifold: Any
    index_v: Any

    @cached_property
    def damping(self) -> Float[Array, " nv"]:
        """Viscous damping, N s/m or N m s/rad."""
        return self._spread("damping")

    @cached_property
    def friction(self) -> Float[Array, " nv"]:
        """Dry friction, N or N m; data for force laws, no part of the smooth dynamics."""
        return self._spread("friction")

    @cached_property
    def stiffness(self) -> Float[Array, " nv"]:
        """Stiffness of springs in the joints, N/m or N m/rad."""
        return self._spread("stiffness")

    @cached_property
    def rest(self) -> Float[Array, " nv"]:
        """Where those springs are relaxed: the difference from `neutral`."""
        return self._spread("rest")

    @cached_property
    def armature(self) -> Float[Array, " nv"]:
        """Inertia on the diagonal of M beside that of the bodies: of the joints, and gear^2 rotor_inertia of motors."""
        armature = self._spread("armature").copy()
        for motor in self.actuators:
            armature[self.index_v(motor.coordinate)] += motor.gear**2 * motor.rotor_inertia
        return _frozen(armature)

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
        return self._limit("velocity")

    @cached_property
    def effort_limits(self) -> Float[Array, " nv"]:
        """Greatest forces and torques, inf where there is no limit."""
        return self._limit("effort")

    @cached_property
    def actuation(self) -> Float[Array, "nv nu"]:
        """The matrix that takes controls of the actuators to joint forces: gears, one column per actuator."""
        matrix = np.zeros((self.nv, len(self.actuators)))
        for column, motor in enumerate(self.actuators):
            matrix[self.index_v(motor.coordinate), column] = motor.gear
        return _frozen(matrix)

    def torque(self, control: Any, clip: bool = False) -> Float[Array, "*batch nv"]:
        """Return joint forces (nv,) of the controls (nu,) of all actuators, gear * control each.

        With `clip` each motor gives at most its effort, counted at the joint.
        """
        u = reals(control, "control")
        if u.ndim < 1 or u.shape[-1] != len(self.actuators):
            names = ", ".join(motor.name for motor in self.actuators) or "none"
            raise ShapeError(
                f"control must have shape (..., {len(self.actuators)}), one per actuator ({names}); it has {u.shape}"
            )
        if clip:
            most = np.array([m.effort / abs(m.gear) if m.gear else np.inf for m in self.actuators])
            u = np.clip(u, -most, most)
        return u @ self.actuation.T

    def _spread(self, word: str) -> Array:
        """Return a field of all joints as one vector, zero where a joint has none."""
        return self._collected([(i, getattr(joint, word)) for i, joint in enumerate(self.joints)], 0.0)

    def _limit(self, word: str) -> Array:
        return self._collected([(i, getattr(joint.limits, word)) for i, joint in enumerate(self.joints)], np.inf)

    def _collected(self, values: list[tuple[int, tuple[float, ...]]], default: float) -> Array:
        whole = np.full(self.nv, default)
        start = self.manifold.v_start
        for i, value in values:
            if value:
                whole[start[i] : start[i + 1]] = value
        return _frozen(whole)


def _frozen(array: Array) -> Array:
    array.setflags(write=False)
    return array
