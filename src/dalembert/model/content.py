"""A key for what determines a mechanism's numbers: names, parts and settings, but no notes and no sources."""

from __future__ import annotations

import hashlib
import struct
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

FORMAT = "dalembert mechanism 1"
"""Changes when the meaning of a part changes, so that stored kernels of old meaning are not found."""


def content_key(*parts: Any) -> str:
    """Return a hexadecimal SHA-256 of dataclasses, tuples, arrays, numbers and words; sources are left out."""
    digest = hashlib.sha256(FORMAT.encode())
    stack: list[Any] = [parts]
    while stack:
        one = stack.pop()
        if is_dataclass(one) and not isinstance(one, type):
            digest.update(f"<{type(one).__name__}".encode())
            stack.extend(getattr(one, each.name) for each in fields(one) if each.name != "source")
        elif isinstance(one, tuple | list):
            digest.update(f"({len(one)}".encode())
            stack.extend(one)
        elif isinstance(one, np.ndarray):
            digest.update(f"[{one.dtype}{one.shape}".encode() + one.tobytes())
        elif isinstance(one, float):
            digest.update(b"f" + struct.pack("<d", one))
        else:
            digest.update(f"{type(one).__name__}:{one!r};".encode())
    return digest.hexdigest()
