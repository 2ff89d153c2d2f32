"""Joint forces as numbers, and samples of a run with contacts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import casadi as ca
import numpy as np

from dalembert.errors import ModelError, SolvabilityError
from dalembert.simulate.contact.ridges import say_ridges
from dalembert.simulate.equations.callbacks import CallError, called
from dalembert.simulate.equations.chart import chart, normalised
from dalembert.simulate.equations.codes import _kernel
from dalembert.simulate.equations.controller import Controller
from dalembert.simulate.samples import inside
from dalembert.simulate.session import FIELDS, Session

if TYPE_CHECKING:
    from dalembert.model.mechanism.mechanism import Mechanism

# ----------------------------------------------------------------------------------------------------------------------
# Joint forces as numbers, and the chart as numbers: what steppers driven from Python ask for.


Array = np.ndarray


class Forces:
    """tau(t, q, v) of a controller; the time of the last call is kept for messages."""

    def __init__(self, controller: Controller) -> None:
        self.controller, self.time = controller, 0.0
        self.bounds = -np.inf, np.inf
        self.zero = controller.kind == "none"
        c = controller
        if not self.zero:
            inputs = {"t": c.t, "q": c.q, "v": c.v, "signals": c.symbols}
            inputs = {name: each for name, each in inputs.items() if each.numel()}
            self.names = tuple(inputs)
            self.kernel = _kernel(
                ("simulate", "tau", c.content),
                lambda: ca.Function("tau", list(inputs.values()), [c.tau], list(inputs), ["tau"]), True,
            )  # fmt: skip

    def __call__(self, t: float, q: Array, v: Array) -> Array:
        """Return the joint forces (nv,); between break points their limits from within `bounds`."""
        self.time = t = inside(t, self.bounds)
        if self.zero:
            return np.zeros(v.size)
        c = self.controller
        if c.function is not None:
            return called(c.function, t, q, v)
        values = {"t": np.array([t]), "q": q, "v": v, "signals": c.signals.values(t)}
        return np.atleast_1d(self.kernel(*(values[name] for name in self.names)))


class Chart:
    """Configurations around a base: q and x' at coordinates x; and a step along a velocity."""

    def __init__(self, mechanism: Mechanism) -> None:
        key = ("simulate", mechanism.content())
        self._at = _kernel((*key, "chart"), lambda: _trace_chart(mechanism), mechanism.cacheable)
        self.along_kernel = _kernel((*key, "along"), lambda: _trace_along(mechanism), mechanism.cacheable)

    def at(self, base: Array, x: Array, v: Array) -> tuple[Array, Array]:
        """Return q and x' = T(x) v."""
        return self._at(base, x, v)

    def along(self, base: Array, way: Array) -> Array:
        """Return where a constant velocity leads whose time integral is `way`, to second order; unit quaternions."""
        return self.along_kernel(base, way)


def _trace_chart(mechanism: Mechanism) -> ca.Function:
    base, x, v = ca.SX.sym("base", mechanism.nq), ca.SX.sym("x", mechanism.nv), ca.SX.sym("v", mechanism.nv)
    q, rate = chart(mechanism, base, x, v)
    outputs = [ca.densify(normalised(mechanism, q)), ca.densify(rate)]
    return ca.Function("chart", [base, x, v], outputs, ["base", "x", "v"], ["q", "x_rate"])


def _trace_along(mechanism: Mechanism) -> ca.Function:
    base, way = ca.SX.sym("base", mechanism.nq), ca.SX.sym("way", mechanism.nv)
    half, _ = chart(mechanism, base, way / 2, way)
    _, rate = chart(mechanism, half, ca.SX.zeros(mechanism.nv), way)
    q, _ = chart(mechanism, base, rate, way)
    return ca.Function("along", [base, way], [ca.densify(normalised(mechanism, q))], ["base", "way"], ["q"])


# ----------------------------------------------------------------------------------------------------------------------
# Samples of a run with contacts, collected one by one; only complete steps count, whatever ends the run.


