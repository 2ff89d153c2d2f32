"""What a derivative is taken with respect to: tangent configurations, velocities, forces, inertial numbers."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

import casadi as ca

from dalembert.errors import ModelError
from dalembert.model.joints import KINDS, as_expression
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


def checked_directions(mechanism: Mechanism, wrt: str | Sequence[str], states: Sequence[str]) -> tuple[str, ...]:
    """Return the names of directions: some of `states`, or "inertia:" and a body; others are refused."""
    names = (wrt,) if isinstance(wrt, str) else tuple(wrt)
    for name in names:
        if isinstance(name, str) and name.startswith(INERTIA):
            mechanism.body(name.removeprefix(INERTIA))
        elif name not in states:
            raise ModelError(
                f"wrt={name!r} is nothing to differentiate by; there is {', '.join(map(repr, states))} and "
                "'inertia:<body>'",
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
