"""Models, controllers and options of a run as JSON."""

from __future__ import annotations

import json
from dataclasses import asdict, fields, is_dataclass
from functools import cache
from types import SimpleNamespace
from typing import Any

import numpy as np

from dalembert._version import __version__
from dalembert.errors import ModelError, UnsupportedError
from dalembert.friction.laws.laws import ExpressionLaw
from dalembert.kernel.program.program import ARITY, TERNARY, Op, Port, Program
from dalembert.kernel.program.trace import trace, untrace
from dalembert.model.mechanism.mechanism import Mechanism
from dalembert.simulate.equations.controller import controller
from dalembert.simulate.equations.lagrangian_system import LagrangianSystem, as_data, from_data, in_time
from dalembert.simulate.events.asked import Event, watches
from dalembert.simulate.ignored import Ignored
from dalembert.simulate.session import RunSettings, Session

# ----------------------------------------------------------------------------------------------------------------------
# Models and controllers as JSON: data in, data out; nothing in a file is ever evaluated as code.
#
# A value is a number, a word, a list; {"tuple": [...]}, {"array": nested lists, "type": dtype}, {"function": name,
# ...}, or a known dataclass, {"class": name, "fields": {...}}. Floats are written with all their digits, so that they
# come back bit for bit. A CasADi function is its list of operations: CasADi's own text may name a library, which is
# loaded, and its code run, as soon as the text is read.


@cache
def known_classes() -> dict[str, type]:
    """Return the dataclasses that may be in a file, by name."""
    from dalembert.friction.laws.contacts import CONTACTS, BearingFriction
    from dalembert.friction.laws.laws import LAWS
    from dalembert.model.constraints import KINDS
    from dalembert.model.mechanism import inertia, parts, placement
    from dalembert.model.mechanism.limbs import LimbRow
    from dalembert.model.mechanism.mechanism import Mechanism
    from dalembert.simulate.contact import CONTACT_CLASSES
    from dalembert.simulate.equations.signals import Table

    classes: list[type] = [Mechanism, inertia.Inertia, placement.Placement, Table, Event, *KINDS, *CONTACT_CLASSES]
    classes += [*CONTACTS, BearingFriction, *LAWS, LimbRow]
    classes += [kind for kind in vars(parts).values() if isinstance(kind, type) and kind.__module__ == parts.__name__]
    return {kind.__name__: kind for kind in classes}


OLD_CLASSES = {"EventWatch": ("Event", {"function": "g"})}
"""Classes of files of earlier versions: their names now, and those of their fields."""


def as_text(value: Any) -> str:
    """Return JSON; `UnsupportedError` where something has no text, such as a Python function."""
    return json.dumps(_out(value))


def from_text(text: str) -> Any:
    """Return what `as_text` was given."""
    try:
        return _in(json.loads(text))
    except OldExpressionError:
        raise
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise ModelError(f"the file's description of the run cannot be read: {error}") from error


def _out(value: Any) -> Any:
    import casadi as ca

    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, np.ndarray):
        return {"array": value.tolist(), "type": str(value.dtype), "shape": list(value.shape)}
    if isinstance(value, tuple):
        return {"tuple": [_out(item) for item in value]}
    if isinstance(value, list):
        return [_out(item) for item in value]
    if isinstance(value, dict):
        return {"dict": [[_out(key), _out(item)] for key, item in value.items()]}
    if isinstance(value, ca.Function):
        return _function_out(trace(value))
    if isinstance(value, ExpressionLaw):
        return {"law": [_function_out(trace(f)) for f in value.functions], "of_state": value.needs_state}
    if is_dataclass(value) and known_classes().get(type(value).__name__) is type(value):
        return {"class": type(value).__name__, "fields": {f.name: _out(getattr(value, f.name)) for f in fields(value)}}
    raise UnsupportedError(f"{value!r} cannot be written to a file: a {type(value).__name__} is not data")


