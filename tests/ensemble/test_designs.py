"""Points of runs depend on seed and index alone, and have the distributions that were asked for."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

import dalembert as da
from dalembert.ensemble.designs import DESIGNS, Design
from dalembert.ensemble.distributions import variable, variable_of

VARIABLES = {"q": da.normal([1.0, 2.0], covariance=[[0.04, 0.01], [0.01, 0.09]]), "k": da.uniform(2.0, 6.0)}


@pytest.mark.parametrize("kind", DESIGNS)
def test_points_do_not_depend_on_blocks(kind):
    design = Design.of(kind, 11, 40, VARIABLES)
    whole = design.draw(0, 40)
    for size in (1, 7, 16):
        parts = [design.draw(k, min(k + size, 40)) for k in range(0, 40, size)]
        for name, rows in whole.items():
            assert np.concatenate([part[name] for part in parts]).tobytes() == rows.tobytes()
    again, other = (Design.of(kind, seed, 40, VARIABLES).draw(0, 40)["k"] for seed in (11, 12))
    assert np.array_equal(again, whole["k"])
    assert not np.array_equal(other, whole["k"])


@pytest.mark.parametrize("kind", ["random", "sobol", "halton", "latin"])
def test_values_have_their_distributions(kind):
    """Against SciPy's distributions: Kolmogorov's distance, covariances within four standard errors."""
    n = 4096
    drawn = Design.of(kind, 3, n, {**VARIABLES, "n": da.normal(-1.0, 3.0)}).draw(0, n)
    limit = 1.95 / np.sqrt(n)  # 0.1 % of random samples lie beyond
    assert stats.kstest(drawn["k"], stats.uniform(2.0, 4.0).cdf).statistic < limit
    assert stats.kstest(drawn["n"], stats.norm(-1.0, 3.0).cdf).statistic < limit
    C = np.cov(drawn["q"].T)
    np.testing.assert_allclose(C, [[0.04, 0.01], [0.01, 0.09]], atol=4 * 0.09 * np.sqrt(2 / n))
    assert abs(np.corrcoef(drawn["k"], drawn["n"])[0, 1]) < 4 / np.sqrt(n)


def test_sobol_points_are_those_of_scipy():
    design = Design.of("sobol", 9, 64, {"k": da.uniform(0.0, 1.0), "c": da.uniform(0.0, 1.0)})
    generator = np.random.default_rng(np.random.SeedSequence(9))
    points = stats.qmc.Sobol(2, bits=32, rng=generator).random(64)
    drawn = design.draw(0, 64)
    np.testing.assert_allclose(np.stack([drawn["k"], drawn["c"]], axis=1), points, atol=1e-15)


def test_one_more_variable_leaves_the_others():
    k, a = da.uniform(0, 1), da.normal(0, 1)
    few, more = (Design.of("random", 1, 9, each) for each in ({"k": k}, {"a": a, "k": k}))
    assert np.array_equal(few.draw(0, 9)["k"], more.draw(0, 9)["k"])


def test_lists_are_all_combinations_and_values_go_in_order():
    axes = {name: variable(x, name) for name, x in {"a": [1.0, 2.0], "b": [3.0, 4.0, 5.0]}.items()}
    design = Design.of("random", 0, None, axes | {"c": da.values([7.0, 8.0])})
    assert design.runs == 6
    drawn = design.draw(0, 6)
    assert drawn["a"].tolist() == [1.0, 1.0, 1.0, 2.0, 2.0, 2.0]
    assert drawn["b"].tolist() == [3.0, 4.0, 5.0] * 2
    assert drawn["c"].tolist() == [7.0, 8.0] * 3


def test_functions_and_distributions_of_scipy():
    gamma = variable(stats.gamma(2.0, scale=3.0), "k")
    drawn_by = variable(lambda generator: generator.normal(size=2), "f", 2)
    design = Design.of("random", 4, 2000, {"k": gamma, "f": drawn_by})
    drawn = design.draw(0, 2000)
    assert stats.kstest(drawn["k"], stats.gamma(2.0, scale=3.0).cdf).pvalue > 1e-3
    assert drawn["f"].shape == (2000, 2)
    assert design.draw(7, 8)["f"].tobytes() == drawn["f"][7:8].tobytes()
    u = np.array([[0.3]])
    assert variable_of(gamma.described()).values(u, np.arange(1)) == stats.gamma(2.0, scale=3.0).ppf(0.3)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: da.normal(0.0), "needs a deviation"),
        (lambda: da.normal(0.0, -1.0), "not negative"),
        (lambda: da.normal([0.0, 0.0], covariance=[[1.0, 2.0], [2.0, 1.0]]), "positive semidefinite"),
        (lambda: da.uniform(2.0, 1.0), "lower below the upper"),
        (lambda: Design.of("sobl", 0, 4, VARIABLES), "did you mean 'sobol'"),
        (lambda: Design.of("saltelli", 0, 12, VARIABLES), "multiple"),
        (lambda: Design.of("random", 0, None, VARIABLES), "runs= is needed"),
    ],
)
def test_misuse_is_told(make, words):
    with pytest.raises(da.DalembertError, match=words):
        make()
