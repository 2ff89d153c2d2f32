"""Mechanisms in Crocoddyl: a state and a differential action on one kernel, loops and redundant rows included.

    xout = a(q, v, B u)       Fx = [da/dq  da/dv]       Fu = da/dtau B

q is varied along its tangent, which is Crocoddyl's convention; derivatives come from `compile("forward_derivatives")`.
Classes that are derived in Python run on one thread there.

Crocoddyl must be importable when this file is: extra `crocoddyl` (no Windows).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from dalembert.bridges.chosen import guest
from dalembert.status import Status

if TYPE_CHECKING:
    from dalembert.model.mechanism.mechanism import Mechanism

crocoddyl = guest("crocoddyl", "Crocoddyl", "crocoddyl", "dalembert.bridges.crocoddyl")
SOLVED = (Status.UNIQUE, Status.REDUNDANT)


class MechanismState(crocoddyl.StateAbstract):
    """The state x = [q; v] with steps dx = [dq; dv] along the tangent of q."""

    def __init__(self, mechanism: Mechanism) -> None:
        crocoddyl.StateAbstract.__init__(self, mechanism.nq + mechanism.nv, 2 * mechanism.nv)
        self.mechanism = mechanism
        self._step, self._back = (mechanism.compile(name) for name in ("integrate", "difference"))
        self._rate = mechanism.compile("rate")
        self._step_slopes = self._step.jacobian()
        self._back_slopes = self._back.jacobian()

    def _split(self, x: Any) -> tuple[np.ndarray, np.ndarray]:
        return np.array(x[: self.mechanism.nq]), np.array(x[self.mechanism.nq :])

    def zero(self) -> np.ndarray:
        """Return the neutral configuration at rest."""
        return np.concatenate([self.mechanism.neutral(), np.zeros(self.mechanism.nv)])

    def rand(self) -> np.ndarray:
        """Return a random state."""
        return np.concatenate([self.mechanism.random(), np.random.default_rng().normal(size=self.mechanism.nv)])

    def diff(self, x0: Any, x1: Any) -> np.ndarray:
        """Return x1 - x0."""
        (q0, v0), (q1, v1) = self._split(x0), self._split(x1)
        return np.concatenate([self._back(q0, q1), v1 - v0])

    def integrate(self, x: Any, dx: Any) -> np.ndarray:
        """Return x + dx."""
        (q, v), n = self._split(x), self.mechanism.nv
        return np.concatenate([self._step(q, np.array(dx[:n])), v + np.asarray(dx[n:])])

    def _directions(self, q: np.ndarray) -> np.ndarray:
        """Return N(q), (nq, nv)."""
        n = self.mechanism.nv
        return np.asarray(self._rate(np.broadcast_to(q, (n, len(q))), np.eye(n))).T

    def Jdiff(self, x0: Any, x1: Any, firstsecond: Any = None) -> Any:
        """Return d(x1 - x0)/dx0 and /dx1, or one of them."""
        (q0, _), (q1, _) = self._split(x0), self._split(x1)
        n = self.mechanism.nv
        blocks = []
        for slope, q, sign in zip(self._back_slopes(q0, q1), (q0, q1), (-1.0, 1.0), strict=True):
            J = sign * np.eye(2 * n)
            J[:n, :n] = np.asarray(slope).reshape(n, len(q)) @ self._directions(q)
            blocks.append(J)
        return _chosen(blocks, firstsecond)

    def Jintegrate(self, x: Any, dx: Any, firstsecond: Any = None) -> Any:
        """Return d(x + dx)/dx and /ddx along tangents, or one of them."""
        q, _ = self._split(x)
        n = self.mechanism.nv
        d = np.array(dx[:n])
        end = self._step(q, d)
        down = np.asarray(self._back_slopes(end, end)[1]).reshape(n, len(q))  # ambient to tangent at the end
        by_q, by_d = (np.asarray(J).reshape(len(q), -1) for J in self._step_slopes(q, d))
        blocks = []
        for top in (down @ by_q @ self._directions(q), down @ by_d):
            J = np.eye(2 * n)
            J[:n, :n] = top
            blocks.append(J)
        return _chosen(blocks, firstsecond)

    def JintegrateTransport(self, x: Any, dx: Any, Jin: Any, firstsecond: Any) -> Any:
        """Return a matrix whose columns are tangents, carried from x to x + dx."""
        return self.Jintegrate(x, dx, firstsecond) @ np.asarray(Jin)


def _chosen(blocks: list[np.ndarray], which: Any) -> Any:
    """Return the first block, the second or both."""
    if which == crocoddyl.Jcomponent.first:
        return blocks[0]
    return blocks[1] if which == crocoddyl.Jcomponent.second else blocks


class MechanismAction(crocoddyl.DifferentialActionModelAbstract):
    """Forward dynamics of a mechanism, with costs.

    Parameters
    ----------
    mechanism
        Its loops and constraints hold.
    costs
        A `crocoddyl.CostModelSum` on `state`; none where None.
    actuated
        Coordinates that are driven, one control each; all where None.
    state
        A `MechanismState`, to be shared by the actions of a problem.

    Notes
    -----
    A state at which the equations have no answer has NaN as acceleration, derivatives and cost, for which Crocoddyl's
    solvers shorten their step; an exception would end the process, since they call from threads. `status` is that of
    the last such state, None where there was none. Without a guess, solvers begin at `state.zero()`, which lies on no
    loop: give them states that do.
    """

    def __init__(
        self,
        mechanism: Mechanism,
        costs: Any = None,
        actuated: Sequence[str] | None = None,
        state: MechanismState | None = None,
    ) -> None:
        names = mechanism.coordinates if actuated is None else tuple(actuated)
        self.places = [mechanism.index_v(name).start for name in names]
        state = state or MechanismState(mechanism)
        crocoddyl.DifferentialActionModelAbstract.__init__(self, state, len(names), 0 if costs is None else costs.nr)
        self.mechanism, self.costs, self.kept = mechanism, costs, state
        self.forward = mechanism.compile("forward")
        self.slopes = mechanism.compile("forward_derivatives")
        self.outputs = [port.name for port in self.slopes.outputs]
        self.status: Status | None = None

    def createData(self) -> Any:
        """Return the memory of one node."""
        data = crocoddyl.DifferentialActionDataAbstract(self)
        if self.costs is not None:
            data.collected = crocoddyl.DataCollectorAbstract()
            data.costs = self.costs.createData(data.collected)
            data.costs.shareMemory(data)
        return data

    def _inputs(self, x: Any, u: Any) -> list[np.ndarray]:
        n = self.mechanism.nq
        tau = np.zeros(self.mechanism.nv)
        if u is not None:
            tau[self.places] = u
        return [np.array(x[:n]), np.array(x[n:]), tau, np.zeros(1)]

    def _solved(self, status: Any) -> bool:
        """Return whether a status is an answer; remember one that is not."""
        solved = int(status[0]) in SOLVED
        if not solved:
            self.status = Status(int(status[0]))
        return solved

    def calc(self, data: Any, x: Any, u: Any = None) -> None:
        """Compute acceleration and cost; without u the cost alone, as at the end of a problem."""
        solved = True
        if u is not None:
            a, _, status = self.forward(*self._inputs(x, u))
            solved = self._solved(status)
            data.xout[:] = a if solved else np.nan
        if self.costs is not None:
            if u is None:
                self.costs.calc(data.costs, x)
            else:
                self.costs.calc(data.costs, x, u)
            data.cost = data.costs.cost
        if not solved:
            data.cost = np.nan

    def calcDiff(self, data: Any, x: Any, u: Any = None) -> None:
        """Compute Fx, Fu and the derivatives of the cost."""
        if u is not None:
            values = dict(zip(self.outputs, self.slopes(*self._inputs(x, u)), strict=True))
            solved = self._solved(values["status"])
            n = self.mechanism.nv
            by = {name: np.asarray(values[f"dacceleration_d{name}"]).reshape(n, n) for name in ("q", "v", "force")}
            slopes = (data.Fx, np.hstack([by["q"], by["v"]])), (data.Fu, by["force"][:, self.places])
            for memory, slope in slopes:  # memory of one row or column has one axis
                memory[...] = slope.reshape(memory.shape) if solved else np.nan
        if self.costs is not None:
            if u is None:
                self.costs.calcDiff(data.costs, x)
            else:
                self.costs.calcDiff(data.costs, x, u)
