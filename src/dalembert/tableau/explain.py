"""A plan in words: order, fill, operations."""

from __future__ import annotations

import numpy as np

from dalembert.tableau.plan import Plan

SHOWN = 40
"""Pivots listed; of a longer plan the first ones."""


def explain(plan: Plan) -> str:
    """Return a table of the pivots in solving order, with totals."""
    p, sizes = plan.pattern, np.diff(plan.begins)
    singles = int(np.count_nonzero(sizes == 1))
    held = len(plan.lower) + len(plan.upper) + plan.n
    lines = [
        f"{plan.n} equations, {p.entries} entries ({100 * p.entries / max(plan.n, 1) ** 2:.2g} %)",
        f"{len(sizes)} blocks: {singles} of one equation, the largest of {int(sizes.max(initial=0))}",
        f"L and U hold {held} entries, {plan.fill} of them fill; {plan.operations} operations a solve "
        f"(dense: {2 * plan.n**3 // 3 + 2 * plan.n**2})",
        "solving order (equation -> unknown it gives):",
    ]
    block = np.repeat(np.arange(len(sizes)), sizes)
    for k in range(min(plan.n, SHOWN)):
        name = f"{p.equations[plan.rows[k]]} -> {p.unknowns[plan.cols[k]]}"
        inside = f"   (block {block[k]}, {sizes[block[k]]} equations)" if sizes[block[k]] > 1 else ""
        lines.append(f"  {k:4d}  {name}{inside}")
    if plan.n > SHOWN:
        lines.append(f"  ... {plan.n - SHOWN} more")
    return "\n".join(lines)
