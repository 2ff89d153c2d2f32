"""Seed 003, section 5.2: the Stanford arm at five granularities, against Pinocchio and plain NumPy; random trees."""

import numpy as np
import pinocchio as pin
import pytest

import dalembert as da
from dalembert.errors import ModelError
from dalembert.examples import stanford_arm
from dalembert.model import Placement
from dalembert.tableau import GRANULARITIES, body_positions, maximal, newton_euler, reduce_index, signature
from tests.tableau.robots import link_inertias, pinocchio_model, random_tree, rnea

EQUATIONS = dict(zip(GRANULARITIES, (96, 150, 210, 390, 738), strict=True))
READINGS = ("centimetres", "printed")


def smooth_motion(samples: int = 9) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Joint positions, velocities and accelerations of a smooth motion through the published state."""
    t = np.linspace(-1.0, 1.0, samples)[:, None]
    q = np.array([0.3, -0.7, 0.5, 0.4, -0.9, 0.6])
    v = np.array([0.2, -0.3, 0.1, 0.5, -0.4, 0.7])
    a = np.array([0.1, 0.6, -0.2, 0.3, 0.8, -0.5])
    wave, k = 0.2 * np.ones(6), np.arange(2.0, 8.0)
    return (
        q + v * t + a * t**2 / 2 + wave * (np.sin(k * t) - k * t),
        v + a * t + wave * k * (np.cos(k * t) - 1),
        a - wave * k**2 * np.sin(k * t),
    )


@pytest.mark.parametrize("reading", READINGS)
@pytest.mark.parametrize("granularity", GRANULARITIES)
def test_Y12_inverse_dynamics_is_rnea_at_every_granularity(granularity, reading):
    arm = stanford_arm(reading)
    q, v, a = smooth_motion()
    tableau = newton_euler(arm, granularity)
    assert len(tableau.equations) == len(tableau.unknowns) == EQUATIONS[granularity]
    found = tableau.solve({"q": q, "qd": v, "qdd": a}, newton=tableau.newton(engine="loop"))
    assert found.converged.all()
    model = pinocchio_model(arm)
    data = model.createData()
    theirs = np.array([pin.rnea(model, data, *state) for state in zip(q, v, a, strict=True)])
    plain = np.array([rnea(arm, *state) for state in zip(q, v, a, strict=True)])
    np.testing.assert_allclose(found["tau"], theirs, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(found["tau"], plain, rtol=1e-9, atol=1e-9)


def test_Y12_generated_code_equals_the_loop_at_738_equations():
    """Straight-line code and looped plan: one step each from a point that is no solution."""
    tableau = newton_euler(stanford_arm(), "products")
    q, v, a = smooth_motion(3)
    u = np.hstack([q, v, a])
    x = np.random.default_rng(0).standard_normal((3, 738))
    straight, loop = (tableau.newton(engine=engine) for engine in ("straight", "loop"))
    assert len(straight.plan.begins) == 739  # every block a single equation
    first, second = straight.step(x, u), loop.step(x, u)
    assert first.linear.ok.all()
    np.testing.assert_allclose(first.step, second.step, rtol=1e-9, atol=1e-9 * np.abs(second.step).max())


@pytest.mark.parametrize("granularity", ["essential", "rotations"])
def test_Y5_inverse_then_forward_gives_the_motion_back(granularity):
    q, v, a = smooth_motion(4)
    inverse = newton_euler(stanford_arm(), granularity)
    tau = inverse.solve({"q": q, "qd": v, "qdd": a}, newton=inverse.newton(engine="loop"))["tau"]
    forward = inverse.with_known(("q", "qd", "tau"))
    assert len(forward.equations) == EQUATIONS[granularity]
    assert forward.structure().blocks.sizes.max() > 50
    found = forward.solve({"q": q, "qd": v, "tau": tau}, newton=forward.newton(engine="loop"))
    np.testing.assert_allclose(found["qdd"], a, rtol=1e-9, atol=1e-9)


def test_Y5_mixed_dynamics():
    """Three joints follow given accelerations, three are driven by given torques."""
    q, v, a = smooth_motion(4)
    inverse = newton_euler(stanford_arm(), "essential")
    tau = inverse.solve({"q": q, "qd": v, "qdd": a}, newton=inverse.newton(engine="loop"))["tau"]
    given = {f"qdd[{i}]": a[:, i] for i in (0, 2, 4)} | {f"tau[{i}]": tau[:, i] for i in (1, 3, 5)}
    mixed = inverse.with_known(("q", "qd", *given))
    found = mixed.solve({"q": q, "qd": v, **given}, newton=mixed.newton(engine="loop"))
    for i in (0, 2, 4):
        np.testing.assert_allclose(found[f"tau[{i}]"], tau[:, i], rtol=1e-9, atol=1e-9)
    for i in (1, 3, 5):
        np.testing.assert_allclose(found[f"qdd[{i}]"], a[:, i], rtol=1e-9, atol=1e-9)


def test_known_that_does_not_fit_is_named():
    """qdd and tau of joint 1 both given, those of joint 2 both unknown."""
    inverse = newton_euler(stanford_arm(), "essential")
    known = ["q", "qd", "tau[0]", *(f"qdd[{i}]" for i in (0, 2, 3, 4, 5))]
    found = inverse.with_known(known).structure()
    assert found.solvable  # the forces of joint 1 do depend on the acceleration of joint 2
    wrong = inverse.with_known(["q", "qd", "qdd", "tau[5]"]).structure()
    assert not wrong.solvable
    assert "tau joint6" in wrong.over_determined[0].equations
    assert "tau[5]" in wrong.over_determined[0].known


@pytest.mark.parametrize("seed", range(4))
def test_random_trees_equal_pinocchio(seed):
    tree = random_tree(5, seed)
    rng = np.random.default_rng(seed)
    q, v, a = (rng.standard_normal((3, 5)) for _ in range(3))
    tableau = newton_euler(tree, "newton-euler")
    found = tableau.solve({"q": q, "qd": v, "qdd": a}, newton=tableau.newton(engine="loop"))
    model = pinocchio_model(tree)
    data = model.createData()
    theirs = np.array([pin.rnea(model, data, *state) for state in zip(q, v, a, strict=True)])
    np.testing.assert_allclose(found["tau"], theirs, rtol=1e-10, atol=1e-10)


def body_state(tree: da.Mechanism, model: pin.Model, q, v, a) -> tuple[dict[str, float], dict[str, np.ndarray]]:
    """Return values of p, e, v, w by element name, and accelerations of centres and bodies."""
    data = model.createData()
    pin.forwardKinematics(model, data, q, v, a)
    values, accelerations = {}, {}
    for i, (body, inertia) in enumerate(zip(tree.bodies, link_inertias(tree), strict=True)):
        centre = inertia.center
        R, w = data.oMi[i + 1].rotation, data.v[i + 1].angular
        dw = data.a[i + 1].angular
        centre_v = data.v[i + 1].linear + np.cross(w, centre)
        centre_a = data.a[i + 1].linear + np.cross(w, data.v[i + 1].linear)
        centre_a = R @ (centre_a + np.cross(dw, centre) + np.cross(w, np.cross(w, centre)))
        state = {
            "p": data.oMi[i + 1].translation + R @ centre,
            "e": pin.Quaternion(R).coeffs(),
            "v": R @ centre_v,
            "w": w,
        }
        values |= {f"{letter} {body.name}[{k}]": x for letter, xs in state.items() for k, x in enumerate(xs)}
        accelerations |= {f"v {body.name}": centre_a, f"w {body.name}": dw}
    return values, accelerations


@pytest.mark.parametrize("make", [stanford_arm, lambda: random_tree(4, 9)], ids=["stanford", "random"])
def test_Y4_maximal_coordinates_after_index_reduction_equal_pinocchio(make):
    """Index 3; reduced by dummy derivatives, the accelerations at a state are those of the articulated bodies."""
    tree = make()
    n = len(tree.joints)
    model = pinocchio_model(tree)
    rng = np.random.default_rng(1)
    q, v, a = (rng.standard_normal(n) for _ in range(3))
    tau = pin.rnea(model, model.createData(), q, v, a)
    tableau = maximal(tree)
    assert len(tableau.unknowns) == 14 * n + 5 * n
    found = signature(tableau)
    assert (found.index, found.freedom) == (3, 2 * n)
    values, accelerations = body_state(tree, model, q, v, a)
    values |= {f"tau {joint.name}": tau[i] for i, joint in enumerate(tree.joints)}
    reduced = reduce_index(tableau, values)
    assert signature(reduced.tableau).index == 1
    assert len(reduced.states) == 2 * n
    at = reduced.tableau.with_known([*reduced.states, *reduced.tableau.known], instant=True)
    given = {name: values[name] for name in (*reduced.states, *reduced.tableau.known)}
    guess = [values.get(name, 0.0) for name in at.unknowns]
    solved = at.solve(
        given,
        guess=guess,
        newton=at.newton(values={k: v for k, v in values.items() if k in at.variables.names}, engine="loop"),
    )
    for name, expected in accelerations.items():
        result = np.array([solved[f"{name}[{k}]'"] for k in range(3)])
        np.testing.assert_allclose(result, expected, rtol=1e-8, atol=1e-8)


def planar_loop(sides: int) -> da.Mechanism:
    """A closed polygon of links on the ground, all axes parallel: three rows too many."""
    corners = np.exp(2j * np.pi * np.arange(sides + 1) / sides)
    points = np.column_stack([corners.real, corners.imag, 0 * corners.real])
    b = da.Builder("polygon")
    for i, body in enumerate(random_tree(sides - 1, 2).bodies):
        b.body(f"body{i}", inertia=body.inertia)
        parent = f"body{i - 1}" if i else "world"
        step = points[i] - (points[i - 1] if i else 0)
        b.joint(f"corner{i}", "revolute", parent=parent, child=f"body{i}", axis=(0, 0, 1), position=step)
    last = points[sides - 1]
    on_link, on_ground = (Placement(np.eye(3), x) for x in (last - points[sides - 2], last))
    b.loop("closing", "revolute", f"body{sides - 2}", "world", on_link, on_ground, axis=(0, 0, 1))
    return b.build(allow_unphysical=True)


def at_rest(polygon: da.Mechanism) -> dict[str, np.ndarray]:
    """Return poses of the polygon as it was built, one point."""
    poses = body_positions(polygon, polygon.neutral())
    return {name: x[None] for name, x in poses.items() if not name.startswith("q ")}


def test_a_loop_with_more_rows_than_coordinates_is_refused_by_structure():
    """A four-bar has 20 rows and 18 freedoms of its bodies: the joints are named before any number."""
    found = maximal(planar_loop(4)).structure()
    assert not found.solvable
    assert any(name.startswith("joint ") for name in found.over_determined[0].equations)


def test_a_planar_loop_passes_the_structure_and_fails_the_rank():
    """Seven corners: 35 rows for 36 freedoms fit by count; parallel axes make three rows dependent."""
    model = planar_loop(7)
    loop = maximal(model)
    assert len(loop.unknowns) == 6 * 14 + 7 * 5
    assert loop.structure().solvable
    report = loop.rank(values=at_rest(model))
    assert not report.full
    names = {name for dependence in report.found for group in dependence.equations for name in group}
    assert any(name.startswith("joint ") for name in names)
    # in joint coordinates the three rows say 0 = 0 in every configuration, and are not written down
    closed = newton_euler(model, "essential", ("q", "qd", "tau"))
    assert len([name for name in closed.equations if name.startswith("row ")]) == 2
    assert closed.rank(values={"q": np.zeros((1, 6))}).full


def test_bad_descriptions_are_refused():
    with pytest.raises(ModelError, match="granularity"):
        newton_euler(stanford_arm(), "coarse")
    with pytest.raises(ModelError, match="reading"):
        stanford_arm("inches")
