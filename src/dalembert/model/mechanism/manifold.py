"""The space of configurations of a mechanism: one manifold per joint, side by side.

Joints of one kind are handled together, as one more axis, so that a call costs the same for ten joints as for one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from dalembert.checks import floats, vectors
from dalembert.errors import ModelError, ShapeError
from dalembert.model.joints import KINDS, Kind, as_array
from dalembert.model.limits import OFF_MANIFOLD
from dalembert.model.mechanism.parts import Joint
from dalembert.types import Array

if TYPE_CHECKING:
    from jaxtyping import Float

QUIET = np.errstate(over="ignore", invalid="ignore")
"""What is infinite leads to NaN, which the caller sees; there is nothing to warn of."""


class Manifold:
    """Configurations q (nq,) and velocities v (nv,) of a row of joints, with leading axes as batches."""

    def __init__(self, joints: Sequence[Joint]) -> None:
        kinds = [KINDS[joint.kind] for joint in joints]
        self.q_start = np.concatenate([[0], np.cumsum([kind.nq for kind in kinds], dtype=int)])
        self.v_start = np.concatenate([[0], np.cumsum([kind.nv for kind in kinds], dtype=int)])
        self.nq, self.nv = int(self.q_start[-1]), int(self.v_start[-1])
        self.lower, self.upper = (np.full(self.nv, bound) for bound in (-np.inf, np.inf))
        members: dict[str, list[int]] = {}
        for i, joint in enumerate(joints):
            part = slice(self.v_start[i], self.v_start[i + 1])
            self.lower[part] = joint.limits.lower or -np.inf
            self.upper[part] = joint.limits.upper or np.inf
            if kinds[i].nv:
                members.setdefault(joint.kind, []).append(i)
        self.groups = [self._group(KINDS[name], np.array(index)) for name, index in members.items()]

    def _group(self, kind: Kind, index: Array) -> tuple[Kind, Array, Array]:
        """Return a kind with the places of its joints' coordinates (k, nq) and velocities (k, nv)."""
        return (
            kind,
            self.q_start[index][:, None] + np.arange(kind.nq),
            self.v_start[index][:, None] + np.arange(kind.nv),
        )

    def neutral(self) -> Float[Array, " nq"]:
        """Return the configuration in which every joint's frames coincide."""
        q = np.zeros(self.nq)
        for kind, iq, _ in self.groups:
            q[iq] = kind.neutral()
        return q

    def random(self, rng: Any = None, size: int | tuple[int, ...] | None = None) -> Float[Array, "*batch nq"]:
        """Return random configurations, uniform within the limits; `size` samples, one without it."""
        rng, batch = _generator(rng), _sizes(size)
        q = np.empty((*batch, self.nq))
        for kind, iq, iv in self.groups:
            for q_place, v_place in zip(iq, iv, strict=True):
                q[..., q_place] = kind.random(rng, self.lower[v_place], self.upper[v_place], batch)
        return q

    @QUIET
    def integrate(self, q: Any, v: Any) -> Float[Array, "*batch nq"]:
        """Return where the constant velocity v leads from q in unit time."""
        q, v, batch = _together(self.configuration(q), self.velocity(v))
        return self._filled(True, lambda kind, iq, iv: kind.integrate(q[..., iq], v[..., iv]), batch)

    @QUIET
    def difference(self, q0: Any, q1: Any) -> Float[Array, "*batch nv"]:
        """Return the least v with integrate(q0, v) = q1."""
        q0, q1, batch = _together(self.configuration(q0, "q0"), self.configuration(q1, "q1"))
        return self._filled(False, lambda kind, iq, iv: kind.difference(q0[..., iq], q1[..., iq]), batch)

    def interpolate(self, q0: Any, q1: Any, u: Any) -> Float[Array, "*batch nq"]:
        """Return the configuration at the fraction u of the way from q0 to q1; u is a number or a batch."""
        return self.integrate(q0, floats(u, "u")[..., None] * self.difference(q0, q1))

    @QUIET
    def normalize(self, q: Any) -> Float[Array, "*batch nq"]:
        """Return the nearest configuration whose quaternions and (cos, sin) are unit."""
        q = self.configuration(q)
        for kind, iq, _ in self.groups:
            places = iq[:, kind.unit]
            zero = ~(q[..., places] != 0).any(axis=-1) if places.size else np.zeros(1, dtype=bool)
            if zero.any():
                worst = int(np.argwhere(zero)[0][-1])
                raise ModelError(
                    f"q[{places[worst, 0]}:{places[worst, -1] + 1}] of a {kind.name} joint is zero throughout: no "
                    "configuration is nearest to it; start from neutral()"
                )
        return self._filled(True, lambda kind, iq, iv: kind.normalize(q[..., iq]), q.shape[:-1])

    @QUIET
    def rate(self, q: Any, v: Any) -> Float[Array, "*batch nq"]:
        """Return dq/dt = N(q) v."""
        q, v, batch = _together(self.configuration(q), self.velocity(v))

        def rate(kind: Kind, iq: Array, iv: Array) -> Array:
            parts = kind.rate([q[..., i] for i in iq.T], [v[..., i] for i in iv.T])
            return as_array(parts)

        return self._filled(True, rate, batch)

    def refuse_off_manifold(self, q: Array) -> None:
        """Refuse a configuration whose quaternions or (cos, sin) are not unit.

        NaN there is refused in a single configuration; in a batch it passes, and gives a sample that is not finite.
        """
        for kind, iq, _ in self.groups:
            places = iq[:, kind.unit]
            if places.size:
                off = np.abs((q[..., places] ** 2).sum(axis=-1) - 1)
                if (off > OFF_MANIFOLD).any() or (q.ndim == 1 and np.isnan(off).any()):
                    shown = np.where(np.isfinite(off), off, 0 if q.ndim > 1 else np.inf)
                    worst = np.unravel_index(np.argmax(shown), off.shape)
                    raise ModelError(
                        f"q[{places[worst[-1], 0]}:{places[worst[-1], -1] + 1}] of a {kind.name} joint should have "
                        f"length one; its square is off by {off[worst]:.1e}: normalize(q) makes it so"
                    )

    def configuration(self, q: Any, name: str = "q") -> Array:
        """Return q as floats (..., nq), or say what is wrong."""
        return vectors(q, self.nq, name, "nq")

    def velocity(self, v: Any, name: str = "v") -> Array:
        """Return v as floats (..., nv), or say what is wrong."""
        return vectors(v, self.nv, name, "nv")

    def _filled(self, coordinates: bool, make: Callable[[Kind, Array, Array], Array], batch: tuple[int, ...]) -> Array:
        """Return coordinates (..., nq), or velocities (..., nv), put together from one array per kind."""
        whole = np.empty((*batch, self.nq if coordinates else self.nv))
        for kind, iq, iv in self.groups:
            whole[..., iq if coordinates else iv] = make(kind, iq, iv)
        return whole


