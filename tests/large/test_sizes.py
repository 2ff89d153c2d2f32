"""Hundreds to a hundred thousand bodies: who chooses loops, whether numbers hold, what is refused, every status."""

from __future__ import annotations

from functools import partial

import numpy as np
import pinocchio as pin
import pytest

import dalembert as da
from dalembert.errors import ModelError, SolvabilityError, UnsupportedError
from dalembert.large.block_system import LargeSystem
from dalembert.large.fronts.front_block import FrontBlock
from dalembert.large.looped_routes import looped_table
from dalembert.large.motion_functions import large_system, large_tree
from tests.tree.benchmark_models import legs, models


@pytest.fixture(scope="module")
def longest():
    """Return the chain of a hundred thousand hinges, its end welded to where it is."""
    return models.chain(100_000)


def test_small_mechanisms_are_unrolled_and_large_ones_are_not():
    small, large = models.chain(8, held=False), models.chain(400, held=False)
    assert small.compile("bias").backend == "cpu"
    kernel = large.compile("forward")
    assert kernel.backend == "looped"
    assert "operations of its bodies are more than" in str(kernel.report())
    assert large.compile("energy").backend == "looped"


def test_routes_of_large_mechanisms_are_told_without_tracing_any(longest):
    for what, how in (("forward", "at most w = 6"), ("kkt", "at most w = 6"), ("delassus", "O(n m)")):
        table = longest.routes(what)
        assert table.taken == "looped"
        assert how in table["looped"].why
        assert "backend='cpu'" in table["caba"].why
    assert "articulated" in models.chain(400, held=False).routes()["looped"].why


def test_loops_take_about_what_straight_line_code_takes():
    """Estimates from the elimination plan beside counts of a route that carries rows to the ground as well."""
    for make, size in ((models.chain, 30), (legs, 4), (partial(models.chain, held=False), 30)):
        mechanism = make(size)
        counted = mechanism.routes()["efpa" if mechanism.names else "aba"].operations
        line = looped_table(mechanism, "forward")["looped"]
        assert 0.5 * counted < line.operations < 2 * counted, mechanism.name
        assert f"~{float(f'{line.operations:.2g}'):,.0f}" in str(looped_table(mechanism, "forward"))
    assert models.rails(3000).routes()["looped"].operations is None  # a sparse LU, whose fill shows in numbers only


def test_the_block_system_of_a_large_mechanism(longest):
    """Any right sides, and the Delassus matrix: G x = b by the block system, G by columns, L D L^T."""
    q, _, y1 = models.state(longest)
    y2, zero = np.linspace(-1, 1, 6), np.zeros(1)
    a, lam, status = longest.compile("kkt")(q, y1, y2, zero)
    assert int(status[0]) == da.Status.UNIQUE
    assert np.abs(longest.jacobian(q) @ a - y2).max() < 1e-9
    G = longest.compile("delassus")(q)
    free = longest.compile("kkt")(q, y1, np.zeros(6))
    assert np.abs(G @ (free[1] - lam) - y2).max() < 1e-9
    assert np.abs(G @ longest.compile("delassus_solve")(q, y2) - y2).max() < 1e-9
    L, D, shift = longest.compile("delassus_factor")(q)
    assert not shift.any()
    assert np.abs(L * D @ L.T - G).max() < 1e-14 * np.abs(G).max()


def test_accelerations_of_a_hundred_thousand_bodies_need_the_forces_that_caused_them(longest):
    """Inverse after forward, entry by entry relative to what base joints carry; residuals of the block rows."""
    q, v, tau = models.state(longest)
    found = large_system(longest).forward(q, v, tau, 0.0)
    assert found.status == da.Status.UNIQUE
    assert max(found.residuals) < 1e-12
    tree = longest.open_tree()
    a = tree.forward(q, v, tau).acceleration
    back = tree.inverse(q, v, a).tau
    ratio = np.abs(back - tau) / (np.abs(tree.inverse(q, v, np.zeros_like(a)).tau) + np.abs(tau))
    assert np.median(ratio) < 1e-12
    assert ratio.max() < 1e-6


