"""A run as an xarray.Dataset: every quantity over time, with names and units."""

from __future__ import annotations

from typing import Any

import numpy as np

from dalembert.errors import MissingExtraError


def as_dataset(run: Any) -> Any:
    """Return the dataset."""
    try:
        import xarray
    except ImportError as error:
        raise MissingExtraError("xarray", "files", "A run as a dataset") from error
    m = run.mechanism
    coordinates: dict[str, Any] = {
        "t": ("t", run.t, {"units": "s"}),
        "configuration": list(m.configuration_names),
        "velocity": list(m.coordinates),
        "row": list(m.names),
    }
    if run.contacts:
        coordinates |= {"contact": list(run.contacts), "axis": ["x", "y", "z"]}
    variables: dict[str, Any] = {
        "q": (("t", "configuration"), run.q),
        "v": (("t", "velocity"), run.v),
        "acceleration": (("t", "velocity"), run.acceleration),
        "reactions": (("t", "row"), np.asarray(run.reactions)),
        "work": ("t", run.work, {"units": "J"}),
        "kinetic": ("t", run.kinetic, {"units": "J"}),
        "potential": ("t", run.potential, {"units": "J"}),
        "position_residual": ("t", run.position_residual),
        "velocity_residual": ("t", run.velocity_residual),
    }
    if run.contacts:
        variables["modes"] = (("t", "contact"), run.modes)
        forces = np.asarray(run.forces).reshape(run.t.size, len(run.contacts), 3)
        variables["contact_forces"] = (("t", "contact", "axis"), forces, {"units": "N"})
        variables["heat"] = ("t", run.heat, {"units": "J"})
    attributes = {"mechanism": m.name, "method": run.method, "reason": run.reason, "status": run.status}
    return xarray.Dataset(variables, coordinates, attributes)
