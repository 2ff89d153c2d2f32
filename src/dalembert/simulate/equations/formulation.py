"""One mechanical system as a DAE: what is known put in, and five ways to write it, by one keyword.

Symbols: q, v free coordinates and velocities, lam multipliers of all rows, mu multipliers of the holonomic rows'
position level; phi(q, t) = 0 holonomic rows, psi = A v + dphi/dt = 0 (and velocity-level rows as they stand), A a +
drift = 0.

| keyword | equations beside M v' + bias + A^T lam = 0 |
|---|---|
| `index3` | q' = v, phi = 0 |
| `index2` | q' = v, psi = 0 |
| `index1` | q' = v, A v' + drift = 0 |
| `stabilised` | q' = v - A_h^T mu, phi = 0, psi = 0 |
| `projection` | as `index1`, with q and v put back on phi = 0, psi = 0 after every step, in the mass metric |

The stabilised form: C. W. Gear, B. Leimkuhler, G. K. Gupta, J. Comp. Appl. Math. 12 (1985) 77;
its mu is zero but for errors.

Errors of unknowns of index 2 are weighed by h, of index 3 by h^2 (Hairer & Wanner II, sec. VII.7; P. Loetstedt,
L. Petzold, Math. Comp. 46 (1986) 491): with this, and static pivots, which no scaling of rows or columns by h changes,
index 3 is solvable at small steps.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import casadi as ca
import numpy as np

from dalembert.errors import ModelError, UnsupportedError
from dalembert.model.lagrangian.derivation import of_accelerations
from dalembert.simulate.equations.dae import DAE, Projection
from dalembert.simulate.equations.signals import Signals, split_known
from dalembert.types import Array

FORMULATIONS = ("stabilised", "index3", "index2", "index1", "projection")
"""Every formulation, the default first."""


def formulate(m: KnownMotion, formulation: str = "stabilised", chosen: list[int] | None = None) -> DAE:
    """Return the DAE of a motion in one formulation.

    Of redundant rows only those `chosen` are constraints (default: all). The others exert no force, lam = 0, so the
    unknowns are the same whichever rows are chosen.
    """
    if not isinstance(formulation, str) or formulation not in FORMULATIONS:
        raise ModelError(f"formulation={formulation!r} is not one of {', '.join(map(repr, FORMULATIONS))}")
    rows = m.holonomic_rows
    chosen = list(range(m.lam.numel())) if chosen is None else chosen
    stabilised = formulation == "stabilised" and bool(rows)
    mu = ca.SX.sym("mu", len(rows) if stabilised else 0)
    rates = [ca.SX.sym(f"{s}'") for s in ca.vertsplit(ca.vertcat(m.q, m.v, m.tau, m.lam, mu))]
    nf = len(m.free)
    q_rate, v_rate = ca.vertcat(*rates[:nf], ca.SX(0, 1)), ca.vertcat(*rates[nf : 2 * nf], ca.SX(0, 1))
    kinematics = q_rate - m.v
    if stabilised:
        places = [k for k, i in enumerate(rows) if i in set(chosen)]
        kinematics = kinematics + m.jacobian[[rows[k] for k in places], :].T @ mu[places]
    # A^T lam in all n rows: the constraint force on a known coordinate is balanced by its control
    dynamics = m.forces(v_rate)
    if chosen:
        dynamics = dynamics + m.full_jacobian[chosen, :].T @ m.lam[chosen]
    blocks, relaxed = _constraints(m, formulation, stabilised, v_rate)
    residual = ca.vertcat(kinematics, dynamics, *blocks)
    unknowns, equations = _names(m, stabilised, formulation)
    x = ca.vertcat(m.q, m.v, m.tau, m.lam, mu)
    if len(chosen) < m.lam.numel():
        residual, equations, relaxed = _leave_out(m, set(chosen), stabilised, x, residual, equations, relaxed)
    tested, power = _kinds(m, formulation, mu.numel())
    system = m.system
    return DAE(
        x=x,
        rates=ca.vertcat(*rates, ca.SX(0, 1)),
        residual=ca.densify(residual),
        time=m.time,
        unknowns=unknowns,
        equations=equations,
        tested=tested,
        power=power,
        signals=m.signals.column,
        parameters=system.symbols.parameters.column,
        relaxed=relaxed,
        projection=_projection(m, chosen) if formulation == "projection" and m.lam.numel() else None,
    )


def refuse_formulation(formulation: str) -> None:
    """Refuse another formulation than the default for equations that are already written down."""
    if formulation != FORMULATIONS[0]:
        raise ModelError(
            f"formulation={formulation!r}: a Tableau or a DAE is integrated as it is written; formulations are for a "
            "Lagrangian or a Mechanism"
        )


def _constraints(m: KnownMotion, formulation: str, stabilised: bool, v_rate: ca.SX) -> tuple[list[ca.SX], tuple]:
    """Return the constraint equations, and where and how J may be relaxed: (row, column, power of c)."""
    nf, n, rows = len(m.free), m.bias.numel(), m.holonomic_rows
    first_row, first_lam = nf + n, 2 * nf + m.tau.numel()
    count = m.lam.numel()
    if not count:
        return [], ()
    pairs = [(first_row + i, first_lam + i) for i in range(count)]
    if formulation in ("index1", "projection"):
        return [m.jacobian @ v_rate + m.drift], tuple((i, j, 0) for i, j in pairs)
    if formulation == "index3":
        place = {row: k for k, row in enumerate(rows)}
        mixed = [m.phi[place[i]] if i in place else m.psi[i] for i in range(count)]
        return [ca.vertcat(*mixed)], tuple((i, j, 2 if k in place else 1) for k, (i, j) in enumerate(pairs))
    relaxed = [(i, j, 1) for i, j in pairs]
    if not stabilised:
        return [m.psi], tuple(relaxed)
    relaxed += [(first_row + count + k, first_lam + count + k, 1) for k in range(len(rows))]
    return [m.psi, m.phi], tuple(relaxed)


def _leave_out(
    m: KnownMotion, chosen: set[int], stabilised: bool, x: ca.SX, residual: ca.SX, equations: tuple, relaxed: tuple
) -> tuple[ca.SX, tuple[str, ...], tuple]:
    """Replace the equations of rows that are not chosen by lam = 0 (and mu = 0)."""
    count, rows = m.lam.numel(), m.holonomic_rows
    first_row, first_lam = len(m.free) + m.bias.numel(), 2 * len(m.free) + m.tau.numel()
    out = [i for i in range(count) if i not in chosen]
    if stabilised:
        out += [count + k for k, i in enumerate(rows) if i not in chosen]
    residual, names = ca.SX(residual), list(equations)
    for k in out:
        residual[first_row + k] = x[first_lam + k]
        names[first_row + k] = f"no force of {names[first_row + k]}, which depends on others"
    gone = {first_row + k for k in out}
    return residual, tuple(names), tuple(entry for entry in relaxed if entry[0] not in gone)


def _names(m: KnownMotion, stabilised: bool, formulation: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return names of unknowns and equations."""
    names = [m.system.coordinates[i] for i in m.free]
    rows = [m.names[i] for i in m.holonomic_rows]
    unknowns = [*names, *(f"{x}'" for x in names), *m.free_controls, *(f"lam[{x}]" for x in m.names)]
    level = {"index3": "", "index2": "rate of ", "stabilised": "rate of "}.get(formulation, "acceleration of ")
    equations = [*(f"{x}' = v" for x in names), *(f"motion of {x}" for x in m.system.coordinates)]
    equations += [f"{level}{x}" for x in m.names]
    if stabilised:
        unknowns += [f"mu[{x}]" for x in rows]
        equations += rows
    return tuple(unknowns), tuple(equations)


