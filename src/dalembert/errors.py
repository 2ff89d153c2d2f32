"""The errors a user may meet: what happened, the likely cause, what to try.

A numerical outcome is data (`Status`, `Certificate`); these are for misuse, and for a single solve that has no
answer. Every one derives from `DalembertError`. What is legal and hardly meant is a `ModelWarning`.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

_PACKAGE = str(Path(__file__).parent)


# ----------------------------------------------------------------------------------------------------------------------
# Messages with advice: in words of Python as text, in words of scenes and the command line beside it.


class Advised(str):
    """A message whose advice depends on who reads it: `scene` is the whole for who writes scenes and command lines."""

    scene: str

    def __new__(cls, python: str, scene: str = "") -> Advised:
        """Make a message; without words for scenes those of Python serve all."""
        text = super().__new__(cls, python)
        text.scene = scene or str(python)
        return text


def advised(message: str, python: str, scene: str = "") -> Advised:
    """Return a message that ends with advice: what to call in Python, which key or option to give in a scene."""
    return Advised(f"{message}; {python}", f"{message}; {scene}" if scene else message)


def reworded(text: str, change: Callable[[str], str]) -> str:
    """Return a message changed in both of its wordings."""
    return Advised(change(text), change(text.scene)) if isinstance(text, Advised) else change(text)


def scene_words(message: Any) -> str:
    """Return an error, a warning or a note as it is told to who writes scenes and command lines."""
    if isinstance(message, Warning | Exception) and message.args:
        message = message.args[0]
    return message.scene if isinstance(message, Advised) else str(message)


# ----------------------------------------------------------------------------------------------------------------------
# Errors and warnings.


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
    subject
        What is wrong: the name of an argument, as in "the axis of joint 'hip'", or the value itself. `None` where
        it is no single one. Scenes find the line of its key by it.
    """

    def __init__(self, message: str, source: Any = None, near: tuple[str, ...] = (), subject: Any = None) -> None:
        hint = f"; did you mean {' or '.join(map(repr, near))}?" if near else ""
        head = "" if source is None else f"{source}: "
        super().__init__(reworded(message, lambda text: f"{head}{text}{hint}"))
        self.message = message
        self.source = source
        self.near = near
        self.subject = subject


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
    """The description of a system is accepted, but is probably a mistake; the system's `notes` say the same."""


def warn_user(message: str) -> None:
    """Warn with `ModelWarning` at the line that called dalembert, whatever lies between."""
    frame, level = sys._getframe(1), 2
    while frame is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, ModelWarning, stacklevel=level)
