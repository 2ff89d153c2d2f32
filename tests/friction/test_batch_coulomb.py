"""O8: many states with reactions as limits: the batch equals `resolve` one by one, bad samples have their status."""

from __future__ import annotations

import numpy as np
import pytest

from dalembert.errors import ModelError, ShapeError
from dalembert.friction import ExpressionLaw, Reacting, Stribeck, resolve, resolve_batch
from dalembert.status import Status
from tests.friction.test_cones import painleve

LAWS = {
    "line": [Reacting(0.4, "floor"), Reacting(Stribeck(0.6, 0.3, 0.1), "wall")],
    "planes": [Reacting(0.8, "floor", directions=2), Reacting(0.6, "wall", directions=2)],
    "mixed": [0.7, Reacting(0.4, "wall", unilateral=False), Stribeck(1.0, 0.5, 0.2)],
}
ROWS = ["floor", "rod", "wall"]


def samples(kind, seed, N=24, n=7, common=True):
    """Return the arguments of a batch; "rod" loads no contact, a third of the contacts slides, most are pressed."""
    rng = np.random.default_rng(seed)
    laws = LAWS[kind]
    m = sum(law.directions if isinstance(law, Reacting) else 1 for law in laws)
    X, A, W = (rng.normal(size=s if common else (N, *s)) for s in ((n, n), (3, n), (n, m)))
    state = np.where(rng.random((N, m)) < 0.3, rng.normal(size=(N, m)), 0.0)
    f = rng.normal(size=(N, n)) - 3.0 * (A[..., 0, :] + A[..., 2, :])
    return {
        "M": X @ np.swapaxes(X, -1, -2) + np.eye(n), "f": f, "W": W, "state": state, "laws": laws, "A": A,
        "drift": 0.3 * rng.normal(size=(N, 3)), "contact_drift": 0.2 * rng.normal(size=(N, m)),
        "loads": rng.uniform(0.5, 2.0, len(laws)), "rows": ROWS,
    }  # fmt: skip


def one(given, s):
    pick = {key: given[key][s] for key in ("f", "state", "drift", "contact_drift")}
    pick |= {key: given[key][s] if given[key].ndim == 3 else given[key] for key in ("M", "W", "A")}
    return pick | {key: given[key] for key in ("laws", "loads", "rows")}


@pytest.mark.parametrize("common", [True, False])
@pytest.mark.parametrize("kind", LAWS)
def test_batch_equals_one_by_one(kind, common):
    given = samples(kind, 5 + common, common=common)
    batch = resolve_batch(**given)
    names = [f"contact {i}" for i in range(len(given["laws"]))]
    seen = set()
    for s in range(len(given["f"])):
        r = resolve(**one(given, s))
        assert batch.status[s] == r.status
        if not r.ok:
            assert np.isnan(batch.acceleration[s]).all()
            continue
        scale = np.abs(r.acceleration).max()
        np.testing.assert_allclose(batch.acceleration[s], r.acceleration, rtol=0, atol=1e-9 * scale)
        np.testing.assert_allclose(batch.forces[s], r.forces, rtol=0, atol=1e-9 * np.abs(r.multipliers).max())
        np.testing.assert_allclose(batch.multipliers[s], r.multipliers, rtol=0, atol=1e-8 * np.abs(r.multipliers).max())
        known = np.isfinite(r.contact_acceleration)
        np.testing.assert_allclose(
            batch.contact_acceleration[s][known], r.contact_acceleration[known], rtol=0, atol=1e-9 * scale
        )
        codes = [r.sets.code(name) for name in names]
        assert batch.sets[s].tolist() == codes
        seen |= set(codes)
    assert np.count_nonzero(batch.ok) >= len(given["f"]) // 2
    assert {1, 0} <= seen  # the samples slide and stick; a batch of one mode would prove little
    assert batch.optimality[batch.ok].max() <= 1e-10


