"""What is said where there is no answer, or none from compiled code: statuses, names, repair; and misuse."""

from __future__ import annotations

import numpy as np
import pytest

import dalembert as da
from dalembert.tree.block import constrained
from tests.tree import closed
from tests.tree.closed import routes

Status = da.Status


def test_two_drives_that_disagree():
    """On one joint, with different accelerations: named, with the size of the conflict."""
    mechanism = closed.hopper(1.0).constrain(
        da.Servo("hip", lambda t: t**2, name="one"), da.Servo("hip", lambda t: 3 * t**2, name="two")
    )
    q, v = mechanism.neutral(), np.zeros(8)
    for solve in routes(mechanism).values():
        assert solve(q, v, np.zeros(8), 0.0)[-1] == Status.INCONSISTENT
    with pytest.raises(da.SolvabilityError, match=r"contradict(.|\n)*'one'(.|\n)*'two'") as caught:
        mechanism.solve(q, v)
    assert caught.value.diagnosis.conflict is not None
    twice = [da.Servo("hip", lambda t: t**2, name=name) for name in ("one", "two")]
    agreeing = closed.hopper(1.0).constrain(*twice)
    for solve in routes(agreeing).values():
        a, lam, status = solve(q, v, np.zeros(8), 0.0)
        assert status == Status.REDUNDANT
        assert a[6] == pytest.approx(2.0)
        assert lam[0] == pytest.approx(lam[1])


def test_a_rod_that_cannot_keep_its_length():
    """The thigh hangs on a rod and swings; with its hip driven as well it cannot do both."""
    mechanism = closed.hopper(1.0).constrain(
        da.Weld("torso"), da.Distance("hip", at=(0, 0, 2.0), length=1.0, placement=(0.3, 0, 0))
    )
    q, v = mechanism.neutral(), np.zeros(8)
    v[7] = 1.0
    for solve in routes(mechanism).values():
        assert solve(q, v, np.zeros(8), 0.0)[-1] == Status.UNIQUE  # it swings the thigh
    stuck = mechanism.constrain(da.Servo("hip", lambda t: t**2))
    for solve in routes(stuck).values():
        assert solve(q, v, np.zeros(8), 0.0)[-1] == Status.INCONSISTENT


def test_a_massless_motion_that_nothing_stops():
    """The leg weighs nothing and its foot is in the air: refused by name."""
    mechanism = closed.hopper(0.0).constrain(da.Point("torso"))
    q = mechanism.random(0)
    with pytest.raises(da.ModelError, match=r"nothing resists the coordinate '(knee|hip)'"):
        constrained.forward(mechanism)
    with pytest.raises(da.SolvabilityError, match=r"moves no mass(.|\n)*knee"):
        mechanism.solve(q, np.zeros(8))
    assert len(mechanism.diagnose(q).massless_motions) == 2


def test_a_massless_motion_at_some_configurations_only():
    """A massless shank with its foot on the floor: upright, the knee is free to buckle; said for that sample alone."""
    floor = da.PointInPlane("foot", at=(0, 0, 0), normal=(0, 0, 1))
    leg = closed.hopper(0.0).constrain(da.Weld("torso"), da.Servo("hip", 0.3), floor)
    q = leg.neutral()
    q[7], q[8] = 0.3, 0.9
    solve = closed.numeric(constrained.forward(leg))
    assert solve(q, np.zeros(8), np.zeros(8), 0)[-1] == Status.UNIQUE
    q[8] = -0.3
    assert solve(q, np.zeros(8), np.zeros(8), 0)[-1] == Status.MASSLESS


def arm():
    b = da.Builder("arm", gravity=(0, 0, 0))
    closed.bar(b, "upper", 1.0, 1.0)
    closed.bar(b, "lower", 0.8, 1.0)
    b.joint("shoulder", "revolute", parent="world", child="upper", axis=closed.Z)
    b.joint("elbow", "revolute", parent="upper", child="lower", axis=closed.Z, position=(1, 0, 0))
    planes = [da.PointInPlane("lower end", normal=np.eye(3)[i], name=f"hold {'xy'[i]}") for i in range(2)]
    return b.build().constrain(*planes)


