"""Report of a run: what was simulated, how it moved, what it loaded, and whether to believe it; one HTML file."""

from __future__ import annotations

import platform
from collections.abc import Callable, Sequence
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any

import numpy as np

from dalembert._version import __version__
from dalembert.errors import DalembertError, scene_words
from dalembert.model.mechanism.joint_forces import COMPONENTS
from dalembert.simulate.events.record import Mode
from dalembert.simulate.joint_forces import COARSE
from dalembert.simulate.plots import phases
from dalembert.simulate.table import row_units
from dalembert.simulate.witness import pushing_rows
from dalembert.view.report_page import Report

if TYPE_CHECKING:
    from dalembert.simulate.trajectory import Trajectory

MOST_EVENTS = 100
"""Events that a report lists; more are counted."""

LOOKED_AT = 7
"""Samples of a run at which reactions are asked whether they are unique."""

BALANCED = 1e-5
"""Part of the energy that moves by which the balance of a good run may be off: a thousand times the usual tolerance."""

STEPPED = 1e-2
"""The same for time stepping: of first order in its step, and the energy of impacts is not counted apart."""

ON_CONSTRAINTS = 1e-8
"""Residual of constraints, metres or radians, up to which a run is on them."""

LIBRARIES = ("numpy", "scipy", "casadi", "numba", "llvmlite", "matplotlib")


def run_report(
    run: Trajectory,
    title: str = "",
    about: str = "",
    panels: Sequence[str] = (),
    source: tuple[str, str] | None = None,
    command: str = "",
) -> Report:
    """Return the report of a run.

    Parameters
    ----------
    title, about
        Heads of the page; by default the system's name.
    panels
        Panels of its pictures, as `run.plot` takes them; by default those that tell most.
    source
        Name and text of the file that the run was made of.
    command
        What to type for the same run.
    """
    page = Report(title or getattr(run.moving, "name", "") or type(run.system).__name__, about.strip())
    checks = run_checks(run)
    failed = [name for name, _, good in checks if not good]
    ends = {"completed": "The run reached its end", "event": "The run ended at its event"}
    words = ends.get(run.status, f"The run ended early, or is in doubt ({run.status})")
    good = run.status in ends and not failed
    page.verdict(f"{words}; {'all checks hold' if not failed else 'failed: ' + ', '.join(failed)}.", good)
    _moving_picture(page, run)
    _summary(page, run, scene_words if command else str)
    _pictures(page, run, panels)
    for section in SECTIONS:
        section(page, run)
    _certificate(page, run, checks)
    _reproduce(page, source, command)
    return page


# ----------------------------------------------------------------------------------------------------------------------
# Sections.


def _moving_picture(page: Report, run: Trajectory) -> None:
    """Show the mechanism in motion, with its forces; systems without bodies have none."""
    if not getattr(run.moving, "bodies", ()):
        return
    try:
        animation = run.animate()
    except DalembertError as error:
        page.text(f"There is no moving picture: {error}")
        return
    page.page(animation.page, f"{page.title} in motion")


def _summary(page: Report, run: Trajectory, wording: Callable[[str], str]) -> None:
    page.heading("What was simulated")
    page.output(str(run.system) if hasattr(run.system, "bodies") else f"{type(run.system).__name__}: "
                + ", ".join(run.coordinates or run.unknowns))  # fmt: skip
    page.table(
        ("", ""),
        [
            ("time", f"{run.t[0]:g} s to {run.t[-1]:g} s, {run.t.size} samples"),
            ("method", f"{run.method}: {run.reason}" if run.reason else run.method),
            ("steps", f"{run.steps}, {getattr(run.statistics, 'rejected', 0)} rejected; {run.evaluations} evaluations"),
            ("contacts", _contacts(run)),
            ("outcome", f"{run.status}; {run.message}" if run.message else run.status),
            *(("note", wording(note)) for note in run.notes),
        ],
    )


def _contacts(run: Trajectory) -> str:
    """Return the contacts that act at some time, and how many never do."""
    if not run.contacts:
        return "none"
    modes = np.asarray(run.modes).reshape(run.t.size, -1)
    acting = [name for k, name in enumerate(run.contacts) if (modes[:, k] != int(Mode.OPEN)).any()]
    rest = len(run.contacts) - len(acting)
    return ", ".join([*acting, *([f"{rest} that never act"] if rest else [])])


def uniqueness(components: Sequence[str]) -> str:
    """Return what is said of a wrench of which some components are not unique."""
    if not components:
        return "unique"
    return "not unique" if len(components) == len(COMPONENTS) else f"not unique: {', '.join(components)}"


