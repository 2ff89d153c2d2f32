"""Derivatives of a run: how its states change with the start, with joint forces and with inertial numbers.

Symbols: x = (q, v) state, d = (dq, dv) its variation in tangent coordinates, p parameters; a_q, a_v, a_u, a_p
derivatives of forward dynamics (`tree/derivatives/`); [v, dq] bracket of the Lie algebra of a joint's motion; Phi,
Gamma transition of a variation, and of parameters, from one sample to the next.

    dq' = dv - [v, dq]          dv' = (a_q + a_u u_q) dq + (a_v + a_u u_v) dv + a_p dp
    d_k+1 = Phi_k d_k + Gamma_k dp

Through contacts and dry friction: the motion in each mode, and saltation matrices at located events (`saltation.py`).

The variational equations are integrated with the motion from every recorded sample to the next, all intervals side by
side as one batch, by the method of order 8; an interval is halved until Phi does not change. The motion must arrive at
the next sample: this is the certificate, and a run that was not smooth between samples is refused by it.

On constraints a start can only be varied along them: a variation is projected as `project` does, with the least kinetic
energy, and the velocity follows.

The gradient of a number goes the other way over the same transitions, lambda_k = Phi_k^T lambda_k+1 (the discrete
adjoint: Griewank & Walther 2008, ch. 3). Source: Hairer, Norsett & Wanner 1993, I.14 (variational equations); Bloch,
Krishnaprasad, Marsden & Ratiu, "The Euler-Poincare equations and double bracket dissipation", Commun. Math. Phys. 175
(1996) 1-42 (variations on a group).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from dalembert.checks import floats, one_number
from dalembert.errors import ModelError, SolvabilityError, UnsupportedError
from dalembert.first_use import LaterModule
from dalembert.model.mechanism.mechanism import Mechanism
from dalembert.model.mechanism.parametric import PARAMETER_KINDS, split_name
from dalembert.names import near_matches
from dalembert.simulate.equations.controller import Controller
from dalembert.simulate.limits import SAME_SAMPLE, TRANSITION_CONVERGED, UNSAID_RTOL
from dalembert.simulate.runge_kutta import DOP853
from dalembert.status import Status
from dalembert.types import Array

if TYPE_CHECKING:
    import casadi as ca
    from jaxtyping import Float

    from dalembert.simulate.saltation import ContactVariation
    from dalembert.simulate.trajectory import Trajectory
else:
    ca = LaterModule("casadi")

COEFFICIENTS = ("friction", "restitution")
"""Numbers of a contact that a run can be differentiated by: "friction:foot", "restitution:foot"."""

STARTS = ("q0", "v0")
"""Variations of the start."""

MOST_HALVINGS = 7
"""An interval between two samples is cut into at most 2^7 steps."""


# ----------------------------------------------------------------------------------------------------------------------
# What comes back.


@dataclass(frozen=True, eq=False)
class Sensitivity(Mapping[tuple[str, str], Array]):
    """Derivatives of the states of a run: `s["v", "q0"]` is (N, nv, k), at the times `t`.

    Attributes
    ----------
    t
        Times of the samples, (N,).
    blocks
        Derivatives (N, nv, k) by pairs: of "q" (in tangent coordinates) and "v", by the names that were asked for.
    error
        The largest distance between the motion integrated here and the samples, in tolerances of the run.
    event_times
        Of impacts and changes of mode that have one: the derivatives (E, k) of their times, by name; `events` has the
        times themselves, (E,).
    """

    t: Float[Array, " N"]
    blocks: dict[tuple[str, str], Array] = field(repr=False)
    error: float
    events: Float[Array, " E"] = field(default_factory=lambda: np.zeros(0))
    event_times: dict[str, Array] = field(repr=False, default_factory=dict)

    def __getitem__(self, pair: tuple[str, str]) -> Array:
        if pair not in self.blocks:
            raise ModelError(
                f"there is no derivative {pair!r}; there is {', '.join(str(list(p)) for p in self.blocks)}"
            )
        return self.blocks[pair]

    def __iter__(self) -> Iterator[tuple[str, str]]:
        return iter(self.blocks)

    def __len__(self) -> int:
        return len(self.blocks)


@dataclass(frozen=True, eq=False)
class Gradient(Mapping[str, Array]):
    """The derivative of a number at the end of a run: `g["v0"]` is (nv,).

    Attributes
    ----------
    value
        The number itself.
    blocks
        Its derivatives (k,) by name.
    error
        As in `Sensitivity`.
    """

    value: float
    blocks: dict[str, Array] = field(repr=False)
    error: float

    def __getitem__(self, name: str) -> Array:
        if name not in self.blocks:
            raise ModelError(f"there is no derivative by {name!r}; there is {', '.join(map(repr, self.blocks))}")
        return self.blocks[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.blocks)

    def __len__(self) -> int:
        return len(self.blocks)


def sensitivity(run: Trajectory, wrt: str | Sequence[str]) -> Sensitivity:
    """Return the derivatives of all samples of a run."""
    variation = Variation.of(run, wrt)
    matrices = transitions(variation)
    n, N = variation.mechanism.nv, len(run.t)
    start, blocks = variation.start(), {}
    sizes = [start[name].shape[1] if name in start else variation.sizes[name] for name in variation.names]
    S = np.zeros((N, 2 * n, sum(sizes)))
    places = dict(zip(variation.names, np.split(np.arange(sum(sizes)), np.cumsum(sizes)[:-1]), strict=True))
    for name, columns in start.items():
        S[0][:, places[name]] = columns
    into = np.concatenate([places[name] for name in variation.parameters]) if variation.parameters else np.zeros(0, int)
    for k in range(N - 1):
        S[k + 1] = matrices.Phi[k] @ S[k]
        S[k + 1][:, into] += matrices.Gamma[k]
    for name, place in places.items():
        blocks["q", name], blocks["v", name] = S[:, :n, place], S[:, n:, place]
    instants = [k for k, row in sorted(matrices.when.items()) if np.isfinite(row).all()]
    times = np.zeros((len(instants), sum(sizes)))
    for e, k in enumerate(instants):
        times[e] = matrices.when[k][: 2 * n] @ S[k]
        times[e, into] += matrices.when[k][2 * n :]
    by_name = {name: times[:, place] for name, place in places.items()}
    return Sensitivity(run.t, blocks, matrices.error, run.t[instants], by_name)


def gradient(run: Trajectory, loss: Any, wrt: str | Sequence[str]) -> Gradient:
    """Return the derivative of a number of the last state, by the adjoint of the transitions."""
    variation = Variation.of(run, wrt)
    value, slope = _end(variation, run, loss)
    matrices = transitions(variation)
    total = np.zeros(sum(variation.sizes.values()))
    for k in reversed(range(len(run.t) - 1)):
        total += matrices.Gamma[k].T @ slope
        slope = matrices.Phi[k].T @ slope
    blocks = {name: columns.T @ slope for name, columns in variation.start().items()}
    ends = np.cumsum([0, *variation.sizes.values()])
    blocks |= {name: total[ends[i] : ends[i + 1]] for i, name in enumerate(variation.parameters)}
    return Gradient(value, {name: blocks[name] for name in variation.names}, matrices.error)


def _end(asked: Variation, run: Trajectory, loss: Any) -> tuple[float, Array]:
    """Return the value of a loss at the last state, and its slope (2 nv,) in tangent coordinates."""
    q, v, m = run.q[-1], run.v[-1], asked.mechanism
    if isinstance(loss, ca.Function):
        symbols = [ca.SX.sym("q", m.nq), ca.SX.sym("v", m.nv)]
        taken = [loss.numel_in(i) for i in range(loss.n_in())]
        if taken != [m.nq, m.nv] or loss.n_out() < 1 or loss.numel_out(0) != 1:
            raise ModelError(f"loss must be one number of q ({m.nq}) and v ({m.nv}); it is {loss}")
        loss_value = loss.call(symbols)[0]
        slopes = ca.Function(
            "slopes", symbols, [loss_value, *(ca.densify(ca.jacobian(loss_value, x)) for x in symbols)]
        )
        value, by_q, by_v = (np.array(x) for x in slopes(q, v))
        N = np.array([m.rate(q, unit) for unit in np.eye(m.nv)]).T
        return _finite(float(value.item()), np.concatenate([by_q[0] @ N, by_v[0]]))
    if not callable(loss):
        raise ModelError(
            "loss is a casadi.Function of (q, v), or a function that returns (value, d/dq (nv,), d/dv (nv,))"
        )
    result: Any = loss(q, v)
    triple = isinstance(result, tuple | list) and len(result) == 3
    if not (triple and all(np.shape(slope) == (m.nv,) for slope in result[1:])):
        raise ModelError(f"loss returns (value, d/dq, d/dv), both slopes with {m.nv} numbers")
    value, *slopes = result
    return _finite(one_number(value, "the value of loss"), np.concatenate([floats(x, "slope") for x in slopes]))


def _finite(value: float, slope: Array) -> tuple[float, Array]:
    """Return both, or refuse a loss that has no value or no slope at the last state."""
    if not (np.isfinite(value) and np.isfinite(slope).all()):
        raise ModelError(f"loss is {value} at the last state, its slope {slope}: both must be finite")
    return value, slope


# ----------------------------------------------------------------------------------------------------------------------
# What is varied, and the derivatives of the motion at a state.


@dataclass(frozen=True, eq=False)
class Variation:
    """A run with what it is differentiated by.

    Attributes
    ----------
    names, sizes
        All names in order; of parameters (joint forces, inertial numbers) the number of entries.
    """

    run: Trajectory
    mechanism: Mechanism
    law: Controller | None
    names: tuple[str, ...]
    sizes: dict[str, int]

    @classmethod
    def of(cls, run: Trajectory, wrt: str | Sequence[str]) -> Variation:
        """Check a run and the names; what cannot be differentiated is refused with the reason."""
        mechanism = run.moving
        if not isinstance(mechanism, Mechanism):
            raise UnsupportedError("runs of a Mechanism have derivatives; this one is of another kind of system")
        if len(run.t) < 2:
            raise ModelError(f"the run has one sample: {run.message or run.status}")
        law = run.session.controller if run.session is not None else None
        if law is None and (run.given or {}).get("force") is not None:
            raise UnsupportedError(
                "this run does not keep its joint forces in a form that has derivatives: simulate again"
            )
        if law is not None and law.kind in ("callable", "table"):
            raise UnsupportedError(
                f"the joint forces are a {law.kind}: derivatives need constants or a casadi.Function of (t, q, v)"
            )
        names = (wrt,) if isinstance(wrt, str) else tuple(wrt or ())
        sizes = {}
        for name in names:
            if name == "force":
                sizes[name] = mechanism.nv
            elif isinstance(name, str) and name.partition(":")[0] in PARAMETER_KINDS and ":" in name:
                sizes[name] = _parameter_size(mechanism, name)
            elif coefficient(name) is not None and run.contacts:
                sizes[name] = 1
            elif name not in STARTS:
                raise ModelError(
                    f"wrt={name!r} is nothing to differentiate a run by; there is 'q0', 'v0', 'force', parameters such "
                    "as 'mass:<body>' and, with contacts, 'friction:<contact>' and 'restitution:<contact>'",
                    near=near_matches(str(name), ("q0", "v0", "force")),
                )
        if not names or len(set(names)) < len(names):
            raise ModelError("wrt names what a run is differentiated by, each once: 'q0', 'v0', 'force', 'mass:<body>'")
        return cls(run, mechanism, law, names, sizes)

    @property
    def parameters(self) -> tuple[str, ...]:
        """Names that are no part of the start."""
        return tuple(self.sizes)

    @cached_property
    def contact(self) -> ContactVariation | None:
        """The run's modes and events; None where it has no contacts."""
        from dalembert.simulate.saltation import ContactVariation

        return ContactVariation(self, _force_of(self)) if self.run.contacts else None

    def start(self) -> dict[str, Array]:
        """Return the variation of the first state (2 nv, nv) by those of q0 and v0 that were asked for."""
        if self.contact is not None:
            return self.contact.start()
        m, n = self.mechanism, self.mechanism.nv
        identity, none = np.eye(n), np.zeros((n, n))
        along, turning = identity, none
        starts = [name for name in self.names if name in STARTS]
        if m.names and starts:
            if "q0" in starts and not all(m.holonomic):
                rows = ", ".join(name for name, has in zip(m.names, m.holonomic, strict=True) if not has)
                raise UnsupportedError(
                    f"q0 of a mechanism with constraints on velocities alone ({rows}): which starts are its neighbours "
                    "is not settled; v0 and parameters are. A Point that is held at a place (at=...) is one on q"
                )
            kernel = m.compile("impact_derivatives")
            state = (self.run.q[0], self.run.v[0], np.zeros(len(m.names)), self.run.t[:1])
            outputs = dict(zip((port.name for port in kernel.outputs), kernel(*state), strict=True))
            _refuse(np.asarray(outputs["status"]).astype(int), self.run.t[:1])
            along, turning = (np.asarray(outputs[f"dvelocity_d{x}"]).reshape(n, n) for x in "vq")
        columns = {"q0": np.vstack([along, turning @ along]), "v0": np.vstack([none, along])}
        return {name: columns[name] for name in starts}


