"""Dask's cluster as an executor: a worker that dies, one that is slow, a scheduler that is not there."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

import dalembert as da
from dalembert.ensemble.entry import StudyProgress
from dalembert.ensemble.executors import WorkersLostError
from tests.ensemble.small import kept, quick_job
from tests.ensemble.test_workers import files_of

distributed = pytest.importorskip("distributed")
pytestmark = pytest.mark.filterwarnings("ignore")  # of Dask's own threads and sockets


@contextmanager
def after_first_block(act):
    """Do something once, when the first block is done."""
    plain, done = StudyProgress.add, []

    def add(self, counts):
        plain(self, counts)
        if not done:
            done.append(act())

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(StudyProgress, "add", add)
        yield done


def slow_down(factor=19):
    os.nice(factor)


def test_a_cluster_with_a_slow_and_a_dying_worker(tmp_path):
    """Four processes on loopback: one is at the lowest priority, one is killed under way."""
    job = replace(quick_job(130, slow=0.02), shapes={"y": (2,)})
    calm = da.ensemble.of(
        replace(quick_job(130), shapes={"y": (2,)}), executor=ThreadPoolExecutor(1), block=10, to=tmp_path / "calm.zarr"
    )
    cluster = distributed.LocalCluster(
        n_workers=4, threads_per_worker=1, dashboard_address=None, silence_logs=50, processes=True
    )
    with cluster, distributed.Client(cluster) as client:
        pids = client.run(os.getpid)
        addresses = list(pids)
        client.run(slow_down, workers=addresses[:1])
        with after_first_block(lambda: os.kill(pids[addresses[1]], signal.SIGKILL)) as killed:
            study = da.ensemble.of(job, executor=client, block=10, to=tmp_path / "dask.zarr")
    assert killed
    assert study.complete
    assert study.status_counts == calm.status_counts
    assert files_of(tmp_path / "dask.zarr") == files_of(tmp_path / "calm.zarr")


SCHEDULER = "from distributed.cli.dask_scheduler import main; main()"
WORKER = "from distributed.cli.dask_worker import main; main()"


def test_a_scheduler_that_is_killed(tmp_path):
    """The study ends with advice; resumed without Dask, its store is that of an undisturbed one."""
    path, calm = tmp_path / "study.zarr", tmp_path / "calm.zarr"
    root = str(Path(__file__).parents[2])
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([f"{root}/src", root])}
    file = tmp_path / "scheduler.json"
    start = [sys.executable, "-c"]
    plain = ["--scheduler-file", str(file), "--no-dashboard"]
    scheduler = subprocess.Popen(
        [*start, SCHEDULER, *plain, "--host", "127.0.0.1", "--port", "0"], env=environment, stderr=subprocess.DEVNULL
    )
    worker = subprocess.Popen([*start, WORKER, *plain, "--nthreads", "1"], env=environment, stderr=subprocess.DEVNULL)
    try:
        client = distributed.Client(scheduler_file=str(file), timeout=60)
        job = replace(quick_job(130, slow=0.02), shapes={"y": (2,)})
        with (
            after_first_block(lambda: os.kill(scheduler.pid, signal.SIGKILL)),
            pytest.raises(WorkersLostError, match=r"scheduler of Dask was lost.*resume"),
        ):
            da.ensemble.of(job, executor=client, block=10, to=path)
        client.close(timeout=1)
    finally:
        for process in (worker, scheduler):
            process.kill()
            process.wait()
    one = ThreadPoolExecutor(1)
    da.ensemble.resume(path, executor=one, experiment=quick_job(1).experiment, keep={"y": kept})
    da.ensemble.of(replace(quick_job(130), shapes={"y": (2,)}), executor=one, block=10, to=calm)
    assert files_of(path) == files_of(calm)


def test_a_scheduler_without_workers_is_told():
    class Nobody:
        def submit(self):
            """Take nothing."""

        def scheduler_info(self, **options):
            return {"workers": {}}

        def wait_for_workers(self, n, timeout):
            raise TimeoutError("only 0/1 workers arrived")

    with pytest.raises(WorkersLostError, match="has no workers, or cannot be reached"):
        da.ensemble.of(quick_job(3), executor=Nobody())


def test_a_cluster_that_lost_all_its_workers_is_given_up(monkeypatch, tmp_path):
    """Nannies give up on workers that die again and again: tasks would wait for ever."""
    from types import SimpleNamespace

    from dalembert.ensemble import executors

    monkeypatch.setattr(executors, "LOOK", 0.01)
    monkeypatch.setattr(executors, "PATIENCE", 0.05)

    class Deserted:
        looks = 0

        def submit(self, function, *arguments, **options):
            return SimpleNamespace(add_done_callback=lambda end: None)

        def scheduler_info(self, **options):
            self.looks += 1
            return {"workers": {"tcp://here": {}} if self.looks < 3 else {}}

        def wait_for_workers(self, n, timeout):
            """Be there."""

    job = replace(quick_job(30), shapes={"y": (2,)})
    with pytest.raises(WorkersLostError, match=r"no workers any more.*resume"):
        da.ensemble.of(job, executor=Deserted(), block=10, to=tmp_path / "study.zarr")


@pytest.mark.slow
def test_a_run_that_kills_all_workers_of_a_cluster_is_lost(tmp_path):
    # half a second: a nanny does not replace a worker that dies before it is known to run
    job = replace(quick_job(4, kills=(0.515, 0.525), slow=0.5), shapes={"y": (2,)})
    cluster = distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, dashboard_address=None, silence_logs=50, processes=True
    )
    with cluster, distributed.Client(cluster) as client:
        study = da.ensemble.of(job, executor=client, block=2)
    assert study.status[0] == "lost"
    assert (study.status != "lost").sum() == 3
