"""Friction at one state against enumeration of modes: small problems with drift, integers and reals, by every method.

The oracle knows nothing of the Delassus matrix: a mode is a linear programme in accelerations, multipliers, normal
reactions and friction forces together. An answer is right where the laws hold at it, point by point, relative to data;
"no solution" is right where no mode has an answer (contacts in planes: where the weights given prove a contradiction).
What a report calls unique, or open, is looked for in every mode.
Masses may be singular, constraint rows redundant; a batch holds the problem beside others, and answers as one alone.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from itertools import product
from math import prod
from typing import Any

import numpy as np
from scipy.optimize import linprog

from dalembert.errors import DalembertError
from dalembert.friction import Limited, Reacting, Resolution, resolve, resolve_batch
from dalembert.status import Status

TITLE = "friction with drift, redundant contacts and moving surfaces, against all modes"

Array = np.ndarray

TOLERANCE = 1e-7
"""The laws hold up to this part of the data: far above the library's own 1e-10, far below any true contradiction."""

NOTHING = 1e-150
"""Newtons that are none, also where neither masses nor forces say how large forces are: their squares vanish."""

ENDLESS = 1e6
"""Accelerations beyond this multiple of what data explain belong to forces that diverge."""

MOST = 700
"""Combinations of modes that are tried; above, a problem counts as one that cannot be enumerated."""

UNILATERAL, BILATERAL, GIVEN = "unilateral", "bilateral", "given"


@dataclass
class Contact:
    """One contact: its kind, coefficient (or limit), normal row of A (or None), columns of W."""

    kind: str
    mu: float
    row: int | None
    columns: list[int]


@dataclass
class Case:
    """A problem: matrices, right sides, contacts; rows of A that are no normals are constraints."""

    M: Array
    f: Array
    W: Array
    A: Array
    drift: Array
    contact_drift: Array
    state: Array
    contacts: list[Contact] = field(default_factory=list)

    @property
    def laws(self) -> list[Any]:
        """The laws as the library takes them."""
        laws: list[Any] = []
        for c in self.contacts:
            if c.kind == GIVEN:
                laws.append(c.mu if len(c.columns) == 1 else Limited(c.mu))
            else:
                laws.append(Reacting(c.mu, c.row or 0, c.kind == UNILATERAL, len(c.columns)))
        return laws

    @property
    def data(self) -> dict[str, Any]:
        """Constraint rows and drifts as `resolve` takes them."""
        return {"A": self.A, "drift": self.drift, "contact_drift": self.contact_drift}

    @property
    def others(self) -> list[int]:
        """Rows of A that load no contact."""
        normals = {c.row for c in self.contacts if c.row is not None}
        return [i for i in range(len(self.A)) if i not in normals]

    @property
    def moving(self) -> list[bool]:
        """Per contact, whether it slides."""
        return [bool(np.linalg.norm(self.state[c.columns]) > 0.0) for c in self.contacts]

    @property
    def enumerable(self) -> bool:
        """Whether there are finitely many modes: no plane at rest with friction."""
        pairs = zip(self.contacts, self.moving, strict=True)
        lines = all(len(c.columns) == 1 or moving or c.mu == 0.0 for c, moving in pairs)
        return lines and prod({UNILATERAL: 4, BILATERAL: 6, GIVEN: 3}[c.kind] for c in self.contacts) <= MOST

    @property
    def scale(self) -> float:
        """The size of accelerations that data explain."""
        rows = np.vstack([self.A, self.W.T])
        size = np.maximum(np.abs(rows).max(axis=1, initial=0.0), 1e-300)
        drifts = np.concatenate([self.drift, self.contact_drift])
        free = np.abs(np.linalg.pinv(self.M) @ self.f).max()
        free += 0.0 if self.M.any() else np.abs(self.f).max()  # without masses forces are all the data there are
        limits = sum(c.mu for c in self.contacts if c.kind == GIVEN) * np.abs(np.linalg.pinv(self.M) @ self.W).max()
        return float(free + np.abs(drifts[size > 1e-9] / size[size > 1e-9]).max(initial=0.0) + limits + 1e-9)

    @property
    def force(self) -> float:
        """The size of forces that data explain."""
        limits = sum(c.mu for c in self.contacts if c.kind == GIVEN) * np.abs(self.W).max(initial=0.0)
        return float(np.abs(self.f).max() + np.abs(self.M).max() * self.scale + limits)


