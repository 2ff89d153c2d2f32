"""What a Lagrangian system refuses, and the words it uses."""

from __future__ import annotations

import subprocess
import sys

import casadi as ca
import numpy as np
import pytest

import dalembert as da
from tests.model.lagrangians import bead, double_pendulum, pendulum, slider_crank

Q, V = ca.SX.sym("q", 2), ca.SX.sym("v", 2)
T = ca.sumsqr(V) / 2
STRANGER = ca.SX.sym("stranger")
U, P = ca.SX.sym("u"), ca.SX.sym("p")


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ({"kinetic": STRANGER * T}, da.ModelError, "kinetic contains the symbol 'stranger'"),
        ({"potential": STRANGER}, da.ModelError, "potential contains the symbol 'stranger'"),
        ({"forces": [STRANGER, 0]}, da.ModelError, "forces contains the symbol 'stranger'"),
        ({"constraints": {"wall": Q[0] - STRANGER}}, da.ModelError, "'wall' contains the symbol 'stranger'"),
        ({"constraints": [Q[0], Q[1] - STRANGER]}, da.ModelError, "constraint 1 contains the symbol 'stranger'"),
        ({"potential": V[0]}, da.ModelError, "potential contains 'v_0', which belongs to v"),
        ({"potential": U, "controls": U}, da.ModelError, "controls act through `forces`"),
        ({"kinetic": ca.sqrt(1 + ca.sumsqr(V))}, da.ModelError, "not quadratic in v_0, v_1"),
        ({"kinetic": T + V[1] ** 4}, da.ModelError, "not quadratic in v_1"),
        ({"constraints": {"speed": V[0] ** 2 - 1}}, da.ModelError, "'speed'.*is not linear in v_0"),
        ({"constraints": {"speed": V[0] * V[1]}}, da.ModelError, "'speed'.*is not linear in v_0, v_1"),
        ({"constraints": {"nothing": P}, "parameters": P}, da.ModelError, "'nothing'.*no coordinate"),
        ({"constraints": 3.0}, da.ModelError, "depends on no coordinate"),
        ({"constraints": [("a", Q[0]), ("a", Q[1])]}, da.ModelError, "distinct: 'a'"),
        ({"constraints": "q0"}, da.ModelError, "no CasADi SX expression"),
        ({"constraints": ca.MX.sym("x")}, da.ModelError, "MX"),
        ({"constraints": Q, "names": ["one"]}, da.ShapeError, "1 names"),
        ({"coordinates": ["x"]}, da.ShapeError, "1 coordinates"),
        ({"coordinates": ["x", "x"]}, da.ModelError, "distinct: 'x'"),
        ({"kinetic": V}, da.ShapeError, "kinetic must be a scalar"),
        ({"kinetic": Q.T}, da.ShapeError, "column or a scalar"),
        ({"forces": [1.0]}, da.ShapeError, "one entry per coordinate, 2"),
        ({"dissipation": V}, da.ShapeError, "dissipation must be a scalar"),
        ({"time": V[0]}, da.ModelError, "'v_0' is in v and in t"),
        ({"time": ca.SX.sym("t", 2)}, da.ShapeError, "time must be one symbol"),
        ({"parameters": [P, P]}, da.ModelError, "two parameters are called 'p'"),
        ({"parameters": {"a": P, "b": P}}, da.ModelError, "parameters holds the same symbol twice"),
        ({"parameters": {"a": 2 * P}}, da.ModelError, "parameter 'a' must be an SX column of symbols"),
        ({"parameters": [3.0]}, da.ModelError, "parameters must be SX symbols"),
    ],
)
def test_wrong_descriptions_are_named(arguments, error, words):
    given = {"kinetic": T, **arguments}
    with pytest.raises(error, match=words):
        da.Lagrangian(Q, V, **given)


