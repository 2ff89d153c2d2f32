"""Large mechanisms in time: every stage answered by loops over the bodies, called back by the explicit steppers."""

from __future__ import annotations

import numpy as np
import pytest

import dalembert as da
from dalembert.simulate.equations import codes
from tests.tree.benchmark_models import models


def chain(n, *, held=True):
    b = da.Builder("chain")
    for i in range(n):
        parent, place = ("world", (0, 0, 0)) if i == 0 else (f"b{i - 1}", (0, 0, -1))
        b.body(f"b{i}", mass=1.0, inertia=(0.1, 0.1, 0.1), center=(0, 0, -0.5))
        b.joint(f"j{i}", "revolute", parent=parent, child=f"b{i}", axis=models.AXES[i % 2], position=place)
    end = {"placement": (0, 0, -1), "at": (0.0, 3.0, 4.0 - n), "length": 5.0}
    return b.build().constrain(*([da.Distance(f"b{n - 1}", name="tie", **end)] if held else ()))


@pytest.mark.parametrize("held", [False, True])
def test_loops_step_as_straight_line_code_does(held, monkeypatch):
    """A spinning plate on a rail with a chain below it, under a controller in Python, with an event."""
    b = da.Builder("chain below a plate")
    b.body("plate", mass=2.0, inertia=(0.1, 0.2, 0.3))
    b.joint("flight", "free", parent="world", child="plate")
    for i in range(4):
        parent = "plate" if i == 0 else f"b{i - 1}"
        b.body(f"b{i}", mass=1.0, inertia=(0.1, 0.1, 0.1), center=(0, 0, -0.5))
        b.joint(f"j{i}", "revolute", parent=parent, child=f"b{i}", axis=models.AXES[i % 2], position=(0, 0, -1))
    m = b.build()
    if held:
        m = m.constrain(da.Point("b3", at=(0.0, 0.0, -4.5), placement=(0, 0, -0.5), name="pin"))
    rng = np.random.default_rng(1)
    q, v = m.neutral(), 0.5 * rng.normal(size=m.nv)
    options = {"force": lambda t, q, v: -0.3 * v + np.sin(t), "events": {"low": lambda t, q, v: q[2] + 0.05}}
    unrolled = da.simulate(m, 0.5, q, m.project(q, v)[1], **options)
    monkeypatch.setattr(codes, "is_large", lambda _: True)
    looped = da.simulate(m, 0.5, q, m.project(q, v)[1], **options)
    assert unrolled.ok
    assert looped.ok
    np.testing.assert_allclose(looped.q[-1], unrolled.q[-1], rtol=0, atol=1e-9)
    np.testing.assert_allclose(looped.multipliers[-1], unrolled.multipliers[-1], rtol=0, atol=1e-6)
    assert len(unrolled.events) == len(looped.events) > 0
    np.testing.assert_allclose([e.time for e in looped.events], [e.time for e in unrolled.events], rtol=0, atol=1e-9)


def test_a_long_chain_is_not_unrolled():
    """Two hundred hinges and more, whose code would be compiled for minutes; the first carries what the tie leaves."""
    m = chain(210)
    run = da.simulate(m, 0.01)
    assert run.ok
    np.testing.assert_allclose(
        run.acceleration[-1],
        m.forward(run.q[-1], run.v[-1]).acceleration,
        rtol=0,
        atol=1e-9 * np.abs(run.acceleration).max(),
    )
    forces = run.joint_forces
    assert not forces.not_unique
    np.testing.assert_allclose(forces["j0"].force[0], (0.0, 0.0, 210 * 9.81), rtol=1e-9, atol=1e-6)


@pytest.mark.parametrize("method", ["bdf", "radau", "ida", "variational", "moreau", "hybrid"])
def test_methods_in_straight_line_code_refuse_long_chains(method):
    options = {"step": 0.01} if method in ("variational", "moreau") else {}
    if method in ("moreau", "hybrid"):
        options["contacts"] = [da.Contact(da.Sphere("b0", 0.1))]
    with pytest.raises(da.UnsupportedError, match="operations along its longest chain of joints"):
        da.simulate(chain(300, held=False), 0.1, method=method, **options)
