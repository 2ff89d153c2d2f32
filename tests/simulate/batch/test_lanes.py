"""Runs in step with each other: those of `da.simulate` to their tolerance, the same bits whoever goes beside them."""

from __future__ import annotations

import shutil
import sys
from functools import cache
from pathlib import Path

import casadi as ca
import numpy as np
import pytest

import dalembert as da
from dalembert.simulate.batch import lane_functions, lanes
from dalembert.simulate.batch.batch import RunBatch, UnsuitedError
from tests.ensemble.small import columns_of, in_step, job_of, made_alone, oscillator
from tests.ensemble.test_batches import STUDIES, four_bar

sys.path.insert(0, str(Path(__file__).parents[2] / "kernel"))
import host_cuda

RUNS = 9
AGREE, AT_STEPS = 1e-10, 1e-7
"""Runs at rtol = 1e-8 whose sums are rounded in other ways, at the same times; at the ends of steps, which rounding
moves where errors are next to it."""

SMOOTH = [name for name in STUDIES if name not in ("stick-slip", "bounces")]


def chain(kind="revolute", links=2):
    b = da.Builder("chain")
    parent, at = "world", 0.0
    axis = {"axis": (0, 1, 0)} if kind == "revolute" else {}
    for k in range(links):
        b.body(f"link{k}", mass=1.0, center=(0.25, 0, 0), inertia=(0.01, 0.02, 0.02))
        b.joint(f"joint{k}", kind, parent, f"link{k}", position=(at, 0, 0), **axis)
        parent, at = f"link{k}", 0.5
    return b.build()


@cache
def bead(wall=0.0):
    """A bead on a circle, x^2 + y^2 = 1, with a narrow wall at the bottom."""
    x, v, h = ca.SX.sym("x", 2), ca.SX.sym("v", 2), ca.SX.sym("h")
    energy = 9.81 * x[1] + h * ca.exp(-((x[0] / 0.02) ** 2))
    return da.Lagrangian(
        x, v, kinetic=ca.dot(v, v) / 2, potential=energy, constraints={"circle": ca.dot(x, x) - 1},
        parameters={"h": (h, wall)}, coordinates=["x", "y"],
    )  # fmt: skip


def driven(redundant):
    """A double pendulum whose first joint is driven from rest, with a spare hinge on its axis."""
    servo = da.Servo("joint0", lambda t: 0.5 * (1 - ca.cos(3 * t)))
    return chain().constrain(*([da.Revolute("world", "link0", axis=(0, 1, 0))] if redundant else []), servo)


def falling_off():
    """x'' = 4 x^3: runs that start fast are infinite before the end."""
    x, v = ca.SX.sym("x"), ca.SX.sym("v")
    return da.Lagrangian(x, v, kinetic=v**2 / 2, potential=-(x**4), coordinates=["x"])


def test_an_oscillator_is_that_of_the_closed_form():
    """q = cos(w t) + v0 / w sin(w t) with w^2 = k."""
    times = np.linspace(0.0, 2.0, 5)
    study = in_step(job_of(
        oscillator(), 2.0, [1.0], da.normal([0.0], 0.5), backend="numpy", parameters={"k": da.uniform(2.0, 6.0)},
        keep={"end": "q", "path": ("q", times)},
    ))  # fmt: skip
    w, v = np.sqrt(study["k"]), study["v"][:, 0]
    exact = np.cos(w[:, None] * times) + (v / w)[:, None] * np.sin(w[:, None] * times)
    np.testing.assert_allclose(study["path"][..., 0], exact, atol=3e-8)
    np.testing.assert_allclose(study["end"][:, 0], exact[:, -1], atol=3e-8)
    assert study.route.endswith(f"0 of {RUNS} runs were made alone, by da.simulate on a processor")


@pytest.mark.parametrize("name", SMOOTH)
def test_runs_agree_with_single_runs(name):
    given, options = STUDIES[name]()
    job = job_of(*given, **options)
    study = in_step(job)
    assert not study.arrays()["alone"].any()
    assert study.status_counts == {"completed": RUNS}
    for i in (0, RUNS - 1):
        alone = made_alone(job, i)
        assert study["steps"][i] == alone["steps"][0]
        for word in study.kept:
            agree = AT_STEPS if word in ("mean", "range") else AGREE
            np.testing.assert_allclose(study[word][i], alone[f"kept/{word}"][0], rtol=agree, atol=agree)