def _kinds(m: KnownMotion, formulation: str, mu: int) -> tuple[Array, Array]:
    """Return which unknowns are tested, and the powers of h that weigh them."""
    nf, others = len(m.free), m.tau.numel() + m.lam.numel() + mu
    speed, force = (1, 2) if formulation == "index3" else (0, 1)
    tested = np.array([True] * (2 * nf) + [False] * others)
    return tested, np.array([0] * nf + [speed] * nf + [force] * others, np.int64)


def _projection(m: KnownMotion, chosen: list[int]) -> Projection:
    """Return the matrix and right sides of the least change in the mass metric; rows not chosen move nothing."""
    count, nf = m.lam.numel(), len(m.free)
    place = {row: k for k, row in enumerate(m.holonomic_rows)}
    K, right, rates = ca.SX(nf + count, nf + count), ca.SX(nf + count, 1), ca.SX(nf + count, 1)
    K[:nf, :nf] = m.mass[list(m.free), :]
    for i in range(count):
        if i not in chosen:
            K[nf + i, nf + i] = 1
            continue
        K[nf + i, :nf] = m.jacobian[i, :]
        K[:nf, nf + i] = m.jacobian[i, :].T
        right[nf + i] = -m.phi[place[i]] if i in place else 0
        rates[nf + i] = -m.psi[i]
    return Projection(ca.sparsify(K), ca.densify(right), ca.densify(rates), nf)


