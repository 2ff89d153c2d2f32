"""Studies of systems: closed forms, every run again, statuses with reasons, what is kept."""

from __future__ import annotations

import csv
import gc

import casadi as ca
import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm

import dalembert as da
from dalembert.friction import Bounded, Dry
from tests.ensemble.small import oscillator

SEED = 17


@pytest.fixture(scope="module")
def spread():
    """q0 = 1, v0 normal, k uniform: 128 runs of 1.5 s."""
    times = np.array([0.0, 0.7, 1.5])
    return da.ensemble(
        oscillator(), 1.5, [1.0], da.normal([0.0], 0.5), runs=128, seed=SEED, parameters={"k": da.uniform(2.0, 6.0)},
        keep={"last": "q", "peak": ("q", "max"), "path": ("q", times), "own": lambda run: run.v[-1, 0] ** 2},
    )  # fmt: skip


def test_every_run_is_the_closed_form(spread):
    """q(t) = q0 cos wt + v0 / w sin wt, w^2 = k."""
    assert spread.ok
    w, v0 = np.sqrt(spread["k"]), spread["v"][:, 0]
    for k, t in enumerate(spread.times("path")):
        np.testing.assert_allclose(spread["path"][:, k, 0], np.cos(w * t) + v0 / w * np.sin(w * t), atol=1e-7)
    np.testing.assert_array_equal(spread["path"][:, -1], spread["last"])
    np.testing.assert_allclose(spread["own"], (v0 * np.cos(1.5 * w) - w * np.sin(1.5 * w)) ** 2, atol=1e-6)


def test_moments_of_a_linear_oscillator(spread):
    """E q and E q^2 by quadrature over k; v0 enters linearly."""
    t = 1.5
    mean = quad(lambda k: np.cos(np.sqrt(k) * t) / 4, 2.0, 6.0)[0]
    square = quad(lambda k: (np.cos(np.sqrt(k) * t) ** 2 + (0.5 * np.sin(np.sqrt(k) * t)) ** 2 / k) / 4, 2.0, 6.0)[0]
    found = spread.statistics("last", confidence=0.999)
    assert found.count == 128
    assert found.interval[0, 0] < mean < found.interval[1, 0]
    deviation = np.sqrt(square - mean**2)
    assert abs(found.deviation[0] - deviation) < 4 * deviation / np.sqrt(2 * 128)
    assert found.quantile_intervals[0.5][0] < found.quantiles[0.5] < found.quantile_intervals[0.5][1]


def test_a_run_again_is_the_same_to_the_bit(spread):
    for i in (0, 77, -1):
        run = spread.rerun(i)
        assert run.q[-1].tobytes() == spread["last"][i].tobytes()
        assert run.steps == spread["steps"][i]
    assert da.simulate(
        oscillator().with_parameters(k=float(spread["k"][5])), 1.5, [1.0], spread["v"][5]
    ).q[-1].tobytes() == spread["last"][5].tobytes()  # fmt: skip


def test_pictures_and_tables(spread, tmp_path):
    figure = spread.plot(file=tmp_path / "study.png")
    assert (tmp_path / "study.png").stat().st_size > 10_000
    assert "128 completed" in figure.get_suptitle()
    data = spread.to_xarray()
    assert data["path"].dims == ("run", "path_time", "path_2")
    assert data["path_time"].values.tolist() == [0.0, 0.7, 1.5]
    assert float(data["own"].mean()) == spread.statistics("own").mean


def test_stick_slip_probability_against_quadrature():
    """A block on dry ground, m = 1, limit F: it stays at q0 if k |q0| <= F. P = 2 Phi(F / (k s)) - 1."""
    x, u = ca.SX.sym("x"), ca.SX.sym("u")
    F, k, s = 1.0, 2.0, 0.6
    system = da.Lagrangian(
        x, u, kinetic=u**2 / 2, potential=k * x**2 / 2, friction=[Bounded("ground", u, Dry(F))]
    )  # fmt: skip
    study = da.ensemble(system, 0.3, da.normal([0.0], s), [0.0], runs=150, seed=3, design="latin", keep=["q"])
    assert study.ok
    moved = study["q"][:, 0] != study.input("q")[:, 0]
    np.testing.assert_array_equal(moved, k * np.abs(study.input("q")[:, 0]) > F)
    slips = study.probability(moved, confidence=0.99)
    assert slips.low < 2 * norm.sf(F / (k * s)) < slips.high


