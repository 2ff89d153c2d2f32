"""From an initial state to a trajectory: all integration in time.

The room has the name of its one function: `da.simulate` is the function (`dalembert/__init__.py` keeps it so), and the
room is imported by `from dalembert.simulate import contact` or `import dalembert.simulate.contact as contact`; a plain
`import dalembert.simulate.contact` leaves `dalembert.simulate` the function, which has no sub-rooms.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dalembert.first_use import on_first_use

if TYPE_CHECKING:
    from dalembert.simulate.entry import simulate
    from dalembert.simulate.equations.consistent import Consistent
    from dalembert.simulate.equations.dae import DAE, from_expressions
    from dalembert.simulate.equations.formulation import FORMULATIONS
    from dalembert.simulate.equations.signals import Table
    from dalembert.simulate.events.asked import Event
    from dalembert.simulate.events.record import MODES, EventRecord
    from dalembert.simulate.joint_hold import hold
    from dalembert.simulate.problem import Problem, integrate
    from dalembert.simulate.result import Result, Statistics
    from dalembert.simulate.settings import Settings
    from dalembert.simulate.storage.read import resume
    from dalembert.simulate.time_methods import METHODS
    from dalembert.simulate.trajectory import Trajectory

_ON_FIRST_USE = {
    "simulate": "entry",
    "METHODS": "time_methods",
    "Consistent": "equations.consistent",
    **dict.fromkeys(("DAE", "from_expressions"), "equations.dae"),
    "FORMULATIONS": "equations.formulation",
    "Table": "equations.signals",
    "Event": "events.asked",
    **dict.fromkeys(("MODES", "EventRecord"), "events.record"),
    "hold": "joint_hold",
    **dict.fromkeys(("Problem", "integrate"), "problem"),
    **dict.fromkeys(("Result", "Statistics"), "result"),
    "Settings": "settings",
    "resume": "storage.read",
    "Trajectory": "trajectory",
}
"""Names by file: a run without contacts waits for no contact engine, a friction problem for no implicit stepper."""

__all__ = [
    "DAE",
    "FORMULATIONS",
    "METHODS",
    "MODES",
    "Consistent",
    "Event",
    "EventRecord",
    "Problem",
    "Result",
    "Settings",
    "Statistics",
    "Table",
    "Trajectory",
    "from_expressions",
    "hold",
    "integrate",
    "resume",
    "simulate",
]


__getattr__ = on_first_use(__name__, _ON_FIRST_USE)
