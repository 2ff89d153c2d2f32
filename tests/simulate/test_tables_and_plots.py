"""Runs as tables with units, and as pictures: one axis per unit, phases and events, shown by every notebook."""

import io

import numpy as np
import pytest

import dalembert as da
from dalembert.examples import stanford_arm, two_blocks
from dalembert.simulate.plots import LINES, PANELS, smooth
from dalembert.simulate.table import QUANTITIES, columns, configuration_units, row_units


def pendulum():
    b = da.Builder("pendulum")
    b.body("rod", mass=1.0, center=(0, 0, -0.5), inertia=(1 / 12, 1 / 12, 0))
    b.joint("hinge", "revolute", parent="world", child="rod", axis=(0, 1, 0))
    return b.build()


def ball(kind="prismatic"):
    b = da.Builder("ball")
    b.body("ball", mass=1.0, inertia=(0.1, 0.1, 0.1))
    b.joint("up", kind, parent="world", child="ball", axis=(0, 0, 1))
    return b.build()


@pytest.fixture(scope="module")
def swing():
    return da.simulate(pendulum(), 2.0, [1.0])


@pytest.fixture(scope="module")
def bounce():
    return da.simulate(ball(), 1.2, [1.0], contacts=[da.Contact(da.Sphere("ball", 0.1), restitution=0.5)])


def test_columns_have_the_names_that_a_run_is_asked_by(swing):
    table = {column.name: column for column in columns(swing)}
    assert [table[name].unit for name in ("t", "hinge", "hinge.v", "hinge.a")] == ["s", "rad", "rad/s", "rad/s²"]
    for name in ("hinge", "hinge.v", "hinge.a"):
        np.testing.assert_array_equal(table[name].values, swing[name])
    np.testing.assert_array_equal(table["energy"].values, swing.energy.total)


def test_units_of_drives_are_those_of_their_coordinates():
    """A servo of a hinge gives a torque, one of a slider a force; a rack and its pinion have no common unit."""
    arm = stanford_arm()
    turn, slide, other = (arm.joints[k].name for k in (0, 2, 3))
    servos = [da.Servo(turn, 0.0), da.Servo(slide, 0.0)]
    couplers = [da.Coupler({turn: 1, other: -2}), da.Coupler({slide: 1, other: -2})]
    assert row_units(arm.constrain(*servos, *couplers)) == ("N m", "N", "N m", "")


def test_units_follow_the_joints():
    assert configuration_units(stanford_arm()) == ("rad", "rad", "m", "rad", "rad", "rad")
    assert configuration_units(ball("free")) == ("m", "m", "m", "1", "1", "1", "1")
    assert configuration_units(ball("planar")) == ("m", "m", "1", "1")


def test_csv_is_read_back_bit_for_bit(swing, tmp_path):
    text = swing.to_csv()
    assert text.splitlines()[0].startswith("t [s],hinge [rad],hinge.v [rad/s],hinge.a [rad/s²]")
    numbers = np.genfromtxt(io.StringIO(text), delimiter=",", skip_header=1)
    np.testing.assert_array_equal(numbers[:, 0], swing.t)
    np.testing.assert_array_equal(numbers[:, 1], swing["hinge"])
    assert swing.to_csv(tmp_path / "run.csv") is None
    assert (tmp_path / "run.csv").read_text(encoding="utf-8") == text


def test_a_dataframe_is_the_csv_file(swing, bounce, tmp_path):
    pd = pytest.importorskip("pandas")
    frame = bounce.to_dataframe()
    bounce.to_csv(tmp_path / "run.csv")
    again = pd.read_csv(tmp_path / "run.csv", index_col=0)
    assert list(again.columns) == list(frame.columns)
    np.testing.assert_array_equal(again["ball-ground z [N]"], bounce.forces[:, 2])
    assert set(frame["ball-ground: mode"]) == {"open"}
    plain = swing.to_dataframe("coordinates", units=False)
    assert list(plain.columns) == ["hinge"]
    assert plain.attrs["units"] == {"t": "s", "hinge": "rad"}