def random_mass(rng: np.random.Generator, numbers: Callable[..., Array], n: int) -> Array:
    """Return a mass matrix: diagonal or full, one in five singular."""
    singular = rng.random() < 0.2
    if rng.random() < 0.6:
        return np.diag(rng.integers(0 if singular else 1, 4, n).astype(float))
    root = numbers(n, max(n - 1, 1) if singular else n)
    return root @ root.T + (0.0 if singular else 1.0) * np.eye(n)


def random_case(rng: np.random.Generator) -> Case:
    """Return a small problem: 1 to 4 coordinates, 1 to 4 contacts (planes: 1 to 2), up to 3 constraint rows."""
    plane, limits_alone = rng.random() < 0.3, rng.random() < 0.25
    n, k, o = int(rng.integers(1, 5)), int(rng.integers(1, 3 if plane else 5)), int(rng.choice([0, 0, 1, 2, 3]))
    whole = rng.random() < 0.6
    width = 2 if plane else 1

    def numbers(*shape: int) -> Array:
        return rng.integers(-2, 3, shape).astype(float) if whole else rng.normal(size=shape)

    contacts, row, column = [], 0, 0
    for _ in range(k):
        kind = GIVEN if limits_alone else str(rng.choice([UNILATERAL, UNILATERAL, UNILATERAL, BILATERAL, GIVEN]))
        mu = float(rng.choice([0.0, 0.3, 0.5, 1.0, 2.0])) if whole else float(rng.uniform(0.0, 2.0))
        contacts.append(Contact(kind, mu, None if kind == GIVEN else row, list(range(column, column + width))))
        row += kind != GIVEN
        column += width
    A, W = numbers(row + o, n), numbers(n, column)
    if row > 1 and rng.random() < 0.3:
        A[1] = rng.choice([1.0, -1.0, 2.0]) * A[0]  # redundant, or two jaws
    if o:
        A[row:] = A[row:] if rng.random() < 0.7 else numbers(o, row) @ A[:row]
    if o > 1 and rng.random() < 0.5:
        A[-1] = rng.choice([1.0, -1.0, 2.0]) * A[row]
    M = random_mass(rng, numbers, n)
    if not whole and rng.random() < 0.2:
        M = M * np.sqrt(np.outer(d := 10.0 ** rng.uniform(-2, 2, n), d))
    state = numbers(column) * (rng.random(column) < 0.3)
    moves = rng.random() < 0.7
    drift = numbers(len(A)) * moves
    drift[row:] = -A[row:] @ numbers(n)  # constraint rows agree with each other
    return Case(M, numbers(n) * 3.0, W, A, drift, numbers(column) * moves, state, contacts)