def test_memory_grows_with_the_bodies(longest):
    short, long = (large_system(m) for m in (models.chain(1000), longest))
    for one, two in ((short.bytes, long.bytes), (short.tree.bytes, long.tree.bytes)):
        assert two / one == pytest.approx(100, rel=0.05)
    assert long.width == 6


def test_energy_rate_is_power():
    """d/dt (T + V) = tau . v of the open chain, by a central difference along the motion."""
    tree = models.chain(300, held=False)
    q, v, tau = models.state(tree)
    a, h = tree.forward(q, v, tau).acceleration, 1e-5
    ahead, behind = (sum(tree.energy(tree.integrate(q, s * v + s * s * a / 2), v + s * a)) for s in (h, -h))
    assert (ahead - behind) / (2 * h) == pytest.approx(tau @ v, rel=5e-3)


@pytest.mark.parametrize("shape", ["chain", "tree"])
def test_trees_equal_pinocchio(shape):
    """ABA and RNEA of another library on the same 200 links (its data hold nv^3 reals)."""
    mechanism = models.chain(200, held=False) if shape == "chain" else models.tree(200)
    model = pin.Model()
    names = {"world": 0}
    kinds = {(1.0, 0.0, 0.0): pin.JointModelRX, (0.0, 1.0, 0.0): pin.JointModelRY, (0.0, 0.0, 1.0): pin.JointModelRZ}
    for body, joint in zip(mechanism.bodies, mechanism.joints, strict=True):
        place = pin.SE3(joint.placement.rotation, joint.placement.position)
        k = names[body.name] = model.addJoint(names[joint.parent], kinds[joint.axis](), place, joint.name)
        x = body.inertia
        model.appendBodyToJoint(k, pin.Inertia(x.mass, x.center, x.rotational), pin.SE3.Identity())
    order = [model.joints[names[body.name]].idx_v for body in mechanism.bodies]
    q, v, tau = models.state(mechanism)
    place = np.argsort(order)
    data = model.createData()
    expected = pin.aba(model, data, q[place], v[place], tau[place])[order]
    assert (
        np.abs(mechanism.compile("forward", backend="looped")(q, v, tau)[0] - expected).max()
        < 1e-8 * np.abs(expected).max()
    )
    expected = pin.rnea(model, data, q[place], v[place], tau[place])[order]
    assert (
        np.abs(mechanism.compile("inverse", backend="looped")(q, v, tau) - expected).max()
        < 1e-9 * np.abs(expected).max()
    )


@pytest.mark.parametrize("shape", ["ladder", "rails", "net"])
@pytest.mark.parametrize("route", ["auto", "sparse"])
def test_loops_equal_the_dense_block_matrix(shape, route):
    """Ladders and nets against `KKT` on M and A of the open tree; multipliers where they are unique."""
    mechanism = models.net(4) if shape == "net" else getattr(models, shape)(24)
    q, v, tau = models.state(mechanism, 0.1)
    system = LargeSystem(large_tree(mechanism), route=route)
    found = system.forward(q, v, tau, 0.0)
    M = mechanism.compile("mass_matrix", backend="looped")(q)
    f = tau - mechanism.compile("bias", backend="looped")(q, v)
    A = mechanism.compile("constraint_jacobian", backend="looped")(q, np.zeros(1))
    drift = mechanism.compile("constraint_drift", backend="looped")(q, v, np.zeros(1))
    expected = da.KKT(M, A, mechanism.names).solve(f, drift, inconsistent="least_squares")
    assert found.status.answered
    assert np.abs(found.acceleration - expected.acceleration).max() < 1e-7 * np.abs(expected.acceleration).max()
    assert np.abs(found.multipliers - expected.multipliers).max() < 1e-6 * np.abs(expected.multipliers).max()


