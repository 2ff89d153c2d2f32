"""Over-constrained linkages in time: the rank is the mechanism's, at every tolerance, with every stepper.

References: SciPy's DOP853 in plain NumPy with the rank given (`overconstrained.reference`), and pendulums in one angle
for the parallelogram and the double door.
"""

from __future__ import annotations

import re

import casadi as ca
import numpy as np
import pytest

import dalembert as da
from dalembert.simulate.witness import broken_balance
from tests.model.closed_loops import pinned_twice

from . import overconstrained as given

LOOPS = {"bricard": 4, "bennett": 2, "goldberg": 3, "sarrus": 4}
"""Linkages of hinges and their ranks, all of 5 rows."""

AMPLIFIED = 300.0
"""Errors over tolerance: some tens of steps, each of which may add one, and what the motion makes of them."""


@pytest.fixture(scope="module")
def references():
    """Return per linkage the configuration at 0.3 s, from rest."""
    found = {}
    for name, rank in LOOPS.items():
        m = getattr(given, name)()
        found[name] = m, given.reference(m, m.neutral(), np.zeros(m.nv), 0.3, rank)[0]
    return found


# --- the rank --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("unit", [1e-3, 1.0, 1e3])
@pytest.mark.parametrize("name", LOOPS)
def test_the_rank_of_a_linkage_is_found_in_any_unit(name, unit):
    rank = getattr(given, name)(unit=unit).generic_rank()
    assert (rank.rank, rank.positions, rank.rows) == (LOOPS[name], LOOPS[name], 5)
    assert rank.redundant
    assert rank.places > 1
    assert rank.kept > 0.05
    assert rank.dropped < 1e-12
    assert f"rank {LOOPS[name]} of 5 rows" in str(rank)


@pytest.mark.parametrize("angle", [0.7, 1e-8, 0.0])
@pytest.mark.parametrize(("kind", "rows"), [("revolute", 5), ("point", 3)])
def test_a_singular_configuration_has_the_rank_of_its_neighbours(kind, rows, angle):
    m, q = given.parallelogram(kind, angle=angle)
    rank = m.generic_rank(q)
    assert (rank.rank, rank.rows) == (2, rows)


def test_the_rank_is_decided_once():
    m = given.bricard()
    assert m.generic_rank() is m.generic_rank()
    assert da.Builder("empty").build().generic_rank().rank == 0


def test_rows_of_a_free_body_on_two_hinges():
    m, q, _ = given.double_door()
    assert m.generic_rank(q).rank == 5
    assert m.generic_rank(q).rows == 10


# --- explicit steps --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("tolerance", [1e-4, 1e-6, 1e-8, 1e-10, 1e-12, 1e-13])
@pytest.mark.parametrize("method", ["dop853", "dopri5"])
@pytest.mark.parametrize("name", LOOPS)
def test_explicit_steps_are_right_at_every_tolerance(references, name, method, tolerance):
    m, q = references[name]
    run = da.simulate(m, 0.3, method=method, rtol=tolerance, atol=tolerance)
    assert run.status == "completed"
    assert np.abs(run.q[-1] - q).max() < AMPLIFIED * tolerance + 1e-12
    assert run.position_residual.max() < 1e-12
    assert run.velocity_residual.max() < 1e-11


def test_bricard_keeps_its_energy_for_ten_seconds():
    """A singular value between two thresholds took 3.9 J of 29 J away at 0.9 s, with a good status."""
    from .linkages import bricard

    m = bricard()
    loose, tight = (da.simulate(m, 10.0, rtol=tol, atol=tol) for tol in (1e-10, 1e-13))
    assert loose.ok
    assert tight.ok
    assert np.abs(tight.energy_residual).max() < 1e-11
    assert np.abs(loose.q[-1] - tight.q[-1]).max() < 1e-7


def test_every_sample_of_bricard_is_written():
    """Stages off the manifold had rank 5, and accelerations of 1e172."""
    run = da.simulate(given.bricard(), 2.0, every=0.1, rtol=1e-9)
    assert run.ok
    np.testing.assert_allclose(run.t, np.arange(21) * 0.1, atol=1e-12)
    assert np.abs(run.energy_residual).max() < 1e-7


