"""Every stepper; being in the list is being tested."""

from dalembert.simulate.dry.explicit import DOP853_TABLE, DOPRI5, RK4, DryRadau, StepFailed, Stepper

STEPPERS: dict[str, Stepper] = {}
for _one in (DOP853_TABLE, DOPRI5, RK4, DryRadau()):
    STEPPERS[_one.name] = _one

__all__ = ["STEPPERS", "StepFailed", "Stepper"]
