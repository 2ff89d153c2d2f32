"""Dask's cluster as an executor: a worker that dies, one that is slow, a scheduler that is not there."""

from __future__ import annotations

import os
import signal
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

import dalembert as da
from dalembert.ensemble.executors import WorkersLostError
from tests.ensemble.small import quick_job
from tests.ensemble.test_workers import files_of

distributed = pytest.importorskip("distributed")
pytestmark = pytest.mark.filterwarnings("ignore")  # of Dask's own threads and sockets


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
        killed = []

        def kill(block):
            os.kill(pids[addresses[1]], signal.SIGKILL)
            killed.append(block)

        from dalembert.ensemble import entry

        plain = entry.StudyProgress.add

        def add(self, counts):
            plain(self, counts)
            if not killed:
                kill(0)

        entry.StudyProgress.add = add
        try:
            study = da.ensemble.of(job, executor=client, block=10, to=tmp_path / "dask.zarr")
        finally:
            entry.StudyProgress.add = plain
    assert killed
    assert study.complete
    assert study.status_counts == calm.status_counts
    assert files_of(tmp_path / "dask.zarr") == files_of(tmp_path / "calm.zarr")


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
