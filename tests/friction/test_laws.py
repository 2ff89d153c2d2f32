"""O5: force laws, set-valued at rest (seed 001, eqs. 18-20, 21b, Fig. 1)."""

from __future__ import annotations

import casadi as ca
import numpy as np
import pytest

from dalembert.errors import ModelError, ShapeError
from dalembert.friction import (
    LAWS,
    Bounded,
    Dry,
    ExpressionLaw,
    Hyperbolic,
    StaticKinetic,
    Stribeck,
    Tabulated,
    resolve,
)

s = ca.SX.sym("s")
EXAMPLES = {
    Dry: Dry(4.0),
    StaticKinetic: StaticKinetic(5.0, 3.0),
    Stribeck: Stribeck(5.0, 3.0, 0.1, viscous=0.2),
    Hyperbolic: Hyperbolic(4.0),
    Tabulated: Tabulated([0.0, 0.1, 1.0], [4.0, 3.0, 2.5], static_limit=5.0),
    ExpressionLaw: ExpressionLaw(s, 4.0 / (1.0 + 3.0 * s)),
}


@pytest.mark.parametrize("kind", LAWS)
def test_O5_every_law_is_odd_dissipative_and_has_a_vertical_line_at_rest(kind):
    law = EXAMPLES[kind]
    law.check("example")
    for velocity in (1e-9, 0.03, 0.7):
        assert law.force(velocity) == pytest.approx(-law.force(-velocity), abs=1e-15)
        assert law.force(velocity) < 0.0
    velocity, force = law.graph(0.5, 11)
    still = velocity == 0.0
    assert force[still].max() == pytest.approx(law.static())
    assert force[still].min() == pytest.approx(-law.static())
    assert np.all(np.diff(velocity) >= 0.0)
    np.testing.assert_allclose(force, -force[::-1], atol=1e-15)


def test_O5_law_of_equation_21b():
    law = Hyperbolic(7.0)
    assert law.force(0.5) == -7.0 / 2.5
    assert law.force(-0.5) == 7.0 / 2.5
    assert law.static() == 7.0
    other = ExpressionLaw(s, 7.0 / (1.0 + 3.0 * s))
    for speed in (0.0, 0.2, 3.0):
        assert other.kinetic(speed) == pytest.approx(law.kinetic(speed), rel=1e-15)
    assert other.static() == 7.0


def test_O5_hysteresis_leaves_at_the_static_limit_and_comes_back_at_the_kinetic_force():
    velocity, force = StaticKinetic(5.0, 3.0).graph(1.0, 3)
    np.testing.assert_array_equal(force, [3, 3, 3, 5, -5, -3, -3, -3])
    np.testing.assert_array_equal(velocity, [-1, -0.5, 0, 0, 0, 0, 0.5, 1])


@pytest.mark.parametrize("kind", LAWS)
def test_continuation_below_zero_is_smooth(kind):
    """The law just below zero continues the one above: third differences across zero are as small as inside."""
    law = EXAMPLES[kind]
    d = 1e-3
    across = [law.continued(x) for x in (-d, 0.0, d, 2 * d)]
    inside = [law.continued(x) for x in (d, 2 * d, 3 * d, 4 * d)]
    assert abs(np.diff(across, 3)[0]) <= 2.0 * abs(np.diff(inside, 3)[0]) + 1e-12


@pytest.mark.parametrize(
    ("law", "words"),
    [
        (lambda: Dry(-1.0), "static limit is -1.0"),
        (lambda: Dry(np.nan), "static limit is nan"),
        (lambda: StaticKinetic(3.0, 5.0), "above the static limit"),
        (lambda: Stribeck(5.0, -3.0, 0.1), "not dissipative"),
        (lambda: ExpressionLaw(s, 1.0 - s), "not dissipative"),
        (lambda: Tabulated([0.0, 1.0], [1.0, np.inf]), "not finite"),
    ],
)
def test_a_law_that_is_no_friction_is_refused_with_the_contact_named(law, words):
    with pytest.raises(ModelError, match=words) as refused:
        Bounded("left brake", [1.0], law())
    assert str(refused.value).count("left brake") == 1


Q, V, TIME = ca.SX.sym("q"), ca.SX.sym("v"), ca.SX.sym("t")
OF_STATE = ExpressionLaw(s, 1.0 + Q**2, state=(Q, V, TIME))


@pytest.mark.parametrize(
    ("make", "error"),
    [
        (lambda: Stribeck(1.0, 1.0, 0.0), ModelError),
        (lambda: Hyperbolic(1.0, -1.0), ModelError),
        (lambda: Tabulated([0.0, 1.0], [1.0]), ShapeError),
        (lambda: Tabulated([0.1, 1.0], [1.0, 1.0]), ModelError),
        (lambda: ExpressionLaw(s, "rough"), ModelError),
        (lambda: ExpressionLaw(s, ca.SX.sym("other")), ModelError),
        (lambda: Bounded("x", [1.0], "rough"), ModelError),
        (lambda: Dry(1.0).graph(-1.0), ModelError),
        (lambda: Dry(1.0).graph("fast"), ModelError),
        (lambda: Tabulated(["a"], [1.0]), ModelError),
        (lambda: Bounded("x", [1.0], Hyperbolic("rough")), ModelError),
        (lambda: ExpressionLaw(s, 1.0, state=(s, s)), ModelError),
        (lambda: OF_STATE.static(None), ModelError),
        (lambda: OF_STATE.static([1.0]), ModelError),
        (lambda: OF_STATE.static(([1.0, 2.0], [0.0], 0.0)), ShapeError),
    ],
)
def test_misuse_is_refused(make, error):
    with pytest.raises(error):
        make()


def test_a_law_of_state_and_time():
    """The load is in the law itself: T = (1 + t) q for unit speed."""
    q, v, t = ca.SX.sym("q"), ca.SX.sym("v"), ca.SX.sym("t")
    law = ExpressionLaw(s, (1.0 + t) * q, state=(q, v, t))
    assert law.needs_state
    found = resolve([[1.0]], [10.0], [[1.0]], [0.5], [law], state_of_system=([2.0], [0.5], 3.0))
    assert found.forces[0] == -8.0
    with pytest.raises(ModelError, match="not dissipative"):
        resolve([[1.0]], [10.0], [[1.0]], [0.5], [law], state_of_system=([-2.0], [0.5], 3.0))
    with pytest.raises(ModelError, match="depends on the state"):
        resolve([[1.0]], [10.0], [[1.0]], [0.5], [law])
