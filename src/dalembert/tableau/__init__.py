"""The sparse tableau: structure, solvability before numbers, generated elimination (seed 003)."""

from dalembert.tableau.elimination.checks import LinearSolution, Outcome, Statistics
from dalembert.tableau.elimination.elimination import Elimination, eliminate
from dalembert.tableau.elimination.engines import ENGINES
from dalembert.tableau.elimination.plan import Plan, make_plan
from dalembert.tableau.mechanics.assembly import Assembly
from dalembert.tableau.mechanics.bodies import Body, Joint, Multibody, body_positions, coordinates, from_mechanism
from dalembert.tableau.mechanics.dirac import DiracStructure, Split, connection_split
from dalembert.tableau.mechanics.implicit_lagrangian import implicit_lagrangian
from dalembert.tableau.mechanics.maximal import maximal
from dalembert.tableau.mechanics.newton_euler import GRANULARITIES, newton_euler
from dalembert.tableau.mechanics.redundancy import least_norm, redundant_rows, without_rows
from dalembert.tableau.newton import NewtonStep
from dalembert.tableau.structure.index_reduction import reduce_index, signature
from dalembert.tableau.structure.pattern import Pattern
from dalembert.tableau.structure.rank import rank_report
from dalembert.tableau.structure.solvability import Structure, structure
from dalembert.tableau.tableau import Tableau

__all__ = [
    "ENGINES",
    "GRANULARITIES",
    "Assembly",
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
    "least_norm",
    "make_plan",
    "maximal",
    "newton_euler",
    "rank_report",
    "reduce_index",
    "redundant_rows",
    "signature",
    "structure",
    "without_rows",
]