MORE = {
    "rotations": lambda: (
        (chain("spherical"), 0.5, None, da.normal(np.zeros(6), 4.0)), {"keep": {"q": "q", "most": ("kinetic", "max")}}
    ),
    "order 5": lambda: ((chain(), 0.5, da.normal(np.zeros(2), 1.0)), {"method": "dopri5", "rtol": 1e-7}),
    "a table of forces": lambda: (
        (chain(), 0.5, da.normal(np.zeros(2), 1.0)),
        {"force": {"joint0": da.Table(np.linspace(0, 1, 7), np.sin(9.0 * np.linspace(0, 1, 7)))}},
    ),
    "a drive": lambda: (
        (driven(False), 0.5, None, {"joint1": da.normal(0.0, 1.0)}), {"keep": {"q": "q", "work": ("work", "max")}}
    ),
    "a drive beside dependent rows": lambda: (
        (driven(True), 0.5, None, {"joint1": da.normal(0.0, 1.0)}), {"keep": {"q": "q", "work": ("work", "max")}}
    ),
    "a bead on a circle": lambda: (
        (bead(), 1.0, [1.0, 0.0], {"y": da.normal(0.0, 1.0)}), {"keep": {"q": "q", "row": ("circle", "max")}}
    ),
}  # fmt: skip
"""Further systems: start and options of a study."""


@pytest.mark.parametrize("name", MORE)
def test_more_systems_agree_with_single_runs(name):
    given, options = MORE[name]()
    job = job_of(*given, **options)
    study = in_step(job)
    assert not study.arrays()["alone"].any()
    alone = made_alone(job, 1)
    for word in study.kept:
        np.testing.assert_allclose(study[word][1], alone[f"kept/{word}"][0], rtol=AGREE, atol=AGREE)


def test_all_samples_agree():
    """Times, states, accelerations, multipliers of redundant rows: sample by sample, each by a step of full order."""
    m = four_bar(redundant=True)
    q = m.assemble((0.98, -0.7, -1.5)).q
    batch = RunBatch(m, 0.3, q, None, {"progress": False, "every": 0.05}, (), True, "cpu")
    v = np.array([m.project(q, v)[1] for v in np.random.default_rng(2).normal(size=(4, 3))])
    (found,) = batch.run(q, v, {}, 4, False)
    for k, row in enumerate(found.rows):
        run, part = da.simulate(m, 0.3, q, v[row], every=0.05, progress=False), slice(found.first[k], found.stop[k])
        for word, rows in run.samples.items():
            agree = 1e-3 if word == "step" else 1e-9
            np.testing.assert_allclose(found.run.samples[word][part], rows, rtol=agree, atol=agree, err_msg=word)


def test_short_steps_go_from_states_on_the_manifold(monkeypatch):
    """A narrow wall makes steps short: stages are closed from there on, as in a single run."""
    counted = []
    whole = lanes.LaneStudy._stage_closed
    monkeypatch.setattr(lanes.LaneStudy, "_stage_closed", lambda *given: (counted.append(1), whole(*given)))
    job = job_of(bead(), 1.0, [1.0, 0.0], {"y": da.normal(0.0, 0.3)}, parameters={"h": 0.5}, runs=3)
    study = in_step(job)
    assert counted
    assert not study.arrays()["alone"].any()
    alone = made_alone(job, 0)
    np.testing.assert_allclose(study["q"][0], alone["kept/q"][0], atol=1e-7)


def test_a_run_in_trouble_is_that_of_simulate():
    """Bit for bit, with its status and its reason; the others go on."""
    job = job_of(falling_off(), 1.0, da.uniform([0.1], [1.6]))
    study = in_step(job)
    alone = study.arrays()["alone"].astype(bool)
    assert 0 < alone.sum() < RUNS
    assert (study.status[alone] == "no solution").all()
    assert (study.status[~alone] == "completed").all()
    for i in np.flatnonzero(alone):
        single = made_alone(job, i)
        for word, rows in single.items():
            assert rows[0].tobytes() == study.arrays()[word][i].tobytes(), word
    assert f"{alone.sum()} of {RUNS} runs" in study.route
    np.testing.assert_array_equal(study["alone"], alone)
    np.testing.assert_array_equal(study.to_xarray()["alone"], alone)


