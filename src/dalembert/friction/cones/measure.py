# pyright: reportCallIssue=false, reportArgumentType=false
"""Residual of the contact laws, in compiled code: measured against data, never against the answer.

Symbols as in `sweeps.py`; u contact accelerations of the acceleration that is returned; size (p,) what the data say
about them, |H| |a_free| + |drift| and the like; stiffness (p,) = diag G, so that size / stiffness is a reaction.

Every mode of a contact has a measure, relative to size (accelerations) or to the limit of friction and size / stiffness
(forces); a contact obeys its law where one of its modes does:

    open   r = 0, u_N >= 0 · stick   u = 0, |r_T| <= mu |r_N| · slip   u_N = 0, |r_T| = mu |r_N|, u_T along -r_T
    associated slip   the same with u_N = mu |u_T|
"""

from __future__ import annotations

import numpy as np

from dalembert.friction.cones.sweeps import ASSOCIATED, TINY
from dalembert.friction.contact_problem import FIXED, UNILATERAL
from dalembert.kernel.loops import compiled


@compiled
def tangential(a, b, bound, sliding, s, u, r, room, give):
    """Return the measures of a contact's tangents a .. b - 1: at rest, and in motion against the force.

    `room` is the size of tangential accelerations, `give` that of forces. In motion r_T is given, whatever u_T.
    """
    force, speed, off = 0.0, 0.0, 0.0
    for j in range(a, b):
        force, speed = np.hypot(force, r[j]), np.hypot(speed, u[j])
        off = max(off, abs(r[j] + bound * s[j]))
    if sliding:
        return off / give, off / give
    excess = max(force - bound, 0.0) / give
    turned = speed
    if force > 0.0:
        turned = 0.0
        for j in range(a, b):
            turned = np.hypot(turned, u[j] + speed * r[j] / force)
    turned = min(turned / room, bound / give)  # a force that data do not see has no direction
    return max(excess, speed / room), max(abs(force - bound) / give, turned)


@compiled
def violation(u, r, size, stiffness, first, mu, law, kind, sliding, s):
    """Return the largest violation of the laws over all contacts; NaN counts as infinite."""
    worst = 0.0
    for i in range(first.size - 1):
        a, b = first[i], first[i + 1]
        given = kind[i] == FIXED
        start = a if given else a + 1
        # sizes against which tangential motion and forces are measured; the law as sticking, and as slipping
        room, give, speed = TINY, TINY, 0.0
        for j in range(start, b):
            room, speed = max(room, size[j]), np.hypot(speed, u[j])
            give = max(give, size[j] / stiffness[j] if stiffness[j] > 0.0 else 0.0)
        bound = mu[i] * (1.0 if given else abs(r[a]))
        still, slipping = tangential(start, b, bound, sliding[i], s, u, r, room, give + bound)
        if b == start:
            still, slipping = 0.0, 0.0
        found = min(still, slipping)
        # with a normal: closed, where u_N = 0 (of the convex problem: mu |u_T|)
        if not given:
            scale = size[a] + TINY
            if law == ASSOCIATED and kind[i] == UNILATERAL and not sliding[i]:
                closed = min(max(still, abs(u[a]) / scale), max(slipping, abs(u[a] - mu[i] * speed) / (scale + room)))
                apart = max(0.0, mu[i] * speed - u[a]) / (scale + room)
            else:
                closed = max(found, abs(u[a]) / scale)
                apart = max(0.0, -u[a]) / scale
            found = closed
            # or open, where it does not push
            if kind[i] == UNILATERAL:
                push = 0.0
                for j in range(a, b):
                    if r[j] != 0.0:
                        push = max(push, abs(r[j]) * stiffness[j] / (size[j] + TINY) if stiffness[j] > 0.0 else np.inf)
                found = min(max(closed, max(0.0, -r[a]) * stiffness[a] / scale), max(apart, push))
        if not found < np.inf:
            return np.inf
        worst = max(worst, found)
    return worst


@compiled
def data_sizes(H, a, terms, explained):
    """Return the sizes of contact accelerations: terms of the free ones, and the part of |H| |a| that data explain."""
    size = np.empty(terms.size)
    for j in range(terms.size):
        total = 0.0
        for i in range(a.size):
            total += abs(H[j, i] * a[i])
        size[j] = terms[j] + explained * total
    return size
