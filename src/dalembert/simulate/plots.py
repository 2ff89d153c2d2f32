"""Plots of trajectories: one axis per quantity and unit, phases of contacts behind, events marked.

Colours are those of M. Okabe and K. Ito, "Color Universal Design" (2008), which colour-blind readers tell apart; lines
beyond them are dashed.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from dalembert.errors import MissingExtraError, ModelError
from dalembert.names import near_matches
from dalembert.simulate.events.record import MODES, Mode
from dalembert.simulate.table import QUANTITIES, Column, velocity_units
from dalembert.types import Array

if TYPE_CHECKING:
    from dalembert.simulate.joint_forces import JointForceHistory
    from dalembert.simulate.trajectory import Trajectory

LINES = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000")
STYLES = ("-", "--", ":")
"""Colours of lines; those beyond them begin anew, dashed, then dotted."""

SHADES = ("#ffffff", "#fdf0d5", "#e3f0f9", "#e0f2ec", "#f8e6f0", "#fbe3d6", "#eeeeee", "#f7f3c8")
"""Backgrounds of phases, in the order in which they first occur: tints of the colours of lines."""

INK, QUIET = "#333333", "#888888"

# ----------------------------------------------------------------------------------------------------------------------
# Figures that show themselves: in notebooks and pages whatever was imported, in scripts by `show` and `savefig`.


STYLE: dict[Any, Any] = {
    "font.size": 9.0,
    "axes.titlesize": 9.0,
    "axes.labelsize": 9.0,
    "xtick.labelsize": 8.0,
    "ytick.labelsize": 8.0,
    "legend.fontsize": 8.0,
    "axes.linewidth": 0.7,
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "axes.formatter.useoffset": False,
}
"""Sizes for a column of a paper; the user's own settings hold for all else."""

SCREEN = 130
"""Dots per inch in a notebook."""


@cache
def _figure_class() -> Any:
    """Return matplotlib's Figure with pictures of its own: that of pyplot is shown only where pyplot was imported."""
    from matplotlib.figure import Figure

    class SelfShowingFigure(Figure):
        """A figure that belongs to no window and that every notebook shows."""

        def _repr_png_(self) -> bytes:
            stream = io.BytesIO()
            self.savefig(stream, format="png", dpi=SCREEN)
            return stream.getvalue()

        def show(self, warn: bool = True) -> None:
            """Show the figure: below the cell of a notebook, elsewhere in the browser."""
            import sys
            import tempfile
            import webbrowser
            from pathlib import Path

            if "IPython" in sys.modules and sys.modules["IPython"].get_ipython() is not None:
                sys.modules["IPython"].display.display(self)
                return
            with tempfile.NamedTemporaryFile(suffix=".svg", delete=False) as stream:
                self.savefig(stream, format="svg")
            webbrowser.open(Path(stream.name).as_uri())

    return SelfShowingFigure


def new_figure(width: float = 7.0, height: float = 4.0) -> Any:
    """Return an empty figure (inches) that belongs to no window, and shows itself in notebooks."""
    try:
        import matplotlib.figure  # noqa: F401
    except ImportError as error:
        raise MissingExtraError("matplotlib", "view", "Drawing") from error
    return _figure_class()(figsize=(width, height), layout="constrained")


# ----------------------------------------------------------------------------------------------------------------------
# Phases of contacts: the background says which contacts stick, or which touch.


def phases(run: Trajectory) -> list[tuple[float, float, tuple[str, ...]]]:
    """Return (start, end, contacts) of every phase: those that stick, where friction is dry; else those that touch."""
    spans: list[tuple[float, float, tuple[str, ...]]] = []
    dry = run.columns is not None
    for s in range(run.t.size - 1):
        active = tuple(
            name
            for name, mode in zip(run.contacts, run.modes[s], strict=True)
            if (mode == Mode.STICK if dry else mode != Mode.OPEN)
        )
        if run.t[s + 1] == run.t[s]:
            continue
        if spans and spans[-1][2] == active:
            spans[-1] = (spans[-1][0], float(run.t[s + 1]), active)
        else:
            spans.append((float(run.t[s]), float(run.t[s + 1]), active))
    return spans


