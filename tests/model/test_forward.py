"""Forward dynamics has one face: (q, v, force, t) and a `Solution`, for open trees, closed ones and Lagrangians."""

from __future__ import annotations

import casadi as ca
import numpy as np
import pytest

import dalembert as da


def chain(coupled: bool) -> da.Mechanism:
    """Return two hinges; the second may follow the first, which is a constraint row."""
    b = da.Builder()
    for name, parent in (("a", "world"), ("b", "a")):
        b.body(name, mass=1.0, center=(0, 0, -0.5), inertia=(0.1, 0.1, 0.01))
        b.joint(f"{name}_hinge", "revolute", parent, name, axis=(0, 1, 0))
    if coupled:
        b.couple("gear", {"a_hinge": 2.0, "b_hinge": -1.0})
    return b.build()


def pendulum() -> da.Lagrangian:
    """Return a bead on a circle in Cartesian coordinates."""
    q, v = ca.SX.sym("q", 2), ca.SX.sym("v", 2)
    return da.Lagrangian(q, v, ca.sumsqr(v) / 2, 9.81 * q[1], constraints={"rod": ca.sumsqr(q) - 1})


SYSTEMS = {
    "open tree": (lambda: chain(False), [0.3, 0.5], [0.1, -0.2]),
    "mimic joint": (lambda: chain(True), [0.3, 0.6], [0.1, 0.2]),
    "lagrangian": (pendulum, [0.6, -0.8], [0.8, 0.6]),
}


@pytest.mark.parametrize("name", SYSTEMS)
@pytest.mark.parametrize("batch", [(), (4,), (2, 3), (0,)])
def test_one_return_type(name, batch):
    make, q, v = SYSTEMS[name]
    system, rows = make(), 0 if name == "open tree" else 1
    force = np.random.default_rng(0).standard_normal((*batch, 2))
    answer = system.forward(np.broadcast_to(q, (*batch, 2)), np.broadcast_to(v, (*batch, 2)), force, 0.0)
    assert isinstance(answer, da.Solution)
    assert answer.acceleration.shape == (*batch, 2)
    assert answer.multipliers.shape == answer.reactions.shape == (*batch, rows)
    assert answer.status.shape == batch
    assert np.all(answer.ok)
    a, lam, status = answer
    np.testing.assert_array_equal(a, answer.acceleration)
    np.testing.assert_array_equal(lam, answer.multipliers)
    np.testing.assert_array_equal(status, answer.status)
    assert (answer.certificate.residual_motion < 1e-14).all()
    assert (answer.certificate.residual_constraint < 1e-14).all()
    for index in np.ndindex(batch):
        alone = system.solve(q, v, force[index])
        np.testing.assert_allclose(a[index], alone.acceleration, rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(lam[index], alone.multipliers, rtol=1e-12, atol=1e-12)
        assert answer.certificate[index].rank == rows


@pytest.mark.parametrize("name", SYSTEMS)
def test_no_force_is_zero_force_and_a_force_adds_its_own_acceleration(name):
    make, q, v = SYSTEMS[name]
    system = make()
    np.testing.assert_array_equal(system.forward(q, v).acceleration, system.forward(q, v, np.zeros(2)).acceleration)
    gained = system.forward(q, v, [1.0, 2.0]).acceleration - system.forward(q, v).acceleration
    M, A = system.mass_matrix(q, 0.0), system.jacobian(q, 0.0)
    rows = len(A)
    block = np.block([[M, A.T], [A, np.zeros((rows, rows))]])
    np.testing.assert_allclose(gained, np.linalg.solve(block, [1.0, 2.0, *[0.0] * rows])[:2], rtol=1e-12)


@pytest.mark.parametrize("name", SYSTEMS)
@pytest.mark.parametrize("call", ["forward", "solve"])
def test_a_time_in_the_place_of_the_force_is_refused(name, call):
    make, q, v = SYSTEMS[name]
    with pytest.raises(da.ShapeError, match="force"):
        getattr(make(), call)(q, v, 0.5)


def negative(moment, links=2):
    """Return an arm of one or two links whose first has a negative moment of inertia, kg m^2."""
    b = da.Builder("negative")
    for k in range(links):
        size = moment if k == 0 else 0.1
        b.body(f"link {k}", mass=1.0, center=(0, 0, -0.1), inertia=(size, size, 0.1))
        parent, at = ("world", (0, 0, 0)) if k == 0 else ("link 0", (0, 0, -0.2))
        b.joint(f"joint {k}", "revolute", parent=parent, child=f"link {k}", axis=(0, 1, 0), position=at)
    return b.build(allow_unphysical=True)


def test_negative_inertia_is_no_singular_mass_matrix():
    """A pivot of -0.49 kg m^2 is not a coordinate that nothing resists."""
    with pytest.raises(da.ModelError, match=r"resists the coordinate 'joint 0' is negative, -0.49"):
        negative(-0.5, links=1).forward([0.3], [0.0])


@pytest.mark.parametrize("held", [False, True])
def test_an_indefinite_mass_matrix_has_no_answer(held):
    """M has a negative eigenvalue, along the admissible motion too: `forward`, `solve` and runs say so."""
    m = negative(-5.0)
    m = m.constrain(da.Servo("joint 1", lambda t: 0.1 * t)) if held else m
    q, v = np.array([0.3, 0.0]), np.array([0.0, 0.1])
    assert np.linalg.eigvalsh(m.mass_matrix(q))[0] < 0.0 < negative(0.1).mass_matrix(q)[0, 0]
    found = m.forward(np.array([q, q]), np.array([v, v]))
    assert (np.asarray(found.status) == da.Status.INDEFINITE).all()
    assert np.isnan(found.acceleration).all()
    with pytest.raises(da.SolvabilityError, match="negative along an admissible motion"):
        m.solve(q, v)
    with pytest.raises(da.ModelError, match="of 'link 0' are negative"):
        da.simulate(m, 0.1, q, v)
    light = negative(-0.005)
    assert light.forward(q, v).ok
