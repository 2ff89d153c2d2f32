"""Designs: which point of the space of inputs run i stands at, from the seed and i alone.

Symbols: i index of a run, d numbers of all variables together, u(i) in (0, 1)^d its point.

| design | u(i) |
|---|---|
| "random" | 53 bits of the counter-based generator Philox 4x64: key from seed and variable, counter from i |
| "sobol" | point i of a scrambled Sobol sequence (`scipy.stats.qmc`); take a power of two runs |
| "halton" | point i of a scrambled Halton sequence |
| "latin" | row i of a Latin hypercube of all runs |
| "saltelli" | d + 2 runs for each point (A, B) of a Sobol sequence in 2 d dimensions: A, B, A with one number of B |

No state goes from run to run, so that blocks, workers and their order change nothing, and a run can be had again. In
"random", every variable has a key of its own: one more of them leaves the values of the others as they were.

Sources: Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC 2011; Saltelli et al., Computer
Physics Communications 181 (2010), 259-270.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any
from zlib import crc32

import numpy as np

from dalembert.ensemble.distributions import DrawnVariable, ListedVariable, StudyInput, variable_of
from dalembert.errors import ModelError, UnsupportedError
from dalembert.names import near_matches
from dalembert.types import Array

DESIGNS = ("random", "sobol", "halton", "latin", "saltelli")
"""Being in the list is being tested."""

WORDS = 4
"""Numbers of 64 bits that Philox makes of one value of its counter."""

BITS = 53
"""Digits of a point: those of a double."""

SOBOL_BITS = 32
"""Of Sobol points: four thousand million of them; SciPy's `fast_forward` takes no more."""

MOST_LATIN = 50_000_000
"""Numbers of a Latin hypercube, which is made as a whole: 400 MB."""