@pytest.mark.parametrize("piece", [7, 512])
@pytest.mark.parametrize("rows", range(1, 10))
def test_rows_carried_along_a_chain_equal_the_dense_block_matrix(rows, piece):
    """One to nine rows that begin along a chain of more hinges than a block holds, with a branch on the way.

    Sweeps in the same direction take turns every so many bodies, which may be in the middle of all of this. There are
    so many bodies that no rank is asked of the mechanism, whose kernels would be compiled for it.
    """
    chain, b = 180, da.Builder("held chain")
    for i in range(210):  # the last thirty are a branch
        b.body(f"b{i}", **models.LINK)
        parent = "world" if i == 0 else "b40" if i == chain else f"b{i - 1}"
        b.joint(f"j{i}", "revolute", parent=parent, child=f"b{i}", axis=models.AXES[i % 3], position=(0, 0, -1))
    ends = ["b179", "b209", "b80", "b30", "b90", "b60", "b190", "b20", "b70"][:rows]
    at = {"placement": (0, 0, -1), "length": 50.0}
    ties = [da.Distance(end, at=(3.0, k, 1.0), name=f"tie{k}", **at) for k, end in enumerate(ends)]
    mechanism = b.build().constrain(*ties)
    q, v, tau = models.state(mechanism, 0.1)
    system = LargeSystem(large_tree(mechanism))
    system.block = FrontBlock(system, system.fronts, system.limits, piece)
    found = system.forward(q, v, tau, 0.0)
    M = mechanism.compile("mass_matrix", backend="looped")(q)
    f = tau - mechanism.compile("bias", backend="looped")(q, v)
    A = mechanism.compile("constraint_jacobian", backend="looped")(q, np.zeros(1))
    drift = mechanism.compile("constraint_drift", backend="looped")(q, v, np.zeros(1))
    expected = da.KKT(M, A, mechanism.names).solve(f, drift)
    assert found.status is da.Status.UNIQUE
    rounding = 1e8 * 2.0**-52  # the condition of M is 9e7
    assert np.abs(found.acceleration - expected.acceleration).max() < rounding * np.abs(expected.acceleration).max()
    assert np.abs(found.multipliers - expected.multipliers).max() < rounding * np.abs(expected.multipliers).max()


def test_a_ladder_at_rest_is_solved_alike_by_both_routes():
    """Rungs begin to fall, nothing else moves: residuals are not measured by the nothing."""
    ladder = models.ladder(600)
    still = np.zeros(ladder.nv)
    answers = [
        LargeSystem(large_tree(ladder), route=route).forward(ladder.neutral(), still, still, 0.0)
        for route in ("auto", "sparse")
    ]
    assert [found.status for found in answers] == [da.Status.REDUNDANT] * 2
    assert np.abs(answers[0].acceleration - answers[1].acceleration).max() < 1e-10
    assert large_system(ladder).width <= 6