def _generator(rng: Any) -> np.random.Generator:
    """Return a generator from a seed, itself, or nothing."""
    try:
        return np.random.default_rng(rng)
    except (TypeError, ValueError) as error:
        raise ModelError(f"rng is a seed (a whole number) or a numpy Generator, not {rng!r}") from error


def _sizes(size: Any) -> tuple[int, ...]:
    """Return the leading axes of `size` samples."""
    try:
        sizes = np.atleast_1d(np.asarray(() if size is None else size))
        if sizes.size and (sizes.ndim != 1 or sizes.dtype.kind not in "iu" or sizes.min() < 0):
            raise ValueError
    except (TypeError, ValueError) as error:
        raise ShapeError(f"size is a number of samples, or several, zero or more; not {size!r}") from error
    return tuple(int(count) for count in sizes)


def _together(x: Array, y: Array) -> tuple[Array, Array, tuple[int, ...]]:
    """Return both with one batch, and its shape."""
    try:
        batch = np.broadcast_shapes(x.shape[:-1], y.shape[:-1])
    except ValueError as error:
        raise ShapeError(f"batches must agree; the inputs are {x.shape}, {y.shape}") from error
    return np.broadcast_to(x, (*batch, x.shape[-1])), np.broadcast_to(y, (*batch, y.shape[-1])), batch
