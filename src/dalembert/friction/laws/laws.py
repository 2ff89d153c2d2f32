"""Friction laws: the contract (seed 001, eqs. 18, 20), Coulomb, Stribeck, tabulated and others."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np

from dalembert.checks import floats, is_number
from dalembert.errors import ModelError, ShapeError
from dalembert.types import Array

# ----------------------------------------------------------------------------------------------------------------------
# The contract of a friction law: a set of forces at rest, one force in motion (seed 001, eqs. 18, 20).
#
# Symbols: s >= 0 speed (size of the relative velocity), T_k(s) kinetic force, T_s static limit, both for unit load.
#
#     T in [-T_s, T_s]                   at relative velocity 0
#     T = -T_k(|velocity|) sgn(velocity) otherwise
#
# The graph has a vertical line at 0. It is left at T_s and entered again at T_k(0): the hysteresis of Fig. 1, shrunk to
# a point.


PROBES = np.concatenate([[0.0], np.logspace(-9.0, 4.0, 105)])
"""Speeds at which a new law is looked at, m/s or rad/s: from far below any event tolerance to beyond any machine."""

SLACK = 1e-12
"""Relative amount by which T_k(0) may exceed T_s through rounding."""


class Law(ABC):
    """One force law; magnitudes per unit load: newton for a given limit, a coefficient where a reaction is the load."""

    @abstractmethod
    def kinetic(self, speed: Any, state: Any = None) -> Any:
        """Return T_k(speed), for a number or an array of speeds >= 0; `state` is (q, v, t) where the law needs it."""

    @abstractmethod
    def static(self, state: Any = None) -> float:
        """Return T_s, the limit at rest."""

    @property
    def needs_state(self) -> bool:
        """True where the law depends on q, v or t besides the relative velocity."""
        return False

    def force(self, velocity: Any, state: Any = None) -> Any:
        """Return the force on the system along the contact's direction, in motion: -T_k(|velocity|) sgn(velocity)."""
        return -np.sign(velocity) * self.kinetic(np.abs(velocity), state)

    def continued(self, speed: float, state: Any = None) -> float:
        """Return T_k, continued smoothly to speeds just below zero (by its cubic through 0, d, 2d, 3d, d = -speed).

        A step that overshoots the end of sliding then sees no kink, and its error estimate stays that of a smooth
        motion.
        """
        if speed >= 0.0:
            return float(self.kinetic(speed, state))
        T = np.asarray(self.kinetic(np.array([0.0, 1.0, 2.0, 3.0]) * -speed, state)) * np.ones(4)
        return float(4.0 * T[0] - 6.0 * T[1] + 4.0 * T[2] - T[3])

    def graph(self, speed: float, points: int = 101, state: Any = None) -> tuple[Array, Array]:
        """Return velocities and forces along the law's graph, from -speed to speed, the vertical line at 0 included."""
        if not (is_number(speed) and 0.0 < speed < np.inf) or not (isinstance(points, int) and points >= 2):
            raise ModelError(f"a graph needs a speed > 0 and at least 2 points a side; got {speed!r} and {points!r}")
        s = np.linspace(0.0, speed, points)
        T, limit = np.asarray(self.kinetic(s, state)) * np.ones(points), self.static(state)
        velocity = np.concatenate([-s[::-1], [0.0, 0.0], s])
        return velocity, np.concatenate([T[::-1], [limit, -limit], -T])

    def check(self, owner: str, state: Any = None) -> None:
        """Refuse a law that is not finite, not dissipative, or weaker at rest than in motion, naming its owner."""
        static, kinetic = (
            self.static(state),
            np.asarray(self.kinetic(PROBES, state), dtype=float) * np.ones(PROBES.size),
        )
        if not np.isfinite(static) or static < 0.0:
            raise ModelError(
                f"{owner}: the static limit is {static}; a limit must be finite and not negative", subject="law"
            )
        bad = np.flatnonzero(~(np.isfinite(kinetic) & (kinetic >= 0.0)))
        if bad.size:
            s, T = PROBES[bad[0]], kinetic[bad[0]]
            what = "is not dissipative: it pushes along the motion" if T < 0.0 else "is not finite"
            raise ModelError(f"{owner}: the friction law {what}; T_k = {T:.6g} at speed {s:.3g}", subject="law")
        if kinetic[0] > static * (1.0 + SLACK):
            raise ModelError(
                f"{owner}: friction begins at T_k(0) = {kinetic[0]:.6g} in motion, above the static limit "
                f"{static:.6g}: what slips would be held at once. Raise the static limit",
                subject="law",
            )