def wrong_law(case: Case, a: Array, T: Array, lam: Array, associated: bool = False) -> str:
    """Return which equation or law does not hold at an answer; empty where all do.

    The associated law of a normal that pushes, at rest: u in the dual of the cone, r in it, and r . u = 0.
    """
    scale = case.scale
    if np.abs(a).max(initial=0.0) > ENDLESS * scale:
        return "acceleration without bound"
    accel = TOLERANCE * (scale + min(np.abs(a).max(initial=0.0), 1e2 * scale))
    pushed = case.W @ T - case.A.T @ lam
    forces = TOLERANCE * case.force + NOTHING
    if np.abs(case.M @ a - case.f - pushed).max() > forces * (1.0 + 1e-3 * np.abs(lam).max(initial=0.0)):
        return "equations of motion"
    u_rows, u = case.A @ a + case.drift, case.W.T @ a + case.contact_drift
    for i in case.others:
        if abs(u_rows[i]) > accel * (1.0 + np.abs(case.A[i]).sum()):
            return "constraint row"
    for c, moving in zip(case.contacts, case.moving, strict=True):
        t, ut, v = T[c.columns], u[c.columns], case.state[c.columns]
        accel_t = accel * (1.0 + np.abs(case.W[:, c.columns]).sum())
        if associated and c.kind == UNILATERAL and not moving:
            tight = accel * (1.0 + np.abs(case.A[c.row]).sum()) + c.mu * accel_t
            wrong = _off_the_dual_cone(c.mu, float(-lam[c.row]), t, float(u_rows[c.row]), ut, forces, tight)
            if wrong:
                return wrong
            continue
        bound = c.mu
        if c.row is not None:
            push, un = -lam[c.row], u_rows[c.row]
            tight = accel * (1.0 + np.abs(case.A[c.row]).sum())
            bound = c.mu * abs(push)
            if c.kind == BILATERAL and abs(un) > tight:
                return "bilateral normal"
            if c.kind == UNILATERAL and (un < -tight or push < -forces or (un > tight and push > forces)):
                return "unilateral normal"
        slack = forces * (1.0 + bound / max(np.abs(case.f).max(), 1e-9))
        if moving:
            if np.abs(t + bound * v / np.linalg.norm(v)).max() > slack:
                return "force in motion"
            continue
        force, speed = np.linalg.norm(t), np.linalg.norm(ut)
        if force > bound + slack:
            return "limit"
        if speed > accel_t and bound > slack and np.linalg.norm(t + bound * ut / speed) > slack + 1e-5 * bound:
            return "slip"
    return ""


def _off_the_dual_cone(mu: float, push: float, t: Array, un: float, ut: Array, forces: float, tight: float) -> str:
    """Return which part of the associated law does not hold: (push, t) in the cone, (un, ut) in its dual, no power."""
    force, speed = np.linalg.norm(t), np.linalg.norm(ut)
    slack = forces * (1.0 + abs(push) / max(forces / TOLERANCE, 1e-9))
    if push < -slack or force > mu * push + slack:
        return "associated: cone"
    if un < mu * speed - tight:
        return "associated: dual cone"
    if abs(push * un + t @ ut) > tight * (abs(push) + force) + slack * (abs(un) + speed):
        return "associated: power"
    return ""


