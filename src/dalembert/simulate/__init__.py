"""From an initial state to a trajectory: steppers, events, stick and slip.

The room has the name of its one function, so it can be called like it: `da.simulate(system, duration, q, v)`.
"""

import sys
from functools import wraps
from types import ModuleType
from typing import Any

from dalembert.simulate.entry import simulate
from dalembert.simulate.event import MODES, Event
from dalembert.simulate.mechanism_trajectory import MechanismTrajectory
from dalembert.simulate.simulate import METHODS
from dalembert.simulate.steppers import STEPPERS
from dalembert.simulate.storage.resume import resume
from dalembert.simulate.trajectory import Trajectory

__all__ = ["METHODS", "MODES", "STEPPERS", "Event", "MechanismTrajectory", "Trajectory", "resume", "simulate"]


class _Room(ModuleType):
    """A module that can be called: importing a room binds its name in `dalembert`, which is the function's name too."""

    @wraps(simulate)
    def __call__(self, *arguments: Any, **options: Any) -> Trajectory:
        return simulate(*arguments, **options)


sys.modules[__name__].__class__ = _Room
