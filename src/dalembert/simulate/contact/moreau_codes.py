"""What compiled time steps run on: pairs as arrays, codes bound to memory, joint forces by Python functions."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

from dalembert.simulate.contact.forces import Chart, Forces
from dalembert.simulate.contact.geometry import Geometry
from dalembert.simulate.contact.moreau_arrays import Samples, Work
from dalembert.simulate.contact.moreau_loops import ALONG, CLOSE, CONTACTS, TAU
from dalembert.simulate.contact.pair_loops import FIELD, LIMIT, PLANE, SPHERES, Pairs
from dalembert.simulate.contact.shapes import Heightfield, Plane
from dalembert.simulate.smooth.callbacks import called
from dalembert.simulate.smooth.codes import _kernel, _traced
from dalembert.simulate.smooth.session import Session
from dalembert.tableau.time.compiled import bind
from dalembert.tableau.time.invoke_loops import SIGNATURE
from dalembert.tableau.time.signal_loops import SIGNALS

Array = np.ndarray


def pair_arrays(geometry: Geometry) -> Pairs:
    """Return the pairs of a geometry as arrays."""
    pairs, frames = geometry.pairs, geometry.frames
    k = len(pairs)
    kind, frame, place = np.zeros(k, np.int64), np.zeros((k, 2), np.int64), np.zeros((k, 2), np.int64)
    at, radius, normal = np.zeros((k, 2, 3)), np.zeros((k, 2)), np.zeros((k, 3))
    offset, sign, bound, field = np.zeros(k), np.zeros(k), np.zeros(k), np.zeros((k, 5), np.int64)
    heights: list[Array] = [np.zeros(0)]
    for i, pair in enumerate(pairs):
        if pair.ball is None:
            kind[i], place[i], sign[i], bound[i] = LIMIT, pair.coordinate, pair.sign, pair.bound
            continue
        for j, ball in enumerate((pair.ball, pair.other)):
            if ball is not None:
                frame[i, j], at[i, j], radius[i, j] = frames.index(ball.frame), ball.at, ball.radius
        if isinstance(pair.ground, Plane):
            kind[i], normal[i], offset[i] = PLANE, pair.ground.normal, pair.ground.offset
        elif isinstance(pair.ground, Heightfield):
            kind[i], field[i] = FIELD, _stored(pair.ground, heights)
        else:
            kind[i] = SPHERES
    mu, e = (np.array([getattr(pair, name) for pair in pairs]) for name in ("friction", "restitution"))
    poisson = np.array([pair.law == "poisson" for pair in pairs])
    slot = np.array([pair.slot for pair in pairs], np.int64)
    fields = [pair.ground if isinstance(pair.ground, Heightfield) else None for pair in pairs]
    reach = np.array([0.0 if one is None else one.reach(r) for one, r in zip(fields, radius[:, 0], strict=True)])
    return Pairs(
        kind, frame, at, radius, normal, offset, place, sign, bound, field, slot, reach, np.concatenate(heights), mu, e,
        poisson,
    )  # fmt: skip


def _stored(ground: Heightfield, heights: list[Array]) -> tuple[int, ...]:
    """Append a heightfield to the heights; return where it begins and its sizes."""
    first = sum(each.size for each in heights)
    heights += [np.asarray(each, float).ravel() for each in (ground.x, ground.y, ground.z)]
    return first, first + ground.x.size, first + ground.x.size + ground.y.size, ground.x.size, ground.y.size


class Memory:
    """Work of one session, with everything that must stay alive beside it; errors of Python functions are kept."""

    def __init__(self, session: Session, geometry: Geometry, chart: Chart, forces: Forces) -> None:
        self.session, self.forces = session, forces
        self.error: BaseException | None = None
        m, k = session.mechanism, len(geometry.pairs)
        n, rows, held = m.nv, len(m.names), int(sum(m.holonomic))
        signals = session.controller.symbols.numel()
        self.work = Work(
            np.zeros((SIGNALS + 1, 3), np.int64), session.q.copy(), session.v.copy(), np.zeros(2 + signals),
            np.zeros(n), np.zeros(m.nq), np.zeros(n), np.zeros(m.nq), np.zeros(m.nq), np.zeros(1), np.zeros(n),
            np.zeros((n, n)), np.zeros(n), np.zeros((rows, n)), np.zeros((len(geometry.frames), 18 + 6 * n)),
            np.zeros(n), np.zeros(held), np.zeros(k), np.zeros((3 * k, n)), np.zeros((k, 3, 3)),
            np.zeros(3 * k), np.zeros((k, 9)), np.zeros(k),
        )  # fmt: skip
        self.alive: list[Any] = [geometry, chart, forces]
        self._bind(geometry, chart, rows, held)

    def _bind(self, geometry: Geometry, chart: Chart, rows: int, held: int) -> None:
        w, m = self.work, self.session.mechanism
        spare, status = np.zeros(rows), np.zeros(1)
        read = {"q": w.middle, "v": w.speed, "t": w.time}
        write = {"M": w.M, "bias": w.bias, "A": w.A, "drift": spare, "frames": w.frames}
        self._take(CONTACTS, geometry.kernel, read | write)
        self._take(ALONG, chart.along_kernel, {"base": w.base, "way": w.way, "q": w.moved})
        if held:
            key = ("simulate", m.content(), "close")
            kernel = _kernel(key, lambda: _traced(m, "project_step"), m.cacheable)
            done = {"step": w.correction, "residual": w.residual, "status": status}
            self._take(CLOSE, kernel, {"q": w.moved, "t": w.time} | done)
        if self.forces.controller.function is not None:
            callback = SIGNATURE(self._called)
            self.alive.append(callback)
            w.calls[SIGNALS] = ctypes.cast(callback, ctypes.c_void_p).value or 0, 0, 0
        if not self.forces.zero:
            given = {"t": w.environment[:1], "q": w.q, "v": w.v, "signals": w.environment[2:], "tau": w.tau}
            self._take(TAU, self.forces.kernel, given)
        self.alive += [spare, status]

    def _take(self, row: int, kernel: Any, arrays: dict[str, Array]) -> None:
        self.work.calls[row], kept = bind(kernel, arrays)
        self.alive += [kept, kernel]

    def _called(self, table: Any, first: int, stop: int, scratch: Any) -> None:
        """Ask the Python function for joint forces; an exception cannot pass through compiled code and is kept."""
        w, c = self.work, self.forces.controller
        try:
            self.forces.time = float(w.environment[0])
            w.environment[2:] = called(c.function, self.forces.time, w.q, w.v)  # type: ignore[arg-type]
        except BaseException as error:
            self.error, w.environment[1] = error, 1.0


def samples_of(session: Session, contacts: int, size: int) -> Samples:
    """Return room for a block of samples."""
    m = session.mechanism
    widths: dict[str, tuple[int, ...]] = {
        "q": (m.nq,), "v": (m.nv,), "acceleration": (m.nv,), "multipliers": (len(m.names),),
        "contact_forces": (3 * contacts,), "modes": (contacts,),
    }  # fmt: skip
    whole = ("modes", "contact_status")
    return Samples(**{
        name: np.zeros((size, *widths.get(name, ())), np.int64 if name in whole else float) for name in Samples._fields
    })  # fmt: skip
