"""A Lagrangian system in its free coordinates, with what is known put in: forward, inverse or mixed dynamics.

Known coordinates are replaced by their functions of time, and as many controls become unknown.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import casadi as ca

from dalembert.errors import ModelError
from dalembert.simulate.equations.signals import Signals, split_known


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
    t = symbols.t if symbols.t.numel() else (ca.SX.sym("t") if time is None else time)
    controls = [str(s) for s in ca.vertsplit(symbols.u)] if symbols.u.numel() else []
    signals = Signals()
    given, driven, undriven = _assigned(system, controls, known, signals, t)
    free = tuple(i for i in range(len(system.coordinates)) if i not in given)
    q, v = (ca.vertcat(*[column[i] for i in free], ca.SX(0, 1)) for column in (symbols.q, symbols.v))
    a = ca.SX.sym("a", len(free))
    replaced = _replaced(symbols, given, driven)

    def put(expression: ca.SX) -> ca.SX:
        return ca.substitute(expression, *replaced) if replaced[0].numel() else expression

    mass, A, drift, bias = put(e.mass), put(e.jacobian), put(e.drift), put(e.bias)
    for i, (_, _, acceleration) in given.items():
        bias = bias + mass[:, i] * acceleration
        drift = drift + A[:, i] * acceleration if A.shape[0] else drift
    rows = {"phi": put(e.constraint), "psi": put(e.rate), "names": system.names, "holonomic": e.holonomic}
    matrices = {"mass": mass[:, list(free)], "jacobian": A[:, list(free)], "full_jacobian": A}
    forces = {"bias": bias, "drift": drift, "need": _need(system, put, given, free, a)}
    unknown = {"tau": symbols.u[undriven] if undriven else ca.SX(0, 1), "lam": ca.SX.sym("lam", A.shape[0])}
    return KnownMotion(
        system=system,
        free=free,
        q=q,
        v=v,
        a=a,
        time=t,
        signals=signals,
        given=given,
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
    given: dict[int, Any] = {
        i: tuple(signals.expressions(system.coordinates[i], x, 2, t)) for i, x in coordinates.items()
    }
    driven = {i: signals.expressions(controls[i], x, 0, t)[0] for i, x in acting.items()}
    undriven = [i for i in range(len(controls)) if i not in driven]
    if len(undriven) > len(given):
        # controls that nobody mentioned are zero: all of them in forward dynamics; where motion is prescribed, those
        # of other joints, or those that are not left open by name
        kept = _open_controls(system, controls, undriven, given, left_open)
        driven |= {i: ca.SX(0) for i in undriven if i not in kept}
        undriven = kept
    if len(undriven) != len(given):
        raise _unmatched(system, controls, undriven, given)
    return given, driven, undriven


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
    own = getattr(system, "own_controls", None)
    if own is None:
        raise _unmatched(system, controls, undriven, given)
    wanted = {own[system.coordinates[i]] for i in given}
    return [i for i in undriven if controls[i] in wanted]


def _unmatched(system: Any, controls: list[str], undriven: list[int], given: dict[int, Any]) -> ModelError:
    known = ", ".join(system.coordinates[i] for i in given) or "none"
    open_ = ", ".join(controls[i] for i in undriven) or "none"
    return ModelError(
        f"{len(given)} known coordinates ({known}) need as many unknown controls; unknown are {len(undriven)} "
        f"({open_}); "
        "name the other controls in known=, leave open those wanted with None, or know fewer coordinates"
    )