def _pictures(page: Report, run: Trajectory, panels: Sequence[str]) -> None:
    page.heading("How it moved")
    chosen = [panel for panel in panels if panel not in ("energy", "residuals")]  # which have a section of their own
    page.figure(run.plot(chosen or None), "Lines are labelled by the names of the model; dashed lines mark events"
                + (", backgrounds the contacts that act." if run.contacts else "."))  # fmt: skip


def _energy(page: Report, run: Trajectory) -> None:
    if "q" not in run.samples or not getattr(run.moving, "has_energy", hasattr(run.moving, "energy")):
        return
    page.heading("Energy and residuals")
    page.figure(
        run.plot(("energy", "residuals")), "Energy, and how far the run is off its balance and its constraints."
    )


def _bearings(page: Report, run: Trajectory) -> None:
    """Show the loads of all joints: peaks with their times, the steady load that wears as much, what is not unique."""
    if not getattr(run.moving, "bodies", ()):
        return
    fine = run.refined()
    try:
        forces = fine.joint_forces
        open_ones, sizes = forces.not_unique, forces.peak_sizes
        rows = [
            (name, sizes[name][0], p.force_time, sizes[name][1], p.moment_time if sizes[name][1] else "",
             forces.equivalent_load(name), uniqueness(open_ones.get(name, ())))
            for name, p in forces.peaks.items() if forces[name].kind != "free"
        ]  # fmt: skip
    except DalembertError as error:
        page.text(f"There are no joint forces: {error}")
        return
    page.heading("Loads of joints")
    heads = ("joint", "peak force, N", "at, s", "peak moment, N m", "at, s", "equivalent load, N", "uniqueness")
    page.table(
        heads, rows, "The equivalent load is the steady force that wears a ball bearing as much (ISO 281, exponent 3). "
        + _resolution(fine)
    )  # fmt: skip


def _resolution(run: Trajectory) -> str:
    """Return a sentence on the samples that peaks are taken from."""
    if run.method == "moreau":
        return f"Peaks are those of mean forces over time steps, {run.t.size} of them: impacts are in them."
    widest = float(np.diff(run.t).max(initial=0.0))
    coarse = widest > COARSE * float(run.t[-1] - run.t[0])
    return (
        f"Peaks are the largest of {run.t.size} samples, at most {widest:.2g} s apart"
        + ("; larger ones may lie between them: every= (--every) asks for more samples" if coarse else "")
        + ("; impulses of impacts are listed with the events." if run.impacts else ".")
    )


def _loads(page: Report, run: Trajectory) -> None:
    """Show the peaks of all reactions and contact forces."""
    if "q" not in run.samples or not (run.moving.names or run.contacts):
        return
    page.heading("Reactions of constraints, forces of contacts")
    run = run.refined()
    table, units = np.asarray(run.reactions), row_units(run.moving)
    unique = unique_rows(run)
    rows: list[Sequence[object]] = []
    for k, name in enumerate(run.moving.names):
        rows.append((*_peak(run, name, table[:, k], units[k]), "unique" if unique[k] else "one of many"))
    for name in run.contacts:
        force = np.asarray(run.forces[:, run.contact_columns[name]]).reshape(run.t.size, -1)
        size = np.linalg.norm(force, axis=1)
        rows.append((*_peak(run, name, size if force.shape[1] > 1 else force[:, 0], "N"), _uniqueness_of_contacts(run)))
    page.table(("row or contact", "unit", "peak", "at, s", "mean", "uniqueness"), rows, _resolution(run))
    if not all(unique):
        page.text(
            "Where more holds a mechanism than its motion determines, the forces are not unique: those shown are the "
            "least ones, and anything may be added that balances itself. The motion is unique all the same."
        )


def _peak(run: Trajectory, name: str, values: Any, unit: str) -> tuple[object, ...]:
    """Return name, unit, the value of largest size, its time, and the mean over time."""
    values = np.nan_to_num(values)
    k = int(np.argmax(np.abs(values)))
    span = float(run.t[-1] - run.t[0])
    mean = float(np.trapezoid(values, run.t) / span) if span else float(values[0])
    return name, unit, float(values[k]), float(run.t[k]), mean


def _uniqueness_of_contacts(run: Trajectory) -> str:
    """Return what is known of contact forces: unique while no more than one contact acts at a time."""
    most = max((len(active) for _, _, active in phases(run)), default=0)
    return "unique" if most <= 1 and not run.moving.names else "not examined"


