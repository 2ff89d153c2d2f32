"""Scenes: what is simulated, as a TOML file that a person writes."""

from dalembert.scenes.library import scene_names
from dalembert.scenes.scene import Scene, scene
from dalembert.scenes.sweep import Sweep

__all__ = ["Scene", "Sweep", "scene", "scene_names"]