# ----------------------------------------------------------------------------------------------------------------------
# A Lagrangian system in its free coordinates, with what is known put in: forward, inverse or mixed dynamics.
#
# Known coordinates are replaced by their functions of time, and as many controls become unknown.


@dataclass(frozen=True, eq=False)
class KnownMotion:
    """A system's equations in free coordinates, with what is known put in.

    Attributes
    ----------
    free
        Places of the free coordinates among all.
    q, v, a, tau, lam
        Symbols: free coordinates, velocities, accelerations, unknown controls, multipliers.
    mass, bias, phi, psi, jacobian, drift
        Expressions; `mass` (n, nf) times a, with `bias` (n,) containing what known accelerations cause.
    given
        Expressions (value, rate, acceleration) of the known coordinates by place.
    replaced
        Symbols of what is known, and the expressions in their place.
    need
        (n,), of `a`: the same as mass a + bias, written shorter, where the system has it.
    """

    system: Any
    free: tuple[int, ...]
    q: ca.SX
    v: ca.SX
    a: ca.SX
    tau: ca.SX
    lam: ca.SX
    mass: ca.SX
    bias: ca.SX
    phi: ca.SX
    psi: ca.SX
    jacobian: ca.SX
    full_jacobian: ca.SX
    drift: ca.SX
    time: ca.SX
    signals: Signals
    given: dict[int, tuple[ca.SX, ca.SX, ca.SX]]
    driven: dict[int, ca.SX]
    names: tuple[str, ...]
    holonomic: tuple[bool, ...]
    free_controls: tuple[str, ...]
    replaced: tuple[ca.SX, ca.SX]
    need: Any = None

    def forces(self, a: ca.SX) -> ca.SX:
        """Return mass a + bias."""
        return self.mass @ a + self.bias if self.need is None else ca.substitute(self.need, self.a, a)

    @property
    def holonomic_rows(self) -> list[int]:
        """Rows that constrain positions."""
        return [i for i, kind in enumerate(self.holonomic) if kind]


def motion(system: Any, known: Any = None, time: ca.SX | None = None) -> KnownMotion:
    """Put what is known into a Lagrangian system; refuse a number of unknowns that does not fit, by name."""
    e, symbols = system.expressions, system.symbols
    turning = [name for name, flag in zip(system.names, of_accelerations(e, symbols.v), strict=True) if flag]
    if turning:
        raise UnsupportedError(
            f"the implicit form does not take {turning[0]!r}, which constrains accelerations (nonlinear in velocities, "
            'or known at no other level); da.simulate(..., method="dop853") does'
        )
    t = symbols.t if symbols.t.numel() else (ca.SX.sym("t") if time is None else time)
    controls = [str(s) for s in ca.vertsplit(symbols.u)] if symbols.u.numel() else []
    signals = Signals()
    prescribed, driven, undriven = _assigned(system, controls, known, signals, t)
    free = tuple(i for i in range(len(system.coordinates)) if i not in prescribed)
    q, v = (ca.vertcat(*[column[i] for i in free], ca.SX(0, 1)) for column in (symbols.q, symbols.v))
    a = ca.SX.sym("a", len(free))
    replaced = _replaced(symbols, prescribed, driven)

    def put(expression: ca.SX) -> ca.SX:
        return ca.substitute(expression, *replaced) if replaced[0].numel() else expression

    mass, A, drift, bias = put(e.mass), put(e.jacobian), put(e.drift), put(e.bias)
    for i, (_, _, acceleration) in prescribed.items():
        bias = bias + mass[:, i] * acceleration
        drift = drift + A[:, i] * acceleration if A.shape[0] else drift
    rows = {"phi": put(e.constraint), "psi": put(e.rate), "names": system.names, "holonomic": e.holonomic}
    matrices = {"mass": mass[:, list(free)], "jacobian": A[:, list(free)], "full_jacobian": A}
    forces = {"bias": bias, "drift": drift, "need": _need(system, put, prescribed, free, a)}
    unknown = {"tau": symbols.u[undriven] if undriven else ca.SX(0, 1), "lam": ca.SX.sym("lam", A.shape[0])}
    return KnownMotion(
        system=system,
        free=free,
        q=q,
        v=v,
        a=a,
        time=t,
        signals=signals,
        given=prescribed,
        driven=driven,
        free_controls=tuple(controls[i] for i in undriven),
        replaced=replaced,
        **rows,
        **matrices,
        **forces,
        **unknown,
    )


