"""`dalembert check FILE`: say whether a system is solvable, and if not, why."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import numpy as np
import tyro

from dalembert.readers import read_matrices


@dataclass(frozen=True)
class Check:
    """Diagnose a system given by its matrices (.toml, .json or .npz), and solve it if the file has a force.

    Exit code 0: accelerations exist and are unique; 1: they do not; 2: the file could not be used.
    """

    file: Annotated[Path, tyro.conf.Positional]
    """The file; `dalembert.readers.matrix_file` describes the layout."""

    def run(self) -> int:
        """Print the diagnosis (and the solution), and return the exit code."""
        problem = read_matrices(self.file)
        report = problem.system.diagnose(problem.drift if np.any(problem.drift) else None)
        print(f"{self.file}\n{report}")
        if not report.solvable or report.conflict is not None:
            return 1
        if problem.force is not None:
            print(f"\n{problem.system.solve(problem.force, problem.drift)}")
        return 0
