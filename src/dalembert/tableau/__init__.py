"""The sparse tableau: structure, solvability before numbers, generated elimination (seed 003)."""

from dalembert.tableau.elimination import Elimination, eliminate
from dalembert.tableau.engines import ENGINES
from dalembert.tableau.newton_step import NewtonStep
from dalembert.tableau.pattern import Pattern
from dalembert.tableau.plan import Plan, make_plan
from dalembert.tableau.rank import rank_report
from dalembert.tableau.solvability import Structure, structure

__all__ = ["ENGINES", "Elimination", "NewtonStep", "Pattern", "Plan", "Structure", "eliminate", "make_plan", "rank_report", "structure"]
