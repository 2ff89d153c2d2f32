"""Every function of a large mechanism that loops compute: the table that `requests.py` looks into."""

from __future__ import annotations

from collections.abc import Callable

from dalembert.large.block_functions import (
    make_delassus,
    make_delassus_factor,
    make_delassus_solve,
    make_impact,
    make_kkt,
    make_project,
    make_project_step,
    make_project_velocity,
)
from dalembert.large.dynamic_functions import (
    make_aba,
    make_bias,
    make_constraint,
    make_constraint_drift,
    make_constraint_jacobian,
    make_constraint_velocity,
    make_forward,
    make_gravity,
    make_inverse,
    make_mass_matrix,
)
from dalembert.large.motion_functions import (
    LoopedFunction,
    make_center_of_mass,
    make_center_of_mass_velocity,
    make_energy,
    make_jacobian,
    make_jacobian_drift,
    make_kinematics,
    make_momentum,
    make_momentum_rate,
    make_velocity,
)

MAKERS: dict[str, Callable[..., LoopedFunction]] = {
    "kinematics": make_kinematics,
    "velocity": make_velocity,
    "jacobian_drift": make_jacobian_drift,
    "jacobian": make_jacobian,
    "energy": make_energy,
    "center_of_mass": make_center_of_mass,
    "center_of_mass_velocity": make_center_of_mass_velocity,
    "momentum": make_momentum,
    "momentum_rate": make_momentum_rate,
    "forward": make_forward,
    "aba": make_aba,
    "inverse": make_inverse,
    "bias": make_bias,
    "gravity": make_gravity,
    "mass_matrix": make_mass_matrix,
    "constraint": make_constraint,
    "constraint_velocity": make_constraint_velocity,
    "constraint_drift": make_constraint_drift,
    "constraint_jacobian": make_constraint_jacobian,
    "kkt": make_kkt,
    "impact": make_impact,
    "project_velocity": make_project_velocity,
    "project_step": make_project_step,
    "project": make_project,
    "delassus": make_delassus,
    "delassus_factor": make_delassus_factor,
    "delassus_solve": make_delassus_solve,
}
"""By request: make(mechanism, **options) returns the function with its ports and figures."""
