"""Ledger J15: the maps of seed 000, Fig. 1, drawn by the library."""

from __future__ import annotations

import numpy as np

from dalembert.kkt import KKT
from dalembert.view import as_svg, draw_maps, new_figure
from dalembert.view.figures import MAPS, SPACES

SIZES = {"velocity": "n", "acceleration": "n", "force": "n"}
"""Spaces of the system have size n, those of the constraints size m."""


def test_J15_maps_have_the_shapes_of_their_matrices():
    """Every arrow of the figure goes from the columns to the rows of the matrix that it stands for."""
    K = KKT(np.diag([1.0, 2.0, 3.0, 4.0, 5.0]), np.eye(2, 5))
    n, m = 5, 2
    matrices = {
        "$A$": K.A,
        "$A^T$": K.A.T,
        "$M$": K.M,
        r"$M^{\dagger}$": K.dagger.M,
        r"$A^{\dagger}$": K.dagger.A,
        r"$A^{\dagger T}$": K.dagger.A.T,
        r"$\Lambda^{\dagger}$": K.dagger.Lambda,
    }
    assert {symbol for _, _, symbol, _ in MAPS} == set(matrices)
    for start, end, symbol, _ in MAPS:
        shape = tuple(n if space in SIZES else m for space in (end, start))
        assert matrices[symbol].shape == shape, symbol


def test_J15_figure_draws_every_space_and_map():
    figure = new_figure()
    axes = figure.add_subplot()
    draw_maps(axes)
    drawn = {text.get_text() for text in axes.texts}
    assert {symbol for _, _, symbol, _ in MAPS} <= drawn
    assert {space[2] for space in SPACES.values()} <= drawn
    assert as_svg(figure).startswith("<svg")