@dataclass(frozen=True, eq=False)
class Design:
    """The points of all runs.

    Attributes
    ----------
    kind
        One of `DESIGNS`.
    seed, runs
        What the points depend on.
    variables
        By name: "q", "v", "q:hinge", parameters.
    """

    kind: str
    seed: int
    runs: int
    variables: Mapping[str, StudyInput]

    @classmethod
    def of(cls, kind: str, seed: int, runs: int | None, variables: Mapping[str, StudyInput]) -> Design:
        """Check a design; lists become the axes of a grid, whose size is the number of runs if none is given."""
        if runs is not None and runs < 1:
            raise ModelError(f"runs={runs!r}: at least one is needed")
        if seed < 0:
            raise ModelError(f"seed={seed!r} must not be negative")
        if kind not in DESIGNS:
            raise ModelError(
                f"design={kind!r} is not one of {', '.join(map(repr, DESIGNS))}", near=near_matches(str(kind), DESIGNS)
            )
        axes = [name for name, variable in variables.items() if variable.count]
        size = int(np.prod([variables[name].count for name in axes], dtype=object)) if axes else 1
        strided, stride = dict(variables), size
        for name in axes:  # the last list varies fastest
            stride //= variables[name].count
            strided[name] = replace(variables[name], stride=stride)  # pyright: ignore[reportCallIssue]
        if runs is None:
            lists = [len(variable.rows) for variable in variables.values() if isinstance(variable, ListedVariable)]
            if not lists:
                raise ModelError("runs= is needed (--runs): how many runs are drawn from the distributions")
            runs = max(size, *lists)
        found = cls(kind, seed, runs, strided)
        found._refuse()
        return found

    def _refuse(self) -> None:
        drawn = [name for name, variable in self.variables.items() if isinstance(variable, DrawnVariable)]
        if drawn and self.kind != "random":
            raise UnsupportedError(f'{drawn[0]!r} is drawn by a function, which needs design="random"')
        if self.kind == "latin" and self.runs * max(self.dimensions, 1) > MOST_LATIN:
            raise UnsupportedError(
                f"a Latin hypercube is made as a whole, and this one has {self.runs:g} x {self.dimensions} numbers: "
                'take design="sobol", whose points are as even'
            )
        if self.kind == "saltelli":
            if any(isinstance(variable, ListedVariable) for variable in self.variables.values()):
                raise UnsupportedError('design="saltelli" takes distributions, not lists')
            if not self.dimensions or self.runs % (self.dimensions + 2):
                raise ModelError(
                    f'design="saltelli" makes {self.dimensions + 2} runs of every point ({self.dimensions} inputs and '
                    f"2): runs={self.runs} must be a multiple of that"
                )

    @property
    def dimensions(self) -> int:
        """Numbers of all variables together."""
        return sum(variable.dimensions for variable in self.variables.values())

    def draw(self, first: int, stop: int) -> dict[str, Array]:
        """Return the values of runs first ... stop - 1 by variable, (N, *shape)."""
        index = np.arange(first, stop)
        if self.kind == "random":
            return {name: self._drawn(name, variable, index) for name, variable in self.variables.items()}
        u, found, at = self._points(first, stop), {}, 0
        for name, variable in self.variables.items():
            found[name] = variable.values(u[:, at : at + variable.dimensions], index)
            at += variable.dimensions
        return found

    def _drawn(self, name: str, each: StudyInput, index: Array) -> Array:
        if isinstance(each, DrawnVariable):
            rows = np.full((len(index), *each.shape), np.nan)
            for row, i in enumerate(index):
                with suppress(Exception):  # of this run: `raise_undrawn` tells it
                    rows[row] = each.value(self.generator(name, int(i)))
            return rows
        counters = -(-each.dimensions // WORDS)
        generator = np.random.Philox(key=self._key(name), counter=counters * int(index[0]) if len(index) else 0)
        words = generator.random_raw(WORDS * counters * len(index)).reshape(len(index), -1)[:, : each.dimensions]
        return each.values(_inside((words >> np.uint64(64 - BITS)) * 2.0**-BITS), index)

    def raise_undrawn(self, i: int, values: Mapping[str, Any]) -> None:
        """Raise what the function of a variable raised in run i, whose values are NaN then."""
        for name, each in self.variables.items():
            if isinstance(each, DrawnVariable) and np.isnan(values[name]).any():
                each.value(self.generator(name, i))

    def _key(self, name: str) -> Array:
        return np.random.SeedSequence(self.seed, spawn_key=(crc32(name.encode()),)).generate_state(2, np.uint64)

    def generator(self, name: str, i: int) -> np.random.Generator:
        """Return the generator of a variable in run i; 2^64 numbers are its own."""
        return np.random.Generator(np.random.Philox(key=self._key(name), counter=[0, i, 0, 0]))

    def _points(self, first: int, stop: int) -> Array:
        d = self.dimensions
        if not d:
            return np.zeros((stop - first, 0))
        if self.kind == "latin":
            return _latin(d, self.seed, self.runs)[first:stop]
        if self.kind == "halton":
            return _inside(_sequence("Halton", d, self.seed, first, stop))
        if self.kind == "sobol":
            return _inside(_sequence("Sobol", d, self.seed, first, stop))
        group = d + 2
        low, high = first // group, -(-stop // group)
        pairs = _inside(_sequence("Sobol", 2 * d, self.seed, low, high))
        rows = np.empty((stop - first, d))
        for row, i in enumerate(range(first, stop)):
            A, B = pairs[i // group - low, :d], pairs[i // group - low, d:]
            k = i % group
            rows[row] = B if k == 1 else A
            if k > 1:
                rows[row, k - 2] = B[k - 2]
        return rows

    def described(self) -> dict[str, Any]:
        """Return the design as plain data, functions left out by name."""
        functions = [name for name, variable in self.variables.items() if isinstance(variable, DrawnVariable)]
        named = {name: variable.described() for name, variable in self.variables.items() if name not in functions}
        return {
            "kind": self.kind, "seed": self.seed, "runs": self.runs, "variables": named, "functions": functions,
            "order": list(self.variables),
        }  # fmt: skip


def design_of(data: Mapping[str, Any], given: Mapping[str, Any]) -> Design:
    """Return the design that `described` wrote; `given` has the functions that a file cannot hold, by variable."""
    variables: dict[str, StudyInput] = {}
    for name in data["order"]:
        if name in data["functions"]:
            if name not in given:
                raise ModelError(f"{name!r} was drawn by a function, which a store cannot hold: give it again")
            variables[name] = DrawnVariable.of(given[name])
        else:
            variables[name] = variable_of(data["variables"][name])
    return Design.of(str(data["kind"]), int(data["seed"]), int(data["runs"]), variables)


def _inside(u: Array) -> Array:
    """Return points without 0 and 1, at which inverse distributions are infinite."""
    return np.clip(u, 0.5 * 2.0**-BITS, 1.0 - 2.0**-BITS)


def _seeded(kind: Any, d: int, seed: int, **options: Any) -> Any:
    """Return an engine of `scipy.stats.qmc`; its seed was called otherwise before SciPy 1.15."""
    word = "rng" if "rng" in inspect.signature(kind).parameters else "seed"
    return kind(d, **options, **{word: np.random.default_rng(np.random.SeedSequence(seed))})


def _sequence(name: str, d: int, seed: int, first: int, stop: int) -> Array:
    from scipy.stats import qmc

    options = {"bits": SOBOL_BITS} if name == "Sobol" else {}
    engine = _seeded(getattr(qmc, name), d, seed, **options)
    if first:
        engine.fast_forward(first)
    if stop == first:
        return np.zeros((0, d))
    head = engine.random(1)  # alone, since SciPy warns of a first block that is no power of two
    return np.concatenate([head, engine.random(stop - first - 1)]) if stop - first > 1 else head


@lru_cache(maxsize=2)
def _latin(d: int, seed: int, runs: int) -> Array:
    from scipy.stats import qmc

    return _inside(_seeded(qmc.LatinHypercube, d, seed).random(runs))
