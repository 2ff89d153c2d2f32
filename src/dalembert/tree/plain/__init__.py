"""The same algorithms in plain NumPy, one state at a time, as Featherstone's book prints them."""

from dalembert.tree.plain.aba import aba
from dalembert.tree.plain.crba import crba
from dalembert.tree.plain.frame_kinematics import PlainKinematics
from dalembert.tree.plain.kinematics import frame_drift, frame_jacobian, frame_pose
from dalembert.tree.plain.momentum import centroidal_momentum, energy
from dalembert.tree.plain.rnea import rnea
from dalembert.tree.plain.state import State

__all__ = [
    "PlainKinematics",
    "State",
    "aba",
    "centroidal_momentum",
    "crba",
    "energy",
    "frame_drift",
    "frame_jacobian",
    "frame_pose",
    "rnea",
]
