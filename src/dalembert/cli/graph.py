"""`dalembert graph FILE`: which equation determines which unknown, and what does not fit."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import tyro

from dalembert.errors import ModelError, SolvabilityError

if TYPE_CHECKING:
    from dalembert.tableau import Structure


@dataclass(frozen=True)
class Graph:
    """Analyse a system of equations (.toml) or a sparse pattern (.mtx) before any number, and draw it as SVG.

    Exit code 0: structurally solvable; 1: it is not, and the sets that do not fit are named; 2: the file could not be
    used.
    """

    file: Annotated[Path, tyro.conf.Positional]
    """The file; `dalembert.readers.equation_file` describes the layout."""

    output: Annotated[Path | None, tyro.conf.arg(aliases=["-o"])] = None
    """Where to write the picture, an SVG."""

    kind: str = "auto"
    """What to draw: "graph", "matrix", or "auto", the graph of up to 150 equations, the matrix of more."""

    def run(self) -> int:
        """Print the analysis, write the picture, and return the exit code."""
        from dalembert.readers.equation_file import read_equations, read_pattern
        from dalembert.tableau import Tableau, signature, structure

        if self.kind not in ("auto", "graph", "matrix"):
            raise ModelError(f"--kind {self.kind} is not auto, graph or matrix")
        if self.file.suffix.lower() == ".mtx":
            found = structure(read_pattern(self.file))
        else:
            system = read_equations(self.file)
            tableau = Tableau(**vars(system))
            found = tableau.structure()
            if found.solvable and tableau.differential:
                print(signature(tableau))
        print(found)
        if self.output is not None:
            self._draw(found)
            print(f"picture: {self.output}")
        return 0 if found.solvable else 1

    def _draw(self, found: Structure) -> None:
        """Write the picture; a system that does not fit has a graph, but no order."""
        from dalembert.tableau.picture import LARGEST_GRAPH, graph_svg
        from dalembert.tableau.plan import make_plan

        assert self.output is not None
        if self.output.is_dir() or not self.output.resolve().parent.is_dir():
            raise ModelError(f"{self.output} cannot be written: it is a folder, or its folder does not exist")
        kind = self.kind
        if kind == "auto":
            kind = "graph" if max(found.pattern.shape) <= LARGEST_GRAPH else "matrix"
        try:
            if kind == "graph":
                text = graph_svg(found.matching)
            else:
                pairs = [(i, int(j)) for i, j in enumerate(found.matching.col_of_row) if j >= 0]
                text = make_plan(found.pattern, preferred=pairs).picture("matrix")
        except SolvabilityError as error:
            raise ModelError("only a solvable system has a matrix in solving order; draw its graph") from error
        self.output.write_text(text, encoding="utf-8")