def shade(axes: Any, run: Trajectory, named: bool = True) -> None:
    """Shade the phases, one colour per set of contacts, `named` once in the legend; where sets are many, by number."""
    spans = phases(run)
    if len({active for _, _, active in spans}) > len(SHADES):
        spans = [(start, end, (f"{len(active)} contacts",) if active else ()) for start, end, active in spans]
    colours: dict[tuple[str, ...], str] = {(): SHADES[0]}
    state = "stick" if run.columns is not None else "touch"
    for start, end, active in spans:
        new = active not in colours
        if new:
            colours[active] = SHADES[1 + (len(colours) - 1) % (len(SHADES) - 1)]
        label = f"{state}: {', '.join(active)}" if new and named else None
        axes.axvspan(start, end, color=colours[active], lw=0, label=label, zorder=0)


NAMED_EVENTS = 8
"""Up to so many instants have their events named; more are marked alone."""


LATE = 0.97
"""Part of a run from which on an event's words would leave the axes."""


def mark_events(axes: Any, run: Trajectory, named: bool) -> None:
    """Mark the instants of events by thin lines; `named` adds what happened, where there is room for it."""
    instants: dict[float, list[str]] = {}
    for event in run.events:
        instants.setdefault(event.time, []).append(f"{event.contact}: {event.new}" if event.new else event.contact)
    few = len(instants) <= NAMED_EVENTS
    for time, words in instants.items():
        axes.axvline(time, color=QUIET, lw=0.6, ls=(0, (2, 2)), ymin=0.0 if few else 0.95, zorder=1)
        if few and named:
            more = f" and {len(words) - 1} more" if len(words) > 1 else ""
            late = time > run.t[0] + LATE * (run.t[-1] - run.t[0])  # its words stand to the left of the line
            shift, side = (-1.5, "right") if late else (1.5, "left")
            axes.annotate(
                f"{words[0]}{more}", (time, 1.0), xycoords=("data", "axes fraction"), xytext=(shift, -2),
                textcoords="offset points", rotation=90, ha=side, va="top", fontsize=6.5, color=INK,
                bbox={"facecolor": "white", "alpha": 0.7, "lw": 0, "pad": 0.8}, zorder=3,
            )  # fmt: skip


# ----------------------------------------------------------------------------------------------------------------------
# Lines between samples: steps of order 8 are long, and straight lines between their ends would show another motion.
#
# Coordinates are the cubics of their rates at both ends of a step, velocities those of their accelerations, energies
# those of the states between; all else is a monotone cubic through the samples. Events and jumps split the curves.


ENOUGH = 800
"""Runs with more samples than this are drawn as they are."""

POINTS = 1200
"""Points of a curve, about."""


