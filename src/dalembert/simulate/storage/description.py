"""What repeats a run: model, options, controller, events and contacts as text."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import numpy as np

from dalembert._version import __version__
from dalembert.errors import ModelError, UnsupportedError
from dalembert.simulate.ignored import Ignored
from dalembert.simulate.smooth.controller import controller
from dalembert.simulate.smooth.session import Session, Settings
from dalembert.simulate.smooth.watch import watches
from dalembert.simulate.storage.text import as_text, from_text

if TYPE_CHECKING:
    from dalembert.model.mechanism import Mechanism

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
    settings = Settings(**kept | {"breaks": tuple(kept.get("breaks", ()))})
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