# ----------------------------------------------------------------------------------------------------------------------
# The force laws: Coulomb, static above kinetic, Stribeck, (21b), tabulated, and a user's expression.
#
# Symbols: T_s static limit, T_k kinetic force, s speed, v_s Stribeck velocity, c viscous coefficient.
#
# The formulas are functions of numbers or arrays, which loops compile, too (`simulate/contact/friction_loops.py`).


def stribeck(s, T_s, T_c, v_s, exponent, c):
    """Return T_k = T_c + (T_s - T_c) exp(-(s / v_s)^exponent) + c s."""
    return T_c + (T_s - T_c) * np.exp(-((s / v_s) ** exponent)) + c * s


def hyperbolic(s, T_s, decay):
    """Return T_k = T_s / (1 + decay s)."""
    return T_s / (1.0 + decay * s)


@dataclass(frozen=True)
class Dry(Law):
    """Coulomb's law: T_k = T_s = limit, in newton, or a coefficient where a reaction is the load."""

    limit: float

    def kinetic(self, speed: Any, state: Any = None) -> Any:
        """Return the limit, whatever the speed."""
        return self.limit * np.ones_like(speed, dtype=float)

    def static(self, state: Any = None) -> float:
        """Return the limit."""
        return self.limit

    def check(self, owner: str, state: Any = None) -> None:
        """Refuse a limit that is negative or not finite; a sound one needs no probes."""
        if not 0.0 <= self.limit < np.inf:
            super().check(owner, state)


@dataclass(frozen=True)
class StaticKinetic(Law):
    """Coulomb's law with a static limit above the kinetic force: the force drops when motion begins."""

    static_limit: float
    kinetic_limit: float

    def kinetic(self, speed: Any, state: Any = None) -> Any:
        """Return the kinetic limit, whatever the speed."""
        return self.kinetic_limit * np.ones_like(speed, dtype=float)

    def static(self, state: Any = None) -> float:
        """Return the static limit."""
        return self.static_limit


@dataclass(frozen=True)
class Stribeck(Law):
    """Stribeck's curve: T_k = T_c + (T_s - T_c) exp(-(s / v_s)^exponent) + c s.

    Source: B. Armstrong-Helouvry, P. Dupont, C. Canudas de Wit, "A survey of models, analysis tools and compensation
    methods for the control of machines with friction", Automatica 30 (1994) 1083-1138, eq. (4).
    """

    static_limit: float
    coulomb: float
    velocity: float
    exponent: float = 2.0
    viscous: float = 0.0

    def __post_init__(self) -> None:
        if not (self.velocity > 0.0 and self.exponent > 0.0):
            words = f"Stribeck needs velocity > 0 and exponent > 0; got {self.velocity} and {self.exponent}"
            raise ModelError(words, subject="law")

    def kinetic(self, speed: Any, state: Any = None) -> Any:
        """Return the curve."""
        s = np.asarray(speed)
        return stribeck(s, self.static_limit, self.coulomb, self.velocity, self.exponent, self.viscous)

    def static(self, state: Any = None) -> float:
        """Return the static limit."""
        return self.static_limit


@dataclass(frozen=True)
class Hyperbolic(Law):
    """The law of seed 001, eq. (21b): T_k = T_s / (1 + decay s), decay 3 s/m there."""

    static_limit: float
    decay: float = 3.0

    def __post_init__(self) -> None:
        if not self.decay >= 0.0:
            raise ModelError(f"Hyperbolic needs decay >= 0, else the force has a pole; got {self.decay}", subject="law")

    def kinetic(self, speed: Any, state: Any = None) -> Any:
        """Return the curve."""
        return hyperbolic(np.asarray(speed), self.static_limit, self.decay)

    def static(self, state: Any = None) -> float:
        """Return the static limit."""
        return self.static_limit


@dataclass(frozen=True, eq=False)
class Tabulated(Law):
    """Measured forces at measured speeds, joined by straight lines; beyond the last speed the last force holds."""

    speeds: Array
    forces: Array
    static_limit: float | None = None

    def __post_init__(self) -> None:
        try:
            s, T = floats(self.speeds, "speeds").copy(), floats(self.forces, "forces").copy()
        except (TypeError, ValueError) as error:
            raise ModelError(f"a table needs numbers: {error}") from error
        if s.ndim != 1 or s.shape != T.shape or s.size < 1:
            raise ShapeError(f"a table needs as many forces as speeds; got shapes {s.shape} and {T.shape}")
        if s[0] != 0.0 or not np.all(np.diff(s) > 0.0):
            raise ModelError("the speeds of a table must begin at 0 and grow")
        object.__setattr__(self, "speeds", s)
        object.__setattr__(self, "forces", T)

    def kinetic(self, speed: Any, state: Any = None) -> Any:
        """Interpolate."""
        return np.interp(speed, self.speeds, self.forces)

    def static(self, state: Any = None) -> float:
        """Return the static limit, by default the force at speed 0."""
        return float(self.forces[0]) if self.static_limit is None else self.static_limit


