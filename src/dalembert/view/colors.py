"""Colours that mean something in every picture: forces that are unique, shared or of contacts; lines side by side."""

from __future__ import annotations

UNIQUE, FAMILY, CONTACT = "#1a9850", "#e08214", "#2166ac"
FORCE_COLORS = {"unique": UNIQUE, "family": FAMILY, "contact": CONTACT}
"""Per kind of force; rings around constraints have the first two."""

LINE_COLORS = (CONTACT, FAMILY, UNIQUE, "#762a83", "#b2182b", "#4d4d4d")
"""Of the lines of one plot, in turn."""


def rgb(color: str) -> tuple[int, int, int]:
    """Return red, green, blue (0 to 255) of "#rrggbb"."""
    return int(color[1:3], 16), int(color[3:5], 16), int(color[5:7], 16)
