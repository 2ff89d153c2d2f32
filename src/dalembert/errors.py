"""The errors a user may meet: what happened, the likely cause, what to try.

A numerical outcome is data (`Status`, `Certificate`); these are for misuse, and for a single solve that has no
answer. Every one derives from `DalembertError`.
"""

from __future__ import annotations

from typing import Any


class DalembertError(Exception):
    """Base class of every error that dalembert raises on purpose."""


class ShapeError(DalembertError, ValueError):
    """An array, or a list of names, does not have the shape that the others ask for."""


class ModelError(DalembertError, ValueError):
    """The description of a system is wrong: a value, a name, or an element of a file."""


class SolvabilityError(DalembertError, ArithmeticError):
    """A single system has no (unique) answer; `diagnosis` says why, by name.

    Attributes
    ----------
    diagnosis
        What was found: rank, redundant and conflicting rows, free massless motion. `None` where no diagnosis applies.
    """

    def __init__(self, message: str, diagnosis: Any = None) -> None:
        super().__init__(message)
        self.diagnosis = diagnosis


class UnsupportedError(DalembertError, NotImplementedError):
    """Something that dalembert does not do; the message says what to use instead."""


class MissingExtraError(DalembertError, ImportError):
    """An optional package is missing; the message names the extra that brings it."""

    def __init__(self, package: str, extra: str, purpose: str) -> None:
        super().__init__(f'{purpose} needs {package}: pip install "dalembert[{extra}]"')
        self.extra = extra
