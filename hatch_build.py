"""Build hook: a wheel for one platform carries the compiled loops (`DALEMBERT_SHIP_LOOPS=1 python -m build -w`).

Without that variable the wheel is the same on every platform, and loops are compiled when they are first called.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class ShipLoops(BuildHookInterface):
    """Runs every entry into compiled loops once, for a level of processors, and adds the code to the wheel."""

    PLUGIN_NAME = "custom"

    @property
    def wanted(self) -> bool:
        """Whether this build carries code."""
        return self.target_name == "wheel" and os.environ.get("DALEMBERT_SHIP_LOOPS", "") not in ("", "0")

    def dependencies(self) -> list[str]:
        """Return what the build needs: all that the library runs with, where it is run."""
        return list(self.metadata.core.dependencies) if self.wanted else []

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Fill `_loops` before the files are collected."""
        folder = Path(self.root) / "src" / "dalembert" / "_loops"
        shutil.rmtree(folder, ignore_errors=True)
        if not self.wanted or version == "editable":
            return
        environment = {**os.environ, "PYTHONPATH": str(Path(self.root) / "src"), "DALEMBERT_CACHE": "off"}
        command = [sys.executable, "-m", "dalembert", "warm", "--shipped", str(folder)]
        subprocess.run(command, check=True, env=environment)
        build_data["pure_python"] = False
        build_data["infer_tag"] = True
        build_data["artifacts"].append("src/dalembert/_loops/**")
