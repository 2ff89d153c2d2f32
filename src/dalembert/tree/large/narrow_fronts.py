"""Rows of a narrow front carried inward along a run of hinges: what `pass_joint` does there, in registers.

Symbols as in `front_loops.py`: a row's force F_l (6,), Phi_l = z . its moment, d = 1 / D, r from the parent's origin:

    F_l -= U d Phi_l, then about the parent's origin        L += Phi d Phi^T

The forces of the rows do not know of each other: four of them are six registers, eight are twelve. L is a sum over the
run that nobody asks for before its end: it is formed a block of bodies at a time, eight registers being its rows.
"""

from __future__ import annotations

from dalembert.kernel.loops import loop
from dalembert.tree.large.fronts import FEW
from dalembert.tree.large.lanes import WIDTH, load, store
from dalembert.tree.large.outward import LOOP

BLOCK = 64
"""Bodies of a run that are passed at a time."""

REALS = 2 * FEW
"""Reals of a body in a block: Phi, then d Phi."""


@loop(**LOOP)
def carry(outermost, innermost, w, K, Y, kept, phi, at_phi, L, F, block):
    """Pass the hinges from `outermost` in to `innermost`: phi gets their Phi, L (8, 8) and F (7, 8) go on."""
    a0, a1, a2, a3, a4, a5 = load(F, 0), load(F, 8), load(F, 16), load(F, 24), load(F, 32), load(F, 40)
    b0, b1, b2, b3, b4, b5 = load(F, 4), load(F, 12), load(F, 20), load(F, 28), load(F, 36), load(F, 44)
    g, h, at = load(F, 48), load(F, 52), 0
    for i in range(outermost, innermost - 1, -1):
        y, z0, z1, z2, r0, r1, r2 = kept[i], K[i, 6], K[i, 7], K[i, 8], K[i, 9], K[i, 10], K[i, 11]
        U0, U1, U2, U3, U4, U5, d = Y[y], Y[y + 1], Y[y + 2], Y[y + 3], Y[y + 4], Y[y + 5], Y[y + 6]
        p, s = z0 * a3 + z1 * a4 + z2 * a5, z0 * b3 + z1 * b4 + z2 * b5
        u, v = d * p, d * s
        store(phi, at_phi[i], p)
        store(phi, at_phi[i] + WIDTH, s)
        store(block, at, p)
        store(block, at + WIDTH, s)
        store(block, at + FEW, u)
        store(block, at + FEW + WIDTH, v)
        g, h, at = g + p * u, h + s * v, at + REALS
        a0, a1, a2 = a0 - U0 * u, a1 - U1 * u, a2 - U2 * u
        b0, b1, b2 = b0 - U0 * v, b1 - U1 * v, b2 - U2 * v
        a3, a4, a5 = (
            a3 - U3 * u + r1 * a2 - r2 * a1, a4 - U4 * u + r2 * a0 - r0 * a2, a5 - U5 * u + r0 * a1 - r1 * a0
        )  # fmt: skip
        b3, b4, b5 = (
            b3 - U3 * v + r1 * b2 - r2 * b1, b4 - U4 * v + r2 * b0 - r0 * b2, b5 - U5 * v + r0 * b1 - r1 * b0
        )  # fmt: skip
    for k, (a, b) in enumerate(((a0, b0), (a1, b1), (a2, b2), (a3, b3), (a4, b4), (a5, b5), (g, h))):
        store(F, FEW * k, a)
        store(F, FEW * k + WIDTH, b)
    add_products(outermost - innermost + 1, w, block, L)


@loop(**LOOP)
def add_products(count, w, block, L):
    """Add Phi d Phi^T of a block of bodies to L (8, 8); rows that are not open have Phi = 0."""
    for half in range(0, w, WIDTH):
        c0, c1, c2, c3 = load(L, half), load(L, half + 8), load(L, half + 16), load(L, half + 24)
        c4, c5, c6, c7 = load(L, half + 32), load(L, half + 40), load(L, half + 48), load(L, half + 56)
        for at in range(0, REALS * count, REALS):
            x = load(block, at + FEW + half)
            c0, c1, c2, c3 = (
                c0 + block[at] * x, c1 + block[at + 1] * x, c2 + block[at + 2] * x, c3 + block[at + 3] * x
            )  # fmt: skip
            c4, c5, c6, c7 = (
                c4 + block[at + 4] * x, c5 + block[at + 5] * x, c6 + block[at + 6] * x, c7 + block[at + 7] * x
            )  # fmt: skip
        for a, c in enumerate((c0, c1, c2, c3, c4, c5, c6, c7)):
            store(L, half + FEW * a, c)