CONTACT_FIELDS = ("heat", "contact_forces", "modes", "contact_status", "contact_residual")
"""What a sample of a run with contacts has besides: what was lost, forces, modes; verdict and residual of the solve."""

BLOCK = 200
"""Samples a block; steps from event to event are long."""


class SampleRows:
    """Rows of samples; `heat` is what impacts and sliding have taken so far, `work` what joint forces have done."""

    def __init__(self, session: Session, contacts: int) -> None:
        self.session, self.contacts = session, contacts
        self.heat = self.work = 0.0
        self.rows: dict[str, list[Any]] = {name: [] for name in (*FIELDS, *CONTACT_FIELDS)}
        self.complete: tuple[int, int, dict[str, Array]] | None = None

    @property
    def full(self) -> bool:
        """True when there are enough rows to hand over."""
        return len(self.rows["t"]) >= BLOCK

    def add(
        self, t: float, q: Array, v: Array, motion: Any, modes: Array, h: float, more: tuple[float, float] = (0.0, 0.0)
    ) -> None:
        """Append a sample; `more` work and heat than at the last step."""
        local = motion.r.reshape(self.contacts, 3)
        forces = np.einsum("kij,ki->kj", motion.x.axes, local).ravel()
        values = (t, q.copy(), v.copy(), motion.a, motion.lam, self.work + more[0], h, self.heat + more[1], forces,
                  modes, motion.status, motion.residual)  # fmt: skip
        for name, value in zip(self.rows, values, strict=True):
            self.rows[name].append(value)

    def step_is_complete(self, checkpoint: dict[str, Array]) -> None:
        """Note that all up to here belongs together, and from where the run would go on."""
        self.complete = len(self.rows["t"]), len(self.session.events), checkpoint

    def on_step(self, t: float, q: Array, v: Array) -> None:
        """Call the user's function after a step."""
        call_on_step(self.session, t, q, v)

    def flush(self) -> None:
        """Hand all complete samples over; what came after is dropped."""
        if self.complete is None:
            return
        count, events, checkpoint = self.complete
        del self.session.events[events:]
        m = self.session.mechanism
        width = {"q": m.nq, "v": m.nv, "acceleration": m.nv, "multipliers": len(m.names)}
        width |= {"contact_forces": 3 * self.contacts, "modes": self.contacts}
        block = {name: np.array(rows[:count]).reshape((count, width[name]) if name in width else (count,))
                 for name, rows in self.rows.items()}  # fmt: skip
        for name in ("modes", "contact_status"):
            block[name] = block[name].astype(np.int64)
        for rows in self.rows.values():
            rows.clear()
        self.complete = 0, events, checkpoint
        self.session.add(block, checkpoint)


def call_on_step(session: Session, t: float, q: Array, v: Array) -> None:
    """Call the user's function after a step; an error of it is named."""
    if session.on_step is None:
        return
    try:
        session.on_step(t, q.copy(), v.copy())
    except CallError as failed:
        said = f"{type(failed.error).__name__}: {failed.error}"
        raise ModelError(f"on_step failed at t = {t:.9g} s: {said}") from failed.error


@contextmanager
def guarded(session: Session, time: Callable[[], float], finish: Callable[[], None]) -> Iterator[None]:
    """Keep what there is, whatever ends the steps: no answer, an error in a Python function, the keyboard."""
    try:
        yield
    except SolvabilityError as refused:
        session.stop("no solution", str(refused))
    except Exception as error:
        session.extra["error"] = error, time()
        session.stop("stopped", str(error))
    finally:
        finish()
        if not session.blocks:
            session.blocks.append(_start_alone(session))
        say_ridges(session)


def _start_alone(session: Session) -> dict[str, Array]:
    """Return the initial state as the only sample: nothing is known there but itself."""
    m, none = session.mechanism, np.zeros(1)
    rows = {"acceleration": np.full((1, m.nv), np.nan), "multipliers": np.full((1, len(m.names)), np.nan)}
    start = {"t": np.array([session.settings.start]), "q": session.q[None].copy(), "v": session.v[None].copy()}
    return start | rows | {"work": none, "step": none.copy(), "heat": none.copy()}
