"""Every scene that comes with the package: it runs to its end, and is right where a formula is known."""

import re
from pathlib import Path
from typing import get_args

import msgspec
import numpy as np
import pytest
from scipy.integrate import cumulative_simpson

import dalembert as da
from dalembert.scenes import scene_names
from dalembert.scenes.keys import SceneFile
from dalembert.scenes.sweep import sweep
from tests.simulate.belt_events import EVENTS

RUNS: dict[str, da.Trajectory] = {}


def run_of(name: str) -> da.Trajectory:
    """Return the run of a scene, computed once."""
    if name not in RUNS:
        RUNS[name] = da.scene(name).run()
    return RUNS[name]


def test_at_least_twelve_scenes_come_with_the_package():
    assert len(scene_names()) >= 12


@pytest.mark.parametrize("name", scene_names())
def test_a_scene_runs_to_its_end(name):
    scene = da.scene(name)
    assert scene.content.title
    assert scene.content.about.strip()
    run = run_of(name)
    assert run.status == ("event" if name == "runner" else "completed"), str(run)
    assert run.t[-1] > 0.2
    if run.moving.names:
        assert run.position_residual.max() < 1e-9
    assert np.abs(run.energy_residual).max() < 1e-6 * max(
        1.0, np.abs(run.energy.total).max(), np.abs(run.kinetic).max()
    )


def test_the_ball_comes_to_rest_where_the_series_of_its_impacts_ends():
    rest = next(event.time for event in run_of("bouncing_ball").events if event.new == "rest")
    assert rest == pytest.approx(np.sqrt(2 / 9.81) * (1 + 2 * 0.6 / (1 - 0.6)), abs=1e-10)


def test_the_belt_has_the_events_of_the_reference():
    found = run_of("two_blocks").events
    assert [(e.contact, e.old, e.new) for e in found] == [row[1:] for row in EVENTS[: len(found)]]
    np.testing.assert_allclose([e.time for e in found], [float(row[0]) for row in EVENTS[: len(found)]], atol=1e-6)


def test_the_cradle_hands_the_speed_on():
    np.testing.assert_allclose(run_of("newton_cradle").v[-1], [0, 0, 0, 0, 1.0], atol=1e-12)


def test_the_crank_slider_has_a_massless_rod_and_stays_on_its_guide():
    run = run_of("crank_slider")
    q = run.q
    assert np.linalg.matrix_rank(run.system.mass_matrix(q[0]) * 1e3) == 1
    np.testing.assert_allclose(0.3 * np.sin(q[:, 0]) + 0.8 * np.sin(q.sum(axis=1)), 0.0, atol=1e-10)


def test_the_motor_of_the_four_bar_follows_its_table():
    """Work is the integral of the torque in the file over the angle."""
    scene = da.scene("four_bar")
    run = scene.run(every=0.001)
    torque = np.interp(run.t, [0, 0.2, 0.6, 0.8, 1.2, 1.4, 1.8, 2.0], [0, 12, 12, 0, 0, -6, -6, 0])
    power = torque * run["motor.v"]
    np.testing.assert_allclose(run.work, cumulative_simpson(power, x=run.t, initial=0.0), atol=1e-5)


def test_the_platform_of_sarrus_goes_straight():
    run = run_of("sarrus")
    m = run.system
    place = m.compile("kinematics", frame="platform")
    rotation, position = place(run.q)
    assert np.abs(position[:, :2] - position[0, :2]).max() < 1e-9
    assert np.abs(rotation - np.eye(3)).max() < 1e-9
    assert np.ptp(position[:, 2]) > 0.01
    assert m.diagnose(run.q[0]).rank == 4


def test_the_top_precesses_as_fast_as_its_textbook_says():
    """Slow precession of a fast top: m g l / (I3 spin), within what nutation adds (Goldstein, sec. 5.7)."""
    run = da.scene("spinning_top", spin=300.0).run(every=0.01)
    x, y, z, w = run.q.T
    axis = np.column_stack([2 * (x * z + y * w), 2 * (y * z - x * w)])
    turned = np.ptp(np.unwrap(np.arctan2(axis[:, 1], axis[:, 0])))
    expected = 0.5 * 9.81 * 0.1 / (0.003 * 300.0) * run.t[-1]
    assert turned == pytest.approx(expected, rel=0.05)


