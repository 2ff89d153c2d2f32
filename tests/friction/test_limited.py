"""Given limits in a plane: disks, one state and many, against Clarabel."""

from __future__ import annotations

import clarabel
import numpy as np
import pytest
import scipy.sparse as sps

from dalembert.errors import ModelError, ShapeError
from dalembert.friction import Limited, Reacting, StaticKinetic, resolve, resolve_batch
from dalembert.status import Status


def by_clarabel(G, g, widths, limits):
    """Minimise T^T G T / 2 + g^T T over disks and intervals."""
    blocks, right, at = [], [], 0
    for width, limit in zip(widths, limits, strict=True):
        block = np.zeros((width + 1, g.size))
        block[1:, at : at + width] = -np.eye(width)
        blocks.append(block)
        right += [limit] + [0.0] * width
        at += width
    settings = clarabel.DefaultSettings()
    settings.verbose, settings.tol_gap_abs, settings.tol_gap_rel, settings.tol_feas = False, 1e-13, 1e-13, 1e-13
    cones = [clarabel.SecondOrderConeT(width + 1) for width in widths]
    upper, rows = sps.csc_matrix(np.triu(G)), sps.csc_matrix(np.vstack(blocks))
    return np.array(clarabel.DefaultSolver(upper, g, rows, np.array(right), cones, settings).solve().x)


@pytest.mark.parametrize("seed", range(12))
def test_disks_and_intervals_against_clarabel(seed):
    rng = np.random.default_rng(seed)
    widths = rng.permutation([2, 2, 1, 2])
    n, m = 9, int(widths.sum())
    root = rng.normal(size=(n, n))
    M, W, f = root @ root.T + np.eye(n), rng.normal(size=(n, m)), 3.0 * rng.normal(size=n)
    limits = rng.choice([0.0, 0.2, 1.0, 5.0], 4)
    laws = [Limited(limit) if width == 2 else limit for width, limit in zip(widths, limits, strict=True)]
    r = resolve(M, f, W, np.zeros(m), laws)
    inverse = np.linalg.inv(M)
    best = by_clarabel(W.T @ inverse @ W, W.T @ inverse @ f, widths, limits)
    assert r.ok
    assert np.allclose(r.forces, best, atol=1e-5 * max(limits.max(), 1.0))
    assert np.allclose(M @ r.acceleration, f + W @ r.forces, atol=1e-11)
    first = np.concatenate([[0], np.cumsum(widths)])
    for i, name in enumerate(f"contact {j}" for j in range(4)):
        at = slice(first[i], first[i + 1])
        assert np.linalg.norm(r.forces[at]) <= limits[i] * (1 + 1e-12)
        if name in r.sets.about_to_slip:
            way = np.atleast_1d(r.sets.about_to_slip[name])
            assert np.allclose(r.forces[at], -limits[i] * way, atol=1e-9)
        else:
            assert np.abs(r.contact_acceleration[at]).max() < 1e-10
    assert r.report.accelerations_unique
    batch = resolve_batch(M, np.tile(f, (3, 1)), W, np.zeros((3, m)), laws)
    assert np.allclose(batch.forces, r.forces, atol=1e-9)
    assert np.array_equal(batch.sets[1], [r.sets.code(f"contact {i}") for i in range(4)])


def test_redundant_disks_hold_together():
    """Two feet side by side: the acceleration is unique, their shares are not, and both are named."""
    r = resolve(np.eye(2), [1.0, 0.5], np.tile(np.eye(2), 2), np.zeros(4), [Limited(1.0), Limited(2.0)])
    assert r.ok
    assert not np.abs(r.acceleration).max() > 1e-12
    assert np.allclose(r.forces[:2] + r.forces[2:], [-1.0, -0.5])
    assert set(r.report.undetermined) == {"contact 0", "contact 1"}


def test_sliding_follows_the_velocity_with_the_kinetic_force():
    law, v, f = Limited(StaticKinetic(3.0, 2.0)), np.array([0.3, -0.4]), np.array([0.1, 0.0])
    r = resolve(np.eye(2), f, np.eye(2), v, [law], names=["puck"], loads=[2.0])
    assert np.allclose(r.forces, -4.0 * v / 0.5)
    assert r.sets.sliding == ("puck",)
    batch = resolve_batch(np.eye(2), [f, f, f], np.eye(2), [v, 0 * v, [np.nan, 0.0]], [law], loads=[2.0])
    assert np.allclose(batch.forces[0], r.forces)
    assert np.allclose(batch.forces[1], -f)
    assert batch.status.tolist() == [Status.SOLVED, Status.SOLVED, Status.NONFINITE]


