"""Mechanisms in time: options checked, a stepper chosen with its reason, the run driven and kept whatever happens."""

from __future__ import annotations

from collections.abc import Callable
from inspect import signature
from typing import TYPE_CHECKING, Any

import numpy as np

from dalembert.checks import finite_vector, is_number
from dalembert.errors import ModelError
from dalembert.model.mechanism.project import CONTRADICTING
from dalembert.names import near_matches
from dalembert.simulate.entry import METHODS, WITH_CONTACTS, choose
from dalembert.simulate.equations.callbacks import CallError, as_user_error, guarded_step
from dalembert.simulate.equations.controller import controller
from dalembert.simulate.events.asked import watches
from dalembert.simulate.ignored import NAMED, SHAPES, SIMPLIFIED, ignored_data, missing_effects
from dalembert.simulate.mechanism_trajectory import MechanismTrajectory, trajectory_of
from dalembert.simulate.progress import progress_bar
from dalembert.simulate.samples import checked_breaks, refuse_too_many
from dalembert.simulate.session import RunSettings, Session
from dalembert.simulate.witness import broken_balance

if TYPE_CHECKING:
    from dalembert.model.mechanism.mechanism import Mechanism

Array = np.ndarray

CONSISTENT = 1e-6
"""Initial states may miss the constraints by this part of the mechanism's size (or so many radians, per second for
velocities), and are then put onto them."""


ON_MANIFOLD = 1e-13
"""States that miss the constraints by less of that size are taken as they are: a run can be repeated bit for bit."""


def simulate_mechanism(
    mechanism: Mechanism,
    duration: float,
    q: Any = None,
    v: Any = None,
    *,
    t: float = 0.0,
    torque: Any = None,
    contacts: Any = None,
    method: str = "auto",
    rtol: float = 1e-9,
    atol: float = 1e-10,
    step: float | None = None,
    max_step: float | None = None,
    every: float | None = None,
    breaks: Any = None,
    events: Any = None,
    event_tolerance: float = 1e-14,
    on_step: Callable[..., Any] | None = None,
    file: Any = None,
    progress: bool = False,
    **options: Any,
) -> MechanismTrajectory:
    """Simulate a mechanism.

    Parameters
    ----------
    mechanism
        With whatever constraints it has.
    duration, t
        Length of the run and its start, seconds.
    q, v
        Initial configuration (nq,) and velocity (nv,); neutral and at rest by default. A state that misses the
        constraints by less than 1e-6 of its size is put onto them, one that misses them by more is refused
        (`mechanism.assemble` closes loops).
    torque
        Joint forces: numbers (nv,); a dict by joint of any of these; (times, values), linear between times, or
        (times, values, kind) with "cubic" or "previous"; a `casadi.Function` of (t, q, v), which is compiled in; or a
        Python function of (t, q, v), which is called at every stage.
    contacts
        Unilateral contacts: a list of `dalembert.simulate.contact` shapes and planes.
    method
        "auto", or one of `dalembert.simulate.entry.METHODS`; `run.reason` says why it was taken.
    rtol, atol
        Tolerances of a step; errors of positions are metres and radians.
    step
        A fixed step, seconds, in place of an adaptive one.
    max_step
        The longest step, seconds. Step control sees forces at its stages alone: a pulse between them is not there.
        Take `max_step` below the shortest pulse of a force, or declare its `breaks`.
    every
        Samples at exactly t + k every, at the end and at events, instead of at every step.
    breaks
        Times at which joint forces or their rates jump: steps end there, and forces take their limits from within.
        Tables declare theirs, a Python function by its attribute `breaks`.
    events
        Functions g(t, q, v) whose zeros are wanted, Python or casadi: one, a list, or a dict by name; attributes
        `terminal` (True, or a number of zeros) and `direction` as in SciPy, or `Watch(function, name, terminal,
        direction)`. A zero at the start counts, in the direction in which the function leaves it.
    event_tolerance
        Tolerance of an event within its step, seconds.
    on_step
        Called after every step with (t, q, v).
    file
        A path: samples are written there, block by block, while the run goes on; `da.resume` continues it.
    progress
        Show a bar, in terminals and notebooks.
    options
        Of the method.

    Returns
    -------
    MechanismTrajectory
        Also where the run could not go on, or was interrupted: `status` and `message` say why. An error in a Python
        function is raised, with the trajectory so far as its attribute `trajectory`.
    """
    if not (is_number(t) and np.isfinite(t)):
        raise ModelError(f"t={t!r} must be a finite number")
    numbers = _numbers(duration=duration, rtol=rtol, atol=atol, event_tolerance=event_tolerance)
    numbers |= {
        name: None if x is None else _numbers(**{name: x})[name] for name, x in (("step", step), ("every", every))
    }
    largest = numbers["duration"] if max_step is None else _numbers(max_step=max_step)["max_step"]
    if numbers["step"] is not None and numbers["step"] > largest and max_step is not None:
        raise ModelError(f"step={step!r} is longer than max_step={max_step!r}")
    refuse_too_many(numbers["duration"], numbers["every"])
    if not isinstance(progress, bool | np.bool_):
        raise ModelError(f"progress={progress!r} must be True or False")
    law = controller(mechanism, torque)
    if not isinstance(method, str) or (method != "auto" and method not in METHODS):
        raise ModelError(
            f"method={method!r} is not one of 'auto', {', '.join(map(repr, METHODS))}",
            near=near_matches(str(method), METHODS),
        )
    on_step = guarded_step(on_step)
    q, v = consistent_start(mechanism, q, v, float(t))
    chosen, reason = (
        choose(mechanism, law, contacts, q, v, numbers, float(t)) if method == "auto" else (method, "asked for")
    )
    _refuse_unknown(chosen, contacts, options)
    reason += contradiction(mechanism, q, float(t))
    ignored = ignored_data(mechanism, contacts, law.kind != "none")
    reason = "; ".join([reason, *(each.sentence for each in ignored if each.kind == SHAPES)])
    settings = RunSettings(chosen, reason, float(t), largest_step=largest, breaks=checked_breaks(breaks), **numbers)
    found, function, callables = watches(mechanism, events)
    session = Session(mechanism, settings, law, q, v, found, function, callables, on_step)
    session.extra |= {"contacts": contacts, "options": options}
    session.ignored = ignored
    return run_session(session, file, progress)


