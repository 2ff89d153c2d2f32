"""The table of pairs: every cell is right to its tolerance, or refused by name with the reason."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import dalembert as da
from tests.pairs import closed_form
from tests.pairs.closed_form import pieces, states
from tests.pairs.rule import REASONS, page, refusal
from tests.pairs.slider import ANSWERS, GRAVITY, MOTIONS, SPRING, WRITTEN, M
from tests.pairs.table import STEPPERS, distance, made, run_cell

PAGE = Path(__file__).parents[2] / "docs" / "pairs.md"


@pytest.mark.parametrize("stepper", STEPPERS)
@pytest.mark.parametrize("motion", MOTIONS)
def test_every_cell_is_right_or_refused_with_its_reason(motion, stepper):
    for answers in ANSWERS:
        for written in WRITTEN:
            cell, reason = run_cell(motion, answers, written, stepper), refusal(motion, answers, written, stepper)
            where = f"{motion}, {answers}, {written}, {stepper}: {cell}"
            assert cell.verdict == ("refused" if reason else "right"), where
            if reason:
                assert re.search(REASONS[reason][0], cell.reason), where


def test_the_page_shows_the_table():
    assert PAGE.read_text() == page(), "python tools/pairs.py writes the page"


@pytest.mark.parametrize("motion", MOTIONS)
def test_the_closed_form_solves_the_equation_between_events(motion):
    """M x'' = -M g - k x + F(t) - Fc sign(x') from the start of every piece to its end, by SciPy."""
    wanted = MOTIONS[motion]
    found, events = pieces(wanted)
    assert len(found) == len(events) + 1
    for piece in found:
        if piece.stuck:
            for t in np.linspace(piece.start, piece.end, 7):
                assert abs(closed_form.pull(wanted, piece.x, t)) <= wanted.friction * (1 + 1e-9)
            continue

        def rate(t, y, sign=piece.sign):
            force = -M * GRAVITY - SPRING * y[0] + wanted.ramp * t - wanted.friction * sign
            return [y[1], force / M]

        run = solve_ivp(
            rate, (piece.start, piece.end), [piece.x, piece.v], "DOP853", [piece.end], rtol=1e-12, atol=1e-13
        )
        np.testing.assert_allclose(run.y[:, -1], piece(piece.end), atol=1e-10)


def test_events_are_those_of_the_closed_form():
    for motion in ("impact", "stick-slip", "both"):
        system, given = made(motion, "redundant and massless", "Mechanism")
        wanted = MOTIONS[motion]
        force = {"foot": ((0.0, 1.0), (0.0, wanted.ramp))}
        run = da.simulate(system, wanted.duration, [wanted.x] * 2, [wanted.v] * 2, force=force, rtol=1e-10, atol=1e-12,
                          **given)  # fmt: skip
        changes = [e for e in run.events if e.new in ("impact", "stick") or e.old == "stick"]
        np.testing.assert_allclose([e.time for e in changes], [t for t, _ in pieces(wanted)[1]], atol=1e-9)


def test_a_wrong_motion_is_seen(monkeypatch):
    """The table can fail: a restitution or a friction that is a per mille off is told from the right one."""
    for motion, change in (("impact", {"restitution": 0.6006}), ("stick-slip", {"friction": 40.04})):
        system, given = made(motion, "unique", "Lagrangian")
        wanted = MOTIONS[motion]
        force = {"foot": ((0.0, 1.0), (0.0, wanted.ramp))}
        run = da.simulate(system, wanted.duration, [wanted.x] * 2, [wanted.v] * 2, force=force, rtol=1e-9, atol=1e-11,
                          every=wanted.duration / 40, **given)  # fmt: skip
        assert distance(run, motion) < 1e-8
        monkeypatch.setitem(MOTIONS, motion, replace(wanted, **change))
        assert distance(run, motion) > 1e-4
        monkeypatch.undo()


def test_time_steps_are_of_first_order():
    errors = []
    wanted = MOTIONS["both"]
    system, _ = made("both", "massless", "Lagrangian")
    for step in (2e-3, 5e-4):
        run = da.simulate(system, wanted.duration, [wanted.x] * 2, [wanted.v] * 2, method="moreau", step=step,
                          force={"foot": ((0.0, 1.0), (0.0, wanted.ramp))}, every=wanted.duration / 40)  # fmt: skip
        exact = states(wanted, run.t)
        errors.append(np.abs(run.q[:, 0] - exact[:, 0]).max())
    assert errors[1] < 0.4 * errors[0]
