"""Steppers of one state after the other; those of runs with dry friction by name, being in the list is being tested."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dalembert.simulate.dry.explicit import StepFailed, Stepper

    STEPPERS: dict[str, Stepper]

__all__ = ["STEPPERS", "StepFailed", "Stepper"]


def __getattr__(name: str) -> Any:
    """Import the steppers of dry friction when they are first asked for: a smooth run waits for none."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from dalembert.simulate.dry.explicit import DOP853_TABLE, DOPRI5, RK4, DryRadau, StepFailed, Stepper

    steppers = (DOP853_TABLE, DOPRI5, RK4, DryRadau())
    values = {"STEPPERS": {stepper.name: stepper for stepper in steppers}, "StepFailed": StepFailed, "Stepper": Stepper}
    globals().update(values)
    return values[name]
