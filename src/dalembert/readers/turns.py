"""Whole turns of coupled joints, where another tool has kept only (cos, sin).

Symbols: q angle within (-pi, pi], n number of whole turns, f factor of a coupling  sum f (q + 2 pi n) = offset.

A coupling with one joint whose turns are open gives them: n is the whole number next to what closes the row. Where
several are open, those that others follow keep n = 0, and the rest follows. So couplings hold as well as any choice of
turns lets them, unless the leader itself had turned and its followers are slower than it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np

from dalembert.model.mechanism import Mechanism
from dalembert.model.parts import Coupling

Array = np.ndarray


def add_turns(mechanism: Mechanism, wound: Iterable[str], q: Array) -> None:
    """Add whole turns to the angles of `wound` joints in q (..., nq), in place."""
    unknown = set(wound)
    left = [coupling for coupling in mechanism.couplings if unknown & _joints(coupling)]
    while left:
        coupling = min(left, key=lambda each: len(unknown & _joints(each)))
        left.remove(coupling)
        names = [name for name, factor in coupling.terms if factor and name in unknown]
        if names:  # a follower is the first term of its coupling
            _close(mechanism, coupling, names[0], q)
        unknown -= _joints(coupling)


def _joints(coupling: Coupling) -> set[str]:
    return {name for name, factor in coupling.terms if factor}


def _close(mechanism: Mechanism, coupling: Coupling, name: str, q: Array) -> None:
    """Turn one joint so that a coupling's residual is as small as whole turns make it."""
    own = dict(coupling.terms)[name]
    total = sum(factor * q[..., mechanism.index_q(joint)] for joint, factor in coupling.terms if factor)
    turns = np.round((coupling.offset - total) / (own * 2 * math.pi))
    q[..., mechanism.index_q(name)] += 2 * math.pi * np.where(np.isfinite(turns), turns, 0.0)
