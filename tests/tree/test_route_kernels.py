"""The Delassus matrix, its factor and its solve as kernels; Pinocchio as oracle; operations against the seed's
bounds."""

from __future__ import annotations

import numpy as np
import pinocchio as pin
import pytest
import scipy.linalg

import dalembert as da
from dalembert.model import Placement
from dalembert.tree.block import constrained
from dalembert.tree.block.conditioning import needs_of
from dalembert.tree.routes.delassus_kernels import matrix_by
from dalembert.tree.routes.route_report import cost_of
from dalembert.tree.routes.route_table import ROUTES
from tests.tree.benchmark_models import legs
from tests.tree.closed import Traced, branched, door, hopper, least_norm, numeric, stewart, walker
from tests.tree.contacts import GO2, TALOS

CHAINED = ("aba", "efpa", "pv")
KIND = {3: pin.ContactType.CONTACT_3D, 6: pin.ContactType.CONTACT_6D}


def oracle(robot, model):
    """Return Pinocchio's constraints for the contacts of a robot, in its own vectors."""
    models, datas = pin.StdVec_RigidConstraintModel(), pin.StdVec_RigidConstraintData()
    for name in robot.frames:
        frame = model.frames[model.getFrameId(name)]
        args = frame.parentJoint, frame.placement, pin.LOCAL
        models.append(pin.RigidConstraintModel(KIND[robot.rows], model, *args))
        datas.append(models[len(models) - 1].createData())
    return models, datas


