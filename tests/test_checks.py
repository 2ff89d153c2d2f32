"""The checks that all rooms share: numbers under a mask are refused wherever numbers are taken."""

from __future__ import annotations

import numpy as np
import pytest

import dalembert as da
from dalembert.checks import (
    finite_vector,
    floats,
    is_number,
    one_number,
    refuse_masked,
    vectors,
    whole_number,
)
from dalembert.errors import DalembertError, ModelError, ShapeError
from dalembert.friction import Tabulated
from dalembert.model import Matrices, Placement
from dalembert.tableau import Pattern


def masked(*shape: int) -> np.ndarray:
    """Return ones of which the first is under a mask."""
    array = np.ma.array(np.ones(shape), mask=np.zeros(shape, bool))
    array[(0,) * len(shape)] = np.ma.masked
    return array


def pendulum() -> da.Mechanism:
    b = da.Builder("pendulum")
    b.body("rod", mass=1.0, center=(0, 0, -0.5), inertia=(0.1, 0.1, 0.01))
    b.joint("hinge", "revolute", "world", "rod", axis=(0, 1, 0))
    b.loop("end", "point", "rod", "world")
    return b.build()


TAKERS = {
    "position beside a quaternion": lambda: Placement.from_quaternion([0, 0, 0, 1], masked(3)),
    "angles": lambda: Placement.from_rpy(masked(3)),
    "gravity of a builder": lambda: da.Builder(gravity=masked(3)),
    "gravity": lambda: pendulum().with_gravity(masked(3)),
    "axis": lambda: da.Builder().joint("j", "revolute", "world", "a", axis=masked(3)),
    "mass": lambda: da.Builder().body("a", mass=np.ma.masked),
    "damping": lambda: da.Builder().joint("j", "revolute", "world", "a", damping=masked(1)),
    "quaternion": lambda: Placement.from_quaternion(masked(4)),
    "weights": lambda: pendulum().solve([0.0], [0.0], [0.0], metric=masked(3)),
    "torque": lambda: da.simulate(pendulum(), 0.1, force=masked(1)),
    "torque in time": lambda: da.simulate(pendulum(), 0.1, force=(masked(2), [[0.0], [0.0]])),
    "start": lambda: da.simulate(pendulum(), 0.1, q=masked(1)),
    "mass of matrices": lambda: Matrices(masked(2, 2)),
    "rows of matrices": lambda: Matrices(np.eye(2), {"r": masked(2)}),
    "groups": lambda: da.KKT(np.eye(2), np.ones((2, 2)), groups=np.ma.array([0, 1], mask=[True, False])),
    "pattern": lambda: Pattern.of(masked(2, 2)),
    "friction": lambda: Tabulated(masked(2), [1.0, 1.0]),
    "heights": lambda: da.Heightfield([0.0, 1.0], [0.0, 1.0], masked(2, 2)),
}


@pytest.mark.parametrize("taker", TAKERS.values(), ids=TAKERS)
def test_nobody_takes_the_numbers_under_a_mask(taker) -> None:
    with pytest.raises(DalembertError, match="masked"):
        taker()


@pytest.mark.parametrize("values", [masked(2), [masked(2), np.ones(2)], np.ma.masked, masked(2, 2)])
def test_a_mask_is_seen(values) -> None:
    for check in (lambda: refuse_masked(values, "x"), lambda: floats(values, "x"), lambda: vectors(values, 2, "x")):
        with pytest.raises(ShapeError, match="x is a masked array"):
            check()


def test_an_empty_mask_is_none() -> None:
    np.testing.assert_array_equal(floats(np.ma.array([1.0, 2.0]), "x"), [1.0, 2.0])
    assert one_number(np.ma.array(2.0), "x") == 2.0


@pytest.mark.parametrize(
    ("values", "error", "words"),
    [
        ([1.0], ShapeError, r"q must have shape \(2,\); it has \(1,\)"),
        ([1.0, np.nan], ModelError, r"q\[1\] \('b'\) is nan; a state must be finite"),
        (["x", 1.0], ShapeError, r"q must be real numbers, not \['x', 1.0\]"),
        (masked(2), ShapeError, "q is a masked array"),
    ],
)
def test_a_state_is_one_finite_number_per_coordinate(values, error: type, words: str) -> None:
    with pytest.raises(error, match=words):
        finite_vector(values, ("a", "b"), "q")


def test_a_vector_is_copied() -> None:
    given = np.ones(2)
    finite_vector(given, ("a", "b"), "q")[0] = 5.0
    assert given[0] == 1.0


@pytest.mark.parametrize(
    ("value", "is_one"), [(1, True), (np.float32(2.0), True), (np.nan, True), (True, False), ("1", False)]
)
def test_what_one_number_is(value, is_one: bool) -> None:
    assert is_number(value) is is_one


@pytest.mark.parametrize(
    ("check", "error", "words"),
    [
        (lambda: floats(None, "x"), ShapeError, "x must be real numbers, not None"),
        (lambda: floats([[1.0], [1.0, 2.0]], "x"), ShapeError, "x must be real numbers, not"),
        (lambda: floats(np.array([1j]), "x"), ShapeError, "x must be real numbers; it is complex"),
        (lambda: floats(["y"] * 1000, "x"), ShapeError, r"^.{,120}$"),
        (lambda: vectors(1.0, 2, "x", "n"), ShapeError, r"shape \(2,\), or \(..., 2\) for a batch \(n = 2\); it has"),
        (lambda: one_number("fine", "x"), ModelError, "x='fine': one real number is needed"),
        (lambda: one_number(None, "x"), ModelError, "x=None: one real number is needed"),
        (lambda: one_number([1.0, 2.0], "x"), ModelError, r"x=\[1.0, 2.0\]: one real number is needed"),
        (lambda: whole_number(2.5, "x"), ModelError, "x=2.5: a whole number is needed"),
        (lambda: whole_number(np.inf, "x"), ModelError, "x=inf: a whole number is needed"),
        (lambda: Placement.from_rpy([0.0, 1.0]), ShapeError, "rpy is three angles"),
        (lambda: Placement.from_quaternion("turned"), ShapeError, "quaternion must be real numbers, not 'turned'"),
        (lambda: Matrices("heavy", coordinates=["x"]), ShapeError, "mass must be real numbers, not 'heavy'"),
    ],
)
def test_what_is_refused_is_said(check, error: type, words: str) -> None:
    with pytest.raises(error, match=words):
        check()


def test_what_is_taken() -> None:
    given = np.ones((3, 2))
    assert floats(given, "x") is given
    assert vectors(given, 2, "x") is given
    assert one_number([[2]], "x") == 2.0
    assert whole_number(3.0, "x") == 3
