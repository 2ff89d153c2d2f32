"""Distributions of what varies from run to run, by inversion: a number u between 0 and 1 becomes a value.

Symbols: u in (0, 1)^d a point of the design (`designs.py`), F a cumulative distribution; the value is F^-1(u), so that
random numbers, Sobol points and Latin hypercubes go the same way (Devroye, "Non-Uniform Random Variate Generation",
1986, ch. II.2).  Normal vectors are mean + L z with z = F^-1(u) and covariance L L^T; where configurations are no
vectors (quaternions), L z is a displacement along the tangent space at the mean.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from scipy.special import ndtri

from dalembert.checks import floats, one_number, shown
from dalembert.errors import ModelError, ShapeError
from dalembert.types import Array

TRIED = 20
"""Draws of a function that may raise, before it is said to."""


@dataclass(frozen=True, eq=False)
class StudyInput:
    """What varies from run to run.

    Attributes
    ----------
    shape
        Of one value: () is a number, (n,) a vector.
    """

    shape: tuple[int, ...] = field(default=(), init=False)

    @property
    def dimensions(self) -> int:
        """How many numbers u a value takes."""
        return 0

    @property
    def count(self) -> int:
        """How many values there are to go through, in a grid; 0: any number."""
        return 0

    def values(self, u: Array, index: Array) -> Array:
        """Return the values (N, *shape) at points u (N, d) of the runs `index` (N,)."""
        raise NotImplementedError

    def described(self) -> dict[str, Any]:
        """Return the variable as plain data; `variable_of` reads it."""
        raise NotImplementedError


@dataclass(frozen=True, eq=False)
class NormalVariable(StudyInput):
    """Normal numbers or vectors; `factor` is a standard deviation, one per component, or L of the covariance L L^T.

    `tangent` says that values are displacements from the mean, not their sum with it.
    """

    mean: Array = field(default_factory=lambda: np.zeros(()))
    factor: Array = field(default_factory=lambda: np.ones(()))
    tangent: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "shape", self._displacement_shape if self.tangent else self.mean.shape)

    @property
    def _displacement_shape(self) -> tuple[int, ...]:
        return self.mean.shape if self.factor.ndim == 0 else self.factor.shape[:1]

    @property
    def dimensions(self) -> int:
        """One number u per component."""
        return int(np.prod(self._displacement_shape))

    def along(self, directions: int) -> NormalVariable:
        """Return displacements in a tangent space of so many directions, for means that are no vectors."""
        factor = self.factor
        if factor.shape not in ((), (directions,), (directions, directions)):
            raise ShapeError(
                f"the deviation of q must be a number, or have one per velocity, ({directions},); "
                f"it has shape {factor.shape}"
            )
        factor = np.broadcast_to(factor, (directions,)) if factor.ndim == 0 else factor
        return replace(self, factor=np.array(factor), tangent=True)

    def values(self, u: Array, index: Array) -> Array:
        """Return mean + L z, or L z along a tangent space."""
        z = ndtri(u).reshape(len(u), *self._displacement_shape)
        if self.factor.ndim == 2:  # row by row, so that a value does not depend on how many there are
            moved = np.array([self.factor @ row for row in z]).reshape(z.shape)
        else:
            moved = z * self.factor
        return moved if self.tangent else self.mean + moved

    def described(self) -> dict[str, Any]:
        """Return plain data."""
        return {"normal": self.mean.tolist(), "factor": self.factor.tolist(), "tangent": self.tangent}


@dataclass(frozen=True, eq=False)
class UniformVariable(StudyInput):
    """Numbers or vectors whose components are uniform between two bounds."""

    low: Array = field(default_factory=lambda: np.zeros(()))
    high: Array = field(default_factory=lambda: np.ones(()))

    def __post_init__(self) -> None:
        object.__setattr__(self, "shape", self.low.shape)

    @property
    def dimensions(self) -> int:
        """One number u per component."""
        return self.low.size

    def values(self, u: Array, index: Array) -> Array:
        """Return low + (high - low) u."""
        return self.low + (self.high - self.low) * u.reshape(len(u), *self.shape)

    def described(self) -> dict[str, Any]:
        """Return plain data."""
        return {"uniform": [self.low.tolist(), self.high.tolist()]}


@dataclass(frozen=True, eq=False)
class ScipyVariable(StudyInput):
    """A number with a distribution of `scipy.stats`, by its name, arguments and `ppf`."""

    name: str = "norm"
    arguments: tuple[float, ...] = ()
    keywords: Mapping[str, float] = field(default_factory=dict)

    @property
    def dimensions(self) -> int:
        """One number u."""
        return 1

    def values(self, u: Array, index: Array) -> Array:
        """Return the inverse of the cumulative distribution, number by number."""
        import scipy.stats

        frozen = getattr(scipy.stats, self.name)(*self.arguments, **self.keywords)
        return np.array([float(frozen.ppf(x)) for x in u[:, 0]])

    def described(self) -> dict[str, Any]:
        """Return plain data."""
        return {"scipy": self.name, "arguments": list(self.arguments), "keywords": dict(self.keywords)}


@dataclass(frozen=True, eq=False)
class ListedVariable(StudyInput):
    """Values that are given: run i takes value i // stride, beginning again after the last.

    `axis` says that all combinations with other lists are wanted; the design sets the stride.
    """

    rows: Array = field(default_factory=lambda: np.zeros(1))
    axis: bool = True
    stride: int = 1

    def __post_init__(self) -> None:
        object.__setattr__(self, "shape", self.rows.shape[1:])

    @property
    def count(self) -> int:
        """Values, where all combinations are wanted."""
        return len(self.rows) if self.axis else 0

    def values(self, u: Array, index: Array) -> Array:
        """Return the values in order."""
        return self.rows[index // self.stride % len(self.rows)]

    def described(self) -> dict[str, Any]:
        """Return plain data."""
        return {"listed": self.rows.tolist(), "axis": self.axis}


@dataclass(frozen=True, eq=False)
class DrawnVariable(StudyInput):
    """What a Python function draws: function(generator) -> value, with a generator of the run's own."""

    function: Callable[[np.random.Generator], Any] = lambda generator: 0.0

    @classmethod
    def of(cls, function: Callable[[np.random.Generator], Any]) -> DrawnVariable:
        """Call the function until it returns something, to see the shape of that."""
        made = cls(function)
        for k in range(TRIED):
            try:
                shape = np.shape(function(np.random.Generator(np.random.Philox(k))))
            except Exception:
                if k + 1 == TRIED:
                    raise
                continue
            object.__setattr__(made, "shape", shape)
            break
        return made

    def value(self, generator: np.random.Generator) -> Array:
        """Return what the function draws, of the shape that it drew first."""
        drawn = floats(self.function(generator), "what a function draws")
        if drawn.shape != self.shape:
            raise ShapeError(f"a function draws values of shape {self.shape} first, and of {drawn.shape} here")
        return drawn