@pytest.mark.parametrize("robot", [GO2, TALOS], ids=["go2", "talos"])
def test_W5_delassus_matrix_of_robots_against_pinocchio(robot):
    """`computeDelassusMatrix`, which has it in the axes of the contacts."""
    mechanism, model = robot.in_contact(), robot.pinocchio()
    q, data = mechanism.random(3), model.createData()
    models, datas = oracle(robot, model)
    pin.initConstraintDynamics(model, data, models, datas)
    local = pin.computeDelassusMatrix(model, data, q, models, datas, 0.0)
    pin.framesForwardKinematics(model, data, q)
    turns = [data.oMf[model.getFrameId(name)].rotation for name in robot.frames for _ in range(robot.rows // 3)]
    R = scipy.linalg.block_diag(*turns)
    G = R @ local @ R.T
    numbers = Traced(mechanism)
    for route in ("efpa", "pv", "matrix", "aba"):
        found = numbers("delassus", q, 0, route=route)
        np.testing.assert_allclose(found, G, atol=1e-10 * np.abs(G).max(), err_msg=route)


def test_loops_against_pinocchios_loop_constrained_algorithm():
    """`lcaba`, the proximal loop-aware elimination of Pinocchio, on Go2 with two feet tied together."""
    tree, model = GO2.tree(), GO2.pinocchio()
    rng, data = np.random.default_rng(2), model.createData()
    q = tree.random(rng)
    ids = [model.getFrameId(name) for name in GO2.frames[:2]]
    pin.framesForwardKinematics(model, data, q)
    between = data.oMf[ids[1]].actInv(data.oMf[ids[0]])
    at = Placement(between.rotation, between.translation)
    mechanism = tree.constrain(da.Point(*GO2.frames[:2], at=at))
    A = Traced(mechanism).A(q)
    v = rng.standard_normal(tree.nv)
    v, tau = v - np.linalg.pinv(A) @ (A @ v), rng.standard_normal(tree.nv)
    one, two = (model.frames[i] for i in ids)
    models, datas = pin.StdVec_RigidConstraintModel(), pin.StdVec_RigidConstraintData()
    ends = one.parentJoint, one.placement, two.parentJoint, two.placement * between
    models.append(pin.RigidConstraintModel(KIND[3], model, *ends, pin.LOCAL))
    datas.append(models[0].createData())
    pin.computeJointMinimalOrdering(model, data, models)
    a = pin.lcaba(model, data, q, v, tau, models, datas, pin.ProximalSettings(1e-12, 1e-6, 50)).copy()
    for route in ROUTES:
        found, _, status = numeric(constrained.forward(mechanism, route))(q, v, tau, 0)
        assert status == da.Status.UNIQUE
        np.testing.assert_allclose(found, a, atol=1e-6 * np.abs(a).max(), err_msg=route)


@pytest.mark.parametrize("mechanism", [branched().constrain(da.Point("f3"), da.Weld("f5")), stewart()[0]])
def test_factor_and_solve_of_independent_rows(mechanism):
    rng = np.random.default_rng(1)
    q, numbers = mechanism.random(rng), Traced(mechanism)
    options = {"route": "auto", "metric": None, "dtype": "float64"}
    G = numbers("delassus", q, 0, route="auto")
    L, D, shift = numbers("delassus_factor", q, 0, **options)
    assert not needs_of(mechanism).redundant
    assert not shift.any()
    assert np.array_equal(np.triu(L), np.eye(len(L)))
    np.testing.assert_allclose(L * D @ L.T, G, atol=1e-12 * np.abs(G).max())
    b = rng.standard_normal(len(G))
    np.testing.assert_allclose(G @ numbers("delassus_solve", q, b, 0, **options), b, atol=1e-8)


@pytest.mark.parametrize("metric", [None, "weights"])
def test_factor_and_solve_of_redundant_rows(metric):
    """A foot on four points: the factor is that of the shifted matrix, the solve the least in the metric."""
    mechanism = walker().constrain(*[da.Point(f"corner {i}") for i in range(4)])
    rng = np.random.default_rng(1)
    q, numbers = mechanism.random(rng), Traced(mechanism)
    weights = tuple(rng.uniform(0.5, 2, 12)) if metric else None
    options = {"route": "auto", "metric": weights, "dtype": "float64"}
    A, G = numbers.A(q), numbers("delassus", q, 0, route="auto")
    L, D, shift = numbers("delassus_factor", q, 0, **options)
    assert (shift > 0).all()
    assert shift.max() < 1e-8 * np.diag(G).max()
    np.testing.assert_allclose(L * D @ L.T, G + np.diag(shift), atol=1e-12 * np.abs(G).max())
    b = G @ rng.standard_normal(12)
    x = numbers("delassus_solve", q, b, 0, **options)
    np.testing.assert_allclose(G @ x, b, atol=1e-8 * np.abs(b).max())
    np.testing.assert_allclose(x, least_norm(A, A.T @ x, weights), atol=1e-6 * np.abs(x).max())


def test_redundant_rows_by_every_route():
    """A door on three hinges: all routes say REDUNDANT and share the load alike."""
    mechanism = door()
    q = mechanism.neutral()
    found = {route: numeric(constrained.forward(mechanism, route))(q, np.zeros(6), np.zeros(6), 0) for route in ROUTES}
    a, lam, _ = found["matrix"]
    for route, (other, forces, status) in found.items():
        assert status == da.Status.REDUNDANT, route
        np.testing.assert_allclose(other, a, atol=1e-10 * np.abs(a).max())
        np.testing.assert_allclose(forces, lam, atol=1e-7 * np.abs(lam).max())


def test_misuse():
    mechanism = hopper(1.0).constrain(da.Point("foot"))
    with pytest.raises(da.ModelError, match="route='caba' makes no Delassus matrix; 'auto', 'efpa', 'pv'"):
        mechanism.compile("delassus", route="caba")
    with pytest.raises(da.ModelError, match="route='abb' is not one of 'auto', 'efpa'"):
        mechanism.compile("kkt", route="abb")
    with pytest.raises(
        da.ModelError, match="'mass_matrix' is computed in one way only; there are routes for 'forward'"
    ):
        mechanism.routes("mass_matrix")
    with pytest.raises(da.ModelError, match="has no constraints"):
        hopper(1.0).routes("delassus")
    assert {line.route for line in hopper(1.0).routes().lines} == {"aba", "matrix"}
    with pytest.raises(da.ModelError, match="there is no route 'abb' to 'forward'; there is 'aba', 'matrix'"):
        hopper(1.0).routes()["abb"]


def test_routes_of_an_open_tree_are_taken():
    """The table's two lines can be asked for, and nothing else."""
    tree, numbers = hopper(1.0), Traced(hopper(1.0))
    q, v, tau = tree.random(1), np.ones(8), np.arange(8.0)
    options = {"metric": None, "dtype": "float64"}
    found = {name: numbers("forward", q, v, tau, 0.0, route=name, **options)[0] for name in ("auto", "aba", "matrix")}
    np.testing.assert_allclose(found["aba"], found["matrix"], rtol=1e-9)
    lengths = {key[1][1]: function.n_instructions() for key, function in numbers.functions.items()}
    assert lengths["auto"] == min(lengths["aba"], lengths["matrix"]) < max(lengths["aba"], lengths["matrix"])
    for route in ("caba", "abb"):
        with pytest.raises(da.ModelError, match=f"no constraints: route='{route}' is not one of 'auto', 'aba', 'matr"):
            tree.compile("forward", route=route)


@pytest.mark.parametrize("rows", [1, 2], ids=["independent", "redundant"])
def test_massless_links_have_no_delassus_matrix_but_its_inverse_times_a_vector(rows):
    """G has no value; x with M a + A^T x = 0, A a = -b has one, here from the dense block matrix."""
    mechanism = hopper(0.0).constrain(*[da.Point("foot", name=f"foot {i}") for i in range(rows)])
    for what in ("delassus", "delassus_factor"):
        for ask in (mechanism.compile, mechanism.routes):
            with pytest.raises(da.ModelError, match=r"'knee'.*M has no inverse and A M\^-1 A\^T no value; 'delas"):
                ask(what)
    numbers, rng = Traced(mechanism), np.random.default_rng(0)
    q = mechanism.random(rng)
    M, A = numbers.M(q), numbers.A(q)
    b = A @ rng.standard_normal(8)
    K = np.block([[M, A.T], [A, np.zeros((len(A), len(A)))]])
    expected = (np.linalg.pinv(K, rcond=1e-10, hermitian=True) @ np.append(np.zeros(8), -b))[8:]
    found = numbers("delassus_solve", q, b, 0, route="auto", metric=None, dtype="float64")
    np.testing.assert_allclose(found, expected, atol=1e-10 * np.abs(b).max())


def test_values_that_are_not_finite_are_said_to_be_so():
    mechanism = hopper(1.0).constrain(da.Point("foot"))
    q, y = mechanism.random(1), np.ones(8)
    y[3] = np.nan
    for route in ROUTES:
        *_, status = numeric(constrained.block_solution(mechanism, route, None, "float64"))(q, y, np.ones(3), 0)
        assert status == da.Status.NONFINITE, route


def chain(n, held):
    """Return hinges one after the other, welded to the ground at some."""
    rng, b = np.random.default_rng(0), da.Builder("chain")
    for i in range(n):
        b.body(f"b{i}", mass=1.0, center=rng.uniform(-0.3, 0.3, 3), inertia=rng.uniform(0.5, 1, 3))
        place = {"position": rng.uniform(-0.5, 0.5, 3), "rotation": rng.standard_normal(4)}
        b.joint(f"j{i}", "revolute", parent=f"b{i - 1}" if i else "world", child=f"b{i}", axis=(0, 0, 1), **place)
    return b.build().constrain(*[da.Weld(f"b{i}") for i in held])


def grows_evenly(counts):
    """Say whether the second of two equal steps in size adds no more operations than the first, to 3 per cent."""
    return 0 < counts[2] - counts[1] < 1.03 * (counts[1] - counts[0])


def test_W4_W5_operations_are_linear_in_n():
    """O(n m + m^3) and O(n + m d + m^3): solves on chains with six rows at the end; every hinge adds the same."""
    settings = [constrained.Tracing.of(chain(n, [n - 1])) for n in (8, 14, 20)]
    counts = {
        route: [cost_of(constrained.block_solution_by(each, ROUTES[route])).operations for each in settings]
        for route in ("aba", "efpa", "pv")
    }
    assert all(map(grows_evenly, counts.values())), counts


def test_W5_delassus_matrix_is_linear_in_depth():
    """Twelve rows on two links: passes outward for "aba", m rows for "efpa", six unit forces for "pv"."""
    settings = [constrained.Tracing.of(chain(n, [n - 3, n - 1])) for n in (16, 20, 24)]
    counts = {route: [cost_of(matrix_by(each, ROUTES[route])).operations for each in settings] for route in CHAINED}
    assert all(map(grows_evenly, counts.values())), counts
    assert counts["pv"][-1] < counts["efpa"][-1] < counts["aba"][-1]


def test_W5_elimination_inside_the_tree_is_linear_in_n_and_m():
    """Legs of three hinges, each held at its end: every leg adds the same."""
    settings = [constrained.Tracing.of(legs(count)) for count in (2, 4, 6)]
    counts = [cost_of(constrained.block_solution_by(each, ROUTES["caba"])).operations for each in settings]
    assert grows_evenly(counts), counts