def _in(value: Any) -> Any:
    if isinstance(value, list):
        return [_in(item) for item in value]
    if not isinstance(value, dict):
        return value
    if "tuple" in value:
        return tuple(_in(item) for item in value["tuple"])
    if "array" in value:
        return np.array(value["array"], dtype=number_type(value["type"])).reshape(value["shape"])
    if "dict" in value:
        return {_in(key): _in(item) for key, item in value["dict"]}
    if "function" in value:
        return untrace(_function_in(value))
    if "law" in value:
        kinetic, static = (untrace(_function_in(f)) for f in value["law"])
        return ExpressionLaw.of(kinetic, static, bool(value["of_state"]))
    if "casadi" in value:
        raise OldExpressionError("not stored: an expression in the form of an older version, which could hold code")
    if value.get("class") in OLD_CLASSES:
        name, renamed = OLD_CLASSES[value["class"]]
        value = {"class": name, "fields": {renamed.get(key, key): item for key, item in value["fields"].items()}}
    if value.get("class") not in known_classes():
        raise ModelError(f"the file holds a {value.get('class')!r}, which this version does not know")
    kind = known_classes()[value["class"]]
    values = {name: _in(item) for name, item in value["fields"].items()}
    names = {f.name for f in fields(kind)}
    strangers = sorted(set(values) - names)
    if strangers:
        raise ModelError(
            f"the file's {value['class']} has fields that this version does not know: {', '.join(strangers)}"
        )
    return kind(**values)


def number_type(name: Any) -> np.dtype[Any]:
    """Return a type of numbers of at most eight bytes; a file may ask for no other."""
    kind = np.dtype(str(name))
    if kind.kind not in "fiub" or kind.itemsize > 8:
        raise ModelError(f"the file holds an array of {str(name)[:40]!r}, which is no type of numbers")
    return kind


# ----------------------------------------------------------------------------------------------------------------------
# CasADi functions as lists of operations, by name and with the places of their operands.


class OldExpressionError(ModelError):
    """An expression in CasADi's own text, which is not read."""


def _function_out(program: Program) -> dict[str, Any]:
    operations = [
        [float(value)] if op == Op.CONST else [Op(op).name.lower(), *(int(x) for x in (a, b) if x >= 0)]
        for op, a, b, value in zip(program.op, program.a, program.b, program.value, strict=True)
    ]
    columns = (program.result_port, program.result_element, program.result_value)
    return {
        "function": program.name,
        "inputs": [[port.name, port.rows, port.cols] for port in program.inputs],
        "outputs": [[port.name, port.rows, port.cols] for port in program.outputs],
        "operations": operations,
        "results": [[int(x) for x in row] for row in zip(*columns, strict=True)],
    }


def _function_in(data: dict[str, Any]) -> Program:
    """Return the program in a file; places that do not exist are refused."""
    inputs, outputs = (tuple(_port(*row) for row in data[side]) for side in ("inputs", "outputs"))
    columns: list[tuple[int, int, int, float]] = []
    for i, (operation, *operands) in enumerate(data["operations"]):
        if not isinstance(operation, str):
            columns.append((Op.CONST, -1, -1, float(operation)))
            continue
        op = Op[operation.upper()]
        if op == Op.INPUT:
            _check_place(operands, inputs)
        elif op in TERNARY or len(operands) != ARITY[op] or not all(0 <= place < i for place in operands):
            raise ValueError(f"operation {i} of function {data['function']!r} has no such operands")
        columns.append((op, operands[0], operands[1] if len(operands) > 1 else -1, 0.0))
    for *place, value in data["results"]:
        _check_place(place, outputs)
        if not 0 <= value < len(columns):
            raise ValueError(f"a result of function {data['function']!r} does not exist")
    op, a, b, value = zip(*columns, strict=True) if columns else ((), (), (), ())
    port, element, result = np.array(data["results"], np.int32).reshape(-1, 3).T
    return Program(
        name=str(data["function"]), inputs=inputs, outputs=outputs, op=np.array(op, np.uint8),
        a=np.array(a, np.int32), b=np.array(b, np.int32), c=np.full(len(op), -1, np.int32),
        value=np.array(value, np.float64), result_port=port, result_element=element, result_value=result,
    )  # fmt: skip


