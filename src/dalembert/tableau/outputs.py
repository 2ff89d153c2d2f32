"""Declared causality: which variable an equation is said to determine, by name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from difflib import get_close_matches

from dalembert.errors import ModelError
from dalembert.tableau.variables import Variables


def declared_outputs(
    outputs: Mapping[str, str], groups: Mapping[str, Sequence[str]], variables: Variables
) -> list[tuple[str, int]]:
    """Return declared outputs as scalar equations with the places of their variables.

    `outputs` maps equations, or rows of them, to variables, or elements of them; `groups` has the rows of equations.
    """
    rows = {name: [name] for group in groups.values() for name in group} | dict(groups)
    pairs: list[tuple[str, int]] = []
    for equation, variable in outputs.items():
        if equation not in rows:
            near = get_close_matches(str(equation), rows, n=1)
            raise ModelError(f"outputs: no equation is called {equation!r}", near=tuple(near))
        scalars = variables.find([variable], "outputs")
        if len(scalars) != len(rows[equation]):
            raise ModelError(
                f"outputs: {equation!r} has {len(rows[equation])} rows, {variable!r} {len(scalars)} elements"
            )
        pairs += zip(rows[equation], scalars, strict=True)
    return pairs
