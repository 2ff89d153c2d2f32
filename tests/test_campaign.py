"""The campaign of `benchmarks/campaign.py`, a few trials of each topic: nothing wrong under a good status."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

FILE = Path(__file__).resolve().parent.parent / "benchmarks" / "campaign.py"

TRIALS = {
    "closed": 10,
    "contacts": 3,
    "drives": 5,
    "drops": 8,
    "events": 4,
    "files": 60,
    "friction": 60,
    "kkt": 100,
    "linkages": 2,
    "reductions": 25,
    "stepping": 6,
    "stores": 20,
}
"""By topic: about ten seconds each."""


def driver() -> ModuleType:
    spec = importlib.util.spec_from_file_location("campaign", FILE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["campaign"] = module
    spec.loader.exec_module(module)
    return module


CAMPAIGN = driver()


def test_every_topic_is_tried() -> None:
    assert CAMPAIGN.topics() == sorted(TRIALS)


@pytest.mark.parametrize("topic", sorted(TRIALS))
def test_nothing_is_wrong_under_a_good_status(topic: str) -> None:
    verdicts, _, faults = CAMPAIGN.run(topic, seed=2, trials=TRIALS[topic])
    assert not faults, faults
    assert verdicts["right"] > 0
