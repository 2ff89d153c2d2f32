"""Exciting trajectories: motions of an arm from which its base parameters can be told best.

Symbols: q_d(t) positions of the joints, w = 2 pi / duration, a, b amplitudes of harmonics, W regressor of all samples
in base parameters, each column of length one (`base_parameters.py`).

    q_d(t) = q_0 + sum over k of a_k / (k w) sin(k w t) - b_k / (k w) cos(k w t)          least cond(W)

The motion is periodic, so that measurements can be averaged over periods; amplitudes are scaled to what positions and
speeds allow. cond(W) has many minima: random starts, then random steps from the best, each kept if it is better.

Source: Swevers, Ganseman, Tukel, De Schutter & Van Brussel, "Optimal robot excitation and identification", IEEE Trans.
Robotics and Automation 13 (1997) 730-740.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from dalembert.checks import one_number
from dalembert.errors import ModelError, UnsupportedError
from dalembert.model.joints import KINDS
from dalembert.model.mechanism.base_parameters import BaseParameters, base_parameters, regressors
from dalembert.types import Array

if TYPE_CHECKING:
    from jaxtyping import Float

    from dalembert.model.mechanism.mechanism import Mechanism

USUAL_RANGE, USUAL_SPEED = 1.0, 2.0
"""Reach on either side, and speed, of joints without limits: radians or metres, and per second."""

ROOM = 0.95
"""Part of a joint's range, and of its speed, that a motion uses."""

FIRST_STEP, SHRINKING = 0.5, 0.97
"""Size of the random steps, as a part of the amplitudes, and what a step that is not better leaves of it."""


@dataclass(frozen=True, eq=False)
class Excitation:
    """A periodic motion: times (N,), configurations (N, nq), velocities and accelerations (N, nv).

    `condition` is that of the regressor in base parameters, columns of length one; `base` names these.
    """

    t: Float[Array, " N"]
    q: Float[Array, "N nq"]
    v: Float[Array, "N nv"]
    a: Float[Array, "N nv"]
    condition: float
    base: BaseParameters


def excite(
    mechanism: Mechanism, duration: float, samples: int, harmonics: int, terms: Any, tries: int, rng: Any
) -> Excitation:
    """Return the motion of least condition number that was found; see `Mechanism.excite`."""
    if mechanism.names:
        raise UnsupportedError(
            f"{mechanism.name!r} has loops or constraints: exciting motions are looked for of open trees; of a loop "
            "give identify(...) a motion of its motors that covers what they can do"
        )
    if any(KINDS[joint.kind].nv > 1 for joint in mechanism.joints):
        raise UnsupportedError(
            f"{mechanism.name!r} has joints with several velocities: no motor moves them along a series"
        )
    duration = one_number(duration, "duration")
    for name, number, least in (("samples", samples, 4), ("harmonics", harmonics, 1), ("tries", tries, 1)):
        if not (isinstance(number, int) and number >= least):
            raise ModelError(f"{name} is a whole number of at least {least}, not {number!r}")
    if not 0.0 < duration < np.inf:
        raise ModelError(f"duration is a time > 0, not {duration}")
    generator, base = np.random.default_rng(rng), base_parameters(mechanism, terms, rng=0)
    series = Series(mechanism, duration, samples, harmonics)
    best, x = np.inf, np.zeros(0)
    for _ in range(max(tries // 4, 1)):
        trial = generator.standard_normal((2, harmonics, mechanism.nv))
        cost = condition_of(mechanism, terms, base, *series.motion(trial)[1:])
        best, x = (cost, trial) if cost < best else (best, x)
    step = FIRST_STEP
    for _ in range(tries - tries // 4):
        trial = x + step * np.abs(x).mean() * generator.standard_normal(x.shape)
        cost = condition_of(mechanism, terms, base, *series.motion(trial)[1:])
        if cost < best:
            best, x = cost, trial
        else:
            step *= SHRINKING
    t, q, v, a = series.motion(x)
    return Excitation(t, q, v, a, best, base)


def condition_of(mechanism: Mechanism, terms: Any, base: BaseParameters, q: Array, v: Array, a: Array) -> float:
    """Return the condition number of the regressor in base parameters, columns of length one."""
    W = regressors(mechanism, terms, q, v, a)[:, :, list(base.columns)].reshape(-1, base.rank)
    sizes = np.linalg.norm(W, axis=0)
    if not (sizes > 0).all():
        return np.inf
    s = np.linalg.svd(W / sizes, compute_uv=False)
    return float(s[0] / s[-1]) if s[-1] > 0 else np.inf


class Series:
    """Fourier series of the joints of an arm, within their limits."""

    def __init__(self, mechanism: Mechanism, duration: float, samples: int, harmonics: int) -> None:
        n = mechanism.nv
        lower, upper, speed = mechanism.lower.copy(), mechanism.upper.copy(), np.array(mechanism.velocity_limits)
        neutral = np.asarray(mechanism.difference(mechanism.neutral(), mechanism.neutral()))
        middle = np.where(np.isfinite(lower) & np.isfinite(upper), 0.5 * (lower + upper), neutral)
        self.reach = ROOM * np.where(
            np.isfinite(lower) & np.isfinite(upper), np.minimum(0.5 * (upper - lower), np.pi), USUAL_RANGE
        )
        self.middle, self.mechanism = middle, mechanism
        self.speed = ROOM * np.where(np.isfinite(speed) & (speed > 0), speed, USUAL_SPEED)
        self.t = duration * np.arange(samples) / samples
        k = np.arange(1, harmonics + 1) * 2 * np.pi / duration
        phase = self.t[:, None] * k
        self.sine, self.cosine, self.k = np.sin(phase), np.cos(phase), k
        if n == 0:
            raise ModelError(f"{mechanism.name!r} has no joints that move")

    def motion(self, x: Array) -> tuple[Array, Array, Array, Array]:
        """Return t, q, v, a of amplitudes (2, harmonics, nv), each joint scaled to its limits."""
        sine, cosine, k = self.sine, self.cosine, self.k[:, None]
        way = sine @ (x[0] / k) - cosine @ (x[1] / k)
        v = cosine @ x[0] + sine @ x[1]
        a = -sine @ (x[0] * k) + cosine @ (x[1] * k)
        # the largest values between samples are no larger than the sums of amplitudes
        sizes = np.hypot(x[0], x[1])
        share = np.minimum(self.reach / (sizes / k).sum(axis=0), self.speed / sizes.sum(axis=0))
        m = self.mechanism
        start = np.tile(m.neutral(), (len(self.t), 1))
        q = np.asarray(m.integrate(start, self.middle - self._zero() + share * way))
        return self.t, q, share * v, share * a

    def _zero(self) -> Array:
        """Return the positions of the neutral configuration, (nv,), as limits count them."""
        m = self.mechanism
        zero = np.zeros(m.nv)
        for joint in m.joints:
            if KINDS[joint.kind].nv == 1 and KINDS[joint.kind].nq == 1:
                zero[m.index_v(joint.name)] = m.neutral()[m.index_q(joint.name)]
        return zero
