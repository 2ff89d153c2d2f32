"""Contacts of a Lagrangian as data: their expressions become functions of its symbols, and are read back in new ones.

For files of runs, and for other processes; laws go as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields
from typing import Any

import casadi as ca


def contacts_as_data(contacts: Sequence[Any], function_of: Callable[[ca.SX], ca.Function]) -> list[dict[str, Any]]:
    """Return kind and fields of contacts; `function_of` makes a function of the system's symbols of an expression."""

    def written(value: Any) -> Any:
        if isinstance(value, list | tuple):
            return [written(part) for part in value]
        return function_of(value) if isinstance(value, ca.SX) else value

    return [
        {"kind": type(contact).__name__}
        | {entry.name: written(getattr(contact, entry.name)) for entry in fields(contact)}
        for contact in contacts
    ]


def contacts_from_data(contacts: Sequence[dict[str, Any]], symbols: Sequence[ca.SX]) -> tuple[Any, ...]:
    """Return the contacts that `contacts_as_data` wrote, their expressions in new symbols."""
    from dalembert.friction.laws.contacts import CONTACTS, Unilateral

    kinds = {kind.__name__: kind for kind in (*CONTACTS, Unilateral)}

    def read(value: Any) -> Any:
        if isinstance(value, list | tuple):
            return [read(part) for part in value]
        return value.call(list(symbols))[0] if isinstance(value, ca.Function) else value

    return tuple(
        kinds[item["kind"]](**{name: read(value) for name, value in item.items() if name != "kind"})
        for item in contacts
    )
