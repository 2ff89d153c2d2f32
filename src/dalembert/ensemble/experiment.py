"""One run of a study: what the drawn values change, the trajectory, and the status where there is none.

An experiment is what a study repeats: `run(values)` returns a `Trajectory`. That of a system is here; a scene is
another (`scenes/sweep.py`). A run of a study is by definition the run of `da.simulate` with the same numbers: batches
and workers are faster ways to the same bits.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from dalembert.ensemble.distributions import NormalVariable, StudyInput, variable
from dalembert.errors import DalembertError, ModelError
from dalembert.memory import memory_of
from dalembert.model.named_state import configuration_of_names, default_start, velocity_of_names
from dalembert.types import Array

if TYPE_CHECKING:
    from dalembert.simulate.trajectory import Trajectory

STATUSES = (
    "missing", "completed", "event", "interrupted", "stopped", "no solution", "disk full", "chattering", "detached",
    "inaccurate", "indeterminate", "simplified", "refused", "failed", "lost", "other",
)  # fmt: skip
"""What became of a run, by its number in a store: those of `Trajectory`, and "missing" (not yet computed), "refused"
(the start or the model), "failed" (an exception), "lost" (it killed its worker twice)."""

OK = ("completed", "event")
"""Runs that reached their end; statistics are theirs."""


class Experiment(Protocol):
    """What a study repeats."""

    def run(self, values: Mapping[str, Any]) -> Trajectory:
        """Return the run with these values of the variables."""
        ...

    def described(self) -> dict[str, str]:
        """Return texts from which the experiment can be made again; those of code begin with "not stored: "."""
        ...


@dataclass(frozen=True)
class Outcome:
    """A run, or why there is none."""

    run: Any
    status: str
    reason: str = ""

    @property
    def ok(self) -> bool:
        """True when the run reached its end."""
        return self.status in OK


def attempt(make: Callable[[], Trajectory]) -> Outcome:
    """Return a run with its status; an exception is a status, too."""
    try:
        run = make()
    except DalembertError as error:
        return Outcome(None, "refused", str(error))
    except Exception as error:  # a user's function, or a defect: the other runs go on
        return Outcome(None, "failed", f"{type(error).__name__}: {error}")
    if run.status == "interrupted":
        raise KeyboardInterrupt
    status = run.status if run.status in STATUSES else "other"
    return Outcome(run, status, "" if run.ok else run.message)


@dataclass(frozen=True, eq=False)
class SystemExperiment:
    """`da.simulate` of a system whose start and parameters vary.

    Attributes
    ----------
    system
        A system, or a function that makes one of the parameters, by name.
    q, v
        What is the same in all runs of the start: a vector, None, or a dict by coordinate.
    parameters
        Values that are the same in all runs.
    project
        Whether the start is put on the constraints before the run.
    options
        Of `da.simulate`.
    """

    system: Any
    duration: float
    q: Any = None
    v: Any = None
    parameters: Mapping[str, Any] = field(default_factory=dict)
    project: bool = False
    options: Mapping[str, Any] = field(default_factory=dict)

    def at(self, values: Mapping[str, Any]) -> tuple[Any, Any, Any]:
        """Return the system and the start of a run."""
        chosen = {name: x for name, x in values.items() if name not in ("q", "v") and name[:2] not in ("q:", "v:")}
        system = with_values(self.system, {**self.parameters, **chosen})
        q, v = self._start(system, values)
        if self.project:
            t = float(self.options.get("t", 0.0))
            moving = _in_time(system)
            q = default_start(moving) if q is None else q
            if moving is not system:
                moving.begin_at(np.asarray(q, dtype=float), t)
            q, v = moving.project(q, np.zeros(moving.nv) if v is None else v, t)
        return system, q, v

    def _start(self, system: Any, values: Mapping[str, Any]) -> tuple[Any, Any]:
        q, v = self.q, self.v
        if "q" in values:
            q = values["q"] if not isinstance(self.q, NormalVariable) else None
            if q is None:  # a displacement from a mean that is no vector
                q = system.integrate(self.q.mean, values["q"])
        if "v" in values:
            v = values["v"]
        return _named(system, q, values, "q"), _named(system, v, values, "v")

    def run(self, values: Mapping[str, Any]) -> Trajectory:
        """Simulate."""
        from dalembert.simulate.entry import simulate

        system, q, v = self.at(values)
        return simulate(system, self.duration, q, v, **{**self.options, "progress": False})

    def described(self) -> dict[str, str]:
        """Return texts of system, start and options."""
        from dalembert.simulate.storage.text import stored_text, system_text

        fixed = self.q.mean if isinstance(self.q, NormalVariable) else self.q
        texts = {
            "system": system_text(_in_time(self.system)) if not _is_maker(self.system) else stored_text(self.system),
            "duration": stored_text(self.duration), "q": stored_text(fixed), "v": stored_text(self.v),
            "tangent": stored_text(isinstance(self.q, NormalVariable)), "project": stored_text(self.project),
            "parameters": stored_text(dict(self.parameters)),
        }  # fmt: skip
        return texts | {f"option:{name}": stored_text(value) for name, value in self.options.items()}


@dataclass(frozen=True, eq=False)
class StoredExperiment:
    """What a store says of an experiment that cannot be made of it alone: its arrays can be read, no run repeated."""

    texts: Mapping[str, str]
    reason: str

    def run(self, values: Mapping[str, Any]) -> Trajectory:
        """Say what is missing."""
        raise ModelError(self.reason)

    def described(self) -> dict[str, str]:
        """Return the texts."""
        return dict(self.texts)


SCENE = (
    "the store is that of a sweep of a scene: `dalembert sweep scene.toml -o STORE` goes on with it, and "
    "scene.with_parameters(...).run() repeats a run"
)


def stored_experiment(data: Mapping[str, Any], given: Mapping[str, Any]) -> Experiment:
    """Return the experiment of a store, or one that says what is missing."""
    texts = data["experiment"]
    if "scene" in texts:
        return StoredExperiment(texts, SCENE)
    try:
        return experiment_of(texts, given)
    except ModelError as error:
        return StoredExperiment(texts, str(error))


def experiment_of(texts: Mapping[str, str], given: Mapping[str, Any]) -> SystemExperiment:
    """Return the experiment that `described` wrote; `given` has by name what is code, and no store holds."""
    from dalembert.simulate.equations.lagrangian_system import from_data
    from dalembert.simulate.storage.text import MISSING, from_text

    found: dict[str, Any] = {}
    for name, text in texts.items():
        word = name.removeprefix("option:")
        if word in given:
            found[name] = given[word]
        elif text.startswith(MISSING):
            raise ModelError(f"{word} is {text}; give it again: {word}=...")
        else:
            found[name] = from_text(text)
    if "system" not in given and isinstance(found["system"], dict):
        found["system"] = from_data(found["system"])
    q = NormalVariable(mean=found["q"], tangent=True) if found["tangent"] else found["q"]
    options = {name.removeprefix("option:"): x for name, x in found.items() if name.startswith("option:")}
    experiment = SystemExperiment(
        found["system"], found["duration"], q, found["v"], found["parameters"], found["project"], options
    )
    again = experiment.described() if given else texts
    for name, text in texts.items():
        if again[name] != text and not text.startswith(MISSING):
            raise ModelError(
                f"the study was begun with another {name.removeprefix('option:')}; leave it out, the store holds it"
            )
    return experiment


def _in_time(system: Any) -> Any:
    from dalembert.simulate.equations.lagrangian_system import in_time

    return in_time(system)


def _is_maker(system: Any) -> bool:
    """Return whether a system is a function that makes one."""
    return callable(system) and not hasattr(system, "coordinates")


def with_values(system: Any, parameters: Mapping[str, Any]) -> Any:
    """Return a system with values of its parameters: those of a Lagrangian, numbers of a mechanism, of a function."""
    if _is_maker(system):
        return system(**parameters)
    if not parameters:
        return system
    from dalembert.model.mechanism.mechanism import Mechanism

    if isinstance(system, Mechanism):
        names = tuple(parameters)
        return memory_of(system, "parametric", 1).get(names, lambda: system.with_parameters(*names)).bind(parameters)
    if hasattr(system, "with_parameters"):
        return system.with_parameters(**parameters)
    raise ModelError(f"a {type(system).__name__} has no parameters; give a function of them that makes one")


def _named(system: Any, fixed: Any, values: Mapping[str, Any], letter: str) -> Any:
    """Return a start in which coordinates that vary, or are given by name, have their values."""
    named = {name[2:]: x for name, x in values.items() if name.startswith(f"{letter}:")}
    if isinstance(fixed, Mapping):
        named, fixed = {**fixed, **named}, None
    if not named:
        return fixed
    moving = _in_time(system)
    if fixed is not None:  # a whole vector, of which some coordinates vary
        names = moving.configuration_names if letter == "q" else moving.coordinates
        named = dict(zip(names, np.asarray(fixed, dtype=float).tolist(), strict=True)) | named
    by_name = configuration_of_names if letter == "q" else velocity_of_names
    return by_name(moving, named)


# ----------------------------------------------------------------------------------------------------------------------
# What a user gives, split into what varies and what does not.


def split_start(given: Any, letter: str, system: Any) -> tuple[Any, dict[str, StudyInput]]:
    """Return the fixed part of q or v, and its variables by name."""
    if given is None:
        return None, {}
    if isinstance(given, Mapping):
        found = {name: variable(value, f"{letter} of {name!r}") for name, value in given.items()}
        varying = {f"{letter}:{name}": each for name, each in found.items() if each is not None}
        return {name: value for name, value in given.items() if found[name] is None} or None, varying
    size = (
        None
        if _is_maker(system)
        else len(_in_time(system).configuration_names if letter == "q" else system_names(system))
    )
    found = variable(given, letter, 0 if size is None else size)
    if found is None:
        return given, {}
    if letter == "q" and isinstance(found, NormalVariable) and size is not None:
        directions = len(system_names(system))
        if directions != size:
            found = found.along(directions)
            return found, {"q": found}
    if size is not None and found.shape not in ((size,), ()):
        raise ModelError(f"{letter} has {size} components; the distribution has values of shape {found.shape}")
    if found.shape == () and size not in (None, 1):
        raise ModelError(f"{letter} has {size} components: give a mean for each, or a dict by name")
    return None, {letter: found}


def system_names(system: Any) -> tuple[str, ...]:
    """Return the names of the velocities of a system."""
    return tuple(_in_time(system).coordinates)


def split_parameters(given: Mapping[str, Any] | None) -> tuple[dict[str, Any], dict[str, StudyInput]]:
    """Return the parameters that are the same in all runs, and those that vary."""
    fixed, varying = {}, {}
    for name, value in (given or {}).items():
        if name in ("q", "v") or name[:2] in ("q:", "v:"):
            raise ModelError(f"a parameter {name!r} would be taken for a part of the start; give it another name")
        found = variable(value, f"parameter {name!r}")
        if found is None:
            fixed[name] = value
        else:
            varying[name] = found
    return fixed, varying


def single(values: Mapping[str, Array], row: int) -> dict[str, Any]:
    """Return the values of one run out of those of a block; numbers as floats."""
    return {name: float(rows[row]) if rows.ndim == 1 else rows[row] for name, rows in values.items()}
