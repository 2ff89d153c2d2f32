"""The sparse tableau: structure, solvability before numbers, generated elimination (seed 003)."""

from dalembert.tableau.circuit import Circuit, connect
from dalembert.tableau.elimination.elimination import Elimination, eliminate
from dalembert.tableau.elimination.engines import ENGINES, LinearSolution, SolveCounts
from dalembert.tableau.elimination.plan import Plan, make_plan
from dalembert.tableau.fixed_order import FixedOrderRun, sparse_tableau_method
from dalembert.tableau.mechanics.assembly import ElementAssembly
from dalembert.tableau.mechanics.dirac import DiracStructure, Split, connection_split
from dalembert.tableau.mechanics.implicit_lagrangian import implicit_lagrangian
from dalembert.tableau.mechanics.maximal import maximal
from dalembert.tableau.mechanics.newton_euler import GRANULARITIES, newton_euler
from dalembert.tableau.mechanics.redundancy import least_norm, redundant_rows, without_rows
from dalembert.tableau.mechanics.welded import body_positions, coordinates
from dalembert.tableau.newton_batch import NewtonStep
from dalembert.tableau.structure.index_reduction import reduce_index, signature
from dalembert.tableau.structure.pattern import Pattern
from dalembert.tableau.structure.rank import rank_report
from dalembert.tableau.structure.solvability import Structure, structure
from dalembert.tableau.tableau import Tableau

__all__ = [
    "ENGINES",
    "GRANULARITIES",
    "Circuit",
    "DiracStructure",
    "ElementAssembly",
    "Elimination",
    "FixedOrderRun",
    "LinearSolution",
    "NewtonStep",
    "Pattern",
    "Plan",
    "SolveCounts",
    "Split",
    "Structure",
    "Tableau",
    "body_positions",
    "connect",
    "connection_split",
    "coordinates",
    "eliminate",
    "implicit_lagrangian",
    "least_norm",
    "make_plan",
    "maximal",
    "newton_euler",
    "rank_report",
    "reduce_index",
    "redundant_rows",
    "signature",
    "sparse_tableau_method",
    "structure",
    "without_rows",
]
