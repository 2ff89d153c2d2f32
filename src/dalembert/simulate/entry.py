"""`da.simulate`: one entry for every kind of system, the run driven and kept."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from inspect import signature
from typing import TYPE_CHECKING, Any

import numpy as np

from dalembert.checks import finite_vector, is_number
from dalembert.errors import ModelError, UnsupportedError, advised
from dalembert.kernel.blas_threads import one_blas_thread
from dalembert.large.requests import too_long
from dalembert.model.mechanism.project import CONTRADICTING, closest, residual_sizes
from dalembert.model.named_state import configuration_of_names, default_start, is_mechanism, velocity_of_names
from dalembert.names import near_matches
from dalembert.progress import ProgressBar
from dalembert.simulate.equations.callbacks import CallError, as_user_error, guarded_step
from dalembert.simulate.equations.controller import controller
from dalembert.simulate.events.asked import watches
from dalembert.simulate.ignored import FRICTION, NAMED, SHAPES, SIMPLIFIED, ignored_data, missing_effects
from dalembert.simulate.limits import CONSISTENT, ON_MANIFOLD
from dalembert.simulate.samples import checked_breaks, refuse_too_many, refuse_too_many_steps
from dalembert.simulate.session import RunSettings, Session, rank_of
from dalembert.simulate.time_methods import FIRST_ORDER, METHODS, STUCK, choose, goes_by_steps, rubbing_contacts
from dalembert.simulate.trajectory import Trajectory, trajectory_of
from dalembert.simulate.witness import broken_balance
from dalembert.types import Array

if TYPE_CHECKING:
    from dalembert.simulate.storage.sink import FileSink

# ----------------------------------------------------------------------------------------------------------------------
# `da.simulate`: one entry for every kind of system.


LEAST_GAP = 0.999
"""Part of the residuals that remains where a configuration has the least gap around it."""


def simulate(
    system: Any,
    duration: float,
    q: Any = None,
    v: Any = None,
    *,
    t: float = 0.0,
    force: Any = None,
    contacts: Any = None,
    friction: bool = True,
    known: Any = None,
    events: Any = None,
    method: str = "auto",
    rtol: float = 1e-8,
    atol: float = 1e-10,
    step: float | None = None,
    max_step: float | None = None,
    every: float | None = None,
    breaks: Any = None,
    massless: Any = None,
    event_tolerance: float = 1e-14,
    on_step: Callable[..., Any] | None = None,
    file: Any = None,
    progress: bool | None = None,
    **options: Any,
) -> Trajectory:
    """Simulate a system from an initial state.

    Parameters
    ----------
    system
        A `Mechanism` (`da.load`, `da.Builder`), a `Lagrangian`, `Matrices`, a `Tableau` or a `DAE`.
    duration, t
        Length of the run and its start, seconds.
    q, v
        Initial configuration (nq,) and velocity (nv,), or dicts of some of them by joint or coordinate; q may be the
        name of a mechanism's pose ("home"). By default, and where a dict says nothing, a mechanism is at rest where
        its file draws it (`mechanism.pose()`), else neutral. A state that misses the constraints by less than 1e-6 of
        its size is put onto them, one that misses them by more is refused (`mechanism.assemble` closes loops).
        Of a `Tableau` or `DAE`: the unknowns x and their rates.
    force
        Applied generalized forces: numbers (nv,), or one where nv = 1; a dict by joint or coordinate of any of these;
        (times, values), linear between times, or (times, values, kind) with "cubic" or "previous"; a `casadi.Function`
        of (t, q, v), which is compiled in; or a Python function of (t, q, v), which is called at every stage. Beside
        `known`: numbers and tables; of a tableau or DAE a dict by name of what is known.
    contacts
        Of a mechanism: a list of `dalembert.simulate.contact` shapes and planes, which may touch, and of
        `dalembert.friction` contacts along rows of numbers or joints, which rub.
    friction
        False leaves the dry friction of a mechanism's joints out; `run.ignored` and the status say so.
    known
        What is known in time, by name: coordinates, torques or controls, variables of a tableau, signals of a DAE, each
        a number, an expression of time, a table or a function. The equations are then solved in their implicit form, as
        `da.Problem` does.
    events
        Functions whose zeros are wanted, g(t, q, v), Python or casadi, or SX expressions of a Lagrangian's symbols:
        one, a list, or a dict by name; attributes `terminal` (True, or a number of zeros) and `direction` as in SciPy,
        or `Event(g, terminal, direction, name)`. A zero at the start counts, in the direction in which the
        function leaves it.
    method
        "auto", or one of `dalembert.simulate.METHODS`; `run.reason` says why it was taken.
    rtol, atol
        Tolerances of a step; errors of positions are those of the coordinates, metres and radians.
    step
        A fixed step, seconds, in place of an adaptive one.
    max_step
        The longest step, seconds. Step control sees forces at its stages alone: a pulse between them is not there.
        Take `max_step` below the shortest pulse of a force, or declare its `breaks`.
    every
        Samples at exactly t + k every, at the end and at events, instead of at every step.
    breaks
        Times at which forces or their rates jump: steps end there, and forces take their limits from within. Tables
        declare theirs, a Python function by its attribute `breaks`.
    massless
        Of a mechanism: what limbs without mass do while nothing holds them, "hold" or laws (`with_massless`). With
        contacts they are found whenever a foot lets go, and held by default; without, they must be asked for. Their
        velocities at the start are those of their laws.
    event_tolerance
        Tolerance of an event within its step, seconds.
    on_step
        Called after every step with (t, q, v).
    file
        A path: samples are written there, block by block, while the run goes on; `da.resume` continues it.
    progress
        Show a bar, in terminals and notebooks; None: where a run takes longer than two seconds.
    options
        Of the method.

    Returns
    -------
    Trajectory
        Also where the run could not go on, or was interrupted: `status` and `message` say why. An error in a Python
        function is raised, with the trajectory so far as its attribute `trajectory`.
    """
    arguments: dict[str, Any] = {
        "t": t, "force": force, "contacts": contacts, "friction": friction, "known": known, "events": events,
        "method": method, "rtol": rtol, "atol": atol, "step": step, "max_step": max_step, "every": every,
        "breaks": breaks, "massless": massless, "event_tolerance": event_tolerance, "on_step": on_step, "file": file,
        "progress": progress,
    }  # fmt: skip
    kind = kind_of(system)
    if isinstance(q, str) or is_mechanism(system):  # others know their names in time alone
        q, v = configuration_of_names(system, q), velocity_of_names(system, v)
    _refuse_friction(system, friction)
    if kind == "implicit" or known is not None:
        from dalembert.simulate.implicit import simulate_implicit

        if massless is not None:
            system, arguments["massless"] = _with_massless(system, massless), None
        with one_blas_thread():
            run = simulate_implicit(system, duration, q, v, arguments, dict(options))
        return replace(run, given={"duration": duration, "q": q, "v": v} | arguments | options)
    if isinstance(contacts, str):
        contacts = arguments["contacts"] = _contacts_of_file(system, contacts)
    _from_event_to_event(system, arguments, options)
    run = run_session(prepare(system, duration, q, v, arguments, options), file, progress)
    if contacts is None or not goes_by_steps(method, run):
        return run
    return _by_steps(run, system, duration, q, v, arguments, options)


def _by_steps(
    run: Trajectory, system: Any, duration: float, q: Any, v: Any, given: dict[str, Any], options: dict[str, Any]
) -> Trajectory:
    """Return the run by time steps in place of one that could not go on, with the reason; that one where none goes."""
    reason = f"{run.reason}; that ends: {run.message}; so {FIRST_ORDER}"

    def begin() -> Session:
        session = prepare(system, duration, q, v, given | {"method": "moreau"}, options)
        session.settings = replace(session.settings, reason=reason)
        session.message = f"{len(run.contacts)} contacts by {FIRST_ORDER}"
        return session

    try:
        stepped = run_session(begin(), None, given["progress"])
    except (ModelError, UnsupportedError):
        return run
    if stepped.status in STUCK:
        return run
    if given["file"] is None:
        return stepped
    from dalembert.simulate.storage.sink import FileSink

    session = begin()
    return run_session(session, FileSink(given["file"], session, replace=True), False)


def session_of(system: Any, duration: float, q: Any = None, v: Any = None, **options: Any) -> Session | None:
    """Return the session that `simulate` drives with these arguments, not yet begun; None of a run in implicit form."""
    defaults = {
        name: parameter.default for name, parameter in signature(simulate).parameters.items() if name not in STARTS
    }
    arguments = {name: options.pop(name, default) for name, default in defaults.items()}
    _refuse_friction(system, arguments["friction"])
    if kind_of(system) == "implicit" or arguments["known"] is not None:
        return None
    _from_event_to_event(system, arguments, options)
    session = prepare(system, duration, q, v, arguments, options)
    session.controller.refuse_short_tables(session.settings.start, session.settings.end)
    return session


STARTS = ("system", "duration", "q", "v", "options")
"""Parameters of `simulate` that are no options."""

# `import dalembert.simulate.contact as contact` goes through `da.simulate`, which is this function: Python then looks
# for the room under its name.
simulate.__name__ = "dalembert.simulate"


def kind_of(system: Any) -> str:
    """Return which of two ways a system goes: "explicit", solved for accelerations, or "implicit", F(t, x, x') = 0."""
    from dalembert.model.mechanism.mechanism import Mechanism

    if isinstance(system, Mechanism):  # first, since it needs neither CasADi nor the solvers of friction
        return "explicit"
    from dalembert.model.lagrangian.lagrangian import Lagrangian
    from dalembert.model.matrices import Matrices

    if isinstance(system, Lagrangian | Matrices):
        return "explicit"
    from dalembert.simulate.equations.dae import DAE
    from dalembert.tableau.tableau import Tableau

    if isinstance(system, DAE | Tableau):
        return "implicit"
    from dalembert.model.system import System

    if isinstance(system, System):
        return "explicit"
    raise ModelError(
        f"simulate takes a Mechanism, a Lagrangian, Matrices, a Tableau or a DAE, not {type(system).__name__}; "
        "da.load(file) reads a robot from a file"
    )


def own_contacts(system: Any) -> tuple[Any, ...]:
    """Return the contacts that a Lagrangian or Matrices are made with; a mechanism is made with none."""
    return () if is_mechanism(system) else (*getattr(system, "contacts", ()), *getattr(system, "unilateral", ()))


def _from_event_to_event(system: Any, given: dict[str, Any], options: dict[str, Any]) -> None:
    """Let a run with contacts go from event to event, by the method that it is asked for between them.

    `Matrices` by "radau" go the same way without any: its Jacobian is one of differences.
    """
    method = given["method"]
    rubs = bool(given["friction"]) and np.any(np.asarray(getattr(system, "friction", ())) > 0.0)
    interpreted = method == "radau" and hasattr(system, "rows_rest")  # Matrices: no expressions to differentiate
    if given["contacts"] is None and not own_contacts(system) and not rubs and not interpreted:
        return
    if isinstance(method, str) and method in METHODS and METHODS[method].between_events:
        if options.setdefault("stepper", method) != method:
            raise ModelError(f"method={method!r} and stepper={options['stepper']!r}: give one of them")
        given["method"] = "hybrid"


def _refuse_friction(system: Any, friction: Any) -> None:
    """Refuse a `friction=` that is no truth value, or that would leave out contacts which a system is made of."""
    if not isinstance(friction, bool | np.bool_):
        raise ModelError(f"friction={friction!r} must be True or False: whether dry friction of joints acts")
    if not friction and own_contacts(system):
        raise ModelError(
            "friction=False leaves out the dry friction of a mechanism's joints; contacts of a "
            f"{type(system).__name__} are given when it is made: make it without them"
        )


def _in_time(system: Any) -> Any:
    """Return a system as steppers read it; a mechanism is, and needs no import."""
    from dalembert.model.mechanism.mechanism import Mechanism

    if isinstance(system, Mechanism):
        return system
    from dalembert.simulate.equations.lagrangian_system import in_time

    return in_time(system)


def _contacts_of_file(system: Any, contacts: str) -> Any:
    """Return the contacts of a mechanism's own collision shapes with the ground."""
    if contacts != "file":
        raise ModelError(
            f'contacts={contacts!r} is not "file", the shapes of the file on the ground', subject="contacts"
        )
    if not is_mechanism(system):
        raise ModelError('contacts="file" are the collision shapes of a Mechanism')
    return system.contacts()


def prepare(system: Any, duration: float, q: Any, v: Any, given: dict[str, Any], options: dict[str, Any]) -> Session:
    """Return the session of a run: options checked, the start on the constraints, a stepper chosen with its reason."""
    t, method, contacts, friction = given["t"], given["method"], given["contacts"], bool(given["friction"])
    if not (is_number(t) and np.isfinite(t)):
        raise ModelError(f"t={t!r} must be a finite number")
    numbers = _numbers(duration=duration, **{name: given[name] for name in ("rtol", "atol", "event_tolerance")})
    numbers |= {
        name: None if given[name] is None else _numbers(**{name: given[name]})[name] for name in ("step", "every")
    }
    step, max_step = given["step"], given["max_step"]
    largest = numbers["duration"] if max_step is None else _numbers(max_step=max_step)["max_step"]
    if numbers["step"] is not None and numbers["step"] > largest and max_step is not None:
        raise ModelError(f"step={step!r} is longer than max_step={max_step!r}")
    refuse_too_many(numbers["duration"], numbers["every"])
    for word, longest in (("step", numbers["step"]), ("max_step", None if max_step is None else largest)):
        refuse_too_many_steps(numbers["duration"], word, longest, numbers["every"])
    if not (given["progress"] is None or isinstance(given["progress"], bool | np.bool_)):
        raise ModelError(f"progress={given['progress']!r} must be True, False or None")
    massless = given.get("massless")
    if massless is not None and contacts is None:
        system = _with_massless(system, massless)
    moving = _in_time(system)
    if contacts is not None and moving is not system:
        raise ModelError("contacts= are those of a Mechanism; a Lagrangian has friction= and unilateral=")
    law = controller(moving, given["force"])
    if not isinstance(method, str) or (method != "auto" and method not in METHODS):
        raise ModelError(
            f"method={method!r} is not one of 'auto', {', '.join(map(repr, METHODS))}",
            near=near_matches(str(method), METHODS),
            subject="method",
        )
    on_step = guarded_step(given["on_step"])
    q, v = consistent_start(moving, q, v, float(t))
    breaks, watched = checked_breaks(given["breaks"]), given["events"] is not None
    chosen, reason = (
        choose(moving, law, contacts, q, v, numbers, float(t), friction, breaks, watched)
        if method == "auto"
        else (method, "asked for")
    )
    _refuse_accelerations(moving, chosen)
    _refuse_unknown(moving, chosen, friction, contacts, options)
    refuse_negative_mass(moving, q, v, float(t))
    reason += contradiction(moving, q, float(t))
    ignored = ignored_data(moving, contacts, law.kind != "none", "" if friction else "friction=False")
    reason = "; ".join([reason, *(effect.sentence.split(";")[0] for effect in ignored if effect.kind == SHAPES)])
    settings = RunSettings(chosen, reason, float(t), largest_step=largest, breaks=breaks, friction=friction, **numbers)
    watches_of_run, function, callables = watches(moving, given["events"])
    session = Session(moving, settings, law, q, v, watches_of_run, function, callables, on_step)
    session.extra |= {"contacts": contacts, "options": options}
    if massless is not None and contacts is not None:
        session.extra["massless"] = massless
    if method == "auto" and chosen == "moreau":
        session.message = FIRST_ORDER
    acts = friction and METHODS[chosen].contacts
    session.ignored = [effect for effect in ignored if effect.kind != FRICTION or not acts]
    return session


def _refuse_unknown(system: Any, method: str, friction: bool, contacts: Any, options: dict[str, Any]) -> None:
    """Refuse methods that do not take the contacts of a run, and options that neither `simulate` nor the method knows.

    Smooth methods leave dry friction of a mechanism's joints out, and the run's status says so.
    """
    rubbing = rubbing_contacts(system, friction)
    made_with = rubbing if hasattr(system, "given") else ()
    if METHODS[method].no_contacts and (contacts is not None or made_with):
        names = f" of {', '.join(map(repr, made_with[:NAMED]))}" if made_with else ""
        others = ", ".join(repr(name) for name, entry in METHODS.items() if entry.between_events)
        raise ModelError(
            f"method={method!r} does not take the contacts{names}: {METHODS[method].no_contacts}; {others} go from "
            "event to event, 'moreau' steps over them"
        )
    if method == "hybrid" and contacts is None and not rubbing and options.get("stepper") != "radau":
        raise ModelError("method='hybrid' needs contacts=: a system without them goes by a smooth method")
    why = too_long(system) if METHODS[method].contacts and is_mechanism(system) else ""
    if why:
        raise UnsupportedError(f"method={method!r}: contacts are straight-line code, and {why}")
    if not options:
        return
    parameters = signature(METHODS[method].load()).parameters
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values()):
        return  # what the method hands on, that takes or refuses
    of_method = [name for name in parameters if name != "session"]
    keywords = [name for name in signature(simulate).parameters if name not in ("system", "options")]
    for name in options:
        if name not in of_method:
            near = near_matches(name, [*keywords, *of_method])
            words = f"simulate knows no option {name!r} with method={method!r}"
            raise ModelError(words, near=(*RENAMED.get(name, ()), *near), subject=name)


