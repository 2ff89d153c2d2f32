"""The checker of shapes: what it remembers never lets a wrong shape pass."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from jaxtyping import Float, TypeCheckError

from tests.shape_checks import checked_once


@checked_once
def product(A: Float[np.ndarray, "m n"], x: Float[np.ndarray, " n"], rows: int = -1) -> Float[np.ndarray, " m"]:
    return (A @ x)[: rows if rows >= 0 else None]


@checked_once
@dataclass
class Rows:
    A: Float[np.ndarray, "m n"]
    b: Float[np.ndarray, " m"]


@pytest.mark.parametrize(
    "call",
    [
        lambda: product(np.ones((2, 3)), np.ones(2)),
        lambda: product(np.ones((2, 3)), x=np.ones((3, 1))),
        lambda: product(np.ones((2, 3), int), np.ones(3)),
        lambda: product([[1.0, 2.0, 3.0]], np.ones(3)),
        lambda: product(np.ones((2, 3)), np.ones(3), 1),  # an answer of a new form to arguments of an old one
        lambda: Rows(np.ones((2, 3)), np.ones(3)),
    ],
)
def test_a_wrong_form_is_refused_after_right_ones(call) -> None:
    for _ in range(2):
        assert product(np.ones((2, 3)), np.ones(3)).shape == (2,)
        assert Rows(np.ones((2, 3)), np.ones(2)).b.shape == (2,)
        with pytest.raises(TypeCheckError):
            call()


def test_the_library_is_checked() -> None:
    from dalembert.friction import UniquenessReport

    assert UniquenessReport(None, None, (), "", np.zeros((2, 3))).alternatives.shape == (2, 3)
    with pytest.raises(TypeCheckError):
        UniquenessReport(None, None, (), "", np.zeros(3))
