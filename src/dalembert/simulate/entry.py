"""`da.simulate`: one entry for every kind of system."""

from __future__ import annotations

from typing import Any

from dalembert.errors import ModelError
from dalembert.simulate.simulate import METHODS as FRICTION_METHODS
from dalembert.simulate.simulate import simulate as simulate_friction
from dalembert.simulate.trajectory import Trajectory


def simulate(system: Any, duration: float, q: Any = None, v: Any = None, **options: Any) -> Trajectory:
    """Simulate a mechanism, or a system with dry friction, from an initial state.

    Parameters
    ----------
    system
        A `Mechanism` (`da.load`, `da.Builder`), a `Lagrangian` or `Matrices`.
    duration
        Seconds.
    q, v
        Initial configuration and velocity; of a mechanism the neutral configuration and rest by default.
    options
        Of a mechanism: those of `dalembert.simulate.mechanism.simulate_mechanism`; of other systems those of
        `dalembert.simulate.friction_entry`: `method`, `stepper`, `rtol`, `atol`, `step`, `max_step`, `every`, `force`,
        `breaks`, `sticking`.

    Returns
    -------
    Trajectory
        Also where the run could not go on: `status` and `message` say why.
    """
    from dalembert.model.mechanism import Mechanism

    if isinstance(system, Mechanism):
        from dalembert.simulate.mechanism import simulate_mechanism

        return simulate_mechanism(system, duration, q, v, **options)
    if not hasattr(system, "coordinates"):
        raise ModelError(
            f"simulate takes a Mechanism, a Lagrangian or Matrices, not {type(system).__name__}; da.load(file) reads a "
            "robot from a file"
        )
    if options.get("method") == "auto":
        options["method"] = next(iter(FRICTION_METHODS))
    return simulate_friction(system, duration, q, v, **options)