# ----------------------------------------------------------------------------------------------------------------------
# How a user writes them.


def normal(mean: Any, deviation: Any = None, *, covariance: Any = None) -> NormalVariable:
    """Return normal numbers, or vectors with independent or correlated components, for `da.ensemble`.

    Parameters
    ----------
    mean
        A number, or a vector (n,).
    deviation
        Standard deviation, for all components or one per component. Of a configuration with quaternions: radians and
        metres along the velocities, (nv,).
    covariance
        A matrix (n, n), symmetric and positive semidefinite, in its place.
    """
    centre = floats(mean, "the mean")
    if (deviation is None) == (covariance is None):
        raise ModelError("a normal distribution needs a deviation, or a covariance: da.normal(mean, 0.1)")
    if covariance is not None:
        C = floats(covariance, "the covariance")
        if C.ndim != 2 or C.shape[0] != C.shape[1] or not np.allclose(C, C.T):
            raise ShapeError(f"a covariance is a symmetric matrix (n, n); it has shape {C.shape}")
        w, Q = np.linalg.eigh((C + C.T) / 2)
        if not np.isfinite(w).all() or w.min() < -len(w) * np.finfo(float).eps * max(w.max(), 0.0):
            raise ModelError("the covariance is not positive semidefinite: some direction would have negative variance")
        return NormalVariable(mean=centre, factor=Q * np.sqrt(np.maximum(w, 0.0)))
    factor = floats(deviation, "the deviation")
    if not (np.isfinite(factor).all() and (factor >= 0.0).all()):
        raise ModelError(f"a deviation must be finite and not negative, not {shown(deviation)}")
    if centre.ndim == 0 and factor.ndim:
        raise ShapeError(f"the mean is one number, the deviation has shape {factor.shape}")
    return NormalVariable(mean=centre, factor=factor)


