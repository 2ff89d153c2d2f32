"""The explicit form in numbers: joint forces and the chart, for steppers that are driven from Python."""

from __future__ import annotations

from typing import TYPE_CHECKING

import casadi as ca
import numpy as np

from dalembert.simulate.equations.callbacks import called
from dalembert.simulate.equations.chart import chart, normalised
from dalembert.simulate.equations.codes import MechanismForm, _kernel, trace_along
from dalembert.simulate.equations.controller import Controller
from dalembert.simulate.samples import inside
from dalembert.types import Array

if TYPE_CHECKING:
    from dalembert.model.mechanism.mechanism import Mechanism


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
        self.along_kernel = _kernel((*key, "along"), lambda: trace_along(MechanismForm(mechanism)), mechanism.cacheable)

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