def test_a_singular_configuration_is_declined_and_repaired():
    """Stretched, the two rows of a held tip depend on each other: the kernel leaves the sample, `forward` solves it."""
    mechanism = arm()
    q, v, tau = np.array([[0.3, 1.0], [0.3, 0.0], [0.3, -0.5]]), np.zeros((3, 2)), np.array([1.0, -2.0])
    tau = np.broadcast_to(tau, (3, 2))
    kernel = mechanism.compile("forward")(q, v, tau, np.zeros((3, 1)))
    assert kernel[2][:, 0].astype(int).tolist() == [Status.UNIQUE, Status.DECLINED, Status.UNIQUE]
    a, lam, status = mechanism.forward(q, v, tau)
    assert status.tolist() == [Status.UNIQUE, Status.REDUNDANT, Status.UNIQUE]
    for i in range(3):
        exact = mechanism.solve(q[i], v[i], tau[i])
        np.testing.assert_allclose(a[i], exact.acceleration, atol=1e-10)
        np.testing.assert_allclose(lam[i], exact.multipliers, atol=1e-9)
    single = mechanism.forward(q[1], v[1], tau[1])
    np.testing.assert_allclose(single.acceleration, a[1], atol=1e-12)
    assert single.status == Status.REDUNDANT


def test_one_bad_sample_does_not_stop_a_batch():
    mechanism = arm()
    rng = np.random.default_rng(0)
    q, v, tau = rng.uniform(0.3, 1, (20, 2)), rng.standard_normal((20, 2)), rng.standard_normal((20, 2))
    good = mechanism.forward(q, v, tau)
    bad_v, bad_tau = v.copy(), tau.copy()
    bad_v[3, 1], bad_tau[17, 0] = np.nan, np.inf
    a, lam, status = mechanism.forward(q, bad_v, bad_tau)
    hurt = np.isin(np.arange(20), [3, 17])
    assert (status[hurt] == Status.NONFINITE).all()
    np.testing.assert_array_equal(a[~hurt], good.acceleration[~hurt])
    np.testing.assert_array_equal(lam[~hurt], good.multipliers[~hurt])
    assert (status[~hurt] == Status.UNIQUE).all()


MISUSE = [
    (lambda m: m.compile("forward", route="tre"), da.ModelError, "route='tre' is not one of 'auto', 'efpa', 'pv'"),
    (
        lambda m: m.compile("forward", rout="efpa"),
        da.ModelError,
        "'forward' has no option 'rout'.*did you mean 'route'",
    ),
    (lambda m: m.compile("forward", metric=(1.0,)), da.ModelError, "metric is 2 positive weights"),
    (lambda m: m.compile("forward", metric=(1.0, -1.0)), da.ModelError, "metric is 2 positive weights"),
    (lambda m: m.compile("forward", metric=(1.0, np.nan)), da.ModelError, "metric is 2 positive weights"),
    (lambda m: m.solve([0.1, 0.2], [0, 0], metric=np.eye(2)), da.ModelError, "one positive weight per constraint row"),
    (lambda m: m.solve([0.1, 0.2], [0, 0], metric=np.ones(5)), da.DalembertError, "metric"),
    (lambda m: m.forward([0.1, 0.2, 0.3], [0, 0], [0, 0]), da.ShapeError, "2"),
    (lambda m: m.forward([0.1, 0.2], [0, 0, 0], [0, 0]), da.ShapeError, "v"),
    (lambda m: m.forward([0.1, 0.2], [0, 0], [0]), da.ShapeError, "force"),
    (lambda m: m.project([0.1, 0.2, 0.3]), da.ShapeError, "2"),
    (lambda m: m.project([0.1, 0.2], [0.0]), da.ShapeError, "v"),
    (lambda m: m.impact([0.1, 0.2], [0, 0], restitution=[0.1, 0.2, 0.3]), da.ShapeError, "restitution"),
    (lambda m: m.constrain(da.Point("lower ends")), da.ModelError, "no frame 'lower ends'; did you mean 'lower end'"),
    (lambda m: m.constrain(da.Servo("elbo", 0.0)), da.ModelError, "'elbo'; did you mean 'elbow'"),
    (lambda m: m.inverse([0.1, 0.2], [0, 0], [0, 0], actuated="elbow"), da.ModelError, "give a list of joints"),
]


@pytest.mark.parametrize(("mistake", "error", "message"), MISUSE, ids=range(len(MISUSE)))
def test_misuse(mistake, error, message):
    with pytest.raises(error, match=message):
        mistake(arm())