def coefficient(name: Any) -> tuple[str, str] | None:
    """Return kind and contact of "friction:foot" and "restitution:foot", else None."""
    kind, colon, contact = str(name).partition(":")
    return (kind, contact) if colon and kind in COEFFICIENTS else None


def _parameter_size(mechanism: Mechanism, name: str) -> int:
    """Return how many numbers a parameter is; one that would open loops is refused."""
    kind, part = split_name(name)
    PARAMETER_KINDS[kind].value(mechanism, part)
    if kind in ("length", "position") and any(mechanism.holonomic):
        raise UnsupportedError(
            f"{name!r} changes where constraints hold, and the start with them: which start belongs to which length is "
            "yours to say; take differences of runs that you have assembled"
        )
    return PARAMETER_KINDS[kind].size


def motion_of(asked: Variation) -> Callable[..., tuple[Array, Array, Array, Array]]:
    """Return (t, q, v) -> q', a, F (K, 2 nv, 2 nv), B (K, 2 nv, p) of a batch of states."""
    m, n = asked.mechanism, asked.mechanism.nv
    kernel = m.compile("forward_derivatives", wrt=("q", "v", "force", *(x for x in asked.parameters if x != "force")))
    names = [port.name for port in kernel.outputs]
    force = _force_of(asked)
    bracket = brackets(m)

    def motion(t: Array, q: Array, v: Array) -> tuple[Array, Array, Array, Array]:
        tau, by_q, by_v = force(t, q, v)
        outputs = [np.asarray(x) for x in kernel(q, v, tau, t[:, None])]
        _refuse(outputs[names.index("status")][:, 0].astype(int), t)
        blocks = [x.reshape(len(t), n, -1) for x in outputs[3::2]]
        a_q, a_v, a_u, *rest = blocks
        F = np.zeros((len(t), 2 * n, 2 * n))
        F[:, :n, :n], F[:, :n, n:] = -bracket(v), np.eye(n)
        F[:, n:, :n] = a_q if by_q is None else a_q + a_u @ by_q
        F[:, n:, n:] = a_v if by_v is None else a_v + a_u @ by_v
        inertial = iter(rest)
        parts = [a_u if name == "force" else next(inertial) for name in asked.parameters]
        B = np.zeros((len(t), 2 * n, sum(asked.sizes.values())))
        if parts:
            B[:, n:] = np.concatenate(parts, axis=2)
        return np.asarray(m.rate(q, v)), outputs[0].reshape(len(t), n), F, B

    return motion