def _port(name: str, rows: int, cols: int) -> Port:
    if not 0 <= rows * cols <= MOST_ELEMENTS:
        raise ValueError(f"{name!r} of a function has {rows} x {cols} numbers")
    return Port(str(name), int(rows), int(cols))


def _check_place(place: Any, ports: tuple[Port, ...]) -> None:
    port, element = place
    if not (0 <= port < len(ports) and 0 <= element < ports[port].size):
        raise ValueError("a function has no such element")


# ----------------------------------------------------------------------------------------------------------------------
# The description of a run: model, options, controller, events and contacts as text.


MOST_ELEMENTS = 10**6
"""Numbers of one input or output of a stored function: far beyond those of any controller."""


MISSING = "not stored: "
"""Begins the text of something that is code and not data."""


def describe(session: Session) -> dict[str, Any]:
    """Return the attributes of a file."""
    from dalembert.simulate.storage.sink import SCHEMA

    m = session.system
    events = {item.name: item for item in session.watches}
    implicit = {"form": "implicit", "known": stored_text(session.extra["known"])} if "form" in session.extra else {}
    return implicit | {
        "schema": SCHEMA,
        "dalembert": __version__,
        "system_name": m.name,
        "system": system_text(m),
        "content": m.content(),
        "settings": as_text(asdict(session.settings)),
        "force": stored_text(session.controller.given),
        "events_asked": stored_text(events),
        "contacts": stored_text(session.extra.get("contacts")),
        "options": stored_text(session.extra.get("options", {})),
        "massless": stored_text(session.extra.get("massless")),
        "q": as_text(session.q),
        "v": as_text(session.v),
        "notes": as_text([list(item) for item in session.ignored]),
        "status": "running",
        "message": "",
    }


def system_text(m: Any) -> str:
    """Return a system as text, where it is data: a Lagrangian is its operations, contacts included."""
    m = getattr(m, "stored", m)
    if not isinstance(m, LagrangianSystem):
        return stored_text(m)
    data = as_data(m)
    if m.given.contacts or m.given.unilateral:
        from dalembert.simulate.contact.contact_system import contact_terms_of

        data["contact_terms"] = contact_terms_of(m.given)  # as they are: derived anew they might round otherwise
    return stored_text(data)


def stored_text(value: Any) -> str:
    """Return JSON that can be read back, or why there is none, after `MISSING`."""
    try:
        text = as_text(value)
        from_text(text)
    except (UnsupportedError, ModelError) as error:
        return f"{MISSING}{error}"
    return text


def session_of(attributes: Any, given: dict[str, Any]) -> Session:
    """Return the session that a file describes; `given` has what the file could not hold."""
    attributes = StoredNames(attributes)
    if "form" in attributes:
        return _implicit_session(attributes, given)
    stored = _stored(attributes, "system", given)
    system = in_time(from_data(stored) if isinstance(stored, dict) else stored)
    if system.content() != attributes["content"]:
        raise ModelError(f"the {_word(system)} is not the one that the file was made with")
    options = from_text(attributes["settings"])
    settings = RunSettings(**options | {"breaks": tuple(options.get("breaks", ()))})
    missing: list[str] = []
    force = _optional(attributes, "force", given, missing)
    listed, function, callables = watches(system, _optional(attributes, "events_asked", given, missing, "events"))
    q, v = (np.asarray(from_text(attributes[name])) for name in ("q", "v"))
    if not isinstance(system, Mechanism):
        system.begin_at(q, settings.start)
    session = Session(system, settings, controller(system, force), q, v, listed, function, callables)
    session.extra |= {
        "contacts": _optional(attributes, "contacts", given, missing), "options": from_text(attributes["options"]),
        "missing": missing,
    }  # fmt: skip
    massless = _optional(attributes, "massless", given, missing) if "massless" in attributes else None
    if massless is not None:
        session.extra["massless"] = massless
    if "notes" in attributes:  # not in files of older versions
        session.ignored = [Ignored(*note) for note in from_text(attributes["notes"])]
    if "force" in missing:
        session.extra["controller missing"] = True
    return session


