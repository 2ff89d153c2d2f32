"""Operations of every route to the block matrix of a mechanism, against the bounds of seed 002.

    python benchmarks/routes.py [--json FILE] [--plot FILE] [--quick]

Symbols: n velocities, m rows, d velocities between a contact and the ground. Everything is counted, nothing is timed:
the operations of the straight-line code that solves M x1 + A^T x2 = y1, A x1 = y2 (request "kkt"), or that makes the
Delassus matrix (request "delassus"; of it the factor of the tree is taken off). Exponents are slopes in log-log axes
between the last two sizes; the bounds are upper ones, so a smaller exponent is no contradiction. Counts of the Delassus
part are parabolas in m, whose leading term shows late: they are printed as well.

    n      a chain of n hinges, welded at its end: m = 6
    m      a chain of 16 hinges, held at m / 3 points of its last link; the Delassus part
    along  a chain of 96 hinges, held at m / 3 points along it; the Delassus part
    d      limbs of d hinges, one of them held at its end by 12 rows; the Delassus part
    legs   limbs of three hinges on a flying body, each held at its end: n = 6 + m
    loops  rungs on a flying chain: each loop is two limbs of three hinges and a point where they meet
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from math import log
from pathlib import Path
from typing import Any

import numpy as np

import dalembert as da
from dalembert.kkt.expressions.probing import probe
from dalembert.tree.algorithms.dynamics import articulated_factor
from dalembert.tree.block import constrained
from dalembert.tree.prepared.prepare import prepare
from dalembert.tree.routes.delassus_kernels import matrix_by
from dalembert.tree.routes.route_report import cost_of
from dalembert.tree.routes.route_table import ROUTES
from dalembert.tree.routes.tree_rows import TreeRows
from loop_embedding import embedding_operations
from route_models import bundle, chain, ladder, legs, points, star

sys.path.insert(0, str(Path(__file__).parents[1]))
from tests import reference as plain

CLAIMS = {
    "n": {"aba": 1, "efpa": 1, "pv": 1, "caba": 1},
    "m": {"aba": 2, "efpa": 2, "pv": 2},
    "along": {"aba": 2, "efpa": 2, "pv": 2},
    "d": {"aba": 1, "efpa": 1, "pv": 1},
    "legs": {"caba": 1},
    "loops": {"caba": 1},
}
"""Exponents that must not be exceeded; in n they must be met."""

SLACK = 0.03


def setting_of(mechanism: da.Mechanism) -> constrained.Tracing:
    """Return what routes start from; ranks are looked at by the plain twins, which do not unroll."""
    found = []
    for q in mechanism.random(np.random.default_rng(0), 3):
        state, rows = plain.State.at(mechanism, q), plain.RowForces.at(mechanism, q)
        found.append((plain.crba(state), rows.matrix(state)))
    needs = probe(np.array([M for M, _ in found]), np.array([A for _, A in found]), mechanism.row_groups)
    return constrained.Tracing(mechanism, prepare(mechanism), needs)


def solves(setting: constrained.Tracing, route: str) -> int:
    """Return the operations of a solve."""
    return cost_of(constrained.block_solution_by(setting, ROUTES[route])).operations


def delassus(setting: constrained.Tracing, route: str) -> int:
    """Return the operations of the Delassus matrix beyond the factor of the tree."""
    held = {i for row in TreeRows.of(setting).forces for link in row.links for i in setting.tree.ancestors(link)}
    passed = {setting.tree.links[i].v for i in held}
    pivots = articulated_factor(setting.tree, setting.posed).pivots
    alone = setting.function("factor", ("q",), {"D": [pivots[k] for k in sorted(passed)]})
    return cost_of(matrix_by(setting, ROUTES[route])).operations - cost_of(alone).operations


Count = Callable[[constrained.Tracing, str], int]
CASES: dict[str, tuple[Callable[[int], da.Mechanism], Count, tuple[int, ...], dict[str, int]]] = {
    "n": (chain, solves, (25, 50, 100, 200, 400), {"aba": 200, "efpa": 200, "pv": 200, "caba": 400, "matrix": 50}),
    "m": (bundle, delassus, (24, 48, 96, 192), {"aba": 96, "efpa": 192, "pv": 192}),
    "along": (points, delassus, (12, 24, 48, 96), {"aba": 48, "efpa": 96, "pv": 96}),
    "d": (star, delassus, (12, 24, 48, 96), {"aba": 96, "efpa": 96, "pv": 96}),
    "legs": (legs, solves, (2, 4, 8, 16), {"efpa": 16, "pv": 16, "caba": 16, "matrix": 16}),
    "loops": (ladder, solves, (2, 4, 8, 16), {"efpa": 16, "pv": 16, "caba": 16, "matrix": 16}),
}
"""Per case: mechanism of a size, what is counted, sizes, and the largest size of each route."""


def measured(quick: bool) -> dict[str, Any]:
    """Return operations per case and route."""
    found: dict[str, Any] = {}
    for case, (make, count, sizes, largest) in CASES.items():
        sizes = sizes[:-1] if quick else sizes
        made = {size: setting_of(make(size)) for size in sizes}
        found[case] = {
            route: {size: count(made[size], route) for size in sizes if size <= top} for route, top in largest.items()
        }
        show({case: found[case]})
    return found


def exponent(figures: dict[int, int]) -> float:
    """Return the slope between the last two sizes."""
    (x0, y0), (x1, y1) = list(figures.items())[-2:]
    return log(y1 / y0) / log(x1 / x0)


def quadratic(figures: dict[int, int]) -> str:
    """Return the parabola through the first three sizes, and how far it is off at the last.

    The slope at some m is below the exponent as long as the linear part counts; counts are polynomials in m, so that
    three of them tell the fourth.
    """
    sizes, counts = np.array(list(figures), float), np.array(list(figures.values()), float)
    a, b, c = np.polyfit(sizes[:3], counts[:3], 2)
    text = f"{a:.4g} m^2 + {b:.4g} m + {c:.4g}"
    return text if len(sizes) < 4 else f"{text}, off by {a * sizes[-1] ** 2 + b * sizes[-1] + c - counts[-1]:.3g}"


def show(found: dict[str, Any]) -> None:
    """Print tables; where an exponent of two is claimed, the parabola."""
    for case, routes in found.items():
        sizes = sorted({size for figures in routes.values() for size in figures})
        print(f"\n{case:<8}" + "".join(f"{size:>12}" for size in sizes) + f"{'exponent':>12}{'claimed':>10}")
        for route, figures in routes.items():
            cells = "".join(f"{figures[size]:>12,}" if size in figures else f"{'':>12}" for size in sizes)
            print(f"{route:<8}{cells}{exponent(figures):>12.3f}{CLAIMS[case].get(route, ''):>10}", flush=True)
        for route in (route for route, claim in CLAIMS[case].items() if claim == 2 and len(routes[route]) >= 3):
            print(f"{'':8}{route}: {quadratic(routes[route])}", flush=True)


def show_loops() -> dict[str, Any]:
    """Print elimination beside constraint embedding, for one loop of two limbs on a body."""
    print(f"\n{'loop of 2 x k hinges, a point':<32}{'elimination':>12}{'embedding':>12}{'ratio':>8}")
    found = {}
    for k in (2, 3, 4, 6, 8):
        found[k] = embedding_operations(k)
        print(f"k = {k:<28}{found[k][0]:>12,}{found[k][1]:>12,}{found[k][1] / found[k][0]:>8.2f}")
    return found


def plot(found: dict[str, Any], file: str) -> None:
    """Draw operations over size, one picture per case."""
    import matplotlib.pyplot as plt
    from matplotlib.ticker import LogLocator, StrMethodFormatter

    plt.rcParams["svg.fonttype"] = "none"
    labels = {
        "n": ("velocities n (chain, m = 6)", "solve"),
        "m": ("rows m (on one link)", "Delassus part"),
        "along": ("rows m (along 96 hinges)", "Delassus part"),
        "d": ("depth d (m = 12)", "Delassus part"),
        "legs": ("legs (n = 6 + m, m = 3 legs)", "solve"),
        "loops": ("loops (n = 5 + 7 loops)", "solve"),
    }
    figure, axes = plt.subplots(2, 3, figsize=(13, 7.2), layout="constrained")
    colours = {"aba": "C0", "efpa": "C1", "pv": "C2", "caba": "C3", "matrix": "C7"}
    marks = {"aba": "s", "efpa": "o", "pv": "^", "caba": "D", "matrix": "x"}
    for ax, (case, routes) in zip(axes.flat, found.items(), strict=True):
        for route, figures in routes.items():
            text = f"{route}: {exponent(figures):.2f}"
            ax.loglog(list(figures), list(figures.values()), marks[route] + "-", color=colours[route], ms=4, label=text)
        ax.set_xlabel(labels[case][0])
        ax.set_title(labels[case][1], fontsize=10)
        ax.minorticks_off()
        sizes = sorted({size for figures in routes.values() for size in figures})
        ax.set_xticks(sizes, [str(size) for size in sizes])
        ax.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        ax.yaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
        ax.grid(True, which="major", lw=0.4)
        ax.legend(fontsize=8, title="route: last slope", title_fontsize=8)
    for ax in axes[:, 0]:
        ax.set_ylabel("operations")
    figure.savefig(file)


def main() -> None:
    """Run all."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", metavar="FILE")
    parser.add_argument("--plot", metavar="FILE")
    parser.add_argument("--quick", action="store_true", help="smaller sizes")
    options = parser.parse_args()
    found = measured(options.quick)
    loops = show_loops()
    holds = all(
        exponent(found[case][route]) <= claim + SLACK and (case != "n" or exponent(found[case][route]) >= claim - SLACK)
        for case, claims in CLAIMS.items()
        for route, claim in claims.items()
    )
    print("\nevery claimed exponent holds" if holds else "\nan exponent is larger than claimed")
    if options.plot:
        plot(found, options.plot)
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump({"operations": found, "loops": loops}, file, indent=1)


if __name__ == "__main__":
    main()