def _refuse(status: Array, t: Array) -> None:
    """Raise where a state of the run has no certified derivatives."""
    bad = [k for k, code in enumerate(status.reshape(-1)) if not Status(int(code)).ok]
    if bad:
        raise SolvabilityError(
            f"no derivatives at t = {t.reshape(-1)[bad[0]]:.9g} s: {Status(int(status.reshape(-1)[bad[0]])).message}"
        )


def _force_of(asked: Variation) -> Callable[[Array, Array, Array], tuple[Array, Array | None, Array | None]]:
    """Return (t, q, v) -> joint forces of a batch and their derivatives by tangent q and by v, None where zero."""
    m, law = asked.mechanism, asked.law
    if law is None or law.kind in ("none", "constant"):
        fixed = np.zeros(m.nv) if law is None else np.array(ca.evalf(law.tau)).ravel()
        return lambda t, q, v: (np.tile(fixed, (len(t), 1)), None, None)
    from dalembert.tree.derivatives.directions import tangent

    seed = tangent(m, [law.q[i] for i in range(m.nq)])
    by_q, by_v = ca.jtimes(law.tau, law.q, seed), ca.jacobian(law.tau, law.v)
    parts = [ca.densify(ca.vec(x)) for x in (law.tau, by_q, by_v)]
    function = ca.Function("force", [law.t, law.q, law.v], parts)

    def force(t: Array, q: Array, v: Array) -> tuple[Array, Array, Array]:
        tau, slopes_q, slopes_v = (np.array(x) for x in function.map(len(t))(t[None], q.T, v.T))
        shape = (m.nv, m.nv, len(t))  # columns one below the other: entry (i, j) of a matrix is at i + nv j
        slopes_q, slopes_v = (x.reshape(shape, order="F").transpose(2, 0, 1) for x in (slopes_q, slopes_v))
        return tau.T, slopes_q, slopes_v

    return force


