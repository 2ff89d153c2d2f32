"""Plots of trajectories: one panel per question, phases of contacts behind them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from dalembert.errors import ModelError
from dalembert.simulate.events.record import MODES, Mode
from dalembert.types import Array

if TYPE_CHECKING:
    from dalembert.simulate.joint_forces import JointForceHistory
    from dalembert.simulate.trajectory import Trajectory

# ----------------------------------------------------------------------------------------------------------------------
# Draw a trajectory with its phases: the background says which contacts stick.


LINES = ("#1f2a36", "#c4472b", "#2a6f97", "#7a5195", "#5b8c5a", "#b8860b")
SHADES = ("#ffffff", "#f3e3c3", "#d9e8d3", "#cfe0ee", "#eed5d2", "#e3d9ee", "#dfe3e6", "#f7d9b0")
"""Colours of lines, and of index sets in the order in which they first occur."""


def phases(run: Trajectory) -> list[tuple[float, float, tuple[str, ...]]]:
    """Return (start, end, sticking contacts) of every phase."""
    found: list[tuple[float, float, tuple[str, ...]]] = []
    for s in range(run.t.size - 1):
        stuck = tuple(name for name, mode in zip(run.contacts, run.modes[s], strict=True) if mode == 0)
        same = run.t[s + 1] == run.t[s]
        if same:
            continue
        if found and found[-1][2] == stuck:
            found[-1] = (found[-1][0], float(run.t[s + 1]), stuck)
        else:
            found.append((float(run.t[s]), float(run.t[s + 1]), stuck))
    return found


def shade(axes: Any, run: Trajectory) -> None:
    """Shade the phases, one colour per set of sticking contacts, each once in the legend."""
    colours: dict[tuple[str, ...], str] = {(): SHADES[0]}
    for start, end, stuck in phases(run):
        new = stuck not in colours
        if new:
            colours[stuck] = SHADES[len(colours) % len(SHADES)]
        label = f"stick: {', '.join(stuck)}" if new else None
        axes.axvspan(start, end, color=colours[stuck], lw=0, label=label, zorder=0)


# ----------------------------------------------------------------------------------------------------------------------
# Pictures of a mechanism's motion, one panel per question.


MOST_LINES = 12
"""Lines in a panel at most; those that move most are drawn."""

FLOOR = 1e-17
"""Residuals are drawn on a logarithmic axis, from here on."""

EMPTY = {
    "reactions": "no constraints, no contacts",
    "forces": "no contacts",
    "phases": "no joint of one coordinate",
    "contacts": "no contacts",
}
"""What a panel says that has nothing to show."""

SHADED = ("coordinates", "velocities", "accelerations", "forces", "reactions", "energy")
"""Panels over time, behind which phases of dry friction are shaded."""

MODE_SHADES = {Mode.STICK: SHADES[1], Mode.SLIP: SHADES[2], Mode.SLIP_PLUS: SHADES[2], Mode.SLIP_MINUS: SHADES[3]}
"""Colours of modes; what is open is white."""


def usual_panels(run: Any) -> tuple[str, ...]:
    """Return the panels that tell most of a run."""
    if "q" not in run.samples:
        return ("unknowns",)
    return ("velocities", "forces") if run.columns is not None else ("coordinates", "energy", "residuals")


def draw(axes: Any, run: Any, what: str) -> None:
    """Draw one panel; where contacts stick and slide, the background says which stick."""
    if what not in PANELS:
        raise ModelError(f"what={what!r} is not one of {', '.join(map(repr, PANELS))}")
    if run.columns is not None and what in SHADED:
        shade(axes, run)
    PANELS[what](axes, run)
    if not axes.has_data():
        axes.text(0.5, 0.5, EMPTY.get(what, "nothing to show"), transform=axes.transAxes, ha="center", va="center")
    axes.spines[["top", "right"]].set_visible(False)
    if axes.get_legend_handles_labels()[0]:
        axes.legend(frameon=False, fontsize=8, loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=6)


def _lines(axes: Any, t: Array, values: Array, names: tuple[str, ...], label: str) -> None:
    moved = np.argsort(-np.ptp(values, axis=0))[:MOST_LINES] if values.shape[1] > MOST_LINES else range(values.shape[1])
    for k, j in enumerate(sorted(int(j) for j in moved)):
        axes.plot(
            t, values[:, j], color=LINES[k % len(LINES)], lw=1.2, ls="-" if k < len(LINES) else "--", label=names[j]
        )
    axes.set(xlabel="time, s", ylabel=label, xlim=(t[0], t[-1]))


def _coordinates(axes: Any, run: Any) -> None:
    _lines(axes, run.t, run.q, run.configuration_names, "coordinate, m or rad")


def _velocities(axes: Any, run: Any) -> None:
    _lines(axes, run.t, run.v, run.coordinates, "velocity, m/s or rad/s")


def _accelerations(axes: Any, run: Any) -> None:
    _lines(axes, run.t, run.acceleration, run.coordinates, "acceleration, m/s² or rad/s²")


def _reactions(axes: Any, run: Any) -> None:
    values, names = np.asarray(run.reactions), tuple(run.moving.names)
    if run.contacts and run.columns is None:
        forces = np.asarray(run.forces).reshape(run.t.size, -1, 3)
        values = np.hstack([values, np.linalg.norm(forces, axis=2)])
        names = (*names, *(f"{name}: force" for name in run.contacts))
    _lines(axes, run.t, values, names, "reaction, N or N m")


def _forces(axes: Any, run: Any) -> None:
    """Draw the forces of contacts: of dry friction by direction, of others their size."""
    if run.columns is None:
        forces = np.asarray(run.forces).reshape(run.t.size, -1, 3)
        _lines(axes, run.t, np.linalg.norm(forces, axis=2), run.contacts, "contact force, N")
        return
    widths = {name: np.size(places) for name, places in run.columns.items()}
    names = [name if n == 1 else f"{name}[{k}]" for name, n in widths.items() for k in range(n)]
    _lines(axes, run.t, run.forces, tuple(names), "friction force, N")


def _joint_forces(axes: Any, run: Any) -> None:
    """Draw the size of the force in every joint."""
    draw_joint_forces(axes, run.joint_forces, None, "force")


def draw_joint_forces(axes: Any, forces: JointForceHistory, names: Sequence[str] | None, what: str) -> None:
    """Draw the size of forces or moments of joints over time; those that are not unique are dotted."""
    names = tuple(name for name in forces if forces[name].kind != "free") if names is None else tuple(names)
    values = np.array([np.linalg.norm(getattr(forces[name], what), axis=1) for name in names]).T
    part = slice(0, 3) if what == "force" else slice(3, 6)
    _lines(
        axes, forces.t, values.reshape(forces.t.size, len(names)), names, f"{what}, {'N' if what == 'force' else 'N m'}"
    )
    for line in axes.get_lines():
        name = str(line.get_label())
        if name in names and not forces[name].unique[..., part].all():
            line.set(linestyle=":", label=f"{name} (not unique)")
    if axes.get_legend_handles_labels()[0]:
        axes.legend(frameon=False, fontsize=8, loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=6)


def _unknowns(axes: Any, run: Any) -> None:
    _lines(axes, run.t, run.x, run.unknowns, "unknown")


def _energy(axes: Any, run: Any) -> None:
    for k, (name, values) in enumerate(
        (("kinetic", run.kinetic), ("potential", run.potential), ("total", run.energy.total))
    ):
        axes.plot(run.t, values, color=LINES[k], lw=1.3, label=name)
    if np.ptp(run.work):
        axes.plot(run.t, run.work, color=LINES[3], lw=1.0, ls="--", label="work of joint forces")
    if np.ptp(run.heat):
        axes.plot(run.t, run.heat, color=LINES[4], lw=1.0, ls="--", label="taken by impacts and sliding")
    axes.set(xlabel="time, s", ylabel="energy, J", xlim=(run.t[0], run.t[-1]))


def _residuals(axes: Any, run: Any) -> None:
    scale = np.abs(run.kinetic).max(initial=0.0) or 1.0
    lines = [("energy / largest kinetic", np.abs(run.energy_residual) / scale)]
    if run.moving.names and hasattr(run.moving, "constraint"):
        lines += [("positions", run.position_residual), ("velocities", run.velocity_residual)]
    for k, (name, values) in enumerate(lines):
        axes.semilogy(run.t, np.maximum(values, FLOOR), color=LINES[k], lw=1.1, label=name)
    axes.set(xlabel="time, s", ylabel="residual", xlim=(run.t[0], run.t[-1]))


def _phases(axes: Any, run: Any) -> None:
    """Draw velocity over coordinate, for joints whose coordinate is a number."""
    if hasattr(run.moving, "manifold"):
        starts_q, starts_v = run.moving.manifold.q_start, run.moving.manifold.v_start
        single = [i for i in range(len(run.moving.joints)) if starts_q[i + 1] - starts_q[i] == 1]
        plain = [(starts_q[i], starts_v[i], run.moving.joints[i].name) for i in single]
    else:
        plain = [(i, i, name) for i, name in enumerate(run.coordinates)]
    for k, (i, j, name) in enumerate(plain[:MOST_LINES]):
        axes.plot(run.q[:, i], run.v[:, j], color=LINES[k % len(LINES)], lw=1.0, label=name)
    axes.set(xlabel="coordinate, m or rad", ylabel="velocity, m/s or rad/s")


def _steps(axes: Any, run: Any) -> None:
    taken = run.step > 0
    axes.semilogy(run.t[taken], run.step[taken], color=LINES[0], lw=1.0)
    axes.set(xlabel="time, s", ylabel="step, s", xlim=(run.t[0], run.t[-1]))


def _contacts(axes: Any, run: Any) -> None:
    """Draw a bar per contact: what it does when."""
    for k in range(len(run.contacts)):
        changes = np.flatnonzero(np.diff(run.modes[:, k])) + 1
        edges = [0, *changes, run.t.size - 1]
        for a, b in pairwise(edges):
            shade = MODE_SHADES.get(Mode(int(run.modes[a, k])), "white")
            axes.barh(k, run.t[b] - run.t[a], left=run.t[a], height=0.7, color=shade)
    axes.set_yticks(range(len(run.contacts)), run.contacts)
    axes.set(xlabel="time, s", xlim=(run.t[0], run.t[-1]))
    for mode in (Mode.STICK, Mode.SLIP):
        axes.bar(0, 0, color=MODE_SHADES[mode], label=MODES[mode])


PANELS: dict[str, Callable[[Any, Any], None]] = {
    "coordinates": _coordinates,
    "velocities": _velocities,
    "accelerations": _accelerations,
    "reactions": _reactions,
    "forces": _forces,
    "joint_forces": _joint_forces,
    "unknowns": _unknowns,
    "energy": _energy,
    "residuals": _residuals,
    "phases": _phases,
    "steps": _steps,
    "contacts": _contacts,
}
"""What can be drawn; being in the list is being tested."""
