"""MPI as an executor, with two ranks; where mpi4py (extra `mpi`) and mpiexec are there."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("mpi4py")

STUDY = """
import sys
from concurrent.futures import ThreadPoolExecutor

from mpi4py import MPI
from mpi4py.futures import MPIPoolExecutor

import dalembert as da
from tests.ensemble.small import oscillator
from tests.ensemble.test_workers import files_of

if __name__ == "__main__":
    given = dict(runs=40, seed=2, q=[1.0], v=[0.0], parameters={"k": da.uniform(2.0, 6.0)}, block=5)
    calm, shared = sys.argv[1] + "/calm.zarr", sys.argv[1] + "/mpi.zarr"
    da.ensemble(oscillator(), 0.5, executor=ThreadPoolExecutor(1), to=calm, **given)
    with MPIPoolExecutor() as pool:
        da.ensemble(oscillator(), 0.5, executor=pool, to=shared, **given)
    print("ranks", MPI.COMM_WORLD.size, "same", files_of(calm) == files_of(shared))
"""


@pytest.mark.skipif(shutil.which("mpiexec") is None, reason="there is no mpiexec")
def test_two_ranks_write_the_same_store(tmp_path):
    (tmp_path / "study.py").write_text(STUDY)
    root = str(Path(__file__).parents[2])
    paths = [f"{root}/src", root, *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join(paths), "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
        "OMPI_MCA_rmaps_base_oversubscribe": "1",
    }  # fmt: skip
    line = ["mpiexec", "-n", "2", sys.executable, "-m", "mpi4py.futures", str(tmp_path / "study.py"), str(tmp_path)]
    run = subprocess.run(line, env=environment, capture_output=True, text=True, check=False, timeout=300)
    assert "ranks 2 same True" in run.stdout, run.stderr[-2000:]