@pytest.mark.parametrize(
    ("q", "v", "error", "words"),
    [
        (Q, V[0], da.ShapeError, "2 coordinates q, but 1 velocities v"),
        (Q, Q, da.ModelError, "'q_0' is in q and in v"),
        (ca.SX(0, 1), ca.SX(0, 1), da.ShapeError, "q is empty"),
        (2 * Q, V, da.ModelError, "q must consist of symbols"),
        (ca.vertcat(Q[0], Q[0]), V, da.ModelError, "q holds the same symbol twice"),
        (ca.MX.sym("q", 2), V, da.ModelError, "MX"),
    ],
)
def test_wrong_symbols_are_named(q, v, error, words):
    with pytest.raises(error, match=words):
        da.Lagrangian(q, v, kinetic=T)


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: pendulum().solve([1.0], [0.0, 0.0]), da.ShapeError, r"q must have shape \(2,\)"),
        (lambda: pendulum().solve([1.0, 0.0], [0.0, np.nan]), da.ModelError, r"v\[1\] \(coordinate 'y'\) is nan"),
        (lambda: pendulum().solve([[1.0, 0.0]], [0.0, 0.0]), da.ShapeError, "use forward"),
        (lambda: pendulum().solve([1.0, "a"], [0.0, 0.0]), da.ShapeError, "q must be real numbers"),
        (lambda: pendulum().solve([1.0, 0.0], [0.0, 0.0], u=[1.0]), da.ModelError, "no controls"),
        (lambda: pendulum().energy([1, 0], [0, 0], parameters={"lenght": 1}), da.ModelError, "mean 'length'"),
        (lambda: pendulum().energy([1, 0], [0, 0], parameters=[1.0]), da.ShapeError, "in the order mass, length"),
        (
            lambda: pendulum().energy([1, 0], [0, 0], parameters={"mass": "a"}),
            da.ShapeError,
            "'mass' must be real numbers",
        ),
        (lambda: double_pendulum().energy([1, 0], [0, 0]), da.ModelError, "no value for 'm1', 'm2', 'l1', 'l2'"),
        (lambda: pendulum().compile("mas_matrix"), da.ModelError, "did you mean 'mass_matrix'"),
        (lambda: pendulum().with_parameters(weight=1.0), da.ModelError, "there are mass, length"),
        (lambda: bead().forward(np.ones((3, 2)), np.ones((4, 2))), da.ShapeError, "same leading axes"),
        (lambda: bead().solve([1.0, 0.0], [0.0, 0.0], t=np.inf), da.ModelError, r"t\[0\] is inf"),
        (lambda: slider_crank().solve([1.0, 0.0], [0.0, 0.0], route="scur"), da.ModelError, "did you mean 'schur'"),
        (lambda: pendulum().solve([0.0, 0.0], [1.0, 0.0]), da.SolvabilityError, "rod"),
        (lambda: pendulum().forward([1.0, 0.0], [0.0, 0.0], massless="hodl"), da.ModelError, "did you mean 'hold'"),
        (lambda: pendulum().forward([1.0, 0.0], [0.0, 0.0], colour=1), TypeError, "colour"),
        (lambda: pendulum().with_parameters(mass=["a", "b"]), da.ShapeError, "'mass' must be real numbers"),
        (lambda: pendulum().compile(backend=["cpu"]), da.ModelError, "names and numbers"),
        (
            lambda: da.Lagrangian(Q, V, T, parameters={"k": (ca.SX.sym("k"), "x")}),
            da.ShapeError,
            "'k' must be real numbers",
        ),
        (lambda: pendulum().compile(dtype="float16"), da.UnsupportedError, "float16"),
        (lambda: da.Lagrangian(Q, V, T).energy([1, 0], [0, 0], parameters=[1.0]), da.ModelError, "no parameters"),
        (lambda: da.Lagrangian(Q, V, T).energy([1, 0], [0, 0], parameters={"m": 1}), da.ModelError, "there are none"),
        (
            lambda: pendulum().energy([1, 0], [0, 0], parameters={"mass": [1, 2], "length": [1, 2, 3]}),
            da.ShapeError,
            "different shapes",
        ),
    ],
)
def test_wrong_calls_are_named(call, error, words):
    with pytest.raises(error, match=words):
        call()


def test_ways_to_write_constraints_and_parameters():
    """Expression, pair, list and mapping give the same rows; columns are numbered; defaults are optional."""
    k = ca.SX.sym("k", 2)
    ways = [Q - k, ("at", Q - k), [Q[0] - k[0], ("top", Q[1] - k[1])], {"left": Q[0] - k[0], "top": Q[1] - k[1]}]
    expected = [("row 0", "row 1"), ("at[0]", "at[1]"), ("row 0", "top"), ("left", "top")]
    for way, names in zip(ways, expected, strict=True):
        system = da.Lagrangian(Q, V, T, constraints=way, parameters=[(k, [1.0, 2.0])])
        assert system.names == names
        np.testing.assert_array_equal(system.constraint([0.0, 0.0]), [-1.0, -2.0])
        np.testing.assert_array_equal(system.constraint([0.0, 0.0], parameters={"k": [3.0, 4.0]}), [-3.0, -4.0])
        np.testing.assert_array_equal(system.jacobian([0.0, 0.0]), np.eye(2))
    assert da.Lagrangian(Q, V, T, constraints=Q, names=["a", "b"]).names == ("a", "b")
    assert da.Lagrangian(Q, V, T).coordinates == ("q_0", "q_1")
    assert da.Lagrangian(Q, V, T, constraints=[]).jacobian([0.0, 0.0]).shape == (0, 2)


def test_room_is_light_until_used():
    """`Matrices` and `System` need no CasADi; a name that does not exist is an AttributeError as everywhere."""
    loaded = "print('casadi' in sys.modules)"
    code = f"import sys, dalembert.model; {loaded}; dalembert.Lagrangian; {loaded}"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.split() == ["False", "True"]
    assert {"Lagrangian", "Kernel", "System"} <= set(dir(da))
    for module in (da, da.model):
        with pytest.raises(AttributeError, match="Lagrange"):
            _ = module.Lagrange


def test_one_coordinate_gives_matrices():
    """Kernels give a matrix of one column as a vector; the protocol asks for (1, 1)."""
    q, v = ca.SX.sym("q"), ca.SX.sym("v")
    system = da.Lagrangian(q, v, v**2, constraints=q**2)
    assert system.mass_matrix([1.0]).shape == (1, 1)
    assert system.jacobian(np.ones((4, 1))).shape == (4, 1, 1)
    np.testing.assert_array_equal(system.forward([[1.0]], [[2.0]]).acceleration, [[-4.0]])