def brackets(mechanism: Mechanism) -> Callable[[Array], Array]:
    """Return v (K, nv) -> the matrix of dq -> [v, dq], (K, nv, nv): zero for joints whose motions commute."""
    starts = [(joint.kind, int(mechanism.manifold.v_start[i])) for i, joint in enumerate(mechanism.joints)]
    places = [(kind, at) for kind, at in starts if kind in ("spherical", "planar", "free")]

    def bracket(v: Array) -> Array:
        result = np.zeros((len(v), mechanism.nv, mechanism.nv))
        for kind, at in places:
            if kind == "planar":
                x, y, w = v[:, at], v[:, at + 1], v[:, at + 2]
                result[:, at, at + 1], result[:, at, at + 2] = -w, y
                result[:, at + 1, at], result[:, at + 1, at + 2] = w, -x
                continue
            turn = at + (3 if kind == "free" else 0)
            spin = slice(turn, turn + 3)
            result[:, spin, spin] = _cross(v[:, spin])
            if kind == "free":
                slide = slice(at, at + 3)
                result[:, slide, slide] = result[:, spin, spin]
                result[:, slide, spin] = _cross(v[:, slide])
        return result

    return bracket


def _cross(w: Array) -> Array:
    """Return [w x], (K, 3, 3)."""
    x, y, z = w.T
    zero = np.zeros_like(x)
    return np.array([[zero, -z, y], [z, zero, -x], [-y, x, zero]]).transpose(2, 0, 1)