@pytest.mark.parametrize(
    ("laws", "error", "words"),
    [
        ([Limited(-1.0)], ModelError, "static limit is -1"),
        ([Limited(np.nan)], ModelError, "nan"),
        ([Limited(1.0, 3)], ModelError, "directions must be 1, or 2"),
        ([Limited(1.0), 1.0], ShapeError, "take 3 columns of W"),
    ],
)
def test_misuse_is_named(laws, error, words):
    with pytest.raises(error, match=words):
        resolve(np.eye(2), [0.0, 0.0], np.eye(2), [0.0, 0.0], laws)
    with pytest.raises(error, match=words):
        resolve_batch(np.eye(2), [[0.0, 0.0]], np.eye(2), [[0.0, 0.0]], laws)


def test_other_methods_refuse_planes():
    with pytest.raises(ModelError, match="one direction only"):
        resolve(np.eye(2), [0.0, 0.0], np.eye(2), [0.0, 0.0], [Limited(1.0)], "flowchart")


def test_disks_hold_what_has_no_mass():
    """A massless slide on a pad of limit 2, pushed by 1 N: it sticks."""
    M = np.diag([1.0, 0.0, 0.0])
    W = [[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]]
    r = resolve(M, [3.0, 0.6, -0.8], W, [0.0, 0.0], [Limited(2.0)])
    assert r.ok
    np.testing.assert_allclose(r.acceleration, [3.0, 0.0, 0.0], atol=1e-12)
    np.testing.assert_allclose(r.forces, [-0.6, 0.8], atol=1e-9)
    assert r.report.accelerations_unique is True
    assert r.report.undetermined == ()
    b = resolve_batch(M, np.tile([3.0, 0.6, -0.8], (3, 1)), np.array(W), np.zeros((3, 2)), [Limited(2.0)])
    assert b.ok.all()


def test_a_massless_motion_that_no_disk_holds_is_said():
    M, W = np.diag([1.0, 0.0, 0.0]), [[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]]
    r = resolve(M, [3.0, 1.8, -2.4], W, [0.0, 0.0], [Limited(2.0)])  # 3 N against a limit of 2 N
    assert r.status is Status.MASSLESS
    assert "no contact holds" in r.certificate.note
    assert r.report.exists is False
    assert np.isnan(r.acceleration).all()


def test_two_disks_slip_where_their_curvature_holds_a_massless_motion():
    """Two pads on one massless slide, their surfaces accelerated apart: the slide finds its place between them."""
    M, W = np.diag([1.0, 0.0, 0.0]), [[0.0] * 4, [1.0, 0.0, 1.0, 0.0], [0.0, 1.0, 0.0, 1.0]]
    shift = np.array([1.0, 0.3, -1.0, 0.4])
    f = np.array([2.0, 0.1, 0.2])
    r = resolve(M, f, W, np.zeros(4), [Limited(1.0), Limited(1.5)], contact_drift=shift)
    assert r.ok
    u = np.array(W).T @ r.acceleration + shift
    np.testing.assert_allclose(M @ r.acceleration, f + np.array(W) @ r.forces, atol=1e-9)
    for part, limit in ((slice(0, 2), 1.0), (slice(2, 4), 1.5)):
        force, speed = np.linalg.norm(r.forces[part]), np.linalg.norm(u[part])
        assert force <= limit * (1.0 + 1e-9)
        if speed > 1e-9:
            np.testing.assert_allclose(r.forces[part], -limit * u[part] / speed, atol=1e-8)
    assert r.report.accelerations_unique is True


def test_a_cone_that_is_closed_holds_a_massless_foot():
    """Coulomb's law on a foot without mass below a body: pressed, it sticks within the cone."""
    M, A = np.diag([2.0, 0.0, 0.0]), np.array([[0.0, 0.0, 1.0]])
    r = resolve(M, [1.0, 1.0, -10.0], [[0.0], [1.0], [0.0]], [0.0], [Reacting(0.5, 0)], A=A)
    assert r.ok
    np.testing.assert_allclose(r.acceleration, [0.5, 0.0, 0.0], atol=1e-10)
    np.testing.assert_allclose(r.forces, [-1.0], atol=1e-8)
    assert r.report.accelerations_unique is None
    lifted = resolve(M, [1.0, 1.0, 10.0], [[0.0], [1.0], [0.0]], [0.0], [Reacting(0.5, 0)], A=A)
    assert not lifted.ok
    assert "M is singular" in lifted.certificate.note