RENAMED = {"torque": ("force",), "mechanism": ("system",), "t_eval": ("every",), "first_step": ("step",)}
"""What other programs, and earlier versions, call an option."""


def _sink_of(file: Any, session: Session) -> FileSink:
    from dalembert.simulate.storage.sink import FileSink

    return file if isinstance(file, FileSink) else FileSink(file, session)


def run_session(session: Session, file: Any = None, progress: bool | None = False) -> Trajectory:
    """Drive a session to its end; keep what there is whatever happens."""
    session.controller.refuse_short_tables(session.settings.start, session.settings.end)
    session.sink = sink = None if file is None else _sink_of(file, session)
    bar = None
    if progress is None or progress:
        s = session.settings
        session.progress = bar = ProgressBar(session.system.name, s.start, s.end, "s", asked=progress is not None)
    error: tuple[BaseException, float] | None = None
    try:
        with one_blas_thread():
            METHODS[session.settings.method].load()(session, **session.extra.get("options", {}))
        _ask_rank(session)
        _ask_witness(session)
        _name_passages(session)
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


def _ask_rank(session: Session) -> None:
    """Say of a run that reached its end that the rank of its rows, and so what may move, is in doubt."""
    rank = rank_of(session) if session.status in ("completed", "event") else None
    if rank is not None and rank.doubt:
        message = "the end was reached, but " if session.status == "completed" else f"{session.message}; but "
        session.stop("inaccurate", message + rank.doubt)


