"""Derivatives of forward dynamics at a state or a batch, by name, with what of them is unique.

    d["acceleration", "q"]      d/d eps of the acceleration at integrate(q, eps e_i), column i, (..., nv, nv)

Numbers come from the request "forward_derivatives" (`tree/derivatives/`). A multiplier that redundant rows leave open
is the least of its family, and its derivative is that of the least one; `unique` says which ones are no choice.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from dalembert.checks import floats, vectors
from dalembert.errors import ModelError
from dalembert.model.mechanism.calls import on_manifold
from dalembert.status import Status
from dalembert.types import Array

if TYPE_CHECKING:
    from jaxtyping import Bool, Float, Int

    from dalembert.model.mechanism.mechanism import Mechanism


@dataclass(frozen=True, eq=False)
class Derivatives(Mapping[tuple[str, str], Array]):
    """Derivatives by name: `d["acceleration", "q"]`, `d["multipliers", "force"]`.

    Attributes
    ----------
    acceleration, multipliers
        The answer itself, (..., nv) and (..., m).
    status
        Per sample a `da.Status`, (...): where it is not `ok` all numbers of the sample are NaN.
    unique
        Per row and sample whether the multiplier, and so its derivative, is the only one possible, (..., m).
    blocks
        Matrices (..., nv or m, size of what is varied) by the pair of names.
    """

    acceleration: Float[Array, "*batch nv"]
    multipliers: Float[Array, "*batch m"]
    status: Int[Array, "*batch"]
    unique: Bool[Array, "*batch m"]
    blocks: dict[tuple[str, str], Array] = field(repr=False)

    def __getitem__(self, pair: tuple[str, str]) -> Array:
        if pair not in self.blocks:
            pairs = ", ".join(str(list(key)) for key in self.blocks)
            raise ModelError(f"there is no derivative {pair!r}; there is {pairs}. Others are named by wrt=(...)")
        return self.blocks[pair]

    def __iter__(self) -> Iterator[tuple[str, str]]:
        return iter(self.blocks)

    def __len__(self) -> int:
        return len(self.blocks)

    def __str__(self) -> str:
        words = [f"d {top} / d {below}: {block.shape}" for (top, below), block in self.blocks.items()]
        solved = np.asarray(self.ok)
        return "\n".join([f"derivatives: {int(solved.sum())} of {solved.size} samples have an answer", *words])

    @property
    def ok(self) -> Any:
        """Whether a sample has a certified answer, (...)."""
        return np.vectorize(lambda code: Status(int(code)).ok, otypes=[bool])(self.status)[()]


def derivatives(mechanism: Mechanism, q: Any, v: Any, force: Any, t: Any, wrt: str | Sequence[str]) -> Derivatives:
    """Return the derivatives of forward dynamics at one state or a batch."""
    names = (wrt,) if isinstance(wrt, str) else tuple(wrt or ())
    q, times = on_manifold(mechanism, q), floats(t, "t")
    v = vectors(v, mechanism.nv, "v")
    force = np.zeros(mechanism.nv) if force is None else vectors(force, mechanism.nv, "force")
    batch = np.broadcast_shapes(q.shape[:-1], v.shape[:-1], force.shape[:-1], times.shape)
    kernel = mechanism.compile("forward_derivatives", wrt=names)
    outputs = [np.array(x) for x in kernel(q, v, force, np.broadcast_to(times, batch)[..., None])]
    values = dict(zip((port.name for port in kernel.outputs), outputs, strict=True))
    status = values["status"][..., 0].astype(int)
    m = len(mechanism.names)
    results = {"acceleration": values["acceleration"].reshape(*batch, mechanism.nv)}
    results["multipliers"] = values["multipliers"].reshape(*batch, m)
    derived = iter(zip(outputs[3:], kernel.outputs[3:], strict=True))
    blocks = {}
    for name in names:
        for quantity in ("acceleration", "multipliers"):
            block, port = next(derived)
            blocks[quantity, name] = block.reshape(*batch, results[quantity].shape[-1], port.cols)
    bad = ~np.isin(status, [int(code) for code in Status if code.ok])
    for array in (*results.values(), *blocks.values()):
        array[bad] = np.nan
    return Derivatives(
        results["acceleration"], results["multipliers"], status, _unique(mechanism, q, times, batch, status), blocks
    )


def _unique(mechanism: Mechanism, q: Array, t: Array, batch: tuple[int, ...], status: Array) -> Array:
    """Return per row and sample whether its multiplier is the only one possible; False where there is no answer."""
    from dalembert.model.mechanism.families import multiplier_families

    m, size = len(mechanism.names), int(np.prod(batch))
    codes = status.reshape(size)
    states = np.broadcast_to(q, (*batch, q.shape[-1])).reshape(size, q.shape[-1])
    times = np.broadcast_to(t, batch).reshape(size)
    families = multiplier_families(mechanism, states, times, suspect=codes == int(Status.REDUNDANT))
    solved = np.isin(codes, [int(code) for code in Status if code.ok])
    return (families.unique & solved[:, None]).reshape(*batch, m)
