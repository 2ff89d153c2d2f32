"""What a derivative is taken with respect to: tangent configurations, velocities, forces, numbers of the model."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import casadi as ca

from dalembert.errors import ModelError
from dalembert.kernel.program.columns import ColumnFunction
from dalembert.model.joints import KINDS, as_expression
from dalembert.model.mechanism.parametric import PARAMETER_KINDS, SymbolicMechanism, moving_body, split_name
from dalembert.names import near_matches
from dalembert.types import Scalar

if TYPE_CHECKING:
    from dalembert.model.mechanism.mechanism import Mechanism

INERTIA = "inertia:"
"""Before the name of a body: its ten inertial numbers, in the order of `INERTIAL_NUMBERS`."""


def tangent(mechanism: Mechanism, q: Sequence[Scalar]) -> ca.SX:
    """Return N(q), (nq, nv): the direction of integrate(q, eps e_i) at eps = 0 is its column i."""
    dv = ca.SX.sym("dv", mechanism.nv)
    units = [dv[i] for i in range(mechanism.nv)]
    rates: list[Scalar] = []
    for joint in mechanism.joints:
        rates += KINDS[joint.kind].rate(q[mechanism.index_q(joint.name)], units[mechanism.index_v(joint.name)])
    return ca.jacobian(as_expression(rates), dv) if rates else ca.SX(0, 0)


def parameters_of(mechanism: Mechanism) -> dict[str, ca.SX]:
    """Return the symbols of a mechanism's parameters by name; none where all its numbers are known."""
    if not isinstance(mechanism, SymbolicMechanism):
        return {}
    return dict(zip(mechanism.symbolic, mechanism.parameters.symbols, strict=True))


def open_parameters(mechanism: Mechanism, wrt: str | Sequence[str], *, inertias: bool = False) -> tuple[str, ...]:
    """Return the directions that are numbers of the model, and no symbols yet: "mass:load", "length:crank".

    Inertial numbers are among them on request: forces are linear in them, so that most derivatives need no symbols.
    """
    names = (wrt,) if isinstance(wrt, str) else tuple(wrt or ())
    kinds = [kind for kind in PARAMETER_KINDS if inertias or f"{kind}:" != INERTIA]
    numbers = [name for name in names if isinstance(name, str) and name.partition(":")[0] in kinds and ":" in name]
    return tuple(name for name in numbers if name not in parameters_of(mechanism))


def at_their_values(trace: Callable[..., Any], mechanism: Mechanism, names: tuple[str, ...], *options: Any) -> Any:
    """Return a function that was traced with symbols for these numbers, the numbers put back in."""
    if parameters_of(mechanism):
        raise ModelError(f"name {', '.join(map(repr, names))} in with_parameters(...), too")
    for name in names:
        kind, part = split_name(name)
        PARAMETER_KINDS[kind].value(mechanism, part)
    symbolic = SymbolicMechanism.of(mechanism, names)
    traced = trace(symbolic, *options)
    if isinstance(traced, ColumnFunction):
        return traced.at("parameters", ca.DM(symbolic.parameters.pack()))
    inputs = traced.sx_in()[:-1]
    outputs = traced.call([*inputs, ca.SX(ca.DM(symbolic.parameters.pack()))])
    return ca.Function(traced.name(), inputs, outputs, traced.name_in()[:-1], traced.name_out())


def checked_directions(mechanism: Mechanism, wrt: str | Sequence[str], states: Sequence[str]) -> tuple[str, ...]:
    """Return the names of directions: some of `states`, parameters, "inertia:" and a body; others are refused."""
    names = (wrt,) if isinstance(wrt, str) else tuple(wrt or ())
    for name in names:
        if isinstance(name, str) and name.startswith(INERTIA):
            moving_body(mechanism, name.removeprefix(INERTIA))
        elif name not in states and name not in parameters_of(mechanism):
            raise ModelError(
                f"wrt={name!r} is nothing to differentiate by; there is {', '.join(map(repr, states))}, "
                "'inertia:<body>', 'geometry:<frame>' and other parameters",
                near=near_matches(str(name), states),
            )
        if names.count(name) > 1:
            raise ModelError(f"wrt names {name!r} twice")
    if not names:
        raise ModelError(f"wrt names what to differentiate by: {', '.join(map(repr, states))}, 'inertia:<body>'")
    return names


def label(name: str) -> str:
    """Return a direction as the outputs of kernels name it: "inertia:arm 1" is "inertia_arm_1"."""
    return re.sub(r"\W+", "_", name)