def _ask_witness(session: Session) -> None:
    """Compare the energy of a run that reached its end with what its tolerance allows; say where that does not hold."""
    if session.status not in ("completed", "event") or "error" in session.extra or not session.blocks:
        return
    broken = broken_balance(trajectory_of(session))
    if broken:
        prefix = "the end was reached, but " if session.status == "completed" else f"{session.message}; but "
        session.stop("inaccurate", prefix + broken)


def _name_passages(session: Session) -> None:
    """Say where a smooth run went through singular configurations of its constraints."""
    if session.status not in ("completed", "event") or METHODS[session.settings.method].contacts or not session.blocks:
        return
    rank = rank_of(session)
    if rank is None:
        return
    from dalembert.simulate.passages import singular_passages

    passed = singular_passages(trajectory_of(session), rank)
    session.message = "; ".join(filter(None, (session.message, passed)))


def _mark_simplified(session: Session) -> None:
    """Mark a run that reached its end without data of the model that would have changed its motion."""
    message = ""
    if session.status == "completed":
        message = missing_effects(session.ignored, session.system, session.extra.get("contacts"), session.blocks)
    if message:
        session.stop(SIMPLIFIED, "; ".join(filter(None, (session.message, message))))


VELOCITY_ADVICE = (
    "system.project(q, v)[1] is the nearest admissible one",
    "assemble = true in [start] takes the nearest admissible one",
)
"""What to do about initial velocities that violate constraints, in Python and in a scene."""