def test_the_equations_of_motion_hold_in_every_sample():
    given = samples("planes", 3, N=40)
    b = resolve_batch(**given)
    left = b.acceleration @ given["M"] + b.multipliers @ given["A"]
    np.testing.assert_allclose(left[b.ok], (given["f"] + b.forces @ given["W"].T)[b.ok], atol=1e-9)
    np.testing.assert_allclose((b.acceleration @ given["A"][1] + given["drift"][:, 1])[b.ok], 0.0, atol=1e-10)


def test_the_associated_problem_differs_where_a_contact_slips():
    given = samples("planes", 4, N=40)
    given["state"][:] = 0.0
    true, convex = resolve_batch(**given), resolve_batch(**given, associated=True)
    slips = (true.sets == 2).any(axis=1) & true.ok & convex.ok
    assert slips.any()
    assert np.abs(true.acceleration - convex.acceleration)[slips].max() > 1e-3
    alone = resolve(**one(given, 0), associated=True)
    np.testing.assert_allclose(convex.acceleration[0], alone.acceleration, atol=1e-9)


def test_bad_samples_have_their_status():
    given = samples("mixed", 9, N=6, common=False)
    given["loads"] = np.tile(given["loads"], (6, 1))
    given["f"][1, 2] = np.nan
    given["state"][2, 0] = np.inf
    given["M"][3] = -np.eye(7)
    given["loads"][4, 0] = -1.0
    batch = resolve_batch(**given)
    bad = [Status.NONFINITE, Status.NONFINITE, Status.MASSLESS, Status.NONFINITE]
    assert batch.status[1:5].tolist() == bad
    assert np.isnan(batch.acceleration[1:5]).all()
    assert batch.status[[0, 5]].tolist() == [Status.SOLVED, Status.SOLVED]


def test_painleve_without_an_answer_is_a_status_among_good_samples():
    c, h = np.cos(1.0), np.sin(1.0)
    given = {"M": np.diag([1.0, 1.0, 1 / 3]), "W": [[1.0], [0.0], [h]], "A": [[0.0, 1.0, -c]]}
    batch = resolve_batch(
        f=np.tile([0.0, -9.81, 0.0], (3, 1)), state=[[-1.0], [1.0], [-1.0]], laws=[Reacting(2.2, 0)], **given,
        drift=[[0.0], [0.0], [25.0 * h]], contact_drift=[[0.0], [0.0], [25.0 * c]],
    )  # fmt: skip
    assert batch.status.tolist() == [Status.NO_SOLUTION, Status.SOLVED, Status.SOLVED]
    assert np.isnan(batch.acceleration[0]).all()
    assert "Painleve" in str(batch)
    np.testing.assert_allclose(batch.acceleration[1], painleve(0.0, sense=1.0).acceleration, atol=1e-12)


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        ({"laws": [Reacting(0.4, "roof"), Reacting(0.4, "wall")]}, ModelError, "no constraint row is called 'roof'"),
        ({"laws": [Reacting(0.4, "wall"), Reacting(0.4, "wall")]}, ModelError, "'wall' is the normal of another"),
        (
            {"laws": [Reacting(-0.4, "floor"), Reacting(0.4, "wall")]},
            ModelError,
            r"contact 0.*must be finite and not neg",
        ),
        ({"laws": [Reacting(0.4, "floor", directions=2)] * 2}, ShapeError, "take 4 columns of W"),
        ({"rows": ["a", "a", "b"]}, ModelError, "distinct"),
        ({"laws": 1.0, "loads": None, "associated": True}, ModelError, "convex as it is"),
    ],
)
def test_misuse_is_named(change, error, words):
    with pytest.raises(error, match=words):
        resolve_batch(**{**samples("line", 1), **change})


def test_a_law_of_the_state_is_refused():
    import casadi as ca

    s, q = ca.SX.sym("s"), ca.SX.sym("q", 7)
    law = ExpressionLaw(s, 0.3 + 0.1 * q[0] ** 2, state=(q, None, None))
    with pytest.raises(ModelError, match=r"contact 0.*depends on the state"):
        resolve_batch(**{**samples("line", 1), "laws": [Reacting(law, "floor"), Reacting(0.4, "wall")]})