def test_accelerations_and_multipliers_of_samples_are_those_of_the_plain_twin(references):
    m, _ = references["bricard"]
    run, rank = da.simulate(m, 0.3, rtol=1e-9), LOOPS["bricard"]
    for k in range(run.t.size):
        q, v = run.q[k], run.v[k]
        a, lam = given.acceleration(m, q, v, rank), given.multipliers(m, q, v, rank)
        np.testing.assert_allclose(run.acceleration[k], a, rtol=1e-10, atol=1e-10)
        np.testing.assert_allclose(run.samples["multipliers"][k], lam, rtol=1e-9, atol=1e-9)
        solved = m.solve(q, v)
        assert solved.status == da.Status.REDUNDANT
        assert solved.certificate.ok
        np.testing.assert_allclose(solved.acceleration, a, rtol=1e-10, atol=1e-10)
        np.testing.assert_allclose(solved.multipliers, lam, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("kind", ["revolute", "point"])
@pytest.mark.parametrize("tolerance", [1e-5, 1e-9, 1e-13])
@pytest.mark.parametrize("method", ["dop853", "dopri5"])
def test_a_parallelogram_passes_its_singular_configurations(kind, method, tolerance):
    m, q = given.parallelogram(kind)
    v = np.zeros(3)
    for name, speed in (("foot 0", 5.0), ("foot 1", 5.0), ("head", -5.0)):
        v[m.index_v(name)] = speed
    run = da.simulate(m, 3.0, q, v, method=method, rtol=tolerance, atol=tolerance)
    assert run.ok
    angles = run["foot 0"]
    assert angles.max() > np.pi  # past two of them
    angle, speed = given.crank_reference(0.7, 5.0, 3.0)
    # next to a singular configuration rounding is seen 1 / distance times
    assert abs(angles[-1] - angle) < AMPLIFIED * tolerance + 1e-8
    assert abs(run["foot 0.v"][-1] - speed) < 10 * AMPLIFIED * tolerance + 1e-7
    assert ("wider tolerance" in run.message) == bool(run.session.extra["relaxed"])


@pytest.mark.parametrize("kind", ["revolute", "point"])
def test_an_error_that_a_singular_configuration_makes_larger_is_seen(kind):
    """Projected there, an error of a step grows as 1 / distance: the run was off by 2,700 tolerances.

    The message named the whole run up to there, and not how much wider the tolerance was.
    """
    m, q = given.parallelogram(kind)
    v = np.zeros(3)
    for name, speed in (("foot 0", 6.0), ("foot 1", 6.0), ("head", -6.0)):
        v[m.index_v(name)] = speed
    run = da.simulate(m, 10.0, q, v, rtol=1e-10, atol=1e-10)
    assert run.ok
    assert abs(run["foot 0"][-1] - given.crank_reference(0.7, 6.0, 10.0)[0]) < AMPLIFIED * 1e-10
    said = re.search(r"between t = (.+) s and (.+) s had a wider tolerance, up to (.+) times", run.message)
    assert said
    first, last, factor = map(float, said.groups())
    ends = np.interp([first, last], run.t, run["foot 0"])
    assert np.abs(np.sin(ends)).min() < 0.1  # where the cranks lie in the line of their feet
    assert 1.0 < factor < 1e3


@pytest.mark.parametrize("tolerance", [1e-4, 1e-9, 1e-13])
@pytest.mark.parametrize("method", ["dop853", "dopri5"])
def test_a_free_leaf_on_two_hinges(method, tolerance):
    m, q, axis = given.double_door()
    run = da.simulate(m, 3.0, q, np.r_[0, 0, 0, 2.0 * axis], method=method, rtol=tolerance, atol=tolerance)
    assert run.ok
    assert abs(run.v[-1, 3:] @ axis - given.door_reference(axis, 2.0, 3.0)) < AMPLIFIED * tolerance + 1e-11
    assert run.position_residual.max() < 1e-12


def test_a_body_that_flies_is_put_back_onto_its_constraints():
    """Newton's steps in the axes of a body were taken as displacements in those of the ground."""
    m, q, axis = given.double_door()
    run = da.simulate(m, 3.0, q, np.r_[0, 0, 0, 5.0 * axis], rtol=1e-3, atol=1e-3)
    assert run.position_residual.max() < 1e-12


def test_a_disc_that_lies_flat_has_no_point_to_roll_on():
    """Rows that are no numbers there are named, in whatever is asked; elsewhere the mechanism is what it is."""
    b = da.Builder("coin")
    b.body("coin", mass=1.0, inertia=(0.01, 0.01, 0.02))
    m = b.build(base="floating").constrain(da.Rolling("coin", radius=0.2, axis=(0, 0, 1)))
    flat, still = m.neutral(), np.zeros(6)
    for ask in (m.solve, m.impact, m.project, m.diagnose, lambda q, v: da.simulate(m, 0.1, q, v)):
        with pytest.raises(da.ModelError, match="'coin: contact' are not defined"):
            ask(flat, still)
    upright = np.r_[0.0, 0.0, 0.2, np.sqrt(0.5), 0.0, 0.0, np.sqrt(0.5)]
    assert m.solve(upright, still).ok
    assert m.generic_rank(None, 0.0).rank == 3


@pytest.mark.parametrize("method", ["dop853", "dopri5"])
@pytest.mark.parametrize("tolerance", [1e-4, 1e-7, 1e-10])
def test_a_disc_rolls_on(method, tolerance):
    """Upright at 20 rad/s it rolls straight, a r w: steps collapsed, or were rejected by the thousand."""
    b = da.Builder("coin")
    b.body("coin", mass=1.0, inertia=(0.01, 0.01, 0.02))
    m = b.build(base="floating").constrain(da.Rolling("coin", radius=0.2, axis=(0, 0, 1)))
    q = m.project(np.r_[0.0, 0.0, 0.2, np.sqrt(0.5), 0.0, 0.0, np.sqrt(0.5)])
    v = m.project(q, np.r_[0.0, 0.0, 0.0, 0.0, 0.0, 20.0])[1]
    run = da.simulate(m, 5.0, q, v, method=method, rtol=tolerance, atol=tolerance)
    assert run.ok
    assert run.session.rejected < 10
    speed = np.linalg.norm(v[:3])
    assert speed == pytest.approx(20.0 * 0.2 * 0.02 / (0.02 + 0.04))  # rolls after the least change of velocity
    assert np.linalg.norm(run.q[-1, :3] - q[:3]) == pytest.approx(5.0 * speed, abs=AMPLIFIED * tolerance)


# --- implicit and variational steps --------------------------------------------------------------------------------


@pytest.mark.parametrize(("method", "tolerance"), [("bdf", 1e-5), ("bdf", 1e-10), ("radau", 1e-5), ("radau", 1e-11)])
@pytest.mark.parametrize("name", ["bennett", "bricard"])
def test_implicit_steps_are_right(references, name, method, tolerance):
    m, q = references[name]
    run = da.simulate(m, 0.3, method=method, rtol=tolerance, atol=tolerance)
    assert run.status == "completed"
    assert np.abs(run.q[-1] - q).max() < AMPLIFIED * tolerance
    explicit = da.simulate(m, 0.3, rtol=1e-12, atol=1e-12)
    scale = np.abs(explicit.samples["multipliers"][-1]).max()
    gap = np.abs(run.samples["multipliers"][-1] - explicit.samples["multipliers"][-1]).max()
    assert gap < 100 * AMPLIFIED * tolerance * scale


@pytest.mark.parametrize(("name", "tolerance", "said"), [
    ("goldberg", 1e-13, "the configuration is regular.* rtol=1e-13"),
    ("sarrus", 1e-6, "close to a singular one"),
])  # fmt: skip
def test_implicit_steps_that_cannot_go_on_say_whether_the_configuration_is_singular(name, tolerance, said):
    """Radau called a regular configuration singular where its Newton's method had come down to rounding."""
    run = da.simulate(getattr(given, name)(), 1.0, method="radau", rtol=tolerance, atol=tolerance)
    assert run.status == "no solution"
    assert re.search(said, run.message), run.message


def test_variational_steps_are_of_second_order(references):
    m, q = references["bennett"]
    errors = []
    for step in (2e-3, 1e-3):
        run = da.simulate(m, 0.3, method="variational", step=step)
        assert run.status == "completed"
        errors.append(np.abs(run.q[-1] - q).max())
    assert errors[1] < 1e-6
    assert 3.5 < errors[0] / errors[1] < 4.5


# --- energy as a witness ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["dop853", "bdf"])
def test_a_run_that_loses_energy_says_so(method):
    from dataclasses import replace

    run = da.simulate(given.bennett(), 0.3, method=method, rtol=1e-8, atol=1e-8)
    assert broken_balance(run) == ""
    v = run.v.copy()
    v[run.t > 0.2] *= 0.9
    said = broken_balance(replace(run, samples=run.samples | {"v": v}))
    assert "the energy balance is off by" in said
    assert "first seen at t = 0.2" in said


def test_one_bad_step_among_many_is_seen():
    from dataclasses import replace

    run = da.simulate(given.bricard(), 3.0, method="dopri5", rtol=1e-10, atol=1e-10)
    v = run.v.copy()
    late = run.t >= run.t[np.argmax(run.kinetic)]
    v[late] *= 1.0 + 1e-7
    said = broken_balance(replace(run, samples=run.samples | {"v": v}))
    assert said.startswith("the energy balance changes by")
    assert f"in the step to t = {run.t[late][0]:.9g} s" in said


@pytest.mark.parametrize(
    ("place", "speed", "method", "tolerance"),
    [
        (0.0, 0.0, "dopri5", 1e-12),
        (0.1407462908455287, -1.5453119203143864, "dop853", 1e-12),
        (-0.012569221115499574, -1.3610443414516857, "dop853", 1e-8),
    ],
)
def test_steps_across_a_singular_configuration_keep_the_energy(place, speed, method, tolerance):
    m, way = given.sarrus(), given.SARRUS_WAY
    run = da.simulate(m, 1.5, way * place, way * speed, method=method, rtol=tolerance, atol=tolerance)
    end = given.sarrus_reference(m, place, speed, 1.5)
    assert run.status == "completed"
    assert (np.diff(np.sign(run.q[:, 1] / 2 + 0.9)) != 0).any()  # the plane of all hinges
    assert np.abs(run.q[-1] - way * end[0]).max() < 10.0 * run.steps * tolerance
    assert np.abs(run.v[-1] - way * end[1]).max() < 100.0 * run.steps * tolerance


def test_an_implicit_run_that_is_stopped_while_it_writes_keeps_its_start(monkeypatch):
    from dalembert.simulate.steppers import stiff

    def stopped(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(stiff, "_multipliers", stopped)
    run = da.simulate(given.bennett(), 0.05, method="radau", rtol=1e-4, atol=1e-4)
    assert run.status == "interrupted"
    assert run.t.tolist() == [0.0]


def test_a_run_whose_energy_breaks_is_called_inaccurate(monkeypatch):
    from dalembert.simulate import entry

    monkeypatch.setattr(entry, "broken_balance", lambda run: "the energy balance is off by 3 J")
    run = da.simulate(given.bennett(), 0.1, rtol=1e-9)
    assert run.status == "inaccurate"
    assert not run.ok
    assert "the end was reached, but the energy balance" in run.message


# --- starts, assemblies and files ------------------------------------------------------------------------------------


@pytest.mark.parametrize("unit", [1e-6, 1.0, 1e3])
def test_starts_are_measured_against_the_mechanism(unit):
    """A start open by 9 % of a link of a micrometre was accepted."""
    m, q = given.parallelogram("point", unit=unit)
    with pytest.raises(da.ModelError, match=r"misses 'loop 1.*of the system's size"):
        da.simulate(m, 0.01, q + np.array([0.09, 0.0, 0.0]), rtol=1e-9)
    run = da.simulate(m, 0.01, q + np.array([1e-8, 0.0, 0.0]), rtol=1e-9)
    assert run.ok
    assert run.position_residual.max() < 1e-12 * unit


@pytest.mark.parametrize("unit", [1e-6, 1.0, 1e3])
def test_projections_are_measured_against_the_mechanism(unit):
    m, q = given.parallelogram("point", unit=unit)
    closed = m.project(q + np.array([0.09, 0.0, 0.0]))
    assert np.abs(m.constraint(closed)).max() < 1e-11 * unit
    found = m.assemble(q + np.array([0.3, -0.2, 0.1]))
    assert found.ok
    assert found.gap < 1e-10 * unit


def test_assemble_keeps_the_speed_of_what_is_held():
    m, q = given.parallelogram("point")
    foot, v = m.index_v("foot 0"), np.array([1.0, 2.0, 3.0])
    found = m.assemble(q + 0.01, v, hold=["foot 0"])
    assert found.ok
    np.testing.assert_array_equal(found.q[m.index_q("foot 0")], q[m.index_q("foot 0")] + 0.01)
    np.testing.assert_array_equal(found.v[foot], v[foot])
    np.testing.assert_allclose(m.constraint_velocity(found.q, found.v), 0.0, atol=1e-11)


def test_assemble_names_speeds_that_contradict_the_constraints():
    m, q = given.parallelogram("point")
    v = np.zeros(3)
    v[m.index_v("foot 0")], v[m.index_v("foot 1")] = 1.0, 2.0
    found = m.assemble(q, v, hold=["foot 0", "foot 1"])
    assert not found.ok
    assert any("rate of loop 1" in name for name in found.open)


def _capsule(end):
    return f'<geom type="capsule" fromto="0 0 0 {end}" size="0.02"/>'


MJCF = f"""<mujoco model="cranks"><option gravity="3 -9.81 0"/><worldbody>
<body name="a"><joint name="ja" axis="0 0 1"/>{_capsule("0 1 0")}
 <body name="c" pos="0 1 0"><joint name="jc" axis="0 0 1"/>{_capsule("2 0 0")}
  <site name="c1" pos="1 0 0"/><site name="c2" pos="2 0 0"/></body></body>
<body name="b" pos="1 0 0"><joint name="jb" axis="0 0 1"/>{_capsule("0 1 0")}
 <site name="b1" pos="0 1.00000001 0"/></body>
<body name="d" pos="2 0 0"><joint name="jd" axis="0 0 1"/>{_capsule("0 1 0")}<site name="d1" pos="0 1 0"/></body>
</worldbody><equality><connect name="middle" site1="c1" site2="b1"/>
<connect name="end" site1="c2" site2="d1"/></equality></mujoco>"""
"""Three parallel cranks under one coupler, the middle one longer by 1e-8 m: loops that contradict each other."""


@pytest.fixture(scope="module")
def contradicting(tmp_path_factory):
    """Return the mechanism of a file with redundant loops that contradict each other in its last digits."""
    path = tmp_path_factory.mktemp("file") / "cranks.xml"
    path.write_text(MJCF)
    return da.load(path)


def test_loops_of_a_file_close_to_its_digits(contradicting):
    m = contradicting
    rank = m.generic_rank()
    assert (rank.rank, rank.rows) == (3, 6)
    q = m.project(m.neutral())
    assert 1e-9 < np.abs(m.constraint(q)).max() < 1e-8  # shared, not left to one row
    found = m.assemble(m.neutral())
    assert found.ok
    assert found.starts == 1
    assert "contradict each other" in str(found)


@pytest.mark.parametrize("method", ["dop853", "dopri5", "bdf", "radau"])
def test_a_file_whose_loops_contradict_each_other_moves(contradicting, method):
    run = da.simulate(contradicting, 0.5, method=method, rtol=1e-8, atol=1e-8)
    assert run.status == "completed"
    assert "contradict each other" in run.reason
    np.testing.assert_allclose(run["ja"], run["jd"], atol=1e-6)
    np.testing.assert_allclose(run["ja"], -run["jc"], atol=1e-6)
    assert abs(run["ja"][-1]) > 0.1
    assert np.abs(run.energy_residual).max() < 1e-5 * run.kinetic.max()


def test_bdf_names_the_rows_that_contradict_each_other():
    """Two pins 1e-8 m apart: "a discontinuity", it said."""
    m = pinned_twice(1e-8)
    run = da.simulate(m, 0.1, m.project([0.9, -0.6, 1.3]), np.zeros(3), method="bdf", rtol=1e-9)
    assert run.status == "no solution"
    assert "redundant rows contradict each other" in run.message
    assert "'c0-r0 y'" in run.message
    assert "'c1-r1 y'" in run.message
    same = pinned_twice(0.0)
    run = da.simulate(same, 0.1, same.project([0.9, -0.6, 1.3]), np.zeros(3), method="bdf", rtol=1e-9)
    assert run.status == "completed"


@pytest.mark.parametrize(
    "chosen", [{"method": "dop853"}, {"method": "variational", "step": 1e-3}], ids=lambda c: c["method"]
)
def test_drives_that_part_on_the_way_are_named(chosen):
    """Both cranks of a parallelogram are driven alike, then apart: loop and drives are named."""
    m, q = given.parallelogram("revolute")
    drives = (
        da.Servo("foot 0", lambda t: 0.7 + t, name="left"),
        da.Servo("foot 1", lambda t: 0.7 + t + t**3, name="right"),
    )
    v = np.zeros(m.nv)
    for name, sign in (("foot 0", 1.0), ("foot 1", 1.0), ("head", -1.0)):
        v[m.index_v(name)] = sign
    run = da.simulate(m.constrain(*drives), 1.0, q, v, **chosen)
    assert run.status == "no solution"
    assert re.search(r"contradict each other.*'loop 1 x'.*'left', 'right'", run.message), run.message


def test_moving_constraints_of_a_lagrangian_that_part_are_named():
    """A bead on a ring that grows, held by a second row that grows otherwise."""
    x, w, t = ca.SX.sym("x", 2), ca.SX.sym("w", 2), ca.SX.sym("t")
    rows = {"ring": ca.sumsqr(x) - (1 + t) ** 2, "again": 3 * (ca.sumsqr(x) - (1 + t + t**3) ** 2)}
    bead = da.Lagrangian(x, w, kinetic=ca.sumsqr(w) / 2, potential=9.81 * x[1], constraints=rows, time=t)
    run = da.simulate(bead, 1.0, [1.0, 0.0], [1.0, 0.0])
    assert run.status == "no solution"
    assert re.search(r"contradict each other.*'ring', 'again'", run.message), run.message


@pytest.mark.parametrize(
    "chosen",
    [{"rtol": 1e-4, "atol": 1e-4}, {}, {"every": 0.4}, {"method": "bdf"}, {"method": "variational", "step": 1e-3}],
    ids=str,
)
def test_singular_configurations_on_the_way_are_named(chosen):
    """A parallelogram swings through being flat, and might go on as an antiparallelogram; times against SciPy."""
    m, q = given.parallelogram("revolute")
    run = da.simulate(m, 3.0, q, np.zeros(m.nv), **chosen)
    assert run.ok
    said = re.search(
        r"passes singular configurations at t = ([\d.]+) s, ([\d.]+) s, ([\d.]+) s and 1 more", run.message
    )
    assert said, run.message
    for time in map(float, said.groups()):
        angle, speed = given.crank_reference(0.7, 0.0, time)
        assert abs(np.sin(angle)) < 0.02 * abs(speed)  # within 20 ms, by a cubic between samples 400 ms apart


def test_regular_motions_pass_no_singular_configuration():
    """Bricard's and Bennett's linkages keep their rank, and so does a parallelogram that does not come so far."""
    m, q = given.parallelogram("revolute", angle=-1.4)
    for system, start in ((given.bricard(), None), (given.bennett(), None), (m, q)):
        run = da.simulate(system, 1.0, start)
        assert run.ok
        assert "singular" not in run.message


def test_a_driven_inversor_draws_a_straight_line():
    """Peaucellier and Lipkin: |OP| |OC| = L^2 - a^2, and C on a circle through O, so P is on x = (L^2 - a^2) / (2 r).

    The drive takes the only freedom; branches in which upper and lower bars lie on each other are no measure of rank.
    """
    L, a, r, across = 1.5, 0.7, 0.5, (0, -1, 0)
    b = da.Builder("inversor")

    def bar(name, parent, length, at):
        b.body(name, mass=1.0, center=(length / 2, 0, 0), inertia=(0.001, 0.1, 0.1))
        b.joint(name, "revolute", parent=parent, child=name, axis=across, position=at)
        b.frame(f"{name} tip", name, position=(length, 0, 0))

    bar("crank", "world", r, (r, 0, 0))
    for side in ("upper", "lower"):
        bar(f"long {side}", "world", L, (0, 0, 0))
        bar(f"inner {side}", "crank", a, (r, 0, 0))
        bar(f"outer {side}", f"inner {side}", a, (a, 0, 0))
    pins = [("inner upper", "long upper"), ("inner lower", "long lower"), ("outer upper", "outer lower")]
    m = b.build().constrain(
        *(da.PointOnLine(f"{one} tip", f"{two} tip", axis=across, name=f"{one}, {two}") for one, two in pins),
        da.Servo("crank", lambda t: 0.7 * ca.sin(2 * t), name="drive"),
    )
    guess = {"long upper": 0.4, "inner upper": 1.0, "outer upper": -2.0}
    guess |= {name.replace("upper", "lower"): -angle for name, angle in guess.items()} | {"crank": 0.0}
    q = m.assemble([guess[joint.name] for joint in m.joints], hold=["crank"]).q
    v = m.project(q, np.zeros(m.nv))[1]
    a_kernel, _, status = m.compile("forward")(q, v, np.zeros(m.nv), np.zeros(1))
    exact = m.solve(q, v)
    assert status == da.Status.UNIQUE == exact.status
    np.testing.assert_allclose(a_kernel, exact.acceleration, atol=1e-11)
    run = da.simulate(m, 1.0, q, v)
    assert run.ok
    assert np.abs(run.energy_residual).max() < 1e-7 < np.ptp(run.work)
    assert run.steps < 60
    pen = m.kinematics(run.q, "outer upper tip")[1]
    np.testing.assert_allclose(pen[:, 0], (L**2 - a**2) / (2 * r), atol=1e-10)
    assert np.ptp(pen[:, 2]) > 0.5
