"""What a caller must know about compiled code."""

from __future__ import annotations

from dataclasses import dataclass

ITEM_BYTES = {"float64": 8, "float32": 4}
ALIGNMENT = 64  # of scratch memory, in bytes


@dataclass(frozen=True)
class Layout:
    """Sizes that compiled code works with.

    Attributes
    ----------
    width
        Samples per vector, W.
    tile
        Blocks of W samples that pass through a chunk together.
    scratch_bytes
        Memory that one call of `run` needs, aligned to `ALIGNMENT`.
    """

    width: int
    tile: int
    scratch_bytes: int
