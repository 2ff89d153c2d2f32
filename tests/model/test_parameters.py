"""Parameters of mechanisms as inputs of kernels: the same numbers as a mechanism built with other values."""

from __future__ import annotations

import numpy as np
import pytest

import dalembert as da
from dalembert.errors import ModelError, UnsupportedError
from dalembert.model.mechanism.parametric import PARAMETER_KINDS, TAKE_PARAMETERS, SymbolicMechanism
from dalembert.model.requests import requests

NAMES = (
    "mass:load", "inertia:arm", "length:elbow", "position:hand", "stiffness:elbow", "damping:rope", "rest:rope",
    "geometry:hook", "geometry:ball",
)  # fmt: skip
VALUES = {
    "mass:load": 2.5, "inertia:arm": [1.5, 0.3, 0.1, -0.2, 0.4, 0.01, 0.5, -0.02, 0.03, 0.6], "length:elbow": 0.62,
    "position:hand": [0.31, -0.05, 0.07], "stiffness:elbow": 4.0, "damping:rope": 0.6, "rest:rope": 0.25,
    "geometry:hook": [0.02, -0.01, 0.03, 0.2, -0.1, 0.3], "geometry:ball": [-0.03, 0.02, 0.01, 0.1, 0.4, -0.2],
}  # fmt: skip


def crane(tied=True):
    """Return an arm, a forearm with a welded load, a rope with spring and damper; the hand may be tied."""
    b = da.Builder("crane")
    b.body("arm", mass=2.0, center=(0.2, 0.0, 0.1), inertia=(0.1, 0.2, 0.25))
    b.body("forearm", mass=1.0, center=(0.1, 0.02, 0.0), inertia=(0.02, 0.03, 0.04))
    b.body("load", mass=0.5, center=(0.0, 0.1, 0.0), inertia=(0.01, 0.01, 0.01))
    b.body("bob", mass=0.7, center=(0.0, 0.0, -0.2), inertia=(0.02, 0.02, 0.01))
    b.joint("shoulder", "revolute", parent="world", child="arm", axis=(0, 0, 1), armature=0.05, damping=0.1)
    b.joint(
        "elbow",
        "revolute",
        parent="arm",
        child="forearm",
        axis=(0.0, 0.6, 0.8),
        position=(0.4, 0.1, 0.2),
        stiffness=2.0,
    )
    b.joint("weld", "fixed", parent="forearm", child="load", position=(0.2, 0.0, 0.1))
    b.joint("ball", "spherical", parent="forearm", child="bob", position=(0.3, 0, 0))
    b.frame("hand", "forearm", position=(0.25, 0.05, 0.0))
    b.frame("hook", "bob", position=(0.0, 0.0, -0.3))
    b.frame("post", "world", position=(0.5, 0.5, 1.0))
    b.spring("rope", "hook", "post", stiffness=20.0, rest=0.1, damping=0.3)
    made = b.build()
    return made.constrain(da.Distance("hand", "post", length=0.9)) if tied else made


def traced(mechanism, what, **options):
    """Return the CasADi function of a request; nothing is compiled."""
    request = requests()[what]
    function = request.trace(mechanism, **{**request.options, **options})
    return getattr(function, "unrolled", function)  # columns written out


def inputs(function, mechanism, rng):
    """Return random values of a function's inputs, the parameters left off."""
    sizes = {function.name_in(i): function.numel_in(i) for i in range(function.n_in())}
    sizes.pop("parameters", None)
    return [mechanism.random(rng) if name == "q" else 0.3 * rng.standard_normal(size) for name, size in sizes.items()]


