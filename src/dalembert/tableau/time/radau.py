"""Codes and memory of the Radau stepper: the plan's factors for a real and a complex leading coefficient."""

from __future__ import annotations

from typing import Any, NamedTuple

import casadi as ca
import numpy as np

from dalembert.errors import UnsupportedError
from dalembert.tableau.time.compiled import Compiled, Work, bind, by_rows, kernel_of
from dalembert.tableau.time.complex_entries import Complex
from dalembert.tableau.time.factors import factor, solve

Array = np.ndarray

CODES = ("solve", "complex_factor", "complex_solve")


class RadauWork(NamedTuple):
    """What the stepper reads and writes beside `Work`."""

    calls: Array
    shift: Array  # real and imaginary part of the complex leading coefficient
    complex_factors: Array
    complex_quality: Array
    right: Array
    solution: Array
    complex_right: Array
    complex_solution: Array


class RadauCodes:
    """Compiled once per problem."""

    def __init__(self, compiled: Compiled) -> None:
        if not compiled.straight:
            raise UnsupportedError(
                f'method="radau" runs on straight-line code only, and {compiled.plan.operations} operations are too '
                'many for it; use method="bdf"'
            )
        dae, plan = compiled.dae, compiled.plan
        inputs = {"x": dae.x, "rates": dae.rates, "environment": dae.environment}
        entries = by_rows(dae.jacobian)
        _, kept = factor(plan, entries).stored()
        right = ca.SX.sym("right", dae.n)
        step = ca.vertcat(*solve(plan, kept, ca.vertsplit(right)))
        shift = ca.SX.sym("shift", 2)
        column = ca.vertcat(*entries)
        slope = ca.densify(ca.jacobian(column, dae.shift))
        real = ca.substitute(column, dae.shift, shift[0])
        pairs = [Complex(real[e], slope[e] * shift[1]) for e in range(len(entries))]
        complex_factors = factor(plan, pairs)
        values, complex_kept = complex_factors.stored()
        both = ca.SX.sym("complex_right", 2 * dae.n)
        found = solve(plan, complex_kept, [Complex(both[i], both[dae.n + i]) for i in range(dae.n)])
        self.stored = values.numel()
        self.kernels = {
            "solve": kernel_of("solve", {"factors": kept.symbols(), "right": right}, {"solution": step}),
            "complex_factor": kernel_of(
                "complex_factor",
                {**inputs, "shift": shift},
                {"complex_factors": values, "complex_quality": complex_factors.quality},
            ),
            "complex_solve": kernel_of(
                "complex_solve",
                {"complex_factors": complex_kept.symbols(), "complex_right": both},
                {"complex_solution": ca.vertcat(*[x.re for x in found], *[x.im for x in found])},
            ),
        }

    def work(self, work: Work) -> tuple[RadauWork, list[Any]]:
        """Return memory for one integration."""
        n = work.x.size
        sizes = [2, self.stored, 1, n, n, 2 * n, 2 * n]
        arrays = dict(zip(RadauWork._fields[1:], (np.zeros(size) for size in sizes), strict=True))
        shared = {"x": work.x, "rates": work.rates, "environment": work.environment, "factors": work.factors}
        calls = np.zeros((len(CODES), 3), np.int64)
        alive = []
        for row, code in enumerate(CODES):
            calls[row], kept = bind(self.kernels[code], shared | arrays)
            alive.append(kept)
        return RadauWork(calls, *arrays.values()), alive
