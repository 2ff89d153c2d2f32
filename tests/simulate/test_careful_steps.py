"""The careful way of a step, through Python: what has no answer has a status, and no foreign error leaves it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import dalembert as da
from dalembert.kkt import Status
from dalembert.simulate.equations import callbacks
from dalembert.simulate.equations.callbacks import Callbacks


def linkage() -> da.Mechanism:
    b = da.Builder("pendulum on a pin")
    b.body("rod", mass=1.0, center=(0, 0, -0.5), inertia=(0.1, 0.1, 0.01))
    b.joint("hinge", "revolute", "world", "rod", axis=(0, 1, 0))
    b.loop("pin", "point", "rod", "world")
    return b.build()


def work_at(m: da.Mechanism, q: float, v: float) -> Any:
    rows = len(m.names)
    return SimpleNamespace(
        q=np.array([q]), v=np.array([v]), environment=np.zeros(2), residual=np.zeros(rows), correction=np.zeros(1),
        velocity=np.zeros(1), status=np.zeros(1),
    )  # fmt: skip


@pytest.mark.parametrize(("q", "status"), [(0.1, Status.UNIQUE), (np.nan, Status.NONFINITE)])
def test_a_newton_step_has_the_status_of_its_data(q: float, status: Status) -> None:
    m = linkage()
    work, run = work_at(m, q, 0.0), SimpleNamespace(codes=SimpleNamespace(system=m, looped=False))
    Callbacks._close(run, work)  # type: ignore[arg-type]
    assert work.status[0] == status
    assert np.isfinite(work.correction).all() == (status is Status.UNIQUE)


def test_a_velocity_that_breaks_rows_ends_no_step(monkeypatch: pytest.MonkeyPatch) -> None:
    m = linkage()
    work, run = work_at(m, 0.1, 1.0), SimpleNamespace(codes=SimpleNamespace(system=m, looped=False))
    admissible = callbacks.admissible_velocity

    def broken(*arguments: Any) -> Any:
        return admissible(*arguments)._replace(status=Status.ILL_CONDITIONED, open={"pin x": 0.2})

    monkeypatch.setattr(callbacks, "admissible_velocity", broken)
    Callbacks._admit(run, work)  # type: ignore[arg-type]
    assert not Status(int(work.status[0])).answered


def test_a_velocity_without_a_metric_is_no_foreign_error(monkeypatch: pytest.MonkeyPatch) -> None:
    m = linkage()
    work, run = work_at(m, 0.1, 1.0), SimpleNamespace(codes=SimpleNamespace(system=m, looped=False))

    def no_metric(*_: Any) -> None:
        raise np.linalg.LinAlgError("not positive definite")

    monkeypatch.setattr(callbacks, "admissible_velocity", no_metric)
    Callbacks._admit(run, work)  # type: ignore[arg-type]
    assert work.status[0] == Status.NONFINITE
