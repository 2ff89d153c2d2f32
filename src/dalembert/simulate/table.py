"""A run as a table: columns by name with their units, for plots, CSV files and data frames."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dalembert.errors import MissingExtraError, ModelError
from dalembert.model.constraints.primitives import coordinate_index
from dalembert.model.joints import KINDS
from dalembert.names import near_matches
from dalembert.simulate.events.record import MODES
from dalembert.types import Array

if TYPE_CHECKING:
    from dalembert.simulate.trajectory import Trajectory

# ----------------------------------------------------------------------------------------------------------------------
# Units: of a mechanism those of its joints and rows; of a Lagrangian or of matrices nobody knows them.


RATES = {"m": ("m/s", "m/s²"), "rad": ("rad/s", "rad/s²"), "": ("", "")}
"""Units of velocity and acceleration by the unit of a coordinate."""


def velocity_units(system: Any) -> tuple[str, ...]:
    """Return the unit of every coordinate whose rate is a column of v: "m", "rad", or "" where it is not known."""
    if not hasattr(system, "joints"):
        return ("",) * len(system.coordinates)
    return tuple("rad" if turns else "m" for joint in system.joints for turns in KINDS[joint.kind].angular)


def configuration_units(system: Any) -> tuple[str, ...]:
    """Return the unit of every column of q; parts of a unit vector, as of a quaternion, have the unit "1"."""
    if not hasattr(system, "joints"):
        return ("",) * len(system.coordinates)
    units: list[str] = []
    for kind in (KINDS[joint.kind] for joint in system.joints):
        plain = iter("rad" if turns else "m" for turns in kind.angular)
        inside = range(kind.nq)[kind.unit]
        units += ["1" if i in inside else next(plain) for i in range(kind.nq)]
    return tuple(units)


def force_units(system: Any) -> tuple[str, ...]:
    """Return the unit of the generalized force of every column of v: N, N m, or "" where it is not known."""
    return tuple({"m": "N", "rad": "N m"}.get(unit, "") for unit in velocity_units(system))


def row_units(system: Any) -> tuple[str, ...]:
    """Return the unit of every reaction: N, N m, or "" of the user's own expressions and of gears between both."""
    if not hasattr(system, "angular_rows"):
        return ("",) * len(system.names)
    units = []
    for group, turn in zip(system.row_groups, system.angular_rows, strict=True):
        constraint = system.all_constraints[group]
        if constraint.kind in ("servo", "coupler"):
            units.append(_drive_unit(system, constraint))
        else:
            units.append("" if constraint.kind == "expression" else "N m" if turn else "N")
    return tuple(units)


def _drive_unit(system: Any, constraint: Any) -> str:
    """Return the unit of the force along a servo's coordinate, or along those of a coupler if they have one unit."""
    names = [constraint.coordinate] if constraint.kind == "servo" else [name for name, _ in constraint.terms]
    forces = {force_units(system)[coordinate_index(system, name, constraint.label)] for name in names}
    return forces.pop() if len(forces) == 1 else ""


# ----------------------------------------------------------------------------------------------------------------------
# Columns: one number, or one word, per sample.


@dataclass(frozen=True, eq=False)
class Column:
    """A quantity of a run over time; `name` is what `run[name]` is asked for, where it has one."""

    name: str
    unit: str
    values: Array

    @property
    def header(self) -> str:
        """The name with its unit, as in "hinge [rad]"."""
        return f"{self.name} [{self.unit}]" if self.unit else self.name


def rate_name(name: str) -> str:
    """Return a velocity "x'" as "x.v", an acceleration "x''" as "x.a"; other names as they are."""
    base = name.rstrip("'")
    return f"{base}{('', '.v', '.a')[len(name) - len(base)]}" if 0 < len(name) - len(base) < 3 else name


def _columns(names: Sequence[str], units: Sequence[str], values: Array) -> list[Column]:
    return [Column(name, unit, values[:, k]) for k, (name, unit) in enumerate(zip(names, units, strict=True))]


def _coordinates(run: Trajectory) -> list[Column]:
    return _columns(run.configuration_names, configuration_units(run.moving), run.q)


def _velocities(run: Trajectory) -> list[Column]:
    units = [RATES[unit][0] for unit in velocity_units(run.moving)]
    return _columns([f"{name}.v" for name in run.coordinates], units, run.v)


def _accelerations(run: Trajectory) -> list[Column]:
    units = [RATES[unit][1] for unit in velocity_units(run.moving)]
    return _columns([f"{name}.a" for name in run.coordinates], units, run.acceleration)


def _reactions(run: Trajectory) -> list[Column]:
    return _columns(run.moving.names, row_units(run.moving), np.asarray(run.reactions))


def _contact_forces(run: Trajectory) -> list[Column]:
    entries: list[Column] = []
    for name in run.contacts:
        values = run.forces[:, run.contact_columns[name]]
        letters = ("x", "y", "z") if run.columns is None else tuple(str(k) for k in range(values.shape[1]))
        names = [name] if values.shape[1] == 1 else [f"{name} {letter}" for letter in letters]
        entries += _columns(names, ["N"] * len(names), values)
    return entries