def _assigned(
    system: Any, controls: list[str], known: Any, signals: Signals, t: ca.SX
) -> tuple[dict[int, Any], dict[int, ca.SX], list[int]]:
    """Return known coordinates and controls as expressions, by place, and the places of unknown controls."""
    coordinates, acting, left_open = split_known(known, system.coordinates, controls)
    prescribed: dict[int, Any] = {
        i: tuple(signals.expressions(system.coordinates[i], x, 2, t)) for i, x in coordinates.items()
    }
    driven = {i: signals.expressions(controls[i], x, 0, t)[0] for i, x in acting.items()}
    undriven = [i for i in range(len(controls)) if i not in driven]
    if len(undriven) > len(prescribed):
        # controls that nobody mentioned are zero: all of them in forward dynamics; where motion is prescribed, those
        # of other joints, or those that are not left open by name
        open_controls = _open_controls(system, controls, undriven, prescribed, left_open)
        driven |= {i: ca.SX(0) for i in undriven if i not in open_controls}
        undriven = open_controls
    if len(undriven) != len(prescribed):
        raise _unmatched(system, controls, undriven, prescribed)
    return prescribed, driven, undriven


def _replaced(symbols: Any, given: dict[int, Any], driven: dict[int, ca.SX]) -> tuple[ca.SX, ca.SX]:
    """Return the symbols of what is known, and the expressions in their place."""
    old = [symbols.q[i] for i in given] + [symbols.v[i] for i in given] + [symbols.u[i] for i in driven]
    new = [x[0] for x in given.values()] + [x[1] for x in given.values()] + list(driven.values())
    return ca.vertcat(*old, ca.SX(0, 1)), ca.densify(ca.vertcat(*new, ca.SX(0, 1)))


def _need(system: Any, put: Any, given: dict[int, Any], free: tuple[int, ...], a: ca.SX) -> ca.SX | None:
    """Return the forces of all accelerations, known ones put in, of a system that has them as one expression."""
    if getattr(system, "need", None) is None:
        return None
    place = {i: k for k, i in enumerate(free)}
    full = [given[i][2] if i in given else a[place[i]] for i in range(len(system.coordinates))]
    return ca.substitute(put(system.need), system.a, ca.densify(ca.vertcat(*full)))


def _open_controls(
    system: Any, controls: list[str], undriven: list[int], given: dict[int, Any], left_open: list[int]
) -> list[int]:
    """Return the controls that stay unknown: those named so, or those of the joints whose motion is known."""
    if left_open or not given:
        return [i for i in undriven if i in left_open]
    controls_by_coordinate = getattr(system, "own_controls", None)
    if controls_by_coordinate is None:
        raise _unmatched(system, controls, undriven, given)
    candidates = {controls_by_coordinate[system.coordinates[i]] for i in given}
    return [i for i in undriven if controls[i] in candidates]


def _unmatched(system: Any, controls: list[str], undriven: list[int], given: dict[int, Any]) -> ModelError:
    names = ", ".join(system.coordinates[i] for i in given) or "none"
    open_ = ", ".join(controls[i] for i in undriven) or "none"
    return ModelError(
        f"{len(given)} known coordinates ({names}) need as many unknown controls; unknown are {len(undriven)} "
        f"({open_}); "
        "name the other controls in known=, leave open those wanted with None, or know fewer coordinates"
    )
