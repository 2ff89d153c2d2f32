"""Models, controllers and options of a run as JSON."""

from __future__ import annotations

import json
from dataclasses import asdict, fields, is_dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from dalembert._version import __version__
from dalembert.errors import ModelError, UnsupportedError
from dalembert.simulate.equations.controller import controller
from dalembert.simulate.events.asked import watches
from dalembert.simulate.ignored import Ignored
from dalembert.simulate.session import RunSettings, Session

if TYPE_CHECKING:
    from dalembert.model.mechanism.mechanism import Mechanism

# ----------------------------------------------------------------------------------------------------------------------
# Models and controllers as JSON: data in, data out; nothing in a file is ever evaluated as code.
#
# A value is a number, a word, a list; {"tuple": [...]}, {"array": nested lists, "type": dtype}, {"casadi": text}, or a
# known
# dataclass, {"class": name, "fields": {...}}. Floats are written with all their digits, so that they come back bit for
# bit.


@cache
def known_classes() -> dict[str, type]:
    """Return the dataclasses that may be in a file, by name."""
    from dalembert.model.constraints import KINDS
    from dalembert.model.mechanism import inertia, parts, placement
    from dalembert.model.mechanism.mechanism import Mechanism
    from dalembert.simulate.contact import CONTACT_CLASSES
    from dalembert.simulate.equations.signals import Table
    from dalembert.simulate.events.asked import EventWatch as Watch

    found: list[type] = [Mechanism, inertia.Inertia, placement.Placement, Table, Watch, *KINDS, *CONTACT_CLASSES]
    found += [each for each in vars(parts).values() if isinstance(each, type) and each.__module__ == parts.__name__]
    return {each.__name__: each for each in found}


def as_text(value: Any) -> str:
    """Return JSON; `UnsupportedError` where something has no text, such as a Python function."""
    return json.dumps(_out(value))


def from_text(text: str) -> Any:
    """Return what `as_text` was given."""
    try:
        return _in(json.loads(text))
    except (ValueError, KeyError, TypeError) as error:
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
        return {"tuple": [_out(each) for each in value]}
    if isinstance(value, list):
        return [_out(each) for each in value]
    if isinstance(value, dict):
        return {"dict": [[_out(key), _out(each)] for key, each in value.items()]}
    if isinstance(value, ca.Function):
        scalar = value if value.is_a("SXFunction") else value.expand()
        return {"casadi": scalar.serialize()}
    if is_dataclass(value) and known_classes().get(type(value).__name__) is type(value):
        return {"class": type(value).__name__, "fields": {f.name: _out(getattr(value, f.name)) for f in fields(value)}}
    raise UnsupportedError(f"{value!r} cannot be written to a file: a {type(value).__name__} is not data")


def _in(value: Any) -> Any:
    if isinstance(value, list):
        return [_in(each) for each in value]
    if not isinstance(value, dict):
        return value
    if "tuple" in value:
        return tuple(_in(each) for each in value["tuple"])
    if "array" in value:
        return np.array(value["array"], dtype=value["type"]).reshape(value["shape"])
    if "dict" in value:
        return {_in(key): _in(each) for key, each in value["dict"]}
    if "casadi" in value:
        import casadi as ca

        function = ca.Function.deserialize(value["casadi"])
        if not function.is_a("SXFunction"):
            raise ModelError("the file holds a function that is not scalar arithmetic")
        return function
    if value.get("class") not in known_classes():
        raise ModelError(f"the file holds a {value.get('class')!r}, which this version does not know")
    made = known_classes()[value["class"]]
    given = {name: _in(each) for name, each in value["fields"].items()}
    known = {f.name for f in fields(made)}
    strangers = sorted(set(given) - known)
    if strangers:
        raise ModelError(
            f"the file's {value['class']} has fields that this version does not know: {', '.join(strangers)}"
        )
    return made(**given)


