"""What a mechanism computes: one compiled kernel per quantity, made on first use and kept."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from dalembert.model.requests import make_kernel

if TYPE_CHECKING:
    from dalembert.kernel import Kernel

Array = np.ndarray

KERNEL_OPTIONS = ("backend", "dtype", "threads", "width")


class Calls:
    """The compiled side of a mechanism; every method takes one state or a batch (N, ...)."""

    nv: Any
    bodies: Any
    coordinates: Any

    @cached_property
    def _kernels(self) -> dict[Any, Kernel]:
        return {}

    def compile(self, what: str = "forward", **options: Any) -> Kernel:
        """Return a kernel, the same object when asked again.

        Parameters
        ----------
        what
            One of `dalembert.model.requests()`: "forward" (q, v, tau -> a), "inverse" (q, v, a -> tau),
            "mass_matrix", "bias", "gravity", "kinematics", "jacobian", "energy", "center_of_mass", ...
        options
            `frame` (a name) and `reference` ("local", "world", "local_world_aligned") where the request has a frame;
            `backend`, `dtype`, `threads`, `width` go to `Kernel`.
        """
        key = (what, *sorted(options.items()))
        if key not in self._kernels:
            kernel = {name: value for name, value in options.items() if name in KERNEL_OPTIONS}
            rest = {name: value for name, value in options.items() if name not in KERNEL_OPTIONS}
            self._kernels[key] = make_kernel(self, what, rest, kernel)  # type: ignore[arg-type]
        return self._kernels[key]

    def forward(self, q: Any, v: Any, tau: Any) -> Array:
        """Return the acceleration a (nv,) under the joint forces tau (nv,)."""
        return self.compile("forward")(q, v, tau)

    def inverse(self, q: Any, v: Any, a: Any) -> Array:
        """Return the joint forces tau (nv,) that cause the acceleration a (nv,)."""
        return self.compile("inverse")(q, v, a)

    def mass_matrix(self, q: Any, t: float = 0.0) -> Array:
        """Return M (nv, nv), symmetric; armature included."""
        return self._with_columns(self.compile("mass_matrix")(q))

    def bias(self, q: Any, v: Any, t: float = 0.0) -> Array:
        """Return C v + gravity - passive forces, (nv,): M a + bias = tau."""
        return self.compile("bias")(q, v)

    def gravity_torque(self, q: Any) -> Array:
        """Return the joint forces (nv,) that hold the mechanism still against gravity."""
        return self.compile("gravity")(q)

    def kinematics(self, q: Any, frame: str | None = None) -> tuple[Array, Array]:
        """Return rotation (3, 3) and position (3,) of a frame in the world; of all bodies, (n, ...), without one."""
        rotation, position = self.compile("kinematics", frame=frame)(q)
        if frame is not None:
            return rotation, position
        batch = np.shape(q)[:-1]
        return rotation.reshape(*batch, len(self.bodies), 3, 3), position.reshape(*batch, len(self.bodies), 3)

    def frame_velocity(self, q: Any, v: Any, frame: str, reference: str = "local") -> Array:
        """Return a frame's velocity [linear; angular], (6,)."""
        return self.compile("velocity", frame=frame, reference=reference)(q, v)

    def frame_jacobian(self, q: Any, frame: str, reference: str = "local") -> Array:
        """Return J (6, nv): a frame's velocity is J v."""
        return self._with_columns(self.compile("jacobian", frame=frame, reference=reference)(q))

    def energy(self, q: Any, v: Any) -> tuple[Array, Array]:
        """Return kinetic and potential energy in joules."""
        kinetic, potential = self.compile("energy")(q, v)
        return kinetic[..., 0], potential[..., 0]

    def center_of_mass(self, q: Any) -> Array:
        """Return the centre of mass in the world, (3,)."""
        return self.compile("center_of_mass")(q)

    def momentum(self, q: Any, v: Any) -> Array:
        """Return linear and angular momentum about the centre of mass, world axes, (6,)."""
        return self.compile("momentum")(q, v)

    def _with_columns(self, x: Array) -> Array:
        """Return a matrix of nv columns; kernels give one with a single column as a vector."""
        return x[..., None] if self.nv == 1 else x