def test_runs_that_fail_have_a_status_and_a_reason():
    def make(k):
        if k > 5.5:
            raise ZeroDivisionError("no such system")
        return oscillator().with_parameters(k=k)

    study = da.ensemble(
        make, 0.2, da.values([[1.0], [np.pi]]), [0.0], parameters={"k": [2.0, 6.0, 3.0]},
        keep={"y": lambda run: 1.0 / (run.q[0, 0] - np.pi)},
    )  # fmt: skip
    assert study.status.tolist() == ["completed", "failed", "completed"]
    assert study.status_counts == {"completed": 2, "failed": 1}
    assert study.reason(1) == "ZeroDivisionError: no such system"
    assert np.isnan(study["y"][1])
    assert not study.ok
    assert "1 without an answer left out" in str(study.statistics("y"))
    assert "ZeroDivisionError" in str(study)


def test_configurations_with_quaternions_vary_along_the_tangent_space():
    """|log(q0^-1 q)| of a spherical joint has the deviation of each axis; quaternions keep their length."""
    b = da.Builder("top")
    b.body("rotor", 1.0, inertia=(0.1, 0.2, 0.3))
    b.joint("ball", "spherical", "world", "rotor")
    top = b.build()
    study = da.ensemble(top, 0.01, da.normal(top.neutral(), [0.0, 0.1, 0.2]), runs=60, keep={"first": ("q", "first")})
    assert study.ok
    np.testing.assert_allclose(np.linalg.norm(study["first"], axis=1), 1.0, atol=1e-14)
    ways = np.array([top.difference(top.neutral(), q) for q in study["first"]])
    np.testing.assert_allclose(ways, study.input("q"), atol=1e-14)
    assert np.abs(ways[:, 0]).max() == 0.0
    assert ways[:, 2].std() == pytest.approx(0.2, rel=0.3)


def test_parameters_of_a_mechanism_and_starts_by_name():
    b = da.Builder("pendulum")
    b.body("bob", 2.0, (0.0, 0.0, -1.0), (0.01, 0.01, 0.01))
    b.joint("hinge", "revolute", "world", "bob", axis=(0.0, 1.0, 0.0))
    study = da.ensemble(
        b.build(), 0.1, {"hinge": da.uniform(0.1, 0.2)}, runs=3, parameters={"mass:bob": [1.0, 2.0]}, keep=["hinge"]
    )
    assert study.ok
    assert study["mass:bob"].tolist() == [1.0, 2.0, 1.0]
    assert (study["hinge"] < study["q:hinge"]).all()


def test_sobol_indices_of_ishigami():
    """Ishigami's function: S = (0.3139, 0.4424, 0), T = (0.5576, 0.4424, 0.2437) for a = 7, b = 0.1."""
    from dalembert.ensemble.designs import Design
    from dalembert.ensemble.statistics import sobol_indices

    n = 2048
    drawn = Design.of("saltelli", 1, 5 * n, {"x": da.uniform([-np.pi] * 3, [np.pi] * 3)}).draw(0, 5 * n)["x"]
    y = np.sin(drawn[:, 0]) + 7.0 * np.sin(drawn[:, 1]) ** 2 + 0.1 * drawn[:, 2] ** 4 * np.sin(drawn[:, 0])
    found = sobol_indices(y, np.ones(5 * n, bool), ["a", "b", "c"], 0, 0.95)
    np.testing.assert_allclose(found.first, [0.3139, 0.4424, 0.0], atol=0.02)
    np.testing.assert_allclose(found.total, [0.5576, 0.4424, 0.2437], atol=0.02)
    assert (found.first_interval[0] <= found.first).all()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"keep": {"y": ("q", "maxx")}}, "did you mean 'max'"),
        ({"keep": ["qq"]}, "no coordinate"),
        ({"keep": {"status": "q"}}, "already"),
        ({"device": "cuda"}, "by backend="),
        ({"backend": "gpu"}, "studies run on 'cpu', 'cuda'"),
        ({"backend": "cuda", "batches": False}, "batches=False is for processors"),
        ({"executor": 0}, "at least one process"),
        ({"executor": "dask"}, "is no executor"),
        ({"file": "run.nc"}, "for one run"),
        ({"runs": 0}, "at least one"),
        ({"q": [1.0, 2.0]}, "none of the first"),
        ({"parameters": {"kk": [1.0]}}, "did you mean 'k'"),
    ],
)
def test_misuse_is_told(options, words):
    with pytest.raises(da.DalembertError, match=words):
        da.ensemble(oscillator(), 0.1, **{"q": [1.0], "v": [0.0], "runs": 2, **options})