def run_session(session: Session, file: Any = None, progress: bool = False) -> MechanismTrajectory:
    """Drive a session to its end; keep what there is whatever happens."""
    from dalembert.simulate.storage.sink import FileSink

    session.controller.refuse_short_tables(session.settings.start, session.settings.end)
    sink = file if file is None or isinstance(file, FileSink) else FileSink(file, session)
    session.sink = sink
    bar = None
    if progress:
        s = session.settings
        session.progress = bar = progress_bar(session.mechanism.name, s.start, s.end)
    error: tuple[BaseException, float] | None = None
    try:
        METHODS[session.settings.method]()(session, **session.extra.get("options", {}))
        _ask_witness(session)
        _mark_simplified(session)
    except CallError as failed:
        session.extra["error"] = failed.error, failed.t
        session.stop("stopped", f"on_step failed at t = {failed.t:.9g} s: {failed}")
    except KeyboardInterrupt:
        session.stop("interrupted", "stopped by the keyboard; da.resume continues a run that writes a file")
    finally:
        if bar is not None:
            bar.stop()
        if sink is not None:
            sink.close()
    error = session.extra.pop("error", None)
    run = trajectory_of(session, tuple(session.extra.get("contact_names", ())))
    if error is not None:
        if isinstance(error[0], KeyboardInterrupt):
            session.stop("interrupted", f"stopped by the keyboard at t = {error[1]:.9g} s")
            return trajectory_of(session, run.contacts)
        raise as_user_error(*error, run)
    return run


def _ask_witness(session: Session) -> None:
    """Compare the energy of a run that reached its end with what its tolerance allows; say where that does not hold."""
    if session.status not in ("completed", "event") or "error" in session.extra or not session.blocks:
        return
    broken = broken_balance(trajectory_of(session))
    if broken:
        said = "the end was reached, but " if session.status == "completed" else f"{session.message}; but "
        session.stop("inaccurate", said + broken)


