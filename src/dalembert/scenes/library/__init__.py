"""Scenes that come with the package, by name."""

from __future__ import annotations

from pathlib import Path

FOLDER = Path(__file__).parent


def scene_names() -> tuple[str, ...]:
    """Return the names of all scenes that come with the package."""
    return tuple(sorted(path.stem for path in FOLDER.glob("*.toml")))
