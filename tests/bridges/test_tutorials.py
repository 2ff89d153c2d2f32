"""Code blocks of the tutorials on guests that the documentation's builder does not have."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

PAGES = Path(__file__).parents[2] / "docs/tutorials"


@pytest.mark.parametrize(("page", "guest"), [("in_jax", "jax"), ("in_pytorch", "torch")])
def test_blocks_run(page, guest):
    """All blocks of a page in one name space, where the guest is installed."""
    pytest.importorskip(guest)
    blocks = re.findall(r"```python\n(.*?)```", (PAGES / f"{page}.md").read_text(), flags=re.DOTALL)
    assert len(blocks) > 2
    exec("\n".join(blocks), {})
