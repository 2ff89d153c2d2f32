"""Links that weigh nothing: exact where another carries the motion, refused by name where nothing does."""

from __future__ import annotations

import numpy as np
import pytest

import dalembert as da
from dalembert.errors import ModelError
from dalembert.model import Inertia
from dalembert.tree.prepared.prepare import prepare
from tests import reference as plain
from tests.tree.mechanisms import random_inertia, random_placement, random_state


def chain(weights: list[float], *, placement=True, kind="revolute", armature=0.0, axis=(0, 0, 1)) -> da.Mechanism:
    rng = np.random.default_rng(5)
    builder = da.Builder("chain")
    for i, weight in enumerate(weights):
        place = random_placement(rng)
        builder.body(f"b{i}", inertia=random_inertia(rng, weight) if weight else Inertia())
        builder.joint(
            f"j{i}", kind, parent="world" if i == 0 else f"b{i - 1}", child=f"b{i}", axis=axis,
            armature=(armature,), **({"placement": place} if placement else {}),
        )  # fmt: skip
    return builder.build()


def test_a_massless_link_between_is_exact():
    """Its parameters stay exactly zero or come from its child alone; forward agrees with the twin."""
    mechanism = chain([1.0, 0.0, 2.0])
    tree = prepare(mechanism, regrouped=False)
    assert tree.links[1].inertia == (0.0, (0.0, 0.0, 0.0), (0.0,) * 6)
    q, v, a = random_state(mechanism, 0, 3)
    for each in zip(mechanism.forward(q, v, a).acceleration, q, v, a, strict=True):
        found, *state = each
        expected = plain.aba(plain.State.at(mechanism, *state[:2]), state[1], state[2])
        np.testing.assert_allclose(found, expected, rtol=1e-9)


def test_nothing_is_made_of_nothing():
    """Regrouping moves masses; where there are none, none appear by rounding."""
    tree = prepare(chain([1.0, 0.0, 0.0]))
    for link in tree.links[1:]:
        assert link.inertia == (0.0, (0.0, 0.0, 0.0), (0.0,) * 6)


@pytest.mark.parametrize("request_name", ["forward", "aba"])
def test_a_massless_leaf_is_refused_by_name(request_name):
    with pytest.raises(ModelError, match=r"nothing resists the coordinate 'j1'"):
        chain([1.0, 0.0]).compile(request_name)


def test_a_mass_on_the_axis_does_not_resist_a_hinge():
    builder = da.Builder("needle")
    builder.body("needle", mass=1.0, center=(0, 0, 0.5), inertia=(0.1, 0.1, 0.0))
    builder.joint("spin", "revolute", parent="world", child="needle", axis=(0, 0, 1))
    with pytest.raises(ModelError, match="'spin'"):
        builder.build(allow_unphysical=True).compile("forward")


def test_two_hinges_on_one_axis_with_nothing_between():
    """M = I [1 1; 1 1]: singular by cancellation, not by structure."""
    with pytest.raises(ModelError, match=r"'j0'.*pivot"):
        chain([0.0, 1.0], placement=False).compile("forward")


def test_armature_resists():
    mechanism = chain([1.0, 0.0], armature=0.3)
    q, v, tau = random_state(mechanism, 0, 2)
    found = mechanism.forward(q, v, tau).acceleration
    np.testing.assert_allclose(np.einsum("nij,nj->ni", mechanism.mass_matrix(q), found) + mechanism.bias(q, v), tau)


def test_inverse_dynamics_needs_no_mass():
    mechanism = chain([1.0, 0.0])
    q, v, a = random_state(mechanism, 0, 1)
    assert mechanism.inverse(q, v, a).tau[0, 1] == 0.0


def test_a_mechanism_without_mass_has_no_center():
    with pytest.raises(ModelError, match="no centre of mass"):
        chain([0.0, 0.0]).compile("center_of_mass")
