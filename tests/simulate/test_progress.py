"""A run that gets nowhere ends with the reason within seconds; one that goes slowly goes on."""

import numpy as np
import pytest

import dalembert as da
from dalembert.simulate.steppers import progress


def block():
    b = da.Builder("block")
    b.body("block", mass=1.0, inertia=(1, 1, 1))
    b.joint("x", "prismatic", "world", "block", axis=(1, 0, 0))
    return b.build()


def chattering(t, q, v):
    """Friction of 3 N as a force that jumps with the sign of the velocity: from 0.4 s on it holds the block at rest."""
    return -3.0 * np.sign(v) + 0.5


def test_a_run_that_chatters_ends_with_the_reason(monkeypatch):
    """Steps of 4e-10 s led nowhere, for days and without a word."""
    monkeypatch.setattr(progress, "PATIENCE", 0.05)
    run = da.simulate(block(), 5.0, None, [1.0], force=chattering, method="dop853")
    assert run.status == "stopped"
    assert 0.4 <= run.t[-1] < 0.401
    for words in ("no progress", "rejected", "chatter", "breaks="):
        assert words in run.message


@pytest.mark.parametrize(("steps", "rejected", "way", "said"), [
    (100, 300, 1e-7, True),  # most steps fail, the rest takes months
    (100, 30, 1e-9, True),  # steps collapse
    (100, 30, 1e-4, False),  # slow, as a long run is
    (100, 300, 0.1, False),  # a passage that is over soon
    (0, 50, 0.0, True),
])  # fmt: skip
def test_what_is_no_progress(monkeypatch, steps, rejected, way, said):
    now = [0.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    watch = progress.Progress(0.0, 10.0)
    assert watch.lost(way, steps, rejected) == ""
    now[0] = 2 * progress.PATIENCE
    assert bool(watch.lost(way, steps, rejected)) == said