# ----------------------------------------------------------------------------------------------------------------------
# Transitions from every sample to the next, side by side.


@dataclass(frozen=True, eq=False)
class Transitions:
    """Phi (N - 1, 2 nv, 2 nv), Gamma (N - 1, 2 nv, p), and how far the motion ends from the samples, in tolerances.

    `when` has, by the number of the sample before an event, the derivative (2 nv + p,) of its time by state and
    parameters.
    """

    Phi: Array
    Gamma: Array
    error: float
    when: dict[int, Array]


def transitions(asked: Variation) -> Transitions:
    """Return the transitions of a run, converged and arrived at its samples, or say why not."""
    run, n, contact = asked.run, asked.mechanism.nv, asked.contact
    count, p = len(run.t) - 1, sum(asked.sizes.values())
    Y = np.zeros((count, 2 * n, 2 * n + p))
    ends = run.q[1:].copy(), run.v[1:].copy()
    when: dict[int, Array] = {}
    if contact is None:
        _converge(asked, motion_of(asked), np.arange(count), Y, ends)
    else:
        for k in np.flatnonzero(np.diff(run.t) == 0):
            jump = contact.jump(int(k))
            Y[k], when[int(k)] = np.hstack([jump.state, jump.parameters]), jump.when
        for intervals, mode in contact.groups():
            _converge(asked, contact.motion(mode, brackets(asked.mechanism)), intervals, Y, ends)
    return Transitions(Y[:, :, : 2 * n], Y[:, :, 2 * n :], _arrived(asked, *ends), when)