MOST_STEPS_ONTO_ROWS = 3
"""Newton's steps onto rows nonlinear in velocities, from a start that misses them by 1e-6 at most: one leaves 1e-12."""

EXPLICIT = ("dop853", "dopri5", "rk4")
"""Methods that take constraints of accelerations."""


def _refuse_accelerations(system: Any, method: str) -> None:
    """Refuse rows that constrain accelerations where a method needs rows linear in velocities, or positions."""
    rows = getattr(system, "of_accelerations", ())
    if rows and method not in EXPLICIT:
        raise UnsupportedError(
            f"method={method!r} does not take {', '.join(map(repr, rows[:NAMED]))}, which constrain accelerations "
            f"(nonlinear in velocities, or known at no other level); {', '.join(map(repr, EXPLICIT))} do"
        )


def consistent_start(system: Any, q: Any, v: Any, t: float) -> tuple[Array, Array]:
    """Return the initial state on the constraints, or refuse it with the row that it misses."""
    from dalembert.model.mechanism.constraint_rows import refuse_turning_rows, rows_at
    from dalembert.model.mechanism.mechanism import Mechanism

    q, v = configuration_of_names(system, q), velocity_of_names(system, v)
    q = default_start(system) if q is None else finite_vector(q, system.configuration_names, "q")
    v = np.zeros(system.nv) if v is None else finite_vector(v, system.coordinates, "v")
    if not isinstance(system, Mechanism):
        system.begin_at(q, t, v)
    q = system.normalize(q) if np.abs(system.normalize(q) - q).max(initial=0.0) < CONSISTENT else q
    if isinstance(system, Mechanism):
        system.manifold.refuse_off_manifold(q)
        refuse_turning_rows(system)
    if not system.names:
        return q, v
    v = _led(system, q, v, t)
    held = np.array(system.holonomic, dtype=bool)
    names, sizes = np.array(system.names, dtype=object), system.row_sizes
    phi = np.asarray(system.constraint(q, t))
    _refuse(phi, sizes[held], names[held], "q", lambda: _how_to_close(system, q, t))
    q = system.project(q, t=t) if np.abs(phi / sizes[held]).max(initial=0.0) > ON_MANIFOLD else q
    rate = np.asarray(system.constraint_velocity(q, v, t))
    sizes = np.maximum(sizes, np.abs(np.asarray(rows_at(system, q, t, v))) @ np.abs(v))
    _refuse(rate, sizes, names, "v", lambda: VELOCITY_ADVICE)
    if getattr(system, "of_accelerations", ()):  # Newton's steps: rates are not linear in velocities
        for _ in range(MOST_STEPS_ONTO_ROWS):
            v = system.project(q, v, t)[1]
        return q, v
    return q, system.project(q, v, t)[1] if np.abs(rate / sizes).max(initial=0.0) > ON_MANIFOLD else v