@pytest.mark.parametrize(("masses", "short"), [((1, 1, 1), 1e-8), ((1, 1, 1), 3e-8), ((1e-5, 1, 1e3), 1e-12)])
def test_no_route_claims_a_wrong_answer_near_a_loss_of_rank(masses, short):
    """Three bars, almost stretched: multipliers grow without limit, and residuals must not be small beside them."""
    b = da.Builder("stretched", gravity=closed.DOWN)
    for i, mass in enumerate(masses):
        closed.bar(b, f"bar {i}", 1.0, mass)
        parent = f"bar {i - 1}" if i else "world"
        b.joint(f"hinge {i}", "revolute", parent=parent, child=f"bar {i}", axis=closed.Z, position=(min(i, 1), 0, 0))
    angle = np.arccos(1 - short / 2)
    mechanism = b.build().constrain(da.Point("bar 2 end", at=(2 * np.cos(angle) + 1, 0, 0), name="pin"))
    q, tau = np.array([angle, -angle, -angle]), np.array([1.0, -0.5, 0.3])
    numbers = closed.Traced(mechanism)
    v = 0.7 * np.linalg.svd(numbers.A(q)[:2])[2][-1]
    expected = numbers.solve(q, v, tau).acceleration
    for route, solve in routes(mechanism).items():
        a, _, status = solve(q, v, tau, 0.0)
        if status.answered:
            np.testing.assert_allclose(a, expected, atol=1e-7 * np.abs(expected).max(), err_msg=route)


@pytest.mark.parametrize(("place", "value"), [(0, np.nan), (0, np.inf), (7, np.nan)])
def test_a_configuration_that_is_not_finite_has_no_rows(place, value):
    """Where the base is nowhere, nothing is held: no free fall in place of an answer, and no harm to other samples."""
    mechanism = closed.hopper(1.0).constrain(da.Point("foot"))
    q, v = mechanism.neutral(), np.ones(8)
    q[-2:] = 0.5, -1.1
    lost = q.copy()
    lost[place] = value
    for ask in (mechanism.diagnose, lambda q: mechanism.solve(q, v), lambda q: mechanism.impact(q, v)):
        with pytest.raises(da.ModelError, match="is nan"):
            ask(lost)
    both = mechanism.solve(np.array([q, lost]), np.array([v, v]))
    assert list(both.status) == [Status.UNIQUE, Status.NONFINITE]
    np.testing.assert_array_equal(both.acceleration[0], mechanism.solve(q, v).acceleration)
    if np.isnan(value):
        with pytest.raises(da.ModelError, match=rf"q\[{place}\] is nan"):
            mechanism.project(lost)


def test_far_from_the_origin_a_foot_is_still_held():
    mechanism = closed.hopper(1.0).constrain(da.Point("foot"))
    q = mechanism.neutral()
    q[0], q[-2:] = 1e15, (0.5, -1.1)
    assert mechanism.diagnose(q).rank == 3


CRATE = """<robot name="crate"><link name="crate"><inertial><mass value="50"/>
<inertia ixx="3" iyy="4" izz="5" ixy="0.1" ixz="0" iyz="0.2"/></inertial></link></robot>"""


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_rows_that_contradict_each_other_are_not_lost_beside_the_weight(dtype, tmp_path):
    """A crate pinned at four points turns all the same: points ask for a centripetal acceleration that no body has.

    It is all that moves the crate, and small beside gravity. Whoever is given a good status has rows that are met.
    """
    path = tmp_path / "crate.urdf"
    path.write_text(CRATE)
    crate = da.load(str(path), base="floating")
    corners = [(0.5, 0.1, 0.2), (-0.4, 0.3, -0.1), (0.1, -0.6, 0.3), (-0.2, 0.2, 0.5)]
    pins = [da.Point("crate", "world", placement=p, at=p, name=f"pin {k}") for k, p in enumerate(corners)]
    pinned = crate.constrain(*pins)
    kernel, q = pinned.compile("forward", dtype=dtype), pinned.neutral()
    A, rng = np.asarray(pinned.jacobian(q)), np.random.default_rng(3)
    slowest = (
        0.001 if dtype == "float64" else 0.07
    )  # rounding of what the weight could cause is more than what is slower
    for speed in np.repeat(np.geomspace(1.0, slowest, 6), 8):
        v = np.r_[np.zeros(3), speed * rng.standard_normal(3)]
        a, _, status = kernel(*(x.astype(dtype) for x in (q, v, np.zeros(6), np.zeros(1))))
        assert int(status[0]) in (da.Status.INCONSISTENT, da.Status.DECLINED), (speed, int(status[0]))
        assert not np.isfinite(pinned.forward(q[None], v[None]).acceleration).any()
        with pytest.raises(da.SolvabilityError, match="contradict"):
            pinned.solve(q, v)
    a, _, status = kernel(*(x.astype(dtype) for x in (q, np.zeros(6), np.ones(6), np.zeros(1))))
    assert int(status[0]) == da.Status.REDUNDANT
    assert np.abs(A @ a).max() < 1e-4