class _Unknowns:
    """Rows over the unknowns (a, lam of other rows, N per contact, T), equations and inequalities."""

    def __init__(self, case: Case) -> None:
        self.case, self.n = case, len(case.f)
        o, k, m = len(case.others), len(case.contacts), case.W.shape[1]
        self.at_lam, self.at_N, self.at_T, self.size = self.n, self.n + o, self.n + o + k, self.n + o + k + m
        E = np.zeros((self.n, self.size))
        E[:, : self.n], E[:, self.at_lam : self.at_N] = case.M, case.A[case.others].T
        for i, c in enumerate(case.contacts):
            if c.row is not None:
                E[:, self.at_N + i] = -case.A[c.row]
        E[:, self.at_T :] = -case.W
        self.base = [(row, value) for row, value in zip(E, case.f, strict=True)]
        self.base += [(self._row(case.A[i]), -case.drift[i]) for i in case.others]

    def _row(self, of_a: Array) -> Array:
        row = np.zeros(self.size)
        row[: self.n] = of_a
        return row

    def unit(self, index: int) -> Array:
        """Return the row that picks one unknown."""
        row = np.zeros(self.size)
        row[index] = 1.0
        return row

    def given_direction(self, i: int) -> list[tuple[list, list]]:
        """Return the modes of a contact whose force has a given direction (or none): sliding, or without friction."""
        case, c = self.case, self.case.contacts[i]
        speed = np.linalg.norm(case.state[c.columns])
        s = case.state[c.columns] / speed if speed > 0.0 else np.zeros(len(c.columns))
        N, T = self.unit(self.at_N + i), [self.unit(self.at_T + j) for j in c.columns]
        if c.kind == GIVEN:
            return [([(N, 0.0), *[(t, -c.mu * x) for t, x in zip(T, s, strict=True)]], [])]
        normal, gap = self._row(case.A[c.row]), case.drift[c.row]
        out: list = [([(N, 0.0), *[(t, 0.0) for t in T]], [(-normal, gap)])] if c.kind == UNILATERAL else []
        for sign in (1.0,) if c.kind == UNILATERAL else (1.0, -1.0):
            along = [(t + x * c.mu * sign * N, 0.0) for t, x in zip(T, s, strict=True)]
            out.append(([(normal, -gap), *along], [(-sign * N, 0.0)]))
        return out

    def modes(self, i: int) -> list[tuple[list, list]]:
        """Return (equations, inequalities <=) of the modes of contact i, in one direction or a given one."""
        case, c = self.case, self.case.contacts[i]
        if len(c.columns) > 1:
            return self.given_direction(i)
        j = c.columns[0]
        T, tangent, rate = self.unit(self.at_T + j), self._row(case.W[:, j]), case.contact_drift[j]
        moving, s0 = case.moving[i], float(np.sign(case.state[j]))
        N = self.unit(self.at_N + i)
        if c.kind == GIVEN:
            if moving:
                return [([(T, -s0 * c.mu), (N, 0.0)], [])]
            out: list = [([(tangent, -rate), (N, 0.0)], [(T, c.mu), (-T, c.mu)])]
            return out + [([(T, -s * c.mu), (N, 0.0)], [(-s * tangent, s * rate)]) for s in (1.0, -1.0)]
        normal, gap = self._row(case.A[c.row]), case.drift[c.row]
        out = [([(N, 0.0), (T, 0.0)], [(-normal, gap)])] if c.kind == UNILATERAL else []
        for sign in (1.0,) if c.kind == UNILATERAL else (1.0, -1.0):
            closed, push = (normal, -gap), (-sign * N, 0.0)
            ways = (s0,) if moving else (1.0, -1.0)
            if not moving:
                cone = [(T - c.mu * sign * N, 0.0), (-T - c.mu * sign * N, 0.0)]
                out.append(([closed, (tangent, -rate)], [push, *cone]))
            for s in ways:
                along = [] if moving else [(-s * tangent, s * rate)]
                out.append(([closed, (T + s * c.mu * sign * N, 0.0)], [push, *along]))
        return out

    def answers(self, here: Array | None = None, there: Array | None = None) -> list[tuple[Array, Array, Array]]:
        """Return (a, T, lam) of every mode that has one; towards the acceleration `there`, from `here`."""
        towards = None if here is None or there is None else (self._row(there - here), float((there - here) @ there))
        return self._of_all_modes(towards)

    def _of_all_modes(self, goal: tuple[Array, float] | None) -> list[tuple[Array, Array, Array]]:
        found = []
        for combination in product(*(self.modes(i) for i in range(len(self.case.contacts)))):
            E = self.base + [row for mode in combination for row in mode[0]]
            F = [row for mode in combination for row in mode[1]]
            x = _feasible(E, F, self.size, goal)
            if x is not None:
                found.append(self._split(x))
        return found

    def open_contacts(self, T: Array, lam: Array) -> list[int]:
        """Return the contacts whose reactions differ from (T, lam) in some answer, looked for both ways."""
        case = self.case
        apart, out = case.force, []
        for i, c in enumerate(case.contacts):
            places = [(self.at_T + j, T[j]) for j in c.columns]
            places += [] if c.row is None else [(self.at_N + i, -lam[c.row])]
            goals = [(way * self.unit(j), way * now + apart) for j, now in places for way in (1.0, -1.0)]
            if any(self._moves(goal, apart) for goal in goals):
                out.append(i)
        return out

    def _moves(self, goal: tuple[Array, float], apart: float) -> bool:
        """Say whether some mode gets by 1e-5 of `apart` nearer to a goal that is so far away."""
        for a, T, lam in self._of_all_modes(goal):
            N = [0.0 if c.row is None else -lam[c.row] for c in self.case.contacts]
            x = np.concatenate([a, lam[self.case.others], N, T])
            if goal[0] @ x > goal[1] - (1.0 - 1e-5) * apart and not wrong_law(self.case, a, T, lam):
                return True
        return False

    def _split(self, x: Array) -> tuple[Array, Array, Array]:
        lam = np.zeros(len(self.case.A))
        lam[self.case.others] = x[self.at_lam : self.at_N]
        for i, c in enumerate(self.case.contacts):
            if c.row is not None:
                lam[c.row] = -x[self.at_N + i]
        return x[: self.n], x[self.at_T :], lam