def uniform(low: Any, high: Any) -> UniformVariable:
    """Return numbers, or vectors with independent components, uniform between two bounds, for `da.ensemble`."""
    below, above = np.broadcast_arrays(floats(low, "the lower bound"), floats(high, "the upper bound"))
    if not (np.isfinite(below).all() and np.isfinite(above).all() and (below <= above).all()):
        raise ModelError(f"bounds must be finite, the lower below the upper: {shown(low)}, {shown(high)}")
    return UniformVariable(low=below.copy(), high=above.copy())


def values(rows: Any) -> ListedVariable:
    """Return values that the runs take in order, run i the value i, beginning again after the last.

    A plain list in `parameters=` means all combinations with the other lists.
    """
    return ListedVariable(rows=_rows(rows), axis=False)


def _rows(rows: Any) -> Array:
    array = np.array(floats(rows, "the list of values"))
    if array.ndim < 1 or not len(array) or not np.isfinite(array).all():
        raise ModelError(f"a list of values must be finite numbers, one at least, not {shown(rows)}")
    return array


def variable(value: Any, what: str, size: int | None = None) -> StudyInput | None:
    """Return what a user gave as a variable, or None where it is the same in all runs.

    Parameters
    ----------
    size
        Components of one value, where a vector is expected: then a list of that size is one value for all runs, and a
        matrix has one row per run.
    """
    if isinstance(value, StudyInput):
        return value
    if hasattr(value, "ppf"):
        if not hasattr(value, "dist"):
            raise ModelError(f"{what}: give scipy.stats.{value.name} with its numbers, as scipy.stats.norm(0.0, 1.0)")
        if size is not None and size != 1:
            raise ModelError(f"{what} is a vector: give da.normal, da.uniform, or a dict by name")
        number = f"a number of the distribution of {what}"
        keywords = {name: one_number(x, number) for name, x in value.kwds.items()}
        arguments = tuple(one_number(x, number) for x in value.args)
        return ScipyVariable(name=value.dist.name, arguments=arguments, keywords=keywords)
    if callable(value):
        return DrawnVariable.of(value)
    if size is None and np.ndim(value) == 1:
        return ListedVariable(rows=_rows(value))
    if size is not None and np.ndim(value) == 2:
        return ListedVariable(rows=_rows(value), axis=False)
    return None


def variable_of(data: Mapping[str, Any]) -> StudyInput:
    """Return the variable that `described` wrote."""
    match data:
        case {"normal": mean, "factor": factor, "tangent": tangent}:
            return NormalVariable(mean=np.array(mean, float), factor=np.array(factor, float), tangent=bool(tangent))
        case {"uniform": [low, high]}:
            return UniformVariable(low=np.array(low, float), high=np.array(high, float))
        case {"scipy": str(name), "arguments": arguments, "keywords": keywords}:
            import scipy.stats

            if not isinstance(getattr(scipy.stats, name, None), scipy.stats.rv_continuous | scipy.stats.rv_discrete):
                raise ModelError(f"the file names a distribution {name!r} that scipy.stats does not have")
            return ScipyVariable(name=name, arguments=tuple(arguments), keywords=dict(keywords))
        case {"listed": rows, "axis": axis}:
            return ListedVariable(rows=np.array(rows, float), axis=bool(axis))
    raise ModelError(f"the file describes no distribution that this version knows: {shown(dict(data))}")
