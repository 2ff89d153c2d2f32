"""Threads of OpenBLAS: one inside, as many as before outside, whoever ends last."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.linalg  # noqa: F401 - its library counts from here on

from dalembert.kernel import blas_threads


@pytest.fixture
def controls():
    found = [control for control in map(blas_threads._controls, blas_threads.USERS) if control is not None]
    if not found:
        pytest.skip("another BLAS than OpenBLAS")
    before = [get() for get, _ in found]
    for _, set_to in found:
        set_to(2)
    yield found
    for (_, set_to), count in zip(found, before, strict=True):
        set_to(count)


def test_threads_are_one_inside_and_come_back(controls):
    def counts():
        return {get() for get, _ in controls}

    outside = counts()
    with blas_threads.one_blas_thread():
        assert counts() == {1}
        with pytest.raises(ValueError, match="inside"), blas_threads.one_blas_thread():
            raise ValueError("inside")
        assert counts() == {1}
        np.linalg.inv(np.eye(3))
    assert counts() == outside


def test_runs_that_overlap_give_threads_back_once(controls):
    outside = {get() for get, _ in controls}
    first, second = blas_threads.one_blas_thread(), blas_threads.one_blas_thread()
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert {get() for get, _ in controls} == {1}
    second.__exit__(None, None, None)
    assert {get() for get, _ in controls} == outside
