"""What a system is: the protocol `System`, and systems written down by hand."""

from dalembert.model.crank_slider import CrankSlider
from dalembert.model.matrices import Matrices
from dalembert.model.system import System, block_system, solve, unconstrained_acceleration

__all__ = ["CrankSlider", "Matrices", "System", "block_system", "solve", "unconstrained_acceleration"]
