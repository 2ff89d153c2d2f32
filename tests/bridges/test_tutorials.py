"""Code blocks of the tutorials on guests that the documentation's builder does not have."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

PAGES = Path(__file__).parents[2] / "docs/tutorials"
BLOCK = re.compile(r"```(?:python|\{code-cell\} ipython3)\n(.*?)```", flags=re.DOTALL)
PARTS = [
    ("in_jax", "", "jax"),
    ("in_pytorch", "", "torch"),
    ("in_gymnasium", "In rsl_rl", "rsl_rl"),
    ("in_other_tools", "MuJoCo", "mujoco"),
    ("in_other_tools", "Crocoddyl", "crocoddyl"),
    ("in_other_tools", "Rerun", "rerun"),
]
"""Page, heading, guest: what stands under the heading is run after what stands before the first one."""


def sections(page: str) -> list[str]:
    """Return what stands before the first heading, and then what stands under each."""
    return re.split(r"^## ", (PAGES / f"{page}.md").read_text(), flags=re.MULTILINE)


@pytest.mark.parametrize(("page", "part", "guest"), PARTS)
def test_blocks_run(page, part, guest, tmp_path, monkeypatch):
    """All blocks of a page, or of one part of it, in one name space, where the guest is installed."""
    pytest.importorskip(guest)
    monkeypatch.chdir(tmp_path)
    first, *others = sections(page)
    wanted = [text for text in others if not part or text.startswith(f"{part}\n")]
    blocks = BLOCK.findall("".join([first, *wanted]))
    assert len(blocks) > 1
    exec("\n".join(blocks), {"__name__": "page"})


def test_every_block_of_these_pages_is_run():
    for page in {page for page, *_ in PARTS}:
        parts = {part for each, part, _ in PARTS if each == page}
        with_code = {text.partition("\n")[0] for text in sections(page)[1:] if "```python" in text}
        assert parts in ({""}, with_code)