def _joint_forces(run: Trajectory) -> list[Column]:
    """Return force and moment of every joint, loop, constraint, spring and contact; see `run.joint_forces`."""
    words = (("fx", "N"), ("fy", "N"), ("fz", "N"), ("mx", "N m"), ("my", "N m"), ("mz", "N m"))
    names, units = [name for name, _ in words], [unit for _, unit in words]
    entries: list[Column] = []
    for name in run.joint_forces:
        entries += _columns(
            [f"{name} {component}" for component in names], units, np.asarray(run.joint_forces[name].wrench)
        )
    return entries


def _modes(run: Trajectory) -> list[Column]:
    words = np.vectorize(lambda mode: MODES[int(mode)], otypes=[object])
    return [Column(f"{name}: mode", "", words(run.modes[:, k])) for k, name in enumerate(run.contacts)]


def _energy(run: Trajectory) -> list[Column]:
    if not getattr(run.moving, "has_energy", hasattr(run.moving, "energy")):
        return []
    parts = {"kinetic energy": run.kinetic, "potential energy": run.potential, "energy": run.energy.total}
    parts |= {"work": run.work} | ({"heat": run.heat} if run.contacts else {})
    return [Column(name, "J", values) for name, values in parts.items()]


def _residuals(run: Trajectory) -> list[Column]:
    entries = []
    if getattr(run.moving, "has_energy", hasattr(run.moving, "energy")):
        entries.append(Column("energy residual", "J", run.energy_residual))
    if run.moving.names and hasattr(run.moving, "constraint"):
        entries.append(Column("position residual", "", run.position_residual))
        entries.append(Column("velocity residual", "", run.velocity_residual))
    return entries


def _unknowns(run: Trajectory) -> list[Column]:
    moving = set(run.coordinates)
    names = [rate_name(name) if name.rstrip("'") in moving else name for name in run.unknowns]
    return _columns(names, [""] * len(names), run.x)


ON_REQUEST = ("unknowns", "joint_forces")
"""Quantities that a table of everything leaves out: those of other systems, and six columns for every joint."""

QUANTITIES: dict[str, Callable[[Trajectory], list[Column]]] = {
    "coordinates": _coordinates,
    "velocities": _velocities,
    "accelerations": _accelerations,
    "reactions": _reactions,
    "forces": _contact_forces,
    "joint_forces": _joint_forces,
    "contacts": _modes,
    "energy": _energy,
    "residuals": _residuals,
    "unknowns": _unknowns,
}
"""Quantities of a table, by the words that `run.plot` knows; being in the list is being tested."""


def columns(run: Trajectory, what: Sequence[str] | str | None = None) -> list[Column]:
    """Return time and the columns of the quantities that are asked for, all that the run has by default.

    No two columns have one name: a reaction that is called as a coordinate becomes "name (2)".
    """
    chosen = (what,) if isinstance(what, str) else what
    if chosen is None:
        chosen = ("unknowns",) if "q" not in run.samples else [key for key in QUANTITIES if key not in ON_REQUEST]
    wrong = next((key for key in chosen if key not in QUANTITIES), None)
    if wrong is not None:
        words = ", ".join(map(repr, QUANTITIES))
        raise ModelError(f"what={wrong!r} is not one of {words}", near=near_matches(wrong, QUANTITIES))
    entries = [Column("t", "s", run.t)]
    taken = {"t"}
    for column in (column for key in chosen for column in QUANTITIES[key](run)):
        name, k = column.name, 2
        while name in taken:
            name, k = f"{column.name} ({k})", k + 1
        taken.add(name)
        entries.append(Column(name, column.unit, column.values))
    return entries


# ----------------------------------------------------------------------------------------------------------------------
# Tables for other programs.


def as_csv(run: Trajectory, path: str | Path | None, what: Sequence[str] | str | None) -> str | None:
    """Write a CSV file, or return its text; numbers have as many digits as reading them back needs."""
    table = columns(run, what)
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow([column.header for column in table])
    lists = [column.values.tolist() for column in table]
    writer.writerows([[x if isinstance(x, str) else repr(x) for x in row] for row in zip(*lists, strict=True)])
    if path is None:
        return stream.getvalue()
    Path(path).write_text(stream.getvalue(), encoding="utf-8")
    return None


def as_dataframe(run: Trajectory, what: Sequence[str] | str | None, units: bool) -> Any:
    """Return a pandas.DataFrame, one row per sample."""
    try:
        import pandas as pd
    except ImportError as error:
        raise MissingExtraError("pandas", "files", "A run as a data frame") from error
    table = columns(run, what)
    frame = pd.DataFrame({column.header if units else column.name: column.values for column in table[1:]})
    frame.index = pd.Index(run.t, name=table[0].header if units else table[0].name)
    frame.attrs["units"] = {column.name: column.unit for column in table}
    return frame