def _implicit_session(attributes: StoredNames, given: dict[str, Any]) -> Session:
    """Return the session of a run in implicit form; its system is needed for going on alone."""
    from dalembert.simulate.implicit import ImplicitSystem, asked_events

    missing: list[str] = []
    stored = _optional(attributes, "system", given, missing)
    system = ImplicitSystem(from_data(stored) if isinstance(stored, dict) else stored, given["unknowns"])
    if "system" not in missing and system.content() != attributes["content"]:
        raise ModelError("the system is not the one that the file was made with")
    options = from_text(attributes["settings"])
    settings = RunSettings(**options | {"breaks": tuple(options.get("breaks", ()))})
    events = asked_events(_optional(attributes, "events_asked", given, missing, "events"))
    signals = _optional(attributes, "known", given, missing)
    no_forces: Any = SimpleNamespace(given=None)
    q, v = (from_text(attributes[name]) for name in ("q", "v"))
    session = Session(system, settings, no_forces, q, v, events)
    session.extra |= {"form": "implicit", "known": signals, "options": from_text(attributes["options"])}
    session.extra["missing"] = missing
    session.ignored = [Ignored(*note) for note in from_text(attributes["notes"])]
    return session


def options_of(session: Session, changes: dict[str, Any]) -> dict[str, Any]:
    """Return what `da.simulate` was given for a session, with changes."""
    s = session.settings
    for keyword in session.extra.get("missing", ()):
        if keyword not in changes:
            raise ModelError(f"{keyword} was a Python function, which a file cannot hold; give it again: {keyword}=...")
    options = {
        "duration": s.duration, "q": session.q, "v": session.v, "t": s.start, "force": session.controller.given,
        "contacts": session.extra.get("contacts"), "method": s.method, "rtol": s.rtol, "atol": s.atol, "step": s.step,
        "max_step": s.largest_step if s.largest_step < s.duration else None, "breaks": list(s.breaks),
        "every": s.every, "events": {watch.name: watch for watch in session.watches} or None,
        "event_tolerance": s.event_tolerance, "friction": s.friction, "massless": session.extra.get("massless"),
    }  # fmt: skip
    more = dict(session.extra.get("options", {}))
    if "method" in changes:
        more.pop("stepper", None)  # of the method that is changed
    return options | more | changes


OLD_NAMES = {"system": "mechanism", "system_name": "mechanism_name", "force": "torque"}
"""What earlier versions called the attributes of a file."""


class StoredNames:
    """Attributes of a file by the names of today; they are asked for one by one, since a spoilt list may never end."""

    def __init__(self, attributes: Any) -> None:
        self.attributes = attributes

    def __contains__(self, name: str) -> bool:
        return name in self.attributes or OLD_NAMES.get(name, name) in self.attributes

    def __getitem__(self, name: str) -> Any:
        return self.attributes[name if name in self.attributes else OLD_NAMES.get(name, name)]


def _word(system: Any) -> str:
    """Return what a user calls a system."""
    return "mechanism" if isinstance(system, Mechanism) else type(system.given).__name__


def _stored(attributes: Any, name: str, given: dict[str, Any]) -> Any:
    if given.get(name) is not None:
        return given[name]
    text = str(attributes[name])
    if text.startswith(MISSING):
        raise ModelError(f"{name} is {text}; give it again: {name}=...")
    try:
        return from_text(text)
    except OldExpressionError as error:
        raise ModelError(f"{name} is {error}; give it again: {name}=...") from error


def _optional(attributes: Any, name: str, given: dict[str, Any], missing: list[str], word: str | None = None) -> Any:
    """Return something that can be left out for reading, not for going on."""
    if given.get(word or name) is not None:
        return given[word or name]
    text = str(attributes[name])
    try:
        if not text.startswith(MISSING):
            return from_text(text)
    except OldExpressionError:
        pass
    missing.append(word or name)
    return None
