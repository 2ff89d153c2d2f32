"""Ensembles: many runs of one system, from distributions to statistics, on the machines one has.

The room has the name of its one function: `da.ensemble` is the callable (`dalembert/__init__.py` keeps it so), with
`.resume`, `.open` and `.plan` as its members; the room is imported by `from dalembert.ensemble import ...`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dalembert.first_use import on_first_use

if TYPE_CHECKING:
    from dalembert.ensemble.designs import DESIGNS
    from dalembert.ensemble.distributions import normal, uniform, values
    from dalembert.ensemble.entry import ensemble
    from dalembert.ensemble.experiment import STATUSES
    from dalembert.ensemble.plan import StudyPlan
    from dalembert.ensemble.study import Study

_ON_FIRST_USE = {
    "DESIGNS": "designs",
    **dict.fromkeys(("normal", "uniform", "values"), "distributions"),
    "ensemble": "entry",
    "STATUSES": "experiment",
    "StudyPlan": "plan",
    "Study": "study",
}

__all__ = ["DESIGNS", "STATUSES", "Study", "StudyPlan", "ensemble", "normal", "uniform", "values"]


__getattr__ = on_first_use(__name__, _ON_FIRST_USE)