def test_a_broken_balance_is_left_to_simulate(monkeypatch):
    """Where the balance of energy is not kept at a step, the run is made alone."""
    monkeypatch.setattr(lane_functions, "SAFE", 0.0)
    monkeypatch.setattr(lane_functions, "ENERGY_ROUNDING", 0.0)
    monkeypatch.setattr(lane_functions, "CODES_OF_LANES", type(lane_functions.CODES_OF_LANES)("none"))
    batch = RunBatch(oscillator(), 1.0, [1.0], [0.0], {"progress": False, "rtol": 1e-5}, (), True, "numpy")
    monkeypatch.undo()
    assert not sum(f.rows.size for f in batch.run([1.0], [0.0], {}, 3, False))


@pytest.mark.parametrize("block", [1, 10, 1000])
def test_blocks_change_no_bit(block):
    job = job_of(chain(), 0.4, da.normal(np.zeros(2), 1.0), runs=23, keep={"q": "q", "peak": ("joint1", "max")})
    whole = columns_of(job)
    assert not whole["alone"].any()
    study = in_step(job, block=block)
    for word, rows in study.arrays().items():
        assert rows.tobytes() == whole[word].tobytes(), word


def test_few_rows_and_many_samples(monkeypatch):
    """Lanes that are used again, rows that are left out at once, samples that leave the device: no bit changes."""
    job = job_of(chain(), 0.4, da.normal(np.zeros(2), 1.0), runs=23, keep={"peak": ("joint1", "max")})
    whole = columns_of(job)
    for name, value in {"MOST_LANES": 7, "SPARSE": 1.0, "LOGGED": 1000, "PIECE_ROWS": 30}.items():
        monkeypatch.setattr(lanes, name, value)
    for word, rows in columns_of(job).items():
        assert rows.tobytes() == whole[word].tobytes(), word


def test_a_store_remembers_its_backend(tmp_path):
    path = tmp_path / "study.zarr"
    whole = in_step(job_of(oscillator(), 0.3, [1.0], da.normal([0.0], 0.5)), block=4, to=path)
    (path / "done" / "c" / "1").unlink()
    with pytest.raises(da.ModelError, match="begun with backend='c'"):
        da.ensemble.resume(path, backend="cuda")
    again = da.ensemble.resume(path, progress=False)
    assert again.job.backend == "c"
    assert all(rows.tobytes() == whole.arrays()[word].tobytes() for word, rows in again.arrays().items())
    assert again.route == whole.route


@pytest.mark.parametrize(
    ("given", "options", "words"),
    [
        ((chain(), 0.1), {"force": lambda t, q, v: np.zeros(2)}, "a Python function gives forces"),
        ((chain(), 0.1), {"keep": {"x": lambda run: 1.0}}, "'x' is a function of a run"),
        ((chain(), 0.1), {"events": {"z": lambda t, q, v: q[0] - 1.0}}, "events are watched"),
        ((chain(), 0.1), {"method": "radau"}, "no loop over runs"),
        ((lambda k: oscillator(), 0.1, [1.0]), {"parameters": {"k": [1.0]}}, "a function makes the systems"),
    ],
)
def test_what_does_not_suit_is_refused_by_name(given, options, words):
    with pytest.raises(da.ModelError, match=words) as error:
        in_step(job_of(*given, backend="numpy", runs=None if "parameters" in options else 2, **options))
    assert "leave backend= away" in str(error.value)


def test_contacts_are_refused():
    given, options = STUDIES["stick-slip"]()
    with pytest.raises(UnsuitedError, match="contacts end steps"):
        RunBatch(*given[:2], [0.0], [0.3], {"progress": False}, tuple(options["parameters"]), True, "numpy")