def _with_massless(system: Any, law: Any) -> Any:
    """Return a system whose limbs without mass have a law."""
    if not hasattr(system, "with_massless"):
        raise UnsupportedError(
            f"massless= is of a Mechanism or a Lagrangian; what of a {type(system).__name__} has no mass needs rows of "
            "its own: rows= and drift= for what it is to do"
        )
    return system.with_massless(law)


def _led(system: Any, q: Array, v: Array, t: float) -> Array:
    """Return velocities with those of limbs without mass as their laws say; no energy changes with them."""
    if not getattr(system, "massless_rows", ()):
        return v
    from dalembert.model.mechanism.limbs import led

    return led(system, q, v, t)


def refuse_negative_mass(system: Any, q: Array, v: Array, t: float) -> None:
    """Refuse a start at which negative inertias outweigh the others: what moves there gains energy from its fall."""
    bodies = getattr(system, "negative_bodies", ())
    if not bodies:
        return
    from dalembert.kkt import Status

    if np.any(np.asarray(system.forward(q, v, None, t).status) == Status.INDEFINITE):
        raise ModelError(
            f"at the start {Status.INDEFINITE.message}; masses or moments of {', '.join(map(repr, bodies))} are "
            "negative: check their signs"
        )


def contradiction(system: Any, q: Array, t: float) -> str:
    """Return a sentence where redundant rows contradict each other, so that no configuration closes them all."""
    if not any(system.holonomic):
        return ""
    parts = np.abs(np.asarray(system.constraint(q, t))) / system.row_sizes[np.array(system.holonomic, bool)]
    if not parts.max() > CONTRADICTING:
        return ""
    return f"; redundant rows contradict each other by {parts.max():.1e} of the size: closed by least squares"