def test_a_table_has_a_row_per_run(spread, tmp_path):
    """Numbers are those of the study; vectors have a column per number, and a file has the same digits."""
    table = spread.table()
    np.testing.assert_array_equal(table["path[1, 0]"], spread["path"][:, 1, 0])
    spread.to_csv(tmp_path / "study.csv")
    lines = (tmp_path / "study.csv").read_text().splitlines()
    k = list(table).index("peak[0]" if "peak[0]" in table else "peak")
    assert len(lines) == 129
    head = next(csv.reader(lines[:1]))
    assert head == list(table)
    np.testing.assert_array_equal([float(row[k]) for row in csv.reader(lines[1:])], spread["peak"].reshape(128))
    frame = spread.to_dataframe()
    assert list(frame.columns) == head
    assert (frame["status"] == "completed").all()


def test_functions_that_draw_may_fail_in_a_run():
    """An exception of a function is the status of its run, and what `rerun` raises; other shapes are told."""

    def drawn(generator):
        x = generator.random()
        if x < 0.2:
            raise ValueError(f"nothing at {x:.2f}")
        return [x, x] if x > 0.8 else 1.0 + x

    study = da.ensemble(oscillator(), 0.2, [1.0], [0.0], runs=30, parameters={"k": drawn}, progress=False)
    k = study["k"]
    assert set(study.status_counts) == {"completed", "failed", "refused"}
    np.testing.assert_array_equal(study.succeeded, np.isfinite(k))
    failed, shaped = (int(np.flatnonzero(study.status == word)[0]) for word in ("failed", "refused"))
    assert study.reason(failed).startswith("ValueError: nothing at 0.")
    assert "shape" in study.reason(shaped)
    with pytest.raises(ValueError, match="nothing at"):
        study.rerun(failed)


def test_values_of_a_grid_have_no_intervals():
    study = da.ensemble(oscillator(), 0.2, [1.0], [0.0], parameters={"k": [1.0, 2.0, 3.0]}, keep={"q": ("q", "last")})
    found = study.statistics("q")
    assert np.isnan(found.interval).all()
    assert np.isnan(found.quantile_intervals[0.5]).all()
    assert np.isnan(study.probability(study["k"] > 1.5).low)
    assert str(study.probability(study["k"] > 1.5)) == "0.666667, 2 of 3 runs"


def test_prepared_systems_go_with_their_study():
    """Ten thousand studies, one after the other, do not fill the memory."""
    from dalembert.ensemble import batches

    gc.collect()
    before = len(batches._pools)
    study = da.ensemble(oscillator(), 0.2, [1.0], [0.0], runs=2)
    assert study.route.startswith("compiled")
    assert len(batches._pools) == before + 1
    del study
    gc.collect()
    assert len(batches._pools) == before


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"cores": -3}, "at least one"),
        ({"cores": 2.5}, "whole number"),
        ({"runs": float("nan")}, "whole number"),
        ({"runs": "many"}, "number is needed"),
    ],
)
def test_plans_of_nothing_are_refused(options, words):
    with pytest.raises(da.ModelError, match=words):
        da.ensemble.plan(oscillator(), 0.2, [1.0], [0.0], **{"runs": 10} | options)


def test_a_plan_takes_the_words_of_the_study():
    plan = da.ensemble.plan(oscillator(), 0.2, [1.0], [0.0], runs=10, to="no.zarr", executor=4, block=2, pilots=2)
    assert plan.runs == 10


def test_studies_reduce_motions_and_not_samples():
    """x = x0 cos 2t over 1.5 s: extrema and means of every run, whatever `every` says; as `run.maximum` has them."""
    takes = ("max", "min", "range", "mean", "rms")
    for options in ({}, {"every": 0.5}, {"batches": False}):
        study = da.ensemble(
            oscillator(), 2.0, da.uniform([0.5], [1.5]), [0.0], runs=6, seed=SEED, progress=False,
            keep={take: ("q", take) for take in takes} | {"end": "q"}, **options,
        )  # fmt: skip
        x0 = study["q"][:, 0] if "q" in study.inputs else study["inputs/q"][:, 0]
        exact = {
            "max": x0, "min": -x0, "range": 2 * x0, "mean": x0 * np.sin(4.0) / 4.0,
            "rms": x0 * np.sqrt(0.5 + np.sin(8.0) / 16.0),
        }  # fmt: skip
        for take in takes:
            np.testing.assert_allclose(study[take][:, 0], exact[take], atol=1e-7)
        run = study.rerun(3)
        found = [run.maximum("q"), run.minimum("q"), run.range("q"), run.mean("q"), run.rms("q")]
        np.testing.assert_array_equal([study[take][3] for take in takes], found)
