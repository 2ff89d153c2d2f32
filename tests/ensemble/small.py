"""Experiments that cost next to nothing, for what is said of blocks, workers and stores."""

from __future__ import annotations

import os
import signal
import time
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace

import casadi as ca
import numpy as np

import dalembert as da
from dalembert.ensemble.blocks import StudyJob, compute, with_shapes
from dalembert.ensemble.designs import Design
from dalembert.ensemble.entry import ensemble
from dalembert.ensemble.keep import keepers


def oscillator():
    """m q'' + c q' + k q = 0 with m = 1."""
    q, v, k, c = (ca.SX.sym(name) for name in "qvkc")
    parameters = {"k": (k, 4.0), "c": (c, 0.0)}
    return da.Lagrangian(
        q, v, kinetic=v**2 / 2, potential=k * q**2 / 2, dissipation=c * v**2 / 2, parameters=parameters
    )


def run_like(x, status="completed"):
    """Return what a study reads of a trajectory."""
    event = SimpleNamespace(time=float(x), contact="touch", old="open", new="closed")
    return SimpleNamespace(
        t=np.array([0.0, 1.0]), events=(event,) if x > 0.5 else (), steps=1, status=status, ok=status == "completed",
        message="" if status == "completed" else "no answer here", x=np.array([0.0, x]),
    )  # fmt: skip


@dataclass(frozen=True, eq=False)
class QuickExperiment:
    """Runs whose answer is their input; some raise, some kill their process: for ever, or once."""

    kills: tuple[float, float] = (2.0, 2.0)
    once: str = ""
    slow: float = 0.0

    def run(self, values):
        x = values["x"]
        time.sleep(self.slow)
        if self.kills[0] <= x < self.kills[1] and not (self.once and Path(self.once).exists()):
            if self.once:
                Path(self.once).touch()
            os.kill(os.getpid(), signal.SIGKILL)
        if 0.10 < x < 0.15:
            raise RuntimeError(f"no run at {x}")
        if 0.20 < x < 0.25:
            raise da.ModelError("refused here")
        return run_like(x, "no solution" if 0.30 < x < 0.35 else "completed")

    def described(self):
        return {"system": "not stored: an experiment of a test"}


def kept(run):
    """Return what the quick runs keep."""
    return [run.x[-1], run.x[-1] ** 2]


def quick_job(runs, seed=5, **experiment):
    """Return a study of quick runs."""
    design = Design.of("random", seed, runs, {"x": da.uniform(0.0, 1.0)})
    return StudyJob(QuickExperiment(**experiment), design, keepers({"y": kept}), record_events=True)


def job_of(*given, backend="c", runs=9, **options):
    """Return a study whose smooth runs are made in step, on a backend."""
    return with_shapes(replace(ensemble.job(*given, runs=runs, seed=3, **options), backend=backend))


def in_step(job, **options):
    """Return the study of a job."""
    return ensemble.of(job, progress=False, executor=None, **options)


def columns_of(job):
    """Return the columns of all runs of a job, made as one block."""
    return compute(job, 0, job.design.runs).arrays


def made_alone(job, i):
    """Return what is kept of run i where `da.simulate` makes it."""
    return compute(replace(job, backend="cpu", batches=False), i, i + 1).arrays
