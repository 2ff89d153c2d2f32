"""`dalembert inverse FILE --motion TABLE`: forces that cause a given motion."""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import tyro

from dalembert.cli.target import print_json, scene_of, writable
from dalembert.errors import ModelError, ShapeError

FEWEST = 4
"""Times that a cubic spline needs."""


@dataclass(frozen=True)
class InverseCommand:
    """Inverse dynamics along a motion: a CSV table of times and coordinates becomes a table of joint forces.

    Velocities and accelerations are the columns "joint.v" and "joint.a" (or joint' and joint''), where the table has
    them; else those of a cubic spline, and the answer says so. Coordinates that the table does not have stay where the
    scene's start has them; where there are loops, the table has all of them, and of joints with quaternions or cosines
    their rates, too (`dalembert simulate --csv` writes such tables). Contacts do not act: of a robot on its feet the
    forces of the base are those that the ground must give. Exit code 1 where the driven joints cannot cause the motion.

    For example:

        dalembert inverse robot.urdf --motion motion.csv -o torques.csv

        dalembert inverse four_bar --motion run.csv --actuated motor
    """

    file: Annotated[Path, tyro.conf.Positional]
    """A scene or its name, or a robot file."""

    motion: Path
    """CSV: a column t, and one for each coordinate that moves; units in brackets are left out."""

    actuated: tuple[str, ...] = ()
    """Driven joints; all by default."""

    output: Annotated[Path | None, tyro.conf.arg(aliases=["-o"])] = None
    """Write the forces as CSV; without it the peaks are printed."""

    set: tyro.conf.UseAppendAction[tuple[str, ...]] = ()
    """Another value of a scene's parameter, NAME=NUMBER."""

    base: Literal["auto", "fixed", "floating"] = "auto"
    """What holds the root of a robot file."""

    packages: tuple[Path, ...] = ()
    """Folders besides the file's own from which models may be read."""

    json: bool = False
    """Print plain data instead of words."""

    def run(self) -> int:
        """Solve along the motion, print peaks, write the table, and return the exit code."""
        writable(self.output, (".csv",), "-o")
        scene = scene_of(self.file, self.set, self.packages, self.base)
        from dalembert.simulate.table import force_units

        m = scene.mechanism
        t, q, v, a, splined = self._states(scene)
        actuated = list(self.actuated) or None
        tau, _, status = m.inverse(q, v, a, t, actuated=actuated)
        failed, units = _failed(tau, status), force_units(m)
        peaks = {n: {"peak": float(tau[k, j]), "at": float(t[k])} for j, n in enumerate(m.coordinates)
                 for k in [int(np.nanargmax(np.abs(np.nan_to_num(tau[:, j]))))]}  # fmt: skip
        if self.output is not None:
            self.output.write_text(_table(t, m.coordinates, units, tau), encoding="utf-8")
        if self.json:
            print_json({"peaks": peaks, "samples": t.size, "failed": failed.size, "splined": splined,
                        "written": [] if self.output is None else [self.output]})  # fmt: skip
        else:
            width = max(len(name) for name in m.coordinates)
            print(f"{'coordinate'.ljust(width)}  {'peak':>12s}       at, s")
            for (name, peak), unit in zip(peaks.items(), units, strict=True):
                print(f"{name.ljust(width)}  {peak['peak'] + 0.0:12.5g} {unit:3s}  {peak['at']:.4g}")
            if failed.size:
                print(f"{failed.size} of {t.size} samples have no answer, the first at t = {t[failed[0]]:g} s")
            if splined:
                named = ", ".join(splined[:4]) + (" ..." if splined[4:] else "")
                print(f"accelerations of {named} are those of a cubic spline: as good as the table is dense; columns")
                print("'NAME.v' and 'NAME.a' are taken as they are")
            if self.output is not None:
                print(f"written: {self.output}")
        return 1 if failed.size else 0

    def _states(self, scene: Any) -> tuple[Any, ...]:
        """Return times, configurations, velocities and accelerations of the table, and whose are those of a spline."""
        from scipy.interpolate import CubicSpline

        from dalembert.scenes.formulas import read_table, table_column
        from dalembert.simulate.table import rate_name

        m = scene.mechanism
        columns = {rate_name(name): values for name, values in read_table(self.motion).items()}
        t = table_column(columns, "t", self.motion)
        if (np.diff(t) < 0).any():
            k = int(np.flatnonzero(np.diff(t) < 0)[0])
            raise ModelError(f"{self.motion}: times must grow; line {k + 3} has t = {t[k + 1]:g} after {t[k]:g}")
        last = np.append(np.diff(t) > 0, True)  # of an instant that is there twice, before and after an event
        columns, t = {name: values[last] for name, values in columns.items()}, t[last]
        if t.size < FEWEST:
            raise ModelError(f"{self.motion} has {t.size} different times; a motion needs at least {FEWEST}")
        q0, _ = scene.start
        q, v, a = np.tile(q0, (t.size, 1)), np.zeros((t.size, m.nv)), np.zeros((t.size, m.nv))
        moved = [name for name in columns if name in m.configuration_names]
        if not moved:
            words = ", ".join(m.configuration_names[:8])
            raise ShapeError(f"{self.motion} has no column that is called like a coordinate; there are {words}")
        for name in moved:
            q[:, m.configuration_names.index(name)] = columns[name]
        splined = []
        for joint in m.joints:
            places, rates = m.index_q(joint.name), m.index_v(joint.name)
            still = not any(name in columns for name in m.configuration_names[places])
            for j in range(rates.start, rates.stop):
                name = m.coordinates[j]
                k = places.start + j - rates.start
                plain = name == m.configuration_names[k] and not still
                if f"{name}.v" in columns:
                    v[:, j] = columns[f"{name}.v"]
                elif plain:
                    v[:, j] = CubicSpline(t, q[:, k])(t, 1)
                elif not still:
                    words = f"the rates of {joint.name!r} are not those of its coordinates"
                    raise ModelError(f"{self.motion}: {words}: the table needs the columns {name}.v and {name}.a")
                if f"{name}.a" in columns:
                    a[:, j] = columns[f"{name}.a"]
                elif f"{name}.v" in columns or plain:
                    a[:, j] = CubicSpline(t, v[:, j])(t, 1)
                    splined.append(name)
        return t, m.normalize(q), v, a, splined


def _failed(tau: Any, status: Any) -> Any:
    """Return the samples without an answer."""
    from dalembert.kkt import Status

    return np.flatnonzero((np.asarray(status) > Status.LEAST_SQUARES) | ~np.isfinite(tau).all(axis=1))


def _table(t: Any, names: Any, units: Any, tau: Any) -> str:
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(["t [s]", *(f"{name} [{unit}]" for name, unit in zip(names, units, strict=True))])
    writer.writerows([[repr(x) for x in row] for row in np.column_stack([t, tau]).tolist()])
    return stream.getvalue()
