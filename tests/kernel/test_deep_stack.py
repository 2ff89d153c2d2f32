"""Long programs are compiled on a deep stack; what goes wrong there is raised."""

from __future__ import annotations

import pytest

from dalembert.kernel.llvm.compile import _on_a_deep_stack as on_a_deep_stack


def test_errors_on_the_deep_stack_of_long_programs_are_raised():
    def fails():
        raise ValueError("no code")

    assert on_a_deep_stack(lambda: b"code") == b"code"
    with pytest.raises(ValueError, match="no code"):
        on_a_deep_stack(fails)
