"""Compiled quantities of a mechanism: one kernel per request, made on first use; inputs checked before each call."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from dalembert.checks import floats
from dalembert.memory import memory_of
from dalembert.model.requests import make_kernel, plain, refuse_unhashable
from dalembert.status import Status
from dalembert.types import Array, Energy

if TYPE_CHECKING:
    from dalembert.kernel import Kernel
    from dalembert.model.mechanism.known_motion import InverseDynamics
    from dalembert.model.mechanism.mechanism import Mechanism

KERNEL_OPTIONS = ("backend", "dtype", "threads", "width")
"""Options of `compile` that go to `Kernel`; the others belong to the request."""


def compiled(mechanism: Mechanism, what: str, options: Mapping[str, Any]) -> Kernel:
    """Return the kernel of a request, the same object when asked again."""
    massless = options.get("massless", "refuse")
    if what == "forward" and not (isinstance(massless, str) and massless == "refuse"):
        rest = {name: value for name, value in options.items() if name != "massless"}
        return compiled(mechanism.with_massless(massless), what, rest)
    options = {name: plain(value) for name, value in options.items()}
    key = (what, *sorted(options.items(), key=lambda option: option[0]))
    refuse_unhashable(key)

    def make() -> Kernel:
        kernel = {name: value for name, value in options.items() if name in KERNEL_OPTIONS}
        rest = {name: value for name, value in options.items() if name not in KERNEL_OPTIONS}
        return make_kernel(mechanism, what, rest, kernel)

    return memory_of(mechanism, "kernels").get(key, make)


def call(mechanism: Mechanism, what: str, q: Any, *rest: Any, **options: Any) -> Any:
    """Compile on first use, check that q is on its manifold, and call."""
    q = on_manifold(mechanism, q)
    return mechanism.compile(what, **options)(q, *rest)


def on_manifold(mechanism: Mechanism, q: Any) -> Array:
    """Return q (..., nq) as floats with unit quaternions and unit (cos, sin), or say what is wrong."""
    configuration = mechanism.manifold.configuration(q)
    mechanism.manifold.refuse_off_manifold(configuration)
    return configuration


def with_columns(mechanism: Mechanism, x: Array) -> Array:
    """Return a matrix of nv columns; kernels give one with a single column as a vector."""
    return x[..., None] if mechanism.nv == 1 else x


def inverse(mechanism: Mechanism, q: Any, v: Any, a: Any, t: Any, actuated: Any) -> InverseDynamics:
    """Return tau, multipliers and status; couplings alone carry nothing, which is one choice of many."""
    from dalembert.model.mechanism.known_motion import InverseDynamics

    times = floats(t, "t")
    if actuated is None and not mechanism.loops and not mechanism.constraints:
        tau = call(mechanism, "inverse", q, v, a)
        tau = np.broadcast_to(tau, (*np.broadcast_shapes(tau.shape[:-1], times.shape), tau.shape[-1]))
        solved = Status.REDUNDANT if mechanism.names else Status.UNIQUE
        status = np.where(np.isfinite(tau).all(axis=-1), int(solved), int(Status.NONFINITE))
        lam = np.where((status == Status.NONFINITE)[..., None], np.nan, np.zeros(len(mechanism.names)))
        return InverseDynamics(tau, lam, status, mechanism, (q, v, a, times), actuated)
    tau, lam, status = call(mechanism, "inverse", q, v, a, times[..., None], actuated=actuated)
    answer = InverseDynamics(tau, lam, status[..., 0].astype(int), mechanism, (q, v, a, times), actuated)
    return answer.looked_at()


def square_matrix(mechanism: Mechanism, what: str, q: Any, *rest: Any) -> Array:
    """Return a matrix (nv, nv): M, or C."""
    if mechanism.nv == 0:
        return np.zeros((*mechanism.manifold.configuration(q).shape[:-1], 0, 0))
    return with_columns(mechanism, call(mechanism, what, q, *rest))


def kinematics(mechanism: Mechanism, q: Any, frame: str | None) -> tuple[Array, Array]:
    """Return rotation and position of a frame, or of all bodies."""
    rotation, position = call(mechanism, "kinematics", q, frame=frame)
    if frame is not None:
        return rotation, position
    batch, bodies = np.shape(q)[:-1], len(mechanism.bodies)
    return rotation.reshape(*batch, bodies, 3, 3), position.reshape(*batch, bodies, 3)


def frame_jacobian(mechanism: Mechanism, q: Any, frame: str, reference: str) -> Array:
    """Return J (6, nv) of a frame."""
    J = call(mechanism, "jacobian", q, frame=frame, reference=reference)
    if mechanism.nv == 0:
        return np.zeros((*mechanism.manifold.configuration(q).shape[:-1], 6, 0))
    return with_columns(mechanism, J)


def energy(mechanism: Mechanism, q: Any, v: Any) -> Energy:
    """Return kinetic and potential energy."""
    kinetic, potential = call(mechanism, "energy", q, v)
    return Energy(kinetic[..., 0], potential[..., 0])