def _refuse(missing: Array, sizes: Array, names: Array, what: str, hint: Callable[[], tuple[str, str]]) -> None:
    """Refuse a state that misses a row by more than a part of what that is measured against."""
    if missing.size and np.abs(missing / sizes).max() > CONSISTENT:
        worst = int(np.argmax(np.abs(missing / sizes)))
        part = abs(missing[worst]) / sizes[worst]
        words = f"the initial {what} misses {names[worst]!r} by {missing[worst]:.3g}, {part:.2g} of the system's size"
        raise ModelError(advised(words, *hint()), subject=what)


def _how_to_close(system: Any, q: Array, t: float) -> tuple[str, str]:
    """Return what to try where an initial configuration misses the constraints, in Python and in a scene."""
    from dalembert.model.mechanism.mechanism import Mechanism

    if not isinstance(system, Mechanism):
        return "give coordinates that satisfy it", "give coordinates that satisfy it"
    sizes = residual_sizes(system)
    nearest = closest(system, q, np.ones(system.nv), t)
    before, after = (np.linalg.norm(np.asarray(system.constraint(x, t)) / sizes) for x in (q, nearest))
    if after < LEAST_GAP * before:
        return (
            "mechanism.assemble(q) closes loops from a guess",
            f'assemble = true in [start] with hold = ["{system.coordinates[0]}"] closes the loops: what hold names '
            "keeps its value, the other values are a first guess",
        )
    stuck = "no motion from here makes the gap smaller, so {} ends here, too: lengths or anchors may not fit together, "
    stuck += "or another guess is nearer to a closed configuration"
    return stuck.format("mechanism.assemble(q)"), stuck.format("assemble = true in [start]")


def _numbers(**values: Any) -> dict[str, Any]:
    for name, value in values.items():
        if not (is_number(value) and np.isfinite(value) and value > 0):
            raise ModelError(f"{name}={value!r} must be a finite number > 0", subject=name)
    return {name: float(value) for name, value in values.items()}