@pytest.mark.parametrize(("angle", "certain"), [(1e-6, True), (1e-8, False)])
def test_hundreds_of_rows_in_a_sparse_factor_keep_the_rank_of_the_mechanism(angle, certain):
    """A flat parallelogram among others: its row counts as long as rounding leaves something of it."""
    count, inertia, loops = 140, (1e-3, 1 / 12, 1 / 12), []
    b = da.Builder("parallelograms", gravity=(0, -9.81, 0))
    for k in range(count):
        for i in range(2):
            b.body(f"crank {k} {i}", mass=1.0, center=(0.5, 0, 0), inertia=inertia)
            place = (10 * k + 2 * i, 0, 0)
            b.joint(f"foot {k} {i}", "revolute", parent="world", child=f"crank {k} {i}", axis=(0, 0, 1), position=place)
        b.body(f"coupler {k}", mass=2.0, center=(1, 0, 0), inertia=inertia)
        b.joint(
            f"head {k}", "revolute", parent=f"crank {k} 0", child=f"coupler {k}", axis=(0, 0, 1), position=(1, 0, 0)
        )
        loops.append(da.Point(f"coupler {k}", f"crank {k} 1", placement=(2, 0, 0), at=(1, 0, 0), name=f"loop {k}"))
    mechanism = b.build().constrain(*loops)
    angles = np.where(np.arange(count) == 3, angle, 0.7)
    signs = {"foot {} 0": 1.0, "foot {} 1": 1.0, "head {}": -1.0}
    q, v, expected = np.zeros((3, mechanism.nv))
    for k, a in enumerate(angles):
        for name, sign in signs.items():
            place = mechanism.index_v(name.format(k))
            q[place], v[place], expected[place] = sign * a, 2.0 * sign, -sign * 9.81 * 3.0 * np.cos(a) / (2 / 3 + 2.0)
    found = LargeSystem(large_tree(mechanism), route="sparse").forward(q, v, np.zeros(mechanism.nv), 0.0)
    assert found.status is (da.Status.REDUNDANT if certain else da.Status.ILL_CONDITIONED)
    if certain:
        assert np.abs(found.acceleration - expected).max() < 1e-6


def test_a_ladder_of_thirty_thousand_bodies_is_certified():
    """Rounding of the answer over kilometres of levers is no failure: beside |M| |a| it is rounding."""
    ladder = models.ladder(30_000)
    q, v, tau = models.state(ladder, 0.0)
    found = large_system(ladder).forward(q, 0 * v, tau, 0.0)
    assert found.status == da.Status.REDUNDANT
    assert max(found.residuals) < 1e-12


def test_projection_and_impact_close_a_long_ladder():
    mechanism = models.ladder(600)
    rng = np.random.default_rng(0)
    q = mechanism.project(mechanism.integrate(mechanism.neutral(), 1e-3 * rng.standard_normal(mechanism.nv)))
    assert np.abs(mechanism.constraint(q)).max() < 1e-10
    v = mechanism.project(q, rng.standard_normal(mechanism.nv))[1]
    assert np.abs(mechanism.constraint_velocity(q, v)).max() < 1e-9


def test_dense_matrices_are_refused_by_their_size(longest):
    for what, size in (("mass_matrix", 8 * 100_000**2),):
        with pytest.raises(UnsupportedError, match=f"{size:,} bytes"):
            longest.compile(what)
    with pytest.raises(UnsupportedError, match="GiB"):
        longest.mass_matrix(longest.neutral())
    assert longest.jacobian(longest.neutral()).shape == (6, 100_000)


def test_every_status():
    chain = models.chain(300, held=False)
    q, v, tau = models.state(chain)
    held = chain.constrain(da.Point("b299", name="one"), da.Point("b150", name="two"))
    twice = held.constrain(da.Point("b299", name="again"))
    assert held.forward(q, v, tau).status == da.Status.UNIQUE
    a, lam, status = twice.forward(q, v, tau)
    assert status == da.Status.REDUNDANT
    assert np.abs(a - held.forward(q, v, tau).acceleration).max() < 1e-6 * np.abs(a).max()
    assert np.abs(lam[:3] - lam[6:]).max() < 1e-6 * np.abs(lam).max()
    contrary = held.constrain(da.Point("b299", at=(0.0, 0.0, -1.0), name="contrary", stabilize=5.0))
    batch = [np.stack([x, x]) for x in (q, v, tau)]
    assert (contrary.forward(*batch).status == da.Status.INCONSISTENT).all()
    with pytest.raises(SolvabilityError, match="contrary"):
        contrary.forward(q, v, tau)
    batch[0][1, 7] = np.nan
    a, lam, status = held.forward(*batch)
    assert status.tolist() == [da.Status.UNIQUE, da.Status.NONFINITE]
    assert np.isfinite(a[0]).all()
    assert np.isnan(a[1]).all()
    assert np.isnan(lam[1]).all()


