"""Models and controllers as JSON: data in, data out; nothing in a file is ever evaluated as code.

A value is a number, a word, a list; {"tuple": [...]}, {"array": nested lists, "type": dtype}, {"casadi": text}, or a
known
dataclass, {"class": name, "fields": {...}}. Floats are written with all their digits, so that they come back bit for
bit.
"""

from __future__ import annotations

import json
from dataclasses import fields, is_dataclass
from functools import cache
from typing import Any

import numpy as np

from dalembert.errors import ModelError, UnsupportedError


@cache
def known_classes() -> dict[str, type]:
    """Return the dataclasses that may be in a file, by name."""
    from dalembert.model import inertia, parts, placement
    from dalembert.model.constraints import KINDS
    from dalembert.model.mechanism import Mechanism
    from dalembert.simulate.contact import CONTACT_CLASSES
    from dalembert.simulate.smooth.watch import Watch
    from dalembert.tableau.time.known import Table

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
