"""Beartype, as far as it goes: what its decorator cannot express is left unchecked instead of failing the import."""

from __future__ import annotations

from collections.abc import Callable

from beartype import BeartypeConf, beartype
from beartype.roar import BeartypeDecorHintException

_beartype = beartype(conf=BeartypeConf(is_pep484_tower=True))


def checked(function: Callable) -> Callable:
    """Check a function's annotations, unless they name a Protocol or `Self`, which beartype refuses at decoration."""
    try:
        return _beartype(function)
    except BeartypeDecorHintException:
        return function