def _feasible(E: list, F: list, size: int, goal: tuple[Array, float] | None = None) -> Array | None:
    """Return a point of {E x = e, F x <= f}, refined on the equations; None where there is none.

    With a goal (row, value) row x is as large as it gets, up to the value.
    """
    cost = np.zeros(size)
    if goal is not None and goal[0].any():
        cost = -goal[0] / np.abs(goal[0]).max()
        F = [*F, (-cost, goal[1] / np.abs(goal[0]).max())]
    left, right = np.array([row for row, _ in E]), np.array([value for _, value in E])
    above, limit = np.array([row for row, _ in F]).reshape(len(F), size), np.array([value for _, value in F])
    x = np.linalg.lstsq(left, right, rcond=1e-11)[0]
    if np.abs(left @ x - right).max() > 1e-9 * (np.abs(right).max() + 1.0):
        return None
    if not cost.any() and (above @ x <= limit + 1e-10 * (1.0 + np.abs(x).max())).all():
        return x
    best = linprog(cost, A_ub=above, b_ub=limit, A_eq=left, b_eq=right, bounds=(None, None), method="highs")
    if best.status != 0:
        return None
    return best.x + np.linalg.lstsq(left, right - left @ best.x, rcond=1e-11)[0]


def proves(case: Case, weights: tuple[tuple[str, float], ...]) -> bool:
    """Say whether weights by name prove that no acceleration obeys the normals and the constraint rows."""
    w = np.zeros(len(case.A))
    for name, weight in weights:
        kind, number = name.split()
        row = case.contacts[int(number)].row if kind == "contact" else int(number)
        w[row or 0] += weight
    pushes = [c.row for c in case.contacts if c.kind == UNILATERAL and c.row is not None]
    cancels = np.abs(w @ case.A).max(initial=0.0) <= 1e-10 * np.abs(w).max()
    return bool(cancels and (w[pushes] >= 0.0).all() and w @ case.drift < -1e-10)


def judged(case: Case, status: Status, a: Array, T: Array, lam: Array, weights: Any) -> tuple[str, str]:
    """Return verdict and words for one answer of the library."""
    if status is Status.SOLVED:
        law = wrong_law(case, a, T, lam)
        return ("wrong", f"solved, but: {law}") if law else ("right", "solved")
    lines = case.enumerable
    if status is Status.NO_SOLUTION and weights:
        return ("right", "contradiction proved") if proves(case, weights) else ("wrong", "weights prove nothing")
    exists = lines and any(not wrong_law(case, *x) for x in _Unknowns(case).answers())
    if status is Status.NO_SOLUTION:
        return ("wrong", "there is an answer") if exists else ("right", "no solution")
    return "refused", f"{status.name}, {'an answer exists' if exists else 'no answer' if lines else 'plane'}"


