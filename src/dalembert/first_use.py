"""Names of a room, imported when they are first used (PEP 562): who asks for little waits for little."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def on_first_use(room: str, files: Mapping[str, str]) -> Callable[[str], Any]:
    """Return the `__getattr__` of a room whose names are in files: name -> file, relative to the room."""

    def get(name: str) -> Any:
        if name not in files:
            raise AttributeError(f"module {room!r} has no attribute {name!r}")
        value = getattr(import_module(f"{room}.{files[name]}"), name)
        vars(sys.modules[room])[name] = value
        return value

    return get


class LaterModule:
    """A module that is imported when a name of it is first used."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        value = getattr(import_module(self._name), name)
        vars(self)[name] = value
        return value


PICTURES, REPORTS = LaterModule("dalembert.view.show"), LaterModule("dalembert.view.run_report")
"""The room of pictures, as mechanisms and runs reach it: who draws nothing imports nothing of it."""

CONTACTS = LaterModule("dalembert.contact.scene")
"""The room of shapes that touch, as mechanisms reach it."""

OPTIMIZE = LaterModule("scipy.optimize")
"""SciPy's linear programs, which few problems of friction need: its import takes longer than most runs."""

LAPACK = LaterModule("scipy.linalg.lapack")
"""SciPy's LAPACK: solvers that are imported with it may never be asked."""

CASADI_BRIDGE = LaterModule("dalembert.bridges.casadi.functions")
CASADI_C_BRIDGE = LaterModule("dalembert.bridges.casadi.external")
JAX_BRIDGE = LaterModule("dalembert.bridges.jax.functions")
TORCH_BRIDGE = LaterModule("dalembert.bridges.torch")
FMI_BRIDGE = LaterModule("dalembert.bridges.fmi.unit")
MJCF_BRIDGE = LaterModule("dalembert.bridges.mjcf")
RERUN_BRIDGE = LaterModule("dalembert.bridges.rerun")
"""Other libraries, as kernels, mechanisms and runs reach them: nobody pays for a guest who does not invite it."""