def unique_rows(run: Trajectory) -> list[bool]:
    """Return for every row whether its reaction is unique at all of some samples of a mechanism's run."""
    names = run.moving.names
    if not hasattr(run.moving, "diagnose"):
        return [True] * len(names)
    unique = np.ones(len(names), bool)
    for k in np.unique(np.linspace(0, run.t.size - 1, LOOKED_AT).astype(int)):
        unique &= np.asarray(run.moving.diagnose(run.q[k], run.v[k], float(run.t[k])).unique, bool)
    return unique.tolist()


def _events(page: Report, run: Trajectory) -> None:
    if not run.events:
        return
    page.heading("Events")
    shown = [(float(e.time), e.contact, e.old or "", e.new) for e in run.events[:MOST_EVENTS]]
    more = len(run.events) - len(shown)
    page.table(
        ("time, s", "what", "before", "after"),
        [(f"{t:.9f}", *words) for t, *words in shown],
        f"and {more} more" if more > 0 else "",
    )
    if run.impacts:
        rows = [(f"{i.time:.9f}", ", ".join(i.contacts) or "stops", i.energy_before - i.energy_after, i.momentum,
                 i.laws, i.status.name.lower()) for i in run.impacts[:MOST_EVENTS]]  # fmt: skip
        heads = ("impact at, s", "contacts", "energy lost, J", "momentum off by", "laws off by", "impulses")
        page.table(heads, rows)


SECTIONS: list[Callable[[Report, Any], None]] = [_energy, _bearings, _loads, _events]
"""Sections between pictures and certificate; each leaves itself out where a run has nothing for it."""


# ----------------------------------------------------------------------------------------------------------------------
# Whether to believe it.


def run_checks(run: Trajectory) -> list[tuple[str, str, bool]]:
    """Return (name, what was found, whether it is good) of everything that a run can be held to."""
    checks = [("end reached", f"{run.status} at {run.t[-1]:g} s", run.status in ("completed", "event"))]
    if "q" not in run.samples:
        return checks
    m = run.moving
    if m.names and hasattr(m, "constraint"):
        worst, rate = float(run.position_residual.max()), float(run.velocity_residual.max())
        checks.append(("constraints", f"largest residual {worst:.1e} m or rad", worst <= ON_CONSTRAINTS))
        checks.append(("constraint velocities", f"largest {rate:.1e} per second", rate <= ON_CONSTRAINTS))
    if getattr(m, "has_energy", hasattr(m, "energy")):
        size = max(float(np.ptp(run.kinetic)), float(np.ptp(run.potential)), float(np.abs(run.work).max(initial=0.0)))
        off = float(np.nanmax(np.abs(run.energy_residual)))
        if _has_dampers(m):
            checks.append(("energy", f"dampers take {off:.3g} J; the balance does not count them", True))
        elif pushing_rows(m):
            checks.append(("energy", f"stabilised rows exchange {off:.3g} J; the balance does not count them", True))
        else:
            allowed = STEPPED if run.method == "moreau" else BALANCED
            words = f"off by {off:.1e} J of the {size:.3g} J that change" + (
                ": time steps" if run.method == "moreau" else ""
            )
            checks.append(("energy balance", words, off <= allowed * (size or 1.0)))
    if run.impacts:
        certified = [impact.momentum_ok and impact.laws_ok for impact in run.impacts]
        checks.append(("impacts", f"{sum(certified)} of {len(certified)} certified", all(certified)))
    return checks


def _has_dampers(m: Any) -> bool:
    """Return whether dampers of a model act: their heat is not part of the balance."""
    return bool(
        getattr(m, "passive", False)
        and (np.any(m.damping) or any(s.damping for s in m.springs) or any(t.damping for t in m.tendons))
    )


def _certificate(page: Report, run: Trajectory, checks: list[tuple[str, str, bool]]) -> None:
    page.heading("Certificate")
    page.table(("check", "found", ""), [(name, words, "holds" if good else "FAILS") for name, words, good in checks])


def _reproduce(page: Report, source: tuple[str, str] | None, command: str) -> None:
    page.heading("How to reproduce it")
    if command:
        page.output(command)
    elif source is None:
        page.text("run.save(path) keeps model and options; da.Trajectory.load(path).repeat() runs it again.")
    if source is not None:
        page.folded(source[0], source[1])
    page.table(("", "version"), versions())


def versions() -> list[tuple[str, str]]:
    """Return the versions of everything that takes part in a run."""
    rows = [
        ("dalembert", __version__),
        ("Python", platform.python_version()),
        ("system", platform.platform(terse=True)),
    ]
    for name in LIBRARIES:
        try:
            rows.append((name, version(name)))
        except PackageNotFoundError:
            continue
    return rows
