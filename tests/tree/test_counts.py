"""Operation counts against published ones: as good or better, by kind, for chains and for the Stanford arm."""

from __future__ import annotations

import numpy as np
import pytest

import dalembert as da
from dalembert.model import Placement
from dalembert.tree.algorithms.dynamics import aba
from dalembert.tree.algorithms.inverse import crba, rnea
from dalembert.tree.prepared.prepare import cheapest, kinds
from tests.tree.mechanisms import random_inertia, random_placement

ALGORITHMS = {
    "RNEA": lambda tree, posed, q, v, a: rnea(tree, posed, v, a),
    "CRBA": lambda tree, posed, q, v, a: crba(tree, posed),
    "ABA": lambda tree, posed, q, v, a: aba(tree, posed, v, a),
}
PUBLISHED = {
    "RNEA": lambda n: (93 * n - 108, 81 * n - 100),
    "CRBA": lambda n: (10 * n**2 + 22 * n - 32, 6 * n**2 + 37 * n - 43),
    "ABA": lambda n: (224 * n - 259, 205 * n - 248),
}
"""Featherstone 2008, table 10.1: products and sums of the best implementations for chains of n hinges."""


def chain(n: int) -> da.Mechanism:
    """Return hinges in any position with bodies of any inertia; gravity along the first axis."""
    rng = np.random.default_rng(n)
    builder = da.Builder("chain")
    for i in range(n):
        builder.body(f"b{i}", inertia=random_inertia(rng))
        place = random_placement(rng) if i else Placement()
        builder.joint(
            f"j{i}",
            "revolute",
            parent=f"b{i - 1}" if i else "world",
            child=f"b{i}",
            axis=(0, 0, 1),
            placement=place,
            limits=(-3, 3),
        )
    return builder.build()


def stanford() -> da.Mechanism:
    """Return the Stanford arm: five hinges and a slider; diagonal inertias, two links of revolution (Paul 1981)."""
    quarter = np.pi / 2
    twists, offsets = (-quarter, quarter, 0, -quarter, quarter, 0), (0.4, 0.1624, 0, 0, 0, 0.263)
    links = (
        (9.29, (0, 0.0175, -0.1105), (0.276, 0.255, 0.071)),
        (5.01, (0, -0.1054, 0), (0.108, 0.018, 0.1)),
        (4.25, (0, 0, -0.6447), (2.51, 2.51, 0.006)),
        (1.08, (0, 0.0092, -0.0054), (0.002, 0.001, 0.001)),
        (0.63, (0, 0, 0.0566), (0.003, 0.0004, 0.003)),
        (0.51, (0, 0, 0.1554), (0.013, 0.013, 0.0003)),
    )
    builder = da.Builder("Stanford arm")
    for i, ((mass, center, inertia), twist, offset) in enumerate(zip(links, twists, offsets, strict=True)):
        builder.body(f"b{i}", mass=mass, center=center, inertia=inertia)
        end = Placement.from_rpy((twist, 0, 0), (0, 0, offset))
        builder.joint(
            f"j{i}", "prismatic" if i == 2 else "revolute", parent=f"b{i - 1}" if i else "world", child=f"b{i}",
            axis=(0, 0, 1), child_placement=end.inverse(),
        )  # fmt: skip
    return builder.build(allow_unphysical=True)


def counts(mechanism: da.Mechanism, name: str) -> tuple[int, int]:
    found = kinds(*cheapest(mechanism, ALGORITHMS[name]))
    return found["mul"] + found["div"], found["add"] + found["sub"]


@pytest.mark.parametrize("name", list(ALGORITHMS))
@pytest.mark.parametrize("n", [3, 4, 6, 7, 9])
def test_chains(name, n):
    products, sums = counts(chain(n), name)
    published = PUBLISHED[name](n)
    assert products <= published[0]
    assert sums <= published[1]


@pytest.mark.parametrize("n", [4, 6, 7])
def test_formulas_of_the_page_on_trees(n):
    """RNEA 81 n - 111, 70 n - 100; CRBA 10 n^2 - 3 n - 24, 6 n^2 + 20 n - 53; ABA 193 n - 319 + n - 1, 181 n - 327."""
    assert counts(chain(n), "RNEA") == (81 * n - 111, 70 * n - 100)
    assert counts(chain(n), "CRBA") == (10 * n**2 - 3 * n - 24, 6 * n**2 + 20 * n - 53)
    assert counts(chain(n), "ABA") == (194 * n - 320, 181 * n - 327)


def test_the_stanford_arm():
    """Inverse dynamics of an arm with quarter turns and symmetric links, a general chain of six takes 695 in all."""
    assert counts(stanford(), "RNEA") == (132, 104)
