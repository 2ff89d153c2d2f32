"""Forces that diverge are no answer: contacts that contradict each other are named, and that is proved by weights."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np
import pytest

from dalembert.friction import Reacting, resolve, resolve_batch
from dalembert.friction.cones.contact_rows import ConeProblem
from dalembert.friction.cones.contradiction import farkas_weights
from dalembert.friction.cones.modes import all_solutions
from dalembert.friction.contact_problem import problem_at
from dalembert.status import Status

CAMPAIGN = Path(__file__).parents[2] / "benchmarks" / "campaigns" / "friction.py"

JAWS = {"M": np.eye(2), "f": [0.0, -9.81], "W": [[0.0, 0.0], [1.0, 1.0]], "A": [[1.0, 0.0], [-1.0, 0.0]]}
"""A part between two jaws; drift -1 on both: they close on it."""


@pytest.mark.parametrize("associated", [False, True])
@pytest.mark.parametrize(("mu", "speed"), [(0.0, 0.0), (0.3, 0.0), (0.3, 1.0), (2.0, -1.0)])
def test_jaws_that_close_have_no_answer(mu, speed, associated):
    laws = [Reacting(mu, 0), Reacting(mu, 1)]
    r = resolve(**JAWS, state=[speed, speed], laws=laws, drift=[-1.0, -1.0], names=["left", "right"],
                associated=associated)  # fmt: skip
    assert r.status is Status.NO_SOLUTION
    assert np.isnan(r.acceleration).all()
    assert np.isnan(r.forces).all()
    assert dict(r.certificate.contradiction) == pytest.approx({"left": 1.0, "right": 1.0})
    assert r.report.exists is False
    assert r.report.undetermined == ("left", "right")
    assert "left, right" in r.report.reason
    assert "contradict" in str(r)


def test_jaws_that_open_or_move_along_are_answered():
    laws = [Reacting(0.3, 0), Reacting(0.3, 1)]
    apart = resolve(**JAWS, state=[0.0, 0.0], laws=laws, drift=[1.0, 1.0])
    assert apart.ok
    assert apart.acceleration == pytest.approx([0.0, -9.81])
    along = resolve(**JAWS, state=[0.0, 0.0], laws=laws, drift=[-1.0, 1.0])
    assert along.ok
    assert along.acceleration[0] == pytest.approx(1.0)


def test_a_wedge_and_a_constraint_row_are_named():
    """Two walls of a wedge push a part out, a rod holds it: three rows with positive weights sum to zero."""
    A = [[1.0, 1.0], [-1.0, 1.0], [0.0, 1.0]]
    r = resolve(np.eye(2), [0.0, 0.0], [[1.0, 1.0], [-1.0, 1.0]], [0.0, 0.0], [Reacting(0.2, 0), Reacting(0.2, 1)],
                A=A, drift=[-1.0, -1.0, 0.0], rows=["one", "two", "rod"], names=["left", "right"])  # fmt: skip
    assert r.status is Status.NO_SOLUTION
    weights = dict(r.certificate.contradiction)
    assert set(weights) == {"left", "right", "rod"}
    w = np.array([weights["left"], weights["right"], weights["rod"]])
    assert w @ np.array(A) == pytest.approx([0.0, 0.0], abs=1e-12)
    assert w[:2].min() > 0.0
    assert w @ [-1.0, -1.0, 0.0] < 0.0


@pytest.mark.parametrize("unit", [1e-8, 1.0, 1e8])
def test_weights_do_not_depend_on_units(unit):
    w = farkas_weights(unit * np.array([[1.0, 0.0], [-2.0, 0.0]]), np.array([-1.0, -1.0]), np.zeros(2, bool))
    assert w == pytest.approx([1.0, 0.5])
    assert farkas_weights(np.array([[1.0, 0.0], [-2.0, 0.0]]), np.array([-1.0, 2.0]), np.zeros(2, bool)) is None


def test_one_bad_sample_does_not_end_a_batch():
    laws = [Reacting(0.3, 0), Reacting(0.3, 1)]
    drift = np.array([[1.0, 1.0], [-1.0, -1.0], [-1.0, 1.0], [-1.0, -1.0]])
    common = {"M": JAWS["M"], "W": JAWS["W"], "A": JAWS["A"], "laws": laws}
    state = np.array([[0.0, 0.0], [0.0, 0.0], [0.0, 0.0], [1.0, 1.0]])
    batch = resolve_batch(f=np.tile(JAWS["f"], (4, 1)), state=state, drift=drift, **common)
    none = Status.NO_SOLUTION
    assert batch.status.tolist() == [Status.SOLVED, none, Status.SOLVED, none]
    assert np.isnan(batch.acceleration[[1, 3]]).all()
    assert batch.acceleration[2, 0] == pytest.approx(1.0)


def test_no_exception_for_small_whole_numbers_with_drift():
    """Singular to the last digit: these raised LinAlgError, or were answered with forces of 1e11 and more."""
    for seed in range(250):
        rng = np.random.default_rng(seed)
        n, k = int(rng.integers(1, 4)), int(rng.integers(1, 4))
        A, W = rng.integers(-1, 2, (k, n)).astype(float), rng.integers(-1, 2, (n, k)).astype(float)
        f, drift, shift = (rng.integers(-3, 4, size).astype(float) for size in (n, k, k))
        laws = [Reacting(mu, i) for i, mu in enumerate(rng.choice([0.0, 0.3, 1.0, 2.0], k))]
        r = resolve(np.eye(n), f, W, rng.choice([0.0, 0.0, 1.0], k), laws, A=A, drift=drift, contact_drift=shift)
        assert r.status in (Status.SOLVED, Status.NO_SOLUTION, Status.NOT_CONVERGED)
        if r.ok:
            assert max(np.abs(r.multipliers).max(), np.abs(r.acceleration).max()) < 1e4
            assert (A @ r.acceleration + drift).min() > -1e-9


def test_a_heavy_block_on_a_light_one_is_no_divergence():
    """Forces a hundred million times what the light block alone explains are honest ones."""
    M, A, W = np.diag([1.0, 1.0, 1e8, 1e8]), np.zeros((2, 4)), np.zeros((4, 2))
    A[0, 1], A[1, 3], A[1, 1] = 1.0, 1.0, -1.0
    W[0, 0], W[2, 1], W[0, 1] = 1.0, 1.0, -1.0
    laws = [Reacting(0.5, 0), Reacting(0.5, 1)]
    for f, drift in (([0.0, -9.81, 0.0, -9.81e8], [0.0, 0.0]), ([0.0, 0.0, 0.0, 0.0], [-1.0, 0.0])):
        r = resolve(M, f, W, [0.0, 0.0], laws, A=A, drift=drift)
        assert r.ok
        assert A @ r.acceleration == pytest.approx(-np.array(drift), abs=1e-9)


def test_a_reaction_that_constraints_hold_already_leaves_a_family():
    """The normal repeats a constraint row: its share of the load is open, and with it the friction in motion."""
    r = resolve(np.diag([2.0, 1.0]), [6.0, -3.0], [[2.0], [-2.0]], [1.0], [Reacting(2.0, 0)],
                A=[[-1.0, 0.0], [2.0, 0.0]], drift=[1.0, -2.0])  # fmt: skip
    assert r.ok
    assert r.report.accelerations_unique is False
    for a in r.report.alternatives:
        assert a[0] == pytest.approx(1.0)


def test_sliding_in_a_plane_has_finitely_many_modes():
    c, s = np.cos(1.0), np.sin(1.0)
    M, A = np.diag([1.0, 1.0, 1.0, 1 / 3]), [[0.0, 1.0, 0.0, -c]]
    W = np.array([[1.0, 0.0], [0.0, 0.0], [0.0, 1.0], [s, 0.0]])
    r = resolve(M, [0, -9.81, 0, 0], W, [-1.0, 0.0], [Reacting(2.2, 0, directions=2)], A=A)  # Painleve's rod
    assert r.status is Status.NO_SOLUTION
    assert r.certificate.note == "all modes were tried"
    plane = problem_at(M, [0, -9.81, 0, 0], W, [0.0, 0.0], [Reacting(2.2, 0, directions=2)], A=A)
    assert all_solutions(ConeProblem.of(plane)) is None  # at rest it slips in any direction


def campaign():
    spec = importlib.util.spec_from_file_location("campaign_of_friction", CAMPAIGN)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_oracle_of_the_campaign_catches_wrong_answers():
    module = campaign()
    case = module.Case(np.eye(2), np.array([0.0, -9.81]), np.array([[1.0], [0.0]]), np.array([[0.0, 1.0]]), np.zeros(1),
                       np.zeros(1), np.zeros(1), [module.Contact(module.UNILATERAL, 0.5, 0, [0])])  # fmt: skip
    good = (np.zeros(2), np.zeros(1), np.array([-9.81]))
    assert module.wrong_law(case, *good) == ""
    assert module.wrong_law(case, np.array([0.0, -9.81]), np.zeros(1), np.zeros(1)) == "unilateral normal"
    assert module.wrong_law(case, np.array([1.0, 0.0]), np.array([1.0]), good[2]) == "slip"
    assert module.wrong_law(case, np.array([9.0, 0.0]), np.array([9.0]), good[2]) == "limit"
    assert module.wrong_law(case, np.zeros(2), np.zeros(1), np.zeros(1)) == "equations of motion"
    assert any(np.allclose(a, 0.0) for a, _, _ in module._Unknowns(case).answers())


def test_the_oracle_of_the_campaign_knows_the_associated_law():
    """A block pulled with 6 N on mu = 0.3 lifts off along the normal of the cone; Coulomb's block does not."""
    module = campaign()
    case = module.Case(np.eye(2), np.array([6.0, -10.0]), np.array([[1.0], [0.0]]), np.array([[0.0, 1.0]]), np.zeros(1),
                       np.zeros(1), np.zeros(1), [module.Contact(module.UNILATERAL, 0.3, 0, [0])])  # fmt: skip
    for associated in (False, True):
        r = resolve(case.M, case.f, case.W, case.state, case.laws, associated=associated, **case.data)
        answer = r.acceleration, r.forces, r.multipliers
        assert module.wrong_law(case, *answer, associated) == ""
        assert module.wrong_law(case, *answer, not associated) != ""