def smooth(run: Trajectory, word: str, found: Sequence[Column]) -> tuple[Array, list[Column]]:
    """Return finer times, and the columns of a quantity at them; (N,) times where samples are dense already."""
    t = run.t
    if word not in ("coordinates", "velocities", "accelerations", "reactions", "forces", "unknowns", "energy"):
        return t, list(found)
    ends = [0, *(np.flatnonzero(np.diff(t) <= 0.0) + 1), t.size]
    pieces = [range(a, b) for a, b in pairwise(ends)]
    if not 1 < t.size <= ENOUGH or not found:
        return t, list(found)
    parts = max(2, POINTS // t.size)
    grids = [_finer(t[piece.start : piece.stop], parts) for piece in pieces]
    times = np.concatenate(grids)
    curves = {"coordinates": _between_q, "velocities": _between_v, "energy": _between_energy}.get(word, _between)
    values = [curves(run, found, piece, grid) for piece, grid in zip(pieces, grids, strict=True)]
    table = np.concatenate(values)
    return times, [Column(c.name, c.unit, table[:, k]) for k, c in enumerate(found)]


def _finer(t: Array, parts: int) -> Array:
    """Return the times of a piece with `parts` intervals in place of each."""
    inside = t[:-1, None] + np.diff(t)[:, None] * np.arange(parts) / parts
    return np.append(inside.ravel(), t[-1])


def _hermite(t: Array, values: Array, rates: Array, grid: Array) -> Array:
    from scipy.interpolate import CubicHermiteSpline

    if t.size < 2 or not np.isfinite(rates).all():
        return _monotone(t, values, grid)
    return CubicHermiteSpline(t, values, rates)(grid)


def _monotone(t: Array, values: Array, grid: Array) -> Array:
    from scipy.interpolate import PchipInterpolator

    if t.size < 2 or not np.isfinite(values).all():
        return values[np.searchsorted(t, grid, side="right") - 1]
    return PchipInterpolator(t, values)(grid)


def _between(run: Trajectory, found: Sequence[Column], piece: range, grid: Array) -> Array:
    rows = slice(piece.start, piece.stop)
    return _monotone(run.t[rows], np.column_stack([c.values for c in found])[rows], grid)


def _between_q(run: Trajectory, found: Sequence[Column], piece: range, grid: Array) -> Array:
    rows = slice(piece.start, piece.stop)
    q, v = run.q[rows], run.v[rows]
    return _hermite(run.t[rows], q, run.moving.rate(q, v) if _turns(run) else v, grid)


def _between_v(run: Trajectory, found: Sequence[Column], piece: range, grid: Array) -> Array:
    rows = slice(piece.start, piece.stop)
    return _hermite(run.t[rows], run.v[rows], run.acceleration[rows], grid)


def _between_energy(run: Trajectory, found: Sequence[Column], piece: range, grid: Array) -> Array:
    """Return kinetic and potential energy of the states between; all else as it is in the samples."""
    q, v = _between_q(run, found, piece, grid), _between_v(run, found, piece, grid)
    kinetic, potential = run.moving.energy(run.moving.normalize(q) if _turns(run) else q, v, grid)
    table = _between(run, found, piece, grid)
    for k, column in enumerate(found):
        if column.name in ("kinetic energy", "potential energy"):
            table[:, k] = kinetic if column.name == "kinetic energy" else potential
    return table


def _turns(run: Trajectory) -> bool:
    """Whether rates of configurations differ from velocities: joints with quaternions or cosines."""
    return len(run.configuration_names) != len(run.coordinates)


# ----------------------------------------------------------------------------------------------------------------------
# Charts: what one pair of axes shows.


LONG_LEGEND = 9
"""Names beside a chart of the usual height; more of them are written smaller, so that they stay beside it."""

MOST_LINES = 12
"""Lines in a chart at most; those that move most are drawn."""

ROUNDING = 1e-12
"""Lines that move by less, in any unit, are drawn as constants: what moves them is rounding."""

FLOOR = 1e-17
"""Residuals are drawn on a logarithmic axis, from here on."""

EMPTY = {
    "reactions": "no constraints, no contacts",
    "forces": "no contacts",
    "phases": "no joint of one coordinate",
    "contacts": "no contacts",
    "energy": "this system has no energy",
}
"""What a chart says that has nothing to show."""

MODE_SHADES = {Mode.STICK: "#0072b2", Mode.SLIP: "#e69f00", Mode.SLIP_PLUS: "#e69f00", Mode.SLIP_MINUS: "#cc79a7"}
"""Colours of modes; what is open is white."""


@dataclass(frozen=True, eq=False)
class Diagram:
    """One pair of axes: lines of one quantity in one unit.

    Attributes
    ----------
    quantity, unit
        Make the label of the vertical axis.
    lines
        Columns over `across`.
    across, across_label
        Horizontal values per line, times where none are given; their label.
    logarithmic, bars
        A logarithmic axis of sizes; a bar per contact that says what it does when.
    dotted
        Names of lines that are drawn dotted.
    """

    quantity: str
    unit: str
    lines: tuple[Column, ...] = ()
    across: tuple[Array, ...] | None = None
    across_label: str = "time, s"
    logarithmic: bool = False
    bars: bool = False
    dotted: tuple[str, ...] = ()

    @property
    def label(self) -> str:
        """What the vertical axis is called."""
        return f"{self.quantity}, {self.unit}" if self.unit else self.quantity


def _by_unit(quantity: str, times: Array, found: Sequence[Column]) -> list[Diagram]:
    """Return a chart for every unit, in the order in which units first occur."""
    charts = []
    for unit in dict.fromkeys(column.unit for column in found):
        lines = tuple(c for c in found if c.unit == unit)
        words = ("rotation", "") if unit == "1" else (quantity, unit)
        charts.append(Diagram(*words, lines, (times,) * len(lines)))
    return charts or [Diagram(quantity, "")]


def _quantity(word: str, quantity: str) -> Callable[[Trajectory], list[Diagram]]:
    def charts(run: Trajectory) -> list[Diagram]:
        suffix = {"velocities": ".v", "accelerations": ".a"}.get(word, "")
        times, columns = smooth(run, word, QUANTITIES[word](run))
        return _by_unit(quantity, times, [Column(c.name.removesuffix(suffix), c.unit, c.values) for c in columns])

    return charts


def _forces(run: Trajectory) -> list[Diagram]:
    """Return the forces of contacts: of dry friction by direction, of others their size."""
    if run.columns is not None:
        return _by_unit("friction force", *smooth(run, "forces", QUANTITIES["forces"](run)))
    return _by_unit("contact force", *smooth(run, "forces", _sizes(run)))


def _sizes(run: Trajectory) -> list[Column]:
    sizes = np.linalg.norm(np.asarray(run.forces).reshape(run.t.size, -1, 3), axis=2)
    return [Column(name, "N", sizes[:, k]) for k, name in enumerate(run.contacts)]


def joint_force_chart(forces: JointForceHistory, names: Sequence[str] | None, what: str) -> Diagram:
    """Return the size of forces or moments of joints over time; dotted, by name, where components are open."""
    joints = tuple(name for name in forces if forces[name].kind != "free") if names is None else tuple(names)
    unit, open_ones = "N" if what == "force" else "N m", forces.not_unique
    lines, dotted = [], []
    for joint in joints:
        free = [entry.split()[1] for entry in open_ones.get(joint, ()) if entry.startswith(what)]
        part = what if len(free) == 3 else f"{what} {', '.join(free)}"
        label = f"{joint} ({part} not unique)" if free else joint
        lines.append(Column(label, unit, np.linalg.norm(getattr(forces[joint], what), axis=1)))
        dotted += [label] if free else []
    return Diagram(f"joint {what}", unit, tuple(lines), (forces.t,) * len(lines), dotted=tuple(dotted))


def figure_of_chart(chart: Diagram) -> Any:
    """Return the figure of one chart, without events."""
    import matplotlib as mpl

    figure = new_figure(CHART_WIDTH, CHART_HEIGHT + 0.8)
    with mpl.rc_context(STYLE):
        axes = figure.subplots()
        _draw_lines(axes, np.zeros(0), chart)
        axes.set(xlabel=chart.across_label, ylabel=chart.label)
        _finish(axes)
    return figure


def _reactions(run: Trajectory) -> list[Diagram]:
    columns = QUANTITIES["reactions"](run)
    if run.contacts and run.columns is None:
        columns += [Column(f"{c.name}: force", c.unit, c.values) for c in _sizes(run)]
    return _by_unit("reaction", *smooth(run, "reactions", columns))


def _energy(run: Trajectory) -> list[Diagram]:
    names = {"kinetic energy": "kinetic", "potential energy": "potential", "energy": "total", "work": "work",
              "heat": "heat"}  # fmt: skip
    columns = [c for c in QUANTITIES["energy"](run) if c.name not in ("work", "heat") or np.ptp(c.values)]
    times, columns = smooth(run, "energy", columns)
    return [
        Diagram("energy", "J", tuple(Column(names[c.name], "J", c.values) for c in columns), (times,) * len(columns))
    ]


def _residuals(run: Trajectory) -> list[Diagram]:
    """Return how far energy and constraints are missed; energy relative to the largest kinetic energy."""
    lines = []
    for column in QUANTITIES["residuals"](run):
        scale = (np.abs(run.kinetic).max(initial=0.0) or 1.0) if column.unit == "J" else 1.0
        words = {"energy residual": "energy / largest kinetic", "position residual": "positions, m or rad",
                 "velocity residual": "velocities, m/s or rad/s"}[column.name]  # fmt: skip
        lines.append(Column(words, "", np.maximum(np.abs(column.values) / scale, FLOOR)))
    return [Diagram("residual", "", tuple(lines), logarithmic=True)]


def _portrait(run: Trajectory) -> list[Diagram]:
    """Return velocity over coordinate, for joints whose coordinate is a number."""
    m, units = run.moving, velocity_units(run.moving)
    if hasattr(m, "manifold"):
        starts_q, starts_v = m.manifold.q_start, m.manifold.v_start
        single = [i for i in range(len(m.joints)) if starts_q[i + 1] - starts_q[i] == 1]
        plain = [(int(starts_q[i]), int(starts_v[i]), m.joints[i].name) for i in single]
    else:
        plain = [(i, i, name) for i, name in enumerate(run.coordinates)]
    q, v = (np.column_stack([c.values for c in smooth(run, quantity, QUANTITIES[quantity](run))[1]] or [run.t])
            for quantity in ("coordinates", "velocities"))  # fmt: skip
    columns = []
    for unit in dict.fromkeys(units[j] for _, j, _ in plain):
        group = [(i, j, name) for i, j, name in plain if units[j] == unit][:MOST_LINES]
        lines = tuple(Column(name, unit, v[:, j]) for _, j, name in group)
        label, rate = (f"coordinate, {unit}", f"{unit}/s") if unit else ("coordinate", "")
        columns.append(Diagram("velocity", rate, lines, tuple(q[:, i] for i, _, _ in group), label))
    return columns or [Diagram("velocity", "", across=(), across_label="coordinate")]


def _steps(run: Trajectory) -> list[Diagram]:
    taken = run.step > 0
    return [Diagram("step", "s", (Column("", "s", run.step[taken]),), (run.t[taken],), logarithmic=True)]


PANELS: dict[str, Callable[[Trajectory], list[Diagram]]] = {
    "coordinates": _quantity("coordinates", "coordinate"),
    "velocities": _quantity("velocities", "velocity"),
    "accelerations": _quantity("accelerations", "acceleration"),
    "reactions": _reactions,
    "forces": _forces,
    "joint_forces": lambda run: [joint_force_chart(run.joint_forces, None, what) for what in ("force", "moment")],
    "unknowns": _quantity("unknowns", "unknown"),
    "energy": _energy,
    "residuals": _residuals,
    "phases": _portrait,
    "steps": _steps,
    "contacts": lambda run: [Diagram("", "", bars=True)],
}
"""What can be drawn, each as one chart per unit; being in the list is being tested."""


def usual_panels(run: Trajectory) -> tuple[str, ...]:
    """Return the panels that tell most of a run."""
    if "q" not in run.samples:
        return ("unknowns",)
    return ("velocities", "forces") if run.columns is not None else ("coordinates", "energy", "residuals")


# ----------------------------------------------------------------------------------------------------------------------
# Charts drawn.


CHART_WIDTH, CHART_HEIGHT = 7.2, 1.9
"""Inches of one chart; two columns of a paper are wide enough for names beside it."""


def figure_of(run: Trajectory, what: Sequence[str] | str | None) -> Any:
    """Return the figure of the panels that are asked for, one below the other."""
    words = usual_panels(run) if what is None else (what,) if isinstance(what, str) else tuple(what)
    if not words:
        raise ModelError("plot needs at least one panel: what= is empty")
    charts = [(panel, chart) for panel in words for chart in _charts(run, panel)]
    figure = new_figure(CHART_WIDTH, CHART_HEIGHT * len(charts) + 0.4)
    import matplotlib as mpl

    with mpl.rc_context(STYLE):
        every = np.atleast_1d(figure.subplots(len(charts), 1))
        named = True
        for k, (axes, (panel, chart)) in enumerate(zip(every, charts, strict=True)):
            last = k + 1 == len(charts) or charts[k + 1][1].across_label != chart.across_label
            _draw(axes, run, panel, chart, named, last)
            named = named and (chart.across_label != "time, s" or chart.bars)
        figure.align_ylabels()
    return figure


def draw(axes: Any, run: Trajectory, what: str) -> None:
    """Draw the first chart of one panel on given axes."""
    import matplotlib as mpl

    with mpl.rc_context(STYLE):
        _draw(axes, run, what, _charts(run, what)[0], True, True)


def _charts(run: Trajectory, word: Any) -> list[Diagram]:
    if word not in PANELS:
        near = near_matches(word, PANELS)
        raise ModelError(f"what={word!r} is not one of {', '.join(map(repr, PANELS))}", near=near)
    return PANELS[word](run)


def _draw(axes: Any, run: Trajectory, word: str, chart: Diagram, named: bool, last: bool) -> None:
    """Draw one chart: background, lines, events, names."""
    in_time = chart.across_label == "time, s"
    if chart.bars:
        _draw_modes(axes, run)
    _draw_lines(axes, run.t, chart)
    if not axes.has_data():
        words = EMPTY.get(word, "nothing to show")
        axes.text(0.5, 0.5, words, transform=axes.transAxes, ha="center", va="center", color=QUIET)
    elif in_time and not chart.bars:
        if run.contacts:
            shade(axes, run, named)
        mark_events(axes, run, named)
    axes.set(xlabel=chart.across_label if last else "", ylabel=chart.label)
    if in_time and run.t[-1] > run.t[0]:
        axes.set_xlim(run.t[0], run.t[-1])
    axes.tick_params(labelbottom=last)
    _finish(axes)


def _finish(axes: Any) -> None:
    """Take off needless frame lines, and put the names beside the chart."""
    axes.spines[["top", "right"]].set_visible(False)
    names = axes.get_legend_handles_labels()[1]
    if any(names):
        small = {"fontsize": "x-small", "labelspacing": 0.3} if len(names) > LONG_LEGEND else {}
        axes.legend(
            frameon=False, loc="upper left", bbox_to_anchor=(1.0, 1.02), borderaxespad=0.3, handlelength=1.6, **small
        )


def _draw_lines(axes: Any, times: Array, chart: Diagram) -> None:
    lines = list(range(len(chart.lines)))
    if len(lines) > MOST_LINES:
        moved = sorted(lines, key=lambda k: -np.ptp(chart.lines[k].values))[:MOST_LINES]
        lines = sorted(moved)
        axes.set_title(f"{MOST_LINES} of {len(chart.lines)}, those that move most", loc="right", color=QUIET)
    moves = max((np.nanmax(np.abs(chart.lines[k].values), initial=0.0) for k in lines), default=1.0)
    if moves < ROUNDING and not chart.logarithmic:
        axes.set_ylim(-1.0, 1.0)
    for n, k in enumerate(lines):
        column = chart.lines[k]
        x = times if chart.across is None else chart.across[k]
        stroke = ":" if column.name in chart.dotted else STYLES[n // len(LINES) % len(STYLES)]
        style = {"color": LINES[n % len(LINES)], "ls": stroke, "lw": 1.2, "zorder": 2}
        (axes.semilogy if chart.logarithmic else axes.plot)(x, column.values, label=column.name or None, **style)


def _draw_modes(axes: Any, run: Trajectory) -> None:
    """Draw a bar per contact: what it does when."""
    for k in range(len(run.contacts)):
        changes = np.flatnonzero(np.diff(run.modes[:, k])) + 1
        for a, b in pairwise([0, *changes, run.t.size - 1]):
            colour = MODE_SHADES.get(Mode(int(run.modes[a, k])), "white")
            axes.barh(k, run.t[b] - run.t[a], left=run.t[a], height=0.6, color=colour)
    axes.set_yticks(range(len(run.contacts)), run.contacts)
    present = {Mode(int(mode)) for mode in np.unique(run.modes)} if run.contacts else set()
    for mode in (mode for mode in MODE_SHADES if mode in present):
        axes.bar(0, 0, color=MODE_SHADES[mode], label=MODES[mode])
