"""The same algorithms in plain NumPy, one state at a time, as Featherstone's book prints them."""

from dalembert.tree.plain.aba import aba
from dalembert.tree.plain.caba import caba
from dalembert.tree.plain.crba import crba
from dalembert.tree.plain.delassus import delassus_by_passes, delassus_by_propagators
from dalembert.tree.plain.four_steps import ABA, four_steps
from dalembert.tree.plain.frame_kinematics import PlainKinematics
from dalembert.tree.plain.kinematics import frame_drift, frame_jacobian, frame_pose
from dalembert.tree.plain.momentum import centroidal_momentum, energy
from dalembert.tree.plain.rnea import rnea
from dalembert.tree.plain.row_forces import RowForces
from dalembert.tree.plain.state import State

__all__ = [
    "ABA",
    "PlainKinematics",
    "RowForces",
    "State",
    "aba",
    "caba",
    "centroidal_momentum",
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