def test_the_hopper_comes_back_to_its_height_without_a_loss():
    run = run_of("runner")
    assert run["z"][-1] == pytest.approx(run["z"][0], abs=1e-3)
    assert {event.contact for event in run.events} == {"foot", "apex"}


def test_the_quadruped_stands_on_forces_that_are_one_of_many():
    scene = da.scene("quadruped")
    solution = scene.solve()
    assert not solution.certificate.unique.all()
    up = sum(float(solution[f"{leg} foot z"]) for leg in ("FL", "FR", "RL", "RR"))
    weight = scene.mechanism.mass * 9.81
    run = run_of("quadruped")
    mean = np.mean([sum(run[f"{leg} foot z"] for leg in ("FL", "FR", "RL", "RR"))])
    assert mean == pytest.approx(weight, rel=0.1)
    assert up > 0.0


def test_a_sweep_measures_every_combination():
    table = sweep(da.scene("bouncing_ball"))
    assert table.ok
    speeds = [row.measures["rebound speed"] for row in table.rows]
    np.testing.assert_allclose(speeds, np.array([0.2, 0.4, 0.6, 0.8]) * np.sqrt(2 * 9.81), rtol=1e-9)
    assert table.to_csv().splitlines()[0] == "restitution,rebound speed,heat,status,events"
    grid = sweep(da.scene("bouncing_ball"), {"restitution": [0.1, 0.2], "height": [0.5, 1.0, 2.0]})
    assert [row.parameters["height"] for row in grid.rows] == [0.5, 1.0, 2.0] * 2
    refused = sweep(da.scene("bouncing_ball"), {"restitution": [0.5, 1.5]})
    assert [row.status for row in refused.rows] == ["completed", "refused"]
    assert "between 0 and 1" in refused.rows[1].error
    assert not refused.ok


def test_the_store_of_a_sweep_is_read_and_says_how_to_go_on(tmp_path):
    table = sweep(da.scene("stick_slip"), {"speed": [0.1]}, to=tmp_path / "s.zarr", progress=False)
    study = da.ensemble.open(tmp_path / "s.zarr")
    assert study.status_counts == {"completed": 1}
    np.testing.assert_array_equal(study["largest stretch, m"], table.study["largest stretch, m"])
    for repeat in (lambda: study.rerun(0), lambda: da.ensemble.resume(tmp_path / "s.zarr")):
        with pytest.raises(da.ModelError, match=r"dalembert sweep scene\.toml"):
            repeat()


def test_the_page_on_scenes_names_every_table_and_key():
    page = (Path(__file__).parents[2] / "docs/howto/scenes.md").read_text(encoding="utf-8")
    words = set(re.findall(r"[\w-]+", page))
    tables = [SceneFile]
    for struct in tables:
        for field in msgspec.structs.fields(struct):
            assert field.encode_name in words, f"{struct.__name__}: {field.encode_name}"
            inner = [t for part in _parts(field.type) for t in _parts(part)]
            tables += [t for t in inner if isinstance(t, type) and issubclass(t, msgspec.Struct) and t not in tables]
    assert len(tables) > 15


def _parts(kind):
    """Return a type and those that it is made of."""
    return [kind, *(part for each in get_args(kind) for part in _parts(each))]


def test_masses_that_no_body_has_are_refused(tmp_path):
    """Whoever types a scene is told at once; robot files of others are read with a warning."""
    text = da.scene("double_pendulum").text
    file = tmp_path / "light.toml"
    file.write_text(re.sub(r"mass = [^\n]*", "mass = -0.8", text, count=1))
    with pytest.raises(da.ModelError, match=r"light.toml:\d+: body .* the mass is negative"):
        da.scene(file).mechanism  # noqa: B018