def trial(rng: np.random.Generator) -> tuple[str, str]:
    """Resolve one random problem by every method, alone and in a batch, and judge all answers."""
    case = random_case(rng)
    try:
        r, verdict = _trial_alone(case, rng)
    except DalembertError as error:
        r, verdict = None, ("refused", f"{type(error).__name__}: {str(error)[:60]}")
    except Exception as error:  # counted, not hidden
        return "foreign", f"{type(error).__name__}: {str(error)[:60]}"
    if verdict[0] == "wrong":
        return verdict
    try:
        return _other_methods(case) or _trial_batch(case, r, rng) or verdict
    except Exception as error:  # the single state has said what it refuses; a batch has a status for it
        return "foreign", f"after the single state: {type(error).__name__}: {str(error)[:60]}"


def _trial_alone(case: Case, rng: np.random.Generator) -> tuple[Resolution, tuple[str, str]]:
    """Resolve one state by `exact` and judge answer and report."""
    r = resolve(case.M, case.f, case.W, case.state, case.laws, **case.data)
    report = r.report
    verdict = judged(case, r.status, r.acceleration, r.forces, r.multipliers, r.certificate.contradiction)
    if verdict[0] == "wrong":
        return r, verdict
    unique = report.accelerations_unique
    asked = r.ok and case.enumerable and unique is not None and rng.random() < 0.3
    if asked and unique != _alone(case, r.acceleration, report.alternatives):
        return r, ("wrong", f"report says unique: {unique}, the modes do not")
    if asked and unique and rng.random() < 0.5:
        loose = tuple(f"contact {i}" for i in _Unknowns(case).open_contacts(r.forces, r.multipliers))
        if loose != report.undetermined:
            return r, ("wrong", f"report says forces open: {report.undetermined}, the modes {loose}")
    return r, verdict


def _other_methods(case: Case) -> tuple[str, str] | None:
    """Resolve by the other methods and the associated law; return what is wrong under a good status."""
    if all(c.kind == GIVEN and len(c.columns) == 1 for c in case.contacts):
        choices: list[dict[str, Any]] = [{"method": "flowchart"}, {"method": "flowchart", "release": True}]
        choices += [{"method": "flowchart", "form": "short"}, {"method": "switch"}, {"method": "regularised"}]
    else:
        choices = [{"associated": True}]
    for options in choices:
        try:
            r = resolve(case.M, case.f, case.W, case.state, case.laws, **case.data, **options)
            _ = r.report
        except DalembertError:
            continue
        law = wrong_law(case, r.acceleration, r.forces, r.multipliers, "associated" in options) if r.ok else ""
        if law:
            return "wrong", f"{options}: {law}"
    return None


def _trial_batch(case: Case, r: Resolution | None, rng: np.random.Generator) -> tuple[str, str] | None:
    """Resolve the case between two others, its matrices common to all or each its own; return what is wrong."""
    f = np.stack([np.zeros(case.f.size), case.f, rng.normal(size=case.f.size)])
    matrices = (case.M, case.W, case.A)
    M, W, A = matrices if rng.random() < 0.5 else (np.tile(x, (3, 1, 1)) for x in matrices)
    drift, contact_drift, state = (np.tile(x, (3, 1)) for x in (case.drift, case.contact_drift, case.state))
    b = resolve_batch(M, f, W, state, case.laws, A=A, drift=drift, contact_drift=contact_drift)
    for s in np.flatnonzero(b.ok):
        law = wrong_law(replace(case, f=f[s]), b.acceleration[s], b.forces[s], b.multipliers[s])
        if law:
            return "wrong", f"batch: {law}"
    if r is None:
        return None
    if b.status[1] != r.status:
        return "wrong", f"batch {Status(int(b.status[1])).name}, single {r.status.name}"
    if r.ok and r.report.accelerations_unique and np.abs(b.acceleration[1] - r.acceleration).max() > 1e-6 * case.scale:
        return "wrong", "batch differs where the answer is unique"
    return None


def _alone(case: Case, a: Array, alternatives: Array) -> bool:
    """Say whether no mode has another acceleration than a, looked for in the direction of the alternatives as well."""
    for there in (None, *alternatives):
        for x in _Unknowns(case).answers(a, there):
            if not wrong_law(case, *x) and np.abs(x[0] - a).max() > 1e-5 * case.scale:
                return False
    return True
