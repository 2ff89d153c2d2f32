"""The same bytes whatever blocks, workers, order, deaths and resumptions."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import pytest

import dalembert as da
from dalembert.ensemble.blocks import WorkerMismatchError, packed, run_block, versions, with_shapes
from dalembert.ensemble.executors import Driver, ProcessWorkers, WorkersLostError, workers_of
from dalembert.ensemble.store import StoredColumns, StudyDiskError
from tests.ensemble.small import kept, oscillator, quick_job

RUNS = 130


def files_of(path):
    """Return all files of a store with their bytes."""
    return {str(each.relative_to(path)): each.read_bytes() for each in sorted(Path(path).rglob("*")) if each.is_file()}


def same(study, other):
    """Compare all arrays, and events, byte for byte."""
    for name, rows in study.arrays().items():
        assert other.arrays()[name].tobytes() == rows.tobytes(), name
    assert study.events() == other.events()


@pytest.fixture(scope="module")
def undisturbed():
    """130 quick runs, one after the other."""
    return da.ensemble.of(quick_job(RUNS), executor=ThreadPoolExecutor(1), block=RUNS)


def test_statuses_of_the_quick_runs(undisturbed):
    x = undisturbed["x"]
    for word, low in (("failed", 0.10), ("refused", 0.20), ("no solution", 0.30)):
        np.testing.assert_array_equal(undisturbed.status == word, (low < x) & (x < low + 0.05))
        assert (undisturbed.status == word).any()
    assert "refused here" in undisturbed.reason(int(np.flatnonzero(undisturbed.status == "refused")[0]))
    np.testing.assert_array_equal(undisturbed["y"][undisturbed.succeeded, 1], x[undisturbed.succeeded] ** 2)
    assert len(undisturbed.events()["run"]) == undisturbed["event_count"].sum()


@pytest.mark.parametrize("workers", [1, 2, 7])
@pytest.mark.parametrize("block", [1, 10, 1000])
def test_threads_and_blocks_give_the_same_bytes(undisturbed, workers, block, tmp_path):
    with ThreadPoolExecutor(workers) as pool:
        same(undisturbed, da.ensemble.of(quick_job(RUNS), executor=pool, block=block))
        if block != 1:
            stored = da.ensemble.of(quick_job(RUNS), executor=pool, block=block, to=tmp_path / "study.zarr")
            same(undisturbed, stored)
            assert stored.complete


def test_processes_give_the_same_bytes(undisturbed, tmp_path):
    """Seven processes, quick runs; two processes, runs of a system."""
    same(undisturbed, da.ensemble.of(quick_job(RUNS), executor=7, block=3))
    given = {"runs": 12, "seed": 2, "parameters": {"k": da.uniform(2.0, 6.0)}, "record_events": True}
    here = da.ensemble(oscillator(), 0.5, [1.0], [0.0], executor=ThreadPoolExecutor(1), **given)
    there = da.ensemble(oscillator(), 0.5, [1.0], [0.0], executor=2, block=5, to=tmp_path / "s.zarr", **given)
    same(here, there)
    again = da.ensemble.resume(tmp_path / "s.zarr")
    assert again.rerun(7).q[-1].tobytes() == here["q"][7].tobytes()


def test_a_worker_that_is_killed_is_replaced(undisturbed, tmp_path):
    """A run kills its process the first time it is tried, as the kernel does when memory runs out."""
    path, calm = tmp_path / "killed.zarr", tmp_path / "calm.zarr"
    job = quick_job(RUNS, kills=(0.50, 0.55), once=str(tmp_path / "killed"))
    study = da.ensemble.of(replace(job, shapes={"y": (2,)}), executor=2, block=10, to=path)
    assert (tmp_path / "killed").exists()
    same(undisturbed, study)
    da.ensemble.of(replace(quick_job(RUNS), shapes={"y": (2,)}), executor=ThreadPoolExecutor(2), block=10, to=calm)
    assert files_of(path) == files_of(calm)


def test_runs_that_kill_their_workers_are_found_and_lost(undisturbed):
    """Every run with x in an interval kills its process, always."""
    job = replace(quick_job(RUNS, kills=(0.50, 0.515)), shapes={"y": (2,)})
    study = da.ensemble.of(job, executor=2, block=20)
    x = study["x"]
    killers = (x >= 0.50) & (x < 0.515)
    assert killers.sum() >= 1
    np.testing.assert_array_equal(study.status == "lost", killers)
    assert "killed its worker" in study.reason(int(np.flatnonzero(killers)[0]))
    for name, rows in undisturbed.arrays().items():
        assert study.arrays()[name][~killers].tobytes() == rows[~killers].tobytes()


def test_a_first_run_that_kills_its_worker_is_lost(tmp_path):
    """Pilot runs are made by workers, too: the process that hands out blocks stays."""
    job = quick_job(24, kills=(0.515, 0.525))
    assert 0.515 < job.design.draw(0, 1)["x"][0] < 0.525
    study = da.ensemble.of(job, executor=1, to=tmp_path / "study.zarr")
    assert study.status[0] == "lost"
    assert study.status_counts["lost"] == 1
    assert study.complete


def test_a_pool_that_broke_is_replaced_once():
    """Tasks of the pool that follows are not given up when one of the broken pool is looked at later."""
    workers = ProcessWorkers(1)
    assert workers.alone(os.getpid)[0]
    broken = workers.submit(os.kill, os.getpid(), 0), workers.submit(os._exit, 1)
    assert broken[1].exception() is not None
    after = workers.submit(os.getpid)
    pool = workers.pool
    workers.rebuild(broken[1])
    assert workers.pool is pool
    assert after.result() != os.getpid()
    workers.close()


COORDINATOR = """
import sys
from dataclasses import replace
import dalembert as da
from tests.ensemble.small import quick_job
if __name__ == "__main__":
    da.ensemble.of(replace(quick_job(130, slow=0.02), shapes={"y": (2,)}), executor=2, block=10, to=sys.argv[1])