def test_joint_forces_are_columns_on_request(swing):
    table = {column.header: column.values for column in columns(swing, "joint_forces")}
    np.testing.assert_array_equal(table["hinge fx [N]"], swing.joint_forces["hinge"].force[:, 0])
    np.testing.assert_array_equal(table["hinge my [N m]"], swing.joint_forces["hinge"].moment[:, 1])
    assert "hinge fx" not in {column.name for column in columns(swing)}


def test_reactions_that_are_called_as_a_coordinate_keep_a_column_of_their_own():
    m = ball().constrain(da.Coupler({"up": 1.0}, name="up"))
    run = da.simulate(m, 0.1, [0.0])
    names = [column.name for column in columns(run)]
    assert len(names) == len(set(names))
    assert {"up", "up (2)"} <= set(names)


def test_every_quantity_of_a_table_is_a_panel(bounce):
    assert set(QUANTITIES) <= set(PANELS)
    with pytest.raises(da.ModelError, match="did you mean 'velocities'"):
        bounce.to_csv(what="velocity")
    with pytest.raises(da.ModelError, match="did you mean 'energy'"):
        bounce.plot("enrgy")


def test_there_is_an_axis_for_every_unit():
    run = da.simulate(stanford_arm(), 0.05, every=0.05)
    figure = run.plot(("coordinates", "energy"))
    assert [axes.get_ylabel() for axes in figure.axes] == ["coordinate, rad", "coordinate, m", "energy, J"]
    assert [line.get_label() for line in figure.axes[1].get_lines()] == ["joint3"]


def test_lines_between_samples_follow_the_motion(bounce, swing):
    """The free flight of the ball is a parabola, though a step of order 8 may be the whole flight."""
    times, (height,) = smooth(bounce, "coordinates", QUANTITIES["coordinates"](bounce))
    assert times.size > 10 * bounce.t.size
    first = times < bounce.events[0].time
    np.testing.assert_allclose(height.values[first], 1.0 - 9.81 / 2 * times[first] ** 2, atol=1e-9)
    times, (angle,) = smooth(swing, "coordinates", QUANTITIES["coordinates"](swing))
    fine = da.simulate(pendulum(), 2.0, [1.0], every=0.01)
    np.testing.assert_allclose(np.interp(fine.t, times, angle.values), fine["hinge"], atol=2e-3)


def test_events_are_marked_and_named(bounce):
    figure = bounce.plot(("coordinates", "velocities"))
    instants = {event.time for event in bounce.events}
    for axes in figure.axes:
        assert instants <= {line.get_xdata()[0] for line in axes.get_lines()}
    assert len([text for text in figure.axes[0].texts if "impact" in text.get_text()]) == len(bounce.events)
    assert not figure.axes[1].texts


def test_phases_of_dry_friction_are_shaded_and_named_once():
    run = da.simulate(two_blocks(), 5.0, [0.0, 0.0], [0.3, 0.3])
    first, second = run.plot(("velocities", "forces")).axes
    words = [text.get_text() for text in first.get_legend().get_texts()]
    assert "stick: belt 1, belt 2, between" in words
    assert [text.get_text() for text in second.get_legend().get_texts()] == ["belt 1", "belt 2", "between"]
    assert len(first.patches) == len(second.patches) > 3


def test_colours_are_told_apart_in_grey():
    """Neighbours of the palette differ in luminance, or in hue that the colour-blind see (blue against yellow)."""
    light = [np.dot([int(c[k : k + 2], 16) / 255 for k in (1, 3, 5)], [0.2126, 0.7152, 0.0722]) for c in LINES]
    assert len(set(np.round(light, 3))) == len(LINES)


def test_a_notebook_shows_the_picture_whatever_was_imported(swing):
    formatters = pytest.importorskip("IPython.core.formatters")
    shown, _ = formatters.DisplayFormatter().format(swing.plot("coordinates"), include=["image/png"])
    assert shown["image/png"][:8] == b"\x89PNG\r\n\x1a\n"


def test_a_picture_is_written_in_the_format_of_its_name(swing, tmp_path):
    swing.plot("coordinates", file=tmp_path / "run.svg")
    assert "<svg" in (tmp_path / "run.svg").read_text(encoding="utf-8")