# ----------------------------------------------------------------------------------------------------------------------
# CUDA: on a device where there is one; its text on the host, compiled by g++.


device = pytest.mark.skipif(not host_cuda.has_device(), reason="needs CuPy and a GPU")


@device
@pytest.mark.parametrize("name", SMOOTH)
def test_a_gpu_agrees_with_single_runs(name):
    given, options = STUDIES[name]()
    job = job_of(*given, backend="cuda", **options)
    study = in_step(job)
    assert not study.arrays()["alone"].any()
    alone = made_alone(job, 0)
    for word in study.kept:
        np.testing.assert_allclose(study[word][0], alone[f"kept/{word}"][0], rtol=AGREE, atol=AGREE)
    again = in_step(job, block=2)
    assert all(rows.tobytes() == again.arrays()[word].tobytes() for word, rows in study.arrays().items())


@pytest.mark.skipif(host_cuda.has_device(), reason="there is a GPU")
def test_a_missing_device_is_told_at_the_start():
    with pytest.raises(da.DalembertError, match="backend 'cuda'"):
        da.ensemble(oscillator(), 0.1, [1.0], runs=2, backend="cuda")
    with pytest.raises(da.DalembertError, match="backend") as error:
        da.ensemble.plan(oscillator(), 0.1, [1.0], runs=2, backend="cuda")
    assert "does not take this study" not in str(error.value)


class HostArrays:
    """CuPy's names: those of the shim, all others NumPy's."""

    def __init__(self) -> None:
        self.shim = host_cuda.cupy()

    def zeros(self, shape, dtype=float):
        return self.shim.zeros(shape, dtype)

    def empty(self, shape, dtype=float):
        return self.shim.empty(shape, dtype)

    def __getattr__(self, name):
        return getattr(self.shim, name, None) or getattr(np, name)


@pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++")
def test_the_text_for_a_gpu_agrees_on_the_host(monkeypatch):
    host_cuda.in_place_of_a_device(monkeypatch, HostArrays(), threads=4)
    monkeypatch.setattr(lane_functions, "CODES_OF_LANES", type(lane_functions.CODES_OF_LANES)("none"))
    options = {"progress": False, "method": "rk4", "step": 0.1}
    batch = RunBatch(oscillator(), 0.3, [1.0], [0.0], options, (), True, "cuda")
    (found,) = batch.run(np.array([[1.0], [0.5], [0.0]]), [1.0], {}, 3, False)
    for k, q in enumerate((1.0, 0.5, 0.0)):
        run = da.simulate(oscillator(), 0.3, [q], [1.0], **options)
        np.testing.assert_allclose(found.run.q[found.first[k] : found.stop[k]], run.q, atol=1e-14)


def test_a_block_without_an_answer_is_an_error(monkeypatch):
    """A device that is full, or refuses a block, is told with the block's size; no run goes another way."""
    job = job_of(oscillator(), 0.3, [1.0], da.normal([0.0], 0.5), runs=8)
    for error, words in (
        (MemoryError("out of memory"), r"no memory for 8 runs at once .*block=2"),
        (da.ModelError("no."), r"cannot make a block of 8 runs: no\."),
    ):
        with monkeypatch.context() as patch:
            patch.setattr(lanes.LaneRunner, "run", lambda *given, error=error, **options: (_ for _ in ()).throw(error))
            with pytest.raises(da.ModelError, match=words):
                in_step(job)


def test_starts_that_cannot_be_prepared_are_named(monkeypatch):
    job = job_of(oscillator(), 0.3, [1.0], da.normal([0.0], 0.1), runs=3)
    refused = da.ModelError("q[0] is nan")
    monkeypatch.setattr(type(job.experiment), "at", lambda *given: (_ for _ in ()).throw(refused))
    with pytest.raises(da.ModelError, match=r"none of the first 3 runs can be prepared: q\[0\] is nan"):
        in_step(job)


def test_tables_tell_who_made_a_run():
    table = in_step(job_of(falling_off(), 1.0, da.uniform([0.1], [1.6]))).table()
    assert table["alone"].dtype == bool
    np.testing.assert_array_equal(table["alone"], table["status"] == "no solution")
