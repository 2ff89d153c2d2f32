"""From an initial state to a trajectory: steppers, events, stick and slip."""

from dalembert.simulate.event import MODES, Event
from dalembert.simulate.simulate import METHODS, simulate
from dalembert.simulate.steppers import STEPPERS
from dalembert.simulate.trajectory import Trajectory

__all__ = ["METHODS", "MODES", "STEPPERS", "Event", "Trajectory", "simulate"]
