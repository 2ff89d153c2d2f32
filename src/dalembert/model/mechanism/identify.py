"""Identification: inertial numbers and friction from measured motions and forces, with what the data leave open.

Symbols: pi parameters, pi_0 those of the model, beta base parameters (`base_parameters.py`), Y regressor, Z basis of
null(A), r = force - inverse dynamics of the model, e noise of the forces.

    Z^T r = Z^T Y (pi - pi_0) + Z^T e          least squares for beta - beta_0, whitened by the noise of the joints

Everything that the model has beside pi (springs, dampers that are not asked for) stays in the inverse dynamics, so that
only deviations are estimated. Confidence intervals are those of Student's t for white noise in the forces; noise in q,
v and a is not modelled, so that these should be filtered.

Physically consistent numbers: the pseudo-inertia of every body is positive semidefinite,

    [ tr(I)/2 1 - I   h ]
    [ h^T             m ]  >= 0,        least |Z^T r - Z^T Y (pi - pi_0)|^2 + a little |pi - pi_0|^2

where the last term decides what the data leave open. Source: Traversaro, Brossette, Escande & Nori, "Identification of
fully physical consistent inertial parameters using optimization on manifolds", IROS 2016; Wensing, Kim & Slotine,
"Linear matrix inequalities for physically consistent inertial parameter identification", IEEE Robotics and Automation
Letters 3(1), 2018.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse as sp
from scipy.interpolate import CubicSpline
from scipy.stats import levene, norm
from scipy.stats import t as student

from dalembert.checks import floats, one_number
from dalembert.errors import MissingExtraError, ModelError, ShapeError, SolvabilityError
from dalembert.model.mechanism.base_parameters import (
    BaseParameters,
    checked_terms,
    of_regressor,
    parameter_names,
    parameter_values,
    projected,
    regressors,
)
from dalembert.model.mechanism.calls import on_manifold
from dalembert.model.mechanism.inertia import Inertia
from dalembert.model.mechanism.joint_values import driven_coordinates
from dalembert.names import lookup
from dalembert.types import Array

if TYPE_CHECKING:
    from jaxtyping import Float

    from dalembert.model.mechanism.mechanism import Mechanism

WEAK_PULL = 1e-8
"""Weight of the model's own numbers beside the data, per parameter, relative to what a column does to the forces: it
decides what the data leave open and moves nothing that they determine."""


CERTAIN_DOUBT = 1e-4
"""Level of the tests on what is left over: white noise is called something else once in ten thousand fits."""

ROUNDED = 1e-9
"""Part of the forces below which what is left over is no noise but rounding, and is not tested."""


@dataclass(frozen=True, eq=False)
class Identification:
    """What the data say; `print` shows it.

    Attributes
    ----------
    base
        The base parameters that these data tell apart, which may be fewer than those of the mechanism.
    estimates, covariance
        Base parameters (r,) by least squares, and their covariance (r, r).
    parameters
        All p parameters, (p,), named by `base.names`: those nearest to the model's that fit, physically consistent if
        asked for.
    deviation
        Standard deviation of the noise, per unit of the deviations that were given: of the forces themselves if none.
    freedom
        Degrees of freedom that are left for the noise: rows less base parameters.
    mechanism
        The mechanism with these parameters.
    doubt
        Why the intervals are not to be trusted: what is left over is not the white noise that they are made for. Empty
        where nothing speaks against them; of mechanisms with constraints this is not looked at.
    """

    base: BaseParameters
    estimates: Float[Array, " r"]
    covariance: Float[Array, "r r"]
    parameters: Float[Array, " p"]
    deviation: float
    freedom: int
    mechanism: Mechanism
    doubt: str = ""

    @property
    def unidentifiable(self) -> tuple[str, ...]:
        """Names of parameters that the data say nothing about."""
        return self.base.unseen

    def __getitem__(self, name: str) -> float:
        return float(self.parameters[lookup(name, {name: k for k, name in enumerate(self.base.names)}, "parameter")])

    def intervals(self, level: float = 0.95) -> Float[Array, "r 2"]:
        """Return confidence intervals of the base parameters at a level."""
        level = one_number(level, "level")
        if not 0.0 < level < 1.0:
            raise ModelError(f"level={level} of an interval must lie between 0 and 1")
        reach = student.ppf(0.5 + level / 2, self.freedom) * np.sqrt(np.diag(self.covariance))
        return np.stack([self.estimates - reach, self.estimates + reach], axis=1)

    def __str__(self) -> str:
        lines = [f"{self.base.rank} base parameters of {len(self.base.names)}; noise {self.deviation:.3g}"]
        for k, (low, high) in enumerate(self.intervals()):
            lines.append(f"  {self.estimates[k]:.6g} +- {(high - low) / 2:.2g}   {self.base.text(k)}")
        return "\n".join([*lines, *filter(None, (self.base.doubt, self.doubt))])


def identify(
    mechanism: Mechanism,
    t: Any,
    q: Any,
    v: Any,
    force: Any,
    a: Any,
    terms: Any,
    noise: Any,
    actuated: Any,
    *,
    consistent: bool,
) -> Identification:
    """Return parameters from samples; see `Mechanism.identify`."""
    names = parameter_names(mechanism, terms)
    q, v, force, a = _samples(mechanism, t, q, v, force, a)
    noise = _noise(mechanism, noise, actuated)
    tree = mechanism.open_tree()
    rest = force - np.asarray(tree.compile("inverse")(q, v, a)).reshape(v.shape)
    rest += _dry(mechanism, terms, v)
    W, side = projected(mechanism, q, regressors(mechanism, terms, q, v, a), rest, noise)
    base = of_regressor(mechanism, names, W)
    freedom = len(W) - base.rank
    if freedom < 1:
        raise ModelError(
            f"{len(W)} equations cannot tell {base.rank} base parameters and the noise apart: give more samples"
        )
    columns = W[:, base.columns]
    scale = np.linalg.norm(columns, axis=0)
    Q, R = np.linalg.qr(columns / scale)
    change = np.linalg.solve(R, Q.T @ side) / scale
    remainder = side - columns @ change
    deviation = float(np.linalg.norm(remainder) / np.sqrt(freedom))
    inverse = np.linalg.inv(R) / scale[:, None]
    start = parameter_values(mechanism, terms)
    estimates = base.sums @ start + change
    nearest = _nearest(mechanism, W, side, start, consistent=consistent)
    covariance, fitted = deviation**2 * inverse @ inverse.T, _with(mechanism, nearest)
    exact = deviation * noise.max() <= ROUNDED * float(np.abs(force).max())
    doubt = "" if mechanism.names or exact else _doubt(mechanism, remainder.reshape(v.shape), noise)
    return Identification(base, estimates, covariance, nearest, deviation, freedom, fitted, doubt)


def _doubt(mechanism: Mechanism, left: Array, noise: Array) -> str:
    """Return what speaks against white noise in what is left over (N, nv), in units of the noise: two tests.

    Variances that differ by joint, by Levene's test about the median, and correlation from one sample to the next.
    """
    words = []
    if left.shape[1] > 1 and levene(*left.T).pvalue < CERTAIN_DOUBT:
        deviations = ", ".join(f"{x:.2g}" for x in left.std(axis=0) * noise)
        words.append(
            f"the noise differs by joint (about {deviations}), and equal noise was taken: give it as noise=[...]"
        )
    correlation = float((left[1:] * left[:-1]).sum() / (left**2).sum())
    if correlation > norm.isf(CERTAIN_DOUBT) / np.sqrt(left[1:].size):
        words.append(
            f"what is left over is correlated from sample to sample ({correlation:.2g}), by friction or accelerations "
            "that are not modelled: intervals are too short"
        )
    return "; ".join(f"in doubt: {reason}" for reason in words)


def _samples(mechanism: Mechanism, t: Any, q: Any, v: Any, force: Any, a: Any) -> tuple[Array, Array, Array, Array]:
    """Return the samples checked; accelerations that are not given are slopes of a cubic spline through v."""
    times = floats(t, "t")
    q, v, force = on_manifold(mechanism, q), floats(v, "v"), floats(force, "force")
    if times.ndim != 1 or not len(times):
        raise ModelError("t holds the times of the samples, one at least")
    shape = (len(times), mechanism.nv)
    for name, x in (("v", v), ("force", force)):
        if x.shape != shape:
            raise ShapeError(f"{name} has shape {x.shape}; {len(times)} times of {mechanism.name!r} ask for {shape}")
    if q.shape != (len(times), mechanism.nq):
        raise ShapeError(f"q has shape {q.shape}; {len(times)} times ask for {(len(times), mechanism.nq)}")
    if a is None:
        if len(times) < 4 or not (np.diff(times) > 0).all():
            raise ModelError("accelerations are slopes of v: t must ascend and have at least four times; or give a")
        a = CubicSpline(times, v)(times, 1)
    a = floats(a, "a")
    if a.shape != shape:
        raise ShapeError(f"a has shape {a.shape}; {len(times)} times of {mechanism.name!r} ask for {shape}")
    if not all(np.isfinite(x).all() for x in (times, q, v, force, a)):
        raise ModelError("samples hold NaN or infinity: leave those samples out")
    return q, v, force, a


def _noise(mechanism: Mechanism, noise: Any, actuated: Any) -> Array:
    """Return the deviation of the force at every velocity; zero where no motor drives, and nothing is measured."""
    deviation = np.ones(mechanism.nv) if noise is None else floats(noise, "noise") * np.ones(mechanism.nv)
    if deviation.shape != (mechanism.nv,) or not (np.isfinite(deviation) & (deviation >= 0)).all():
        raise ModelError(f"noise is a standard deviation, or one for each of {mechanism.nv} velocities")
    driven = np.isin(np.arange(mechanism.nv), driven_coordinates(mechanism, actuated))
    if not mechanism.names and not driven.all():
        raise ModelError("without constraints every velocity has its equation: leave `actuated` off")
    if not (deviation[driven] > 0).all():
        raise ModelError("noise is a standard deviation > 0 wherever forces are measured: least squares divides by it")
    return np.where(driven, deviation, 0.0)


def _dry(mechanism: Mechanism, terms: Any, v: Array) -> Array:
    """Return what must be added for dry friction: data of the model that inverse dynamics does not contain."""
    friction = mechanism.friction * np.sign(v)
    return -friction if "coulomb" in checked_terms(terms) else np.zeros_like(v)


def _with(mechanism: Mechanism, parameters: Array) -> Mechanism:
    """Return the mechanism with other inertial numbers; terms of joints stay with the answer."""
    numbers = parameters[: 10 * len(mechanism.bodies)].reshape(-1, 10)
    bodies = tuple(
        replace(body, inertia=Inertia.of_numbers(x)) for body, x in zip(mechanism.bodies, numbers, strict=True)
    )
    return replace(mechanism, bodies=bodies)


# ----------------------------------------------------------------------------------------------------------------------
# All parameters: those nearest to the model's that fit, physically consistent if asked for.


def _nearest(mechanism: Mechanism, W: Array, side: Array, start: Array, *, consistent: bool) -> Array:
    """Return pi of least |side - W (pi - pi_0)|^2 with a weak pull to pi_0, in units that make columns of one size."""
    size = np.linalg.norm(W, axis=0)
    seen = np.flatnonzero(size > 0.0)
    scale = 1.0 / size[seen]
    Q, R = np.linalg.qr(W[:, seen] * scale)
    right = Q.T @ side
    if not consistent:
        weak = np.sqrt(WEAK_PULL) * np.eye(len(seen))
        change = np.linalg.lstsq(np.vstack([R, weak]), np.concatenate([right, np.zeros(len(seen))]), rcond=None)[0]
        estimate = start.copy()
        estimate[seen] += scale * change
        return estimate
    return _consistent(mechanism, R, right, start, seen, scale)


def _consistent(mechanism: Mechanism, R: Array, right: Array, start: Array, seen: Array, scale: Array) -> Array:
    """Return the same with pseudo-inertias that are positive semidefinite, by Clarabel."""
    try:
        clarabel: Any = import_module("clarabel")
    except ImportError as error:
        raise MissingExtraError("clarabel", "identify", "identify(consistent=True)") from error

    count = len(seen)
    place = {int(k): i for i, k in enumerate(seen)}
    P = sp.csc_matrix(np.triu(R.T @ R + WEAK_PULL * np.eye(count)))
    rows, sides, cones = [], [], []
    bodies = 10 * len(mechanism.bodies)
    for body in range(len(mechanism.bodies)):
        if not any(10 * body + k in place for k in range(10)):
            continue
        G = np.zeros((10, count))
        for k in range(10):
            if 10 * body + k in place:
                i = place[10 * body + k]
                G[:, i] = -scale[i] * _triangle(np.eye(10)[k])
        rows.append(G)
        sides.append(_triangle(start[10 * body : 10 * body + 10]))
        cones.append(clarabel.PSDTriangleConeT(4))
    others = [k for k in seen if k >= bodies]
    if others:
        G = np.zeros((len(others), count))
        for row, k in enumerate(others):
            G[row, place[int(k)]] = -scale[place[int(k)]]
        rows.append(G)
        sides.append(start[others])
        cones.append(clarabel.NonnegativeConeT(len(others)))
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    problem = (P, -R.T @ right, sp.csc_matrix(np.vstack(rows)), np.concatenate(sides), cones, settings)
    answer = clarabel.DefaultSolver(*problem).solve()
    if str(answer.status) not in ("Solved", "AlmostSolved"):
        raise SolvabilityError(f"no physically consistent inertias were found: Clarabel says {answer.status}")
    estimate = start.copy()
    estimate[seen] += scale * np.array(answer.x)
    return estimate


def _triangle(numbers: Array) -> Array:
    """Return the pseudo-inertia of ten numbers as Clarabel takes it: upper triangle by columns, sqrt(2) beside."""
    m, x, y, z, xx, xy, yy, xz, yz, zz = numbers
    rotational = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    J = np.zeros((4, 4))
    J[:3, :3] = 0.5 * np.trace(rotational) * np.eye(3) - rotational
    J[:3, 3] = J[3, :3] = x, y, z
    J[3, 3] = m
    return np.array([J[i, j] * (1.0 if i == j else np.sqrt(2.0)) for j in range(4) for i in range(j + 1)])