"""


def test_a_coordinator_that_is_killed_is_resumed(undisturbed, tmp_path):
    """SIGKILL of the process that hands out blocks, some of which are done; its workers go with it."""
    script, path, calm = tmp_path / "study.py", tmp_path / "study.zarr", tmp_path / "calm.zarr"
    script.write_text(COORDINATOR)
    root = str(Path(__file__).parents[2])
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([f"{root}/src", root])}
    process = subprocess.Popen([sys.executable, str(script), str(path)], env=environment)
    done = np.zeros(1)
    for _ in range(1200):
        time.sleep(0.05)
        if (path / "zarr.json").exists() and (path / "done" / "zarr.json").exists():
            done = StoredColumns(path).done()
            if done.any():
                break
    process.send_signal(signal.SIGKILL)
    process.wait()
    time.sleep(0.3)
    assert done.any()
    given = {"experiment": quick_job(1).experiment, "keep": {"y": kept}}
    unfinished = da.ensemble.open(path, **given)
    if not unfinished.complete:
        assert unfinished.status_counts["missing"] > 0
    study = da.ensemble.resume(path, executor=ThreadPoolExecutor(1), **given)
    same(undisturbed, study)
    da.ensemble.of(replace(quick_job(RUNS), shapes={"y": (2,)}), executor=ThreadPoolExecutor(2), block=10, to=calm)
    assert files_of(path) == files_of(calm)


def test_flags_that_were_cut_are_not_set(undisturbed, tmp_path):
    path = tmp_path / "study.zarr"
    da.ensemble.of(quick_job(RUNS), executor=ThreadPoolExecutor(1), block=50, to=path)
    (path / "done" / "c" / "1").write_bytes(b"")  # a process that died while it wrote the flag
    (path / "kept" / "y" / "c" / "1" / "0").write_bytes(b"half a shard")
    assert StoredColumns(path).done().tolist() == [True, False, True]
    study = da.ensemble.resume(path, experiment=quick_job(1).experiment, keep={"y": kept})
    same(undisturbed, study)


def test_files_half_written_by_the_dead_go(tmp_path):
    """Writers make a file beside the one that they replace: killed between, they leave it."""
    path, calm = tmp_path / "study.zarr", tmp_path / "calm.zarr"
    for each in (path, calm):
        da.ensemble.of(quick_job(RUNS), executor=ThreadPoolExecutor(1), block=50, to=each)
    (path / "done" / "c" / "1").unlink()
    (path / "kept" / "y" / "c" / "1" / "0.2fd4e1c67a2d28fced849ee1bb76e739.partial").write_bytes(b"half a shard")
    (path / "events" / "000001.partial").write_bytes(b"half of the events")
    da.ensemble.resume(path, experiment=quick_job(1).experiment, keep={"y": kept})
    assert files_of(path) == files_of(calm)


def test_what_is_given_again_must_be_what_it_was(tmp_path):
    """Systems, options and functions of another study are refused, also where the store cannot hold them."""
    path, calm = tmp_path / "study.zarr", tmp_path / "calm.zarr"
    given = {"runs": 6, "seed": 2, "parameters": {"k": da.uniform(2.0, 6.0)}, "keep": {"mine": last}, "block": 2}
    for each in (path, calm):
        da.ensemble(oscillator(), 0.5, [1.0], [0.0], to=each, **given)
    (path / "done" / "c" / "1").unlink()
    mine = {"keep": {"mine": last}}
    wrong = [
        (mine | {"system": oscillator().with_parameters(c=1.0)}, "another system"),
        (mine | {"duration": 0.1}, "another duration"),
        (mine | {"rtol": 1e-2}, "no 'rtol'"),
        (mine | {"parameters": {"k": lambda generator: 1.0}}, "no 'k'"),
        ({"keep": {"mine": last, "other": last}}, "'other' is not what"),
        ({"keep": {"mine": doubled}}, "run 0 has another 'kept/mine'"),
    ]
    for again, words in wrong:
        with pytest.raises(da.ModelError, match=words):
            da.ensemble.resume(path, **again)
    assert not StoredColumns(path).done().all()
    da.ensemble.resume(path, system=oscillator(), duration=0.5, **mine)
    assert files_of(path) == files_of(calm)


def last(run):
    return run.q[-1, 0]


def doubled(run):
    return 2.0 * run.q[-1, 0]


def test_overwriting_takes_stores_alone(tmp_path):
    folder = tmp_path / "thesis"
    folder.mkdir()
    (folder / "chapter.tex").write_text("years of work")
    for path in (folder, folder / "chapter.tex"):
        with pytest.raises(da.ModelError, match="replaces stores of studies alone"):
            da.ensemble.of(quick_job(5), to=path, overwrite=True)
    assert (folder / "chapter.tex").read_text() == "years of work"
    with pytest.raises(da.ModelError, match="a store is a folder"):
        da.ensemble.of(quick_job(5), to="s3://bucket/study.zarr")


def test_a_full_disk_is_told(tmp_path, monkeypatch):
    """ENOSPC in a worker: the study ends with advice, blocks that are done stay."""
    from dalembert.ensemble import store

    path, calls = tmp_path / "study.zarr", []

    def full(job, columns):
        calls.append(columns.first)
        if len(calls) > 2:
            raise OSError(28, "No space left on device")
        return 0

    monkeypatch.setattr(store, "_write_events", full)
    with pytest.raises(StudyDiskError, match=r"is full.*resume"):
        da.ensemble.of(quick_job(RUNS), executor=ThreadPoolExecutor(1), block=20, to=path)
    assert StoredColumns(path).done().sum() == 2


def test_what_cannot_go_on_is_told_in_words(tmp_path):
    job = replace(with_shapes(quick_job(5)), versions=versions() | {"numpy": "1.0"})
    with pytest.raises(WorkerMismatchError, match=r"numpy .* instead of 1\.0"):
        run_block(packed(job), 0, 1)
    path = tmp_path / "study.zarr"
    da.ensemble.of(quick_job(5), to=path)
    with pytest.raises(da.ModelError, match="exists"):
        da.ensemble.of(quick_job(5), to=path)
    with pytest.raises(da.ModelError, match=r"not stored.*give it again: system"):
        da.ensemble.resume(path, keep={"y": kept})
    with pytest.raises(da.ModelError, match="keep 'y' was a function"):
        da.ensemble.resume(path, experiment=quick_job(1).experiment)
    with pytest.raises(da.ModelError, match="not the store of a study"):
        da.ensemble.open(tmp_path)
    always = replace(quick_job(5, kills=(0.0, 1.0)), shapes={"y": (2,)}, versions=versions(), block=5)
    workers = ProcessWorkers(1)
    with pytest.raises(WorkersLostError, match="__main__"):
        Driver(always, workers, lambda block, columns: None).run(range(1))
    workers.close()
    with pytest.raises(da.ModelError, match="no executor"):
        workers_of(object())


def test_a_function_of_a_notebook_that_says_da_goes_to_processes():
    """The package itself is pickled by name, and a function that is defined nowhere but here goes with it."""
    cloudpickle = pytest.importorskip("cloudpickle")
    assert cloudpickle.loads(cloudpickle.dumps(da)) is da
    names = {"da": da}
    exec("def run(x):\n    return float(da.KKT([[2.0]]).solve([x]).acceleration[0])", names)
    names["run"].__module__ = "__main__"
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        answer = pool.submit(_sent, cloudpickle.dumps(names["run"]), 3.0).result()
    assert answer == pytest.approx(1.5)


def _sent(function: bytes, x: float) -> float:
    import cloudpickle

    return cloudpickle.loads(function)(x)
