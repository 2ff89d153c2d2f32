"""The sparse tableau: structure, solvability before numbers, generated elimination (seed 003)."""

from dalembert.tableau.bodies import Body, Joint, Multibody
from dalembert.tableau.checks import LinearSolution, Outcome, Statistics
from dalembert.tableau.dirac import DiracStructure
from dalembert.tableau.elimination import Elimination, eliminate
from dalembert.tableau.engines import ENGINES
from dalembert.tableau.from_mechanism import body_positions, coordinates, from_mechanism
from dalembert.tableau.implicit_lagrangian import implicit_lagrangian
from dalembert.tableau.index_reduction import reduce_index
from dalembert.tableau.maximal import maximal
from dalembert.tableau.newton_euler import GRANULARITIES, newton_euler
from dalembert.tableau.newton_step import NewtonStep
from dalembert.tableau.pattern import Pattern
from dalembert.tableau.plan import Plan, make_plan
from dalembert.tableau.rank import rank_report
from dalembert.tableau.redundancy import redundant_rows, without_rows
from dalembert.tableau.signature import signature
from dalembert.tableau.solvability import Structure, structure
from dalembert.tableau.split import Split, connection_split
from dalembert.tableau.stanford import stanford_arm
from dalembert.tableau.tableau import Tableau

__all__ = [
    "ENGINES",
    "GRANULARITIES",
    "Body",
    "DiracStructure",
    "Elimination",
    "Joint",
    "LinearSolution",
    "Multibody",
    "NewtonStep",
    "Outcome",
    "Pattern",
    "Plan",
    "Split",
    "Statistics",
    "Structure",
    "Tableau",
    "body_positions",
    "connection_split",
    "coordinates",
    "eliminate",
    "from_mechanism",
    "implicit_lagrangian",
    "make_plan",
    "maximal",
    "newton_euler",
    "rank_report",
    "reduce_index",
    "redundant_rows",
    "signature",
    "stanford_arm",
    "structure",
    "without_rows",
]