class ExpressionLaw(Law):
    """A law written in CasADi: T_k of a speed symbol and, where wanted, of the state symbols (q, v, t).

    Parameters
    ----------
    speed
        The SX symbol that stands for the speed s >= 0.
    kinetic
        T_k as an SX expression.
    static_limit
        T_s, a number or an expression of the state; by default T_k at speed 0.
    state
        (q, v, t), the columns of symbols that `kinetic` may contain; t may be None.
    """

    def __init__(self, speed: Any, kinetic: Any, static_limit: Any = None, state: Any = None) -> None:
        import casadi as ca

        if state is not None and (not isinstance(state, list | tuple) or len(state) != 3):
            raise ModelError("the state symbols of a law are (q, v, t); a group that it does not need may be None")
        try:
            T, limit = ca.SX(kinetic), ca.SX(kinetic if static_limit is None else static_limit)
            if static_limit is None:
                limit = ca.substitute(T, speed, 0.0)
            groups = [] if state is None else [ca.SX(0, 1) if x is None else x for x in state]
            self._kinetic = ca.Function("kinetic", [speed, *groups], [T])
            self._static = ca.Function("static", groups, [limit])
        except (NotImplementedError, RuntimeError, TypeError) as error:
            first = str(error).strip().splitlines()[-1]
            raise ModelError(f"the law is no SX expression of its speed symbol and state: {first}") from error
        self._of_state = state is not None

    @classmethod
    def of(cls, kinetic: Any, static: Any, of_state: bool) -> ExpressionLaw:
        """Return the law of two `casadi.Function`s, as `functions` gives them."""
        law = cls.__new__(cls)
        law._kinetic, law._static, law._of_state = kinetic, static, of_state
        return law

    @property
    def functions(self) -> tuple[Any, Any]:
        """T_k of the speed and the state, and T_s of the state, each a `casadi.Function`."""
        return self._kinetic, self._static

    @property
    def needs_state(self) -> bool:
        """True where state symbols were given."""
        return self._of_state

    def kinetic(self, speed: Any, state: Any = None) -> Any:
        """Evaluate the expression."""
        speed = np.asarray(speed, dtype=float)
        flat = [float(self._kinetic(s, *self._given(state))) for s in speed.reshape(-1)]
        return np.array(flat).reshape(speed.shape) if speed.ndim else flat[0]

    def static(self, state: Any = None) -> float:
        """Evaluate the static limit."""
        return float(next(iter(self._static.call(self._given(state)))))

    def _given(self, state: Any) -> list[Any]:
        if not self._of_state:
            return []
        if state is None:
            raise ModelError("this friction law depends on the state: pass state=(q, v, t)")
        if not isinstance(state, list | tuple) or len(state) != 3:
            raise ModelError(f"this friction law depends on the state: pass (q, v, t), not {state!r}")
        inputs = []
        for i, (x, what) in enumerate(zip(state, "qvt", strict=True)):
            size = self._static.size1_in(i)
            if size and np.size(x) != size:
                raise ShapeError(f"this friction law depends on {size} entries of {what}; it is given {np.size(x)}")
            inputs.append(x if size else np.zeros((0, 1)))
        return inputs


LAWS = (Dry, StaticKinetic, Stribeck, Hyperbolic, Tabulated, ExpressionLaw)
"""Every law; being in the list is being tested."""


def as_law(law: Any, owner: str) -> Law:
    """Return a law, a number being Coulomb's; checked where it needs no state, with the owner's name in complaints."""
    if not isinstance(law, Law):
        if isinstance(law, bool | str):
            raise ModelError(f"{owner}: a law is a number or one of dalembert.friction's laws; got {law!r}")
        try:
            law = Dry(float(law))
        except (TypeError, ValueError):
            raise ModelError(f"{owner}: a law is a number or one of dalembert.friction's laws; got {law!r}") from None
    if not law.needs_state and not getattr(law, "_sound", False):
        try:
            law.check(owner)
        except ModelError:  # in words already
            raise
        except (TypeError, ValueError) as error:
            raise ModelError(f"{owner}: {law!r} cannot be evaluated: {error}") from error
        object.__setattr__(law, "_sound", True)
    return law
