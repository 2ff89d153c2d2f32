"""The tableau in time: backward differentiation formulas, consistent starts, forward and inverse dynamics of DAEs."""

from dalembert.tableau.time.consistent import Consistent
from dalembert.tableau.time.dae import DAE, from_expressions
from dalembert.tableau.time.events import Event
from dalembert.tableau.time.formulation import FORMULATIONS
from dalembert.tableau.time.known import Table
from dalembert.tableau.time.options import METHODS, Settings
from dalembert.tableau.time.problem import Problem, integrate
from dalembert.tableau.time.result import Result, Statistics

__all__ = [
    "DAE",
    "FORMULATIONS",
    "METHODS",
    "Consistent",
    "Event",
    "Problem",
    "Result",
    "Settings",
    "Statistics",
    "Table",
    "from_expressions",
    "integrate",
]