@pytest.mark.parametrize("what", TAKE_PARAMETERS)
def test_functions_as_of_another_mechanism(what):
    """Every request that takes parameters: the mechanism with these numbers, built anew, is the oracle."""
    model = crane()
    numbers = model.with_parameters(*NAMES)
    options = {"frame": "hand"} if what == "kinematics" else {"wrt": ("q", "v")} if "derivatives" in what else {}
    function, rng = traced(SymbolicMechanism.of(model, NAMES), what, **options), np.random.default_rng(1)
    assert function.name_in(function.n_in() - 1) == "parameters"
    other = numbers.at(VALUES)
    assert other.body("load").inertia.mass == 2.5
    for mechanism, values in ((other, VALUES), (model, {})):
        given = inputs(function, mechanism, rng)
        found = function.call([*given, numbers.parameters.pack(values)])
        expected = traced(mechanism, what, **options).call(given)
        for x, y in zip(found, expected, strict=True):
            np.testing.assert_allclose(np.array(x), np.array(y), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("tied", [False, True])
def test_derivatives_by_parameters(tied):
    """Differences of forward dynamics with other numbers, extrapolated; every kind of parameter."""
    names = (*NAMES, "armature:shoulder", "damping:elbow", "stiffness:rope")
    assert {name.partition(":")[0] for name in names} == set(PARAMETER_KINDS)
    model, rng = crane(tied), np.random.default_rng(4)
    q, v, tau = model.random(rng), rng.standard_normal(model.nv), rng.standard_normal(model.nv)
    found = traced(model, "forward_derivatives", wrt=names).call([q, v, tau, 0.0])
    words = ["acceleration", "multipliers"]
    blocks = [np.array(x) for x in found[len(words) + 1 :]]
    forward, start = (
        traced(SymbolicMechanism.of(model, names), "forward"),
        model.with_parameters(*names).parameters.pack(),
    )
    state = [q, v, tau, 0.0]

    def end(numbers):
        return np.concatenate([np.array(x).ravel() for x in forward.call([*state, numbers])[: len(words)]])

    columns = []
    for unit in np.eye(len(start)):
        slopes = [(end(start + h * unit) - end(start - h * unit)) / (2 * h) for h in (2e-3, 1e-3)]
        columns.append((4 * slopes[1] - slopes[0]) / 3)
    expected = np.array(columns).T
    rows = [np.hstack(blocks[k :: len(words)]) for k in range(len(words))]
    np.testing.assert_allclose(np.vstack(rows), expected, atol=1e-7 * np.abs(expected).max())


@pytest.mark.parametrize("what", ["forward_derivatives", "inverse_derivatives"])
@pytest.mark.parametrize(
    "names",
    [
        ("mass:load", "inertia:load"),
        ("inertia:load", "mass:load"),
        ("length:hand", "geometry:hand"),
        ("geometry:hand", "position:hand"),
        ("position:elbow", "length:elbow"),
    ],
)
def test_parameters_of_one_part_beside_each_other(names, what):
    """Directions may overlap: each has the derivative that it has alone."""
    model, rng = crane(), np.random.default_rng(6)
    state = [model.random(rng), *rng.standard_normal((2, model.nv)), 0.0]
    both = traced(model, what, wrt=names).call(state)[3:]
    alone = [x for name in names for x in traced(model, what, wrt=(name,)).call(state)[3:]]
    for found, expected in zip(both, alone, strict=True):
        assert np.abs(np.array(expected)).max() > 1e-3
        np.testing.assert_allclose(np.array(found), np.array(expected), rtol=1e-9, atol=1e-9)


def test_a_sweep_needs_one_kernel():
    """A batch of masses in one call: a pendulum of length l and mass m, q'' = -g sin q / l whatever m."""
    b = da.Builder("pendulum")
    b.body("bob", mass=1.0, center=(0, 0, 0), inertia=(0, 0, 0))
    b.body("rod")
    b.joint("hinge", "revolute", parent="world", child="rod", axis=(0, 1, 0))
    b.joint("tip", "prismatic", parent="rod", child="bob", axis=(0, 1, 0), position=(0, 0, -1.0), armature=1.0)
    family = b.build().with_parameters("length:tip", "mass:bob")
    lengths, masses = np.linspace(0.5, 2.0, 7), np.linspace(1.0, 4.0, 7)
    rows = family.parameters.pack({"length:tip": lengths, "mass:bob": masses})
    q = np.tile([0.3, 0.0], (7, 1))
    a, _, status = family.compile("forward")(q, 0 * q, 0 * q, np.zeros((7, 1)), rows)
    assert (status == da.Status.UNIQUE).all()
    np.testing.assert_allclose(a[:, 0], -9.81 * np.sin(0.3) / lengths, rtol=1e-12)


def test_names_of_parameters_are_checked():
    model = crane()
    with pytest.raises(ModelError, match="names no parameter"):
        model.with_parameters("weight:load")
    with pytest.raises(ModelError, match="'load'"):
        model.with_parameters("mass:lod")
    for refused in (model.with_parameters, lambda name: model.compile("forward_derivatives", wrt=name)):
        for name in ("mass:world", "inertia:world"):
            with pytest.raises(ModelError, match="is the ground"):
                refused(name)
    with pytest.raises(UnsupportedError, match="weld"):
        model.with_parameters("length:weld")
    with pytest.raises(ModelError, match="origin"):
        model.with_parameters("length:shoulder")
    with pytest.raises(UnsupportedError, match="3 velocities"):
        model.with_parameters("stiffness:ball")
    with pytest.raises(ModelError, match="each once"):
        model.with_parameters("mass:load", "mass:load")
    with pytest.raises(UnsupportedError, match="takes no parameters"):
        model.with_parameters("mass:load").compile("joint_forces")


@pytest.mark.parametrize("name", ["damping:shoulder", "armature:shoulder", "damping:rope"])
def test_numbers_that_make_energy_are_no_values(name):
    numbers = crane().with_parameters(name)
    for used in (numbers.at, numbers.bind):
        with pytest.raises(ModelError, match=f"{name} = -1: it must not be negative"):
            used({name: -1.0})


def test_bound_mechanisms_share_kernels_and_run_as_those_built_anew():
    """Runs with other masses and dampers compile nothing further; a mechanism changed afterwards has its own code."""
    b = da.Builder("pendulum")
    b.body("bob", 2.0, (0.0, 0.0, -1.0), (0.01, 0.01, 0.01))
    b.joint("hinge", "revolute", "world", "bob", axis=(0.0, 1.0, 0.0), damping=0.1)
    numbers = b.build().with_parameters("mass:bob", "damping:hinge")
    for mass, damping in ((1.0, 0.3), (5.0, 0.0)):
        values = {"mass:bob": mass, "damping:hinge": damping}
        bound, plain = numbers.bind(values), numbers.at(values)
        run, expected = (da.simulate(each, 1.0, [0.4]) for each in (bound, plain))
        assert run.ok
        np.testing.assert_allclose(run.q[-1], expected.q[-1], rtol=1e-11)
        np.testing.assert_allclose(run.energy.total, plain.energy(run.q, run.v).total, rtol=1e-12)
        assert bound.compile("forward").kernel is numbers.compile("forward")
    lighter = bound.with_gravity((0.0, 0.0, -1.6))
    a, expected = (each.forward([0.4], [0.1]).acceleration for each in (lighter, plain.with_gravity((0.0, 0.0, -1.6))))
    np.testing.assert_array_equal(a, expected)