def _mark_simplified(session: Session) -> None:
    """Mark a run that reached its end without data of the model that would have changed its motion."""
    effects = missing_effects(session) if session.ignored and session.status == "completed" else []
    if effects:
        more = f" and {len(effects) - NAMED} more" if len(effects) > NAMED else ""
        message = f"the end was reached by a simpler model: without {', '.join(effects[:NAMED])}{more}"
        session.stop(SIMPLIFIED, "; ".join(filter(None, (session.message, message))))


def _refuse_unknown(method: str, contacts: Any, options: dict[str, Any]) -> None:
    """Refuse options that neither `simulate` nor the method knows, by name."""
    if (contacts is None) == (method in WITH_CONTACTS):
        raise ModelError(
            f"method={method!r} {'needs contacts=' if contacts is None else 'does not know contacts'}; "
            f"{' and '.join(map(repr, WITH_CONTACTS))} take them"
        )
    of_method = [name for name in signature(METHODS[method]()).parameters if name != "session"]
    known = [name for name in signature(simulate_mechanism).parameters if name not in ("mechanism", "options")]
    for name in options:
        if name not in of_method:
            raise ModelError(
                f"simulate knows no option {name!r} with method={method!r}",
                near=near_matches(name, [*known, *of_method]),
            )


def consistent_start(mechanism: Mechanism, q: Any, v: Any, t: float) -> tuple[Array, Array]:
    """Return the initial state on the constraints, or refuse it with the row that it misses."""
    q = mechanism.neutral() if q is None else finite_vector(q, mechanism.configuration_names, "q")
    v = np.zeros(mechanism.nv) if v is None else finite_vector(v, mechanism.coordinates, "v")
    q = mechanism.normalize(q) if np.abs(mechanism.normalize(q) - q).max(initial=0.0) < CONSISTENT else q
    mechanism.manifold.refuse_off_manifold(q)
    if not mechanism.names:
        return q, v
    held = np.array(mechanism.holonomic, dtype=bool)
    names, sizes = np.array(mechanism.names, dtype=object), mechanism.row_sizes
    phi = np.asarray(mechanism.constraint(q, t))
    _refuse(phi, sizes[held], names[held], "q", "mechanism.assemble(q) closes loops from a guess")
    q = mechanism.project(q, t=t) if np.abs(phi / sizes[held]).max(initial=0.0) > ON_MANIFOLD else q
    rate = np.asarray(mechanism.constraint_velocity(q, v, t))
    sizes = np.maximum(sizes, np.abs(np.asarray(mechanism.jacobian(q, t))) @ np.abs(v))
    _refuse(rate, sizes, names, "v", "mechanism.project(q, v)[1] is the nearest admissible one")
    return q, mechanism.project(q, v, t)[1] if np.abs(rate / sizes).max(initial=0.0) > ON_MANIFOLD else v


def contradiction(mechanism: Mechanism, q: Array, t: float) -> str:
    """Return a sentence where redundant rows contradict each other, so that no configuration closes them all."""
    if not any(mechanism.holonomic):
        return ""
    parts = np.abs(np.asarray(mechanism.constraint(q, t))) / mechanism.row_sizes[np.array(mechanism.holonomic, bool)]
    if not parts.max() > CONTRADICTING:
        return ""
    return f"; redundant rows contradict each other by {parts.max():.1e} of the size: closed by least squares"


def _refuse(missing: Array, sizes: Array, names: Array, what: str, hint: str) -> None:
    """Refuse a state that misses a row by more than a part of what that is measured against."""
    if missing.size and np.abs(missing / sizes).max() > CONSISTENT:
        worst = int(np.argmax(np.abs(missing / sizes)))
        part = abs(missing[worst]) / sizes[worst]
        raise ModelError(
            f"the initial {what} misses {names[worst]!r} by {missing[worst]:.3g}, {part:.2g} of the mechanism's size; "
            f"{hint}"
        )


def _numbers(**values: Any) -> dict[str, Any]:
    for name, value in values.items():
        if not (is_number(value) and np.isfinite(value) and value > 0):
            raise ModelError(f"{name}={value!r} must be a finite number > 0")
    return {name: float(value) for name, value in values.items()}