def _converge(asked: Variation, motion: Callable[..., Any], left: Array, Y: Array, ends: tuple[Array, Array]) -> None:
    """Write the transitions of some intervals, and where the motion ends, with steps that are short enough."""
    run = asked.run
    before = np.full(Y.shape, np.inf)
    for halvings in range(MOST_HALVINGS + 1):
        q, v, Y[left] = _stepped(asked, motion, left, 2**halvings)
        ends[0][left], ends[1][left] = q, v
        with np.errstate(invalid="ignore"):
            change = np.abs(Y[left] - before[left]).max(axis=(1, 2)) / np.abs(Y[left]).max(axis=(1, 2))
        before[left] = Y[left]
        left = left[~(change <= TRANSITION_CONVERGED)]
        if not left.size:
            break
    else:
        raise SolvabilityError(
            f"the variation of the motion between t = {run.t[left[0]]:.9g} s and {run.t[left[0] + 1]:.9g} s does not "
            f"converge with 2^{MOST_HALVINGS} steps; record more samples (every=)"
        )


def _stepped(asked: Variation, motion: Callable[..., Any], intervals: Array, steps: int) -> tuple[Array, Array, Array]:
    """Return q, v and the transitions at the ends of intervals, each cut into so many steps of order 8."""
    run, m = asked.run, asked.mechanism
    n, p = m.nv, sum(asked.sizes.values())
    t, q, v = run.t[intervals].copy(), run.q[intervals].copy(), run.v[intervals].copy()
    h = (run.t[intervals + 1] - t) / steps
    Y = np.zeros((len(intervals), 2 * n, 2 * n + p))
    Y[:, :, : 2 * n] = np.eye(2 * n)
    for _ in range(steps):
        slopes: list[tuple[Array, Array, Array]] = []
        for weights, c in zip(DOP853.A[:12, :12], DOP853.C[:12], strict=True):
            stage = _moved((q, v, Y), h, weights, slopes)
            rate, a, F, B = motion(t + c * h, stage[0], stage[1])
            dY = F @ stage[2]
            dY[:, :, 2 * n :] += B
            slopes.append((rate, a, dY))
        q, v, Y = _moved((q, v, Y), h, DOP853.B, slopes)
        q = np.asarray(m.normalize(q))
        t = t + h
    return q, v, Y


def _moved(
    state: tuple[Array, ...], h: Array, weights: Array, slopes: Sequence[tuple[Array, ...]]
) -> tuple[Array, ...]:
    """Return state + h sum of weights times slopes."""
    result = []
    for i, x in enumerate(state):
        total = sum((w * slope[i] for w, slope in zip(weights, slopes, strict=False) if w), np.zeros_like(x))
        result.append(x + h.reshape(-1, *[1] * (x.ndim - 1)) * total)
    return tuple(result)


def _arrived(asked: Variation, q: Array, v: Array) -> float:
    """Return how far the motion ends from the samples, in tolerances of the run; refuse where that is too far."""
    run, m = asked.run, asked.mechanism
    settings = run.session.settings if run.session is not None else None
    rtol, atol = (settings.rtol, settings.atol) if settings is not None else (UNSAID_RTOL, UNSAID_RTOL)
    tolerance = atol + rtol * max(1.0, float(np.abs(run.v).max()))
    off = np.maximum(
        np.abs(np.asarray(m.difference(run.q[1:], q))).max(axis=1, initial=0.0), np.abs(v - run.v[1:]).max(axis=1)
    )
    k = int(np.argmax(off))
    error = float(off[k]) / tolerance
    if not error <= SAME_SAMPLE:
        raise UnsupportedError(
            f"the smooth motion from the sample at t = {run.t[k]:.9g} s misses the next one by {off[k]:.2g}, "
            f"{error:.1g} tolerances of the run ({run.method}): its steps were not those of the equations of motion; "
            'repeat it with method="dop853"'
        )
    return error