# ----------------------------------------------------------------------------------------------------------------------
# What repeats a run: model, options, controller, events and contacts as text.


MISSING = "not stored: "
"""Begins the text of something that is code and not data."""


def describe(session: Session) -> dict[str, Any]:
    """Return the attributes of a file."""
    from dalembert.simulate.storage.layout import SCHEMA

    m = session.mechanism
    events = {each.name: each for each in session.watches}
    return {
        "schema": SCHEMA,
        "dalembert": __version__,
        "mechanism_name": m.name,
        "mechanism": _text(m),
        "content": m.content(),
        "settings": as_text(asdict(session.settings)),
        "torque": _text(session.controller.given),
        "events_asked": _text(events),
        "contacts": _text(session.extra.get("contacts")),
        "options": _text(session.extra.get("options", {})),
        "q": as_text(session.q),
        "v": as_text(session.v),
        "notes": as_text([list(each) for each in session.ignored]),
        "status": "running",
        "message": "",
    }


def _text(value: Any) -> str:
    try:
        text = as_text(value)
        from_text(text)
    except (UnsupportedError, ModelError) as error:
        return f"{MISSING}{error}"
    return text


def session_of(attributes: Any, given: dict[str, Any]) -> Session:
    """Return the session that a file describes; `given` has what the file could not hold."""
    mechanism: Mechanism = _stored(attributes, "mechanism", given)
    if mechanism.content() != attributes["content"]:
        raise ModelError("the mechanism is not the one that the file was made with")
    kept = from_text(attributes["settings"])
    settings = RunSettings(**kept | {"breaks": tuple(kept.get("breaks", ()))})
    missing: list[str] = []
    torque = _optional(attributes, "torque", given, missing)
    found, function, callables = watches(mechanism, _optional(attributes, "events_asked", given, missing, "events"))
    q, v = (np.asarray(from_text(attributes[name])) for name in ("q", "v"))
    session = Session(mechanism, settings, controller(mechanism, torque), q, v, found, function, callables)
    session.extra |= {
        "contacts": _optional(attributes, "contacts", given, missing), "options": from_text(attributes["options"]),
        "missing": missing,
    }  # fmt: skip
    if "notes" in attributes:  # not in files of older versions
        session.ignored = [Ignored(*each) for each in from_text(attributes["notes"])]
    if "torque" in missing:
        session.extra["controller missing"] = True
    return session


def options_of(session: Session, changes: dict[str, Any]) -> dict[str, Any]:
    """Return what `da.simulate` was given for a session, with changes."""
    s = session.settings
    for word in session.extra.get("missing", ()):
        if word not in changes:
            raise ModelError(f"{word} was a Python function, which a file cannot hold; give it again: {word}=...")
    given = {
        "duration": s.duration, "q": session.q, "v": session.v, "t": s.start, "torque": session.controller.given,
        "contacts": session.extra.get("contacts"), "method": s.method, "rtol": s.rtol, "atol": s.atol, "step": s.step,
        "max_step": s.largest_step if s.largest_step < s.duration else None, "breaks": list(s.breaks),
        "every": s.every, "events": {each.name: each for each in session.watches} or None,
        "event_tolerance": s.event_tolerance,
    }  # fmt: skip
    return given | session.extra.get("options", {}) | changes


def _stored(attributes: Any, name: str, given: dict[str, Any]) -> Any:
    if given.get(name) is not None:
        return given[name]
    text = str(attributes[name])
    if text.startswith(MISSING):
        raise ModelError(f"{name} is {text}; give it again: {name}=...")
    return from_text(text)


def _optional(attributes: Any, name: str, given: dict[str, Any], missing: list[str], word: str | None = None) -> Any:
    """Return something that can be left out for reading, not for going on."""
    if given.get(word or name) is not None:
        return given[word or name]
    text = str(attributes[name])
    if text.startswith(MISSING):
        missing.append(word or name)
        return None
    return from_text(text)