def test_massless_ends_are_named_and_need_rows():
    """An open tree has no such acceleration; with rows that hold the end the sparse route solves it."""
    b = da.Builder("with a massless end")
    for i in range(300):
        b.body(f"b{i}", **(models.LINK if i < 299 else {}))
        parent, place = (f"b{i - 1}", (0, 0, -1)) if i else ("world", (0, 0, 0))
        b.joint(f"j{i}", "revolute", parent=parent, child=f"b{i}", axis=models.AXES[i % 3], position=place)
    chain = b.build()
    with pytest.raises(ModelError, match="'j299'"):
        chain.compile("forward")
    held = chain.constrain(da.Point("b299", placement=(0.3, 0.4, -1.0)))
    q, v, tau = models.state(held)
    tau[299] = 0.0
    assert held.forward(q, v, tau).status == da.Status.UNIQUE
    for what in ("delassus", "delassus_factor"):
        for ask in (held.compile, held.routes):
            with pytest.raises(ModelError, match="M has no inverse"):
                ask(what)
    b = held.jacobian(q) @ v
    x = held.compile("delassus_solve")(q, b)
    np.testing.assert_allclose(x, held.compile("kkt")(q, np.zeros(held.nv), -b)[1], atol=1e-9 * np.abs(x).max())
    assert "'j299'" in held.routes()["looped"].why


def test_right_sides_that_no_motion_gives_are_brought_into_the_range_of_the_delassus_matrix():
    """Redundant rows, b of no velocity: x of least squares, and not what lies outside over the shift."""
    mechanism = models.chain(5).constrain(da.Point("b4", name="again"))
    q, b = models.state(mechanism)[0], np.linspace(-1, 1, 9)
    G = mechanism.compile("delassus", backend="looped")(q)
    expected = np.linalg.pinv(G, rcond=1e-9, hermitian=True) @ b
    found = mechanism.compile("delassus_solve", backend="looped")(q, b)
    assert np.abs(found - expected).max() < 1e-4 * np.abs(expected).max()


def test_a_mechanism_without_bodies_is_an_empty_answer():
    mechanism, empty = da.Builder("nothing").build(), np.zeros(0)
    for what, given in (("aba", (empty,) * 3), ("inverse", (empty,) * 3), ("bias", (empty,) * 2)):
        assert mechanism.compile(what, backend="looped")(*given).shape == (0,)
    assert [x.shape for x in mechanism.compile("forward", backend="looped")(empty, empty, empty)] == [(0,), (0,), (1,)]


@pytest.mark.parametrize("turned", [0.0, 1.0])
@pytest.mark.parametrize("links", [4, 8, 30])
def test_a_massless_rod_that_may_spin_is_never_solved(links, turned):
    """A rod without mass between two balls: rows hold its ends, and nothing says how it spins, torque or not."""
    for seed in range(3):
        rng = np.random.default_rng(seed)
        b = da.Builder("spin")
        for i in range(links):
            parent, place = (f"b{i - 1}", (0, 0, -1)) if i else ("world", (0, 0, 0))
            b.body(f"b{i}", mass=1.0, center=(0, 0, -0.5), inertia=(0.1, 0.1, 0.05))
            b.joint(f"j{i}", "revolute", parent=parent, child=f"b{i}", axis=rng.standard_normal(3), position=place)
        b.body("rod")
        b.joint("ball", "spherical", parent=f"b{links - 1}", child="rod", position=(0, 0, -1))
        b.frame("end", "rod", position=rng.standard_normal(3))
        spin, held = (b.build().constrain(row) for row in (da.Point("end"), da.Weld("end")))
        v, tau = rng.standard_normal((2, spin.nv))
        tau[links:] *= turned
        status = [
            int(x.compile("forward", backend="looped")(spin.random(rng), v, tau, np.zeros(1))[2][0])
            for x in (spin, held)
        ]
        assert status == [da.Status.MASSLESS, da.Status.UNIQUE]
