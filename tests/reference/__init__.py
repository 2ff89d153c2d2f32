"""The same algorithms in plain NumPy, one state at a time, as Featherstone's book prints them."""

from tests.reference.aba import aba
from tests.reference.caba import caba
from tests.reference.crba import crba
from tests.reference.delassus import delassus_by_passes, delassus_by_propagators
from tests.reference.four_steps import ABA, four_steps
from tests.reference.frame_kinematics import PlainKinematics, constraint_rows
from tests.reference.kinematics import frame_drift, frame_jacobian, frame_pose
from tests.reference.momentum import centroidal_momentum, energy
from tests.reference.rnea import rnea
from tests.reference.row_forces import RowForces
from tests.reference.state import State

__all__ = [
    "ABA",
    "PlainKinematics",
    "RowForces",
    "State",
    "aba",
    "caba",
    "centroidal_momentum",
    "constraint_rows",
    "crba",
    "delassus_by_passes",
    "delassus_by_propagators",
    "energy",
    "four_steps",
    "frame_drift",
    "frame_jacobian",
    "frame_pose",
    "rnea",
]
