"""The errors a user may meet: what happened, the likely cause, what to try.

A numerical outcome is data (`Status`, `Certificate`); these are for misuse, and for a single solve that has no
answer. Every one derives from `DalembertError`. What is legal and hardly meant is a `ModelWarning`.
"""

from __future__ import annotations

import sys
import warnings
from pathlib import Path
from typing import Any

_PACKAGE = str(Path(__file__).parent)


class DalembertError(Exception):
    """Base class of every error that dalembert raises on purpose."""


class ShapeError(DalembertError, ValueError):
    """An array, or a list of names, does not have the shape that the others ask for."""


class ModelError(DalembertError, ValueError):
    """The description of a system is wrong: a value, a name, or an element of a file.

    Attributes
    ----------
    source
        Where it was read: file, line and element; `None` where nothing was read. The message begins with it.
    near
        Names that exist and resemble the one that does not. The message ends with them.
    """

    def __init__(self, message: str, source: Any = None, near: tuple[str, ...] = ()) -> None:
        hint = f"; did you mean {' or '.join(map(repr, near))}?" if near else ""
        super().__init__(f"{source}: {message}{hint}" if source is not None else f"{message}{hint}")
        self.source = source
        self.near = near


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


class ModelWarning(UserWarning):
    """A system is taken as described, though hardly anybody means it so; its `notes` say the same."""


def warn_user(message: str) -> None:
    """Warn with `ModelWarning` at the line that called dalembert, whatever lies between."""
    frame, level = sys._getframe(1), 2
    while frame is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, ModelWarning, stacklevel=level)
