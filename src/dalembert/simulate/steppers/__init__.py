"""Every stepper; being in the list is being tested."""

from dalembert.simulate.steppers.contract import StepFailed, Stepper
from dalembert.simulate.steppers.radau import Radau
from dalembert.simulate.steppers.tables import DOP853_TABLE, DOPRI5, RK4

STEPPERS: dict[str, Stepper] = {}
for _one in (DOP853_TABLE, DOPRI5, RK4, Radau()):
    STEPPERS[_one.name] = _one

__all__ = ["STEPPERS", "StepFailed", "Stepper"]
