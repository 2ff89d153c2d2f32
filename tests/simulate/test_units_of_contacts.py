"""The same motion in units from a micrometre to a kilometre: bouncing until it rests, tipping, stick and slip."""

import numpy as np
import pytest

import dalembert as da

EARTH = 9.81


def plate(size, gravity):
    """Return a body of 1 kg that moves in the plane of x and z and turns, without joints' limits."""
    b = da.Builder("plate", gravity=(0, 0, -gravity))
    for name, parent, axis in (("cart", "world", (1, 0, 0)), ("lift", "cart", (0, 0, 1))):
        b.body(name)
        b.joint(name, "prismatic", parent=parent, child=name, axis=axis)
    b.body("box", mass=1.0, inertia=(size**2 / 6,) * 3)
    b.joint("turn", "revolute", parent="lift", child="box", axis=(0, 1, 0))
    return b.build()


def bouncing(size, gravity, time):
    """Return a ball whose impacts pile up until it rests."""
    contact = da.Contact(da.Sphere("box", 0.1 * size), friction=0.3, restitution=0.5)
    return [0, size, 0], [0.7 * size / time, 0, 0.5 / time], [contact], 2.0


def tipping(size, gravity, time):
    """Return a box that slides on two corners and comes to rest."""
    corners = [(side, da.Sphere("box", 0.0, (side * 0.3 * size, 0, -0.5 * size))) for side in (-1, 1)]
    contacts = [da.Contact(corner, friction=0.6, name=f"corner {side}") for side, corner in corners]
    return [0, 0.5 * size, 0], [2.2 * size / time, 0, 0], contacts, 1.0


def slipping(size, gravity, time):
    """Return a ball that cannot turn, on a floor that a periodic force drags it over: it sticks, and slips back."""
    return (
        [0, 0.05 * size, 0],
        [0.5 * size / time, 0, 0],
        [da.Contact(da.Sphere("lift", 0.05 * size), friction=0.2)],
        4.0,
    )


def run(case, size, falls):
    """Return coordinates in units of the size, and events in units of the time, at equal times."""
    gravity, time = (EARTH, size**0.5) if falls else (EARTH * size, 1.0)
    q, v, contacts, end = case(size, gravity, time)
    tight = {"rtol": 1e-9, "atol": 1e-11 * min(size, size / time)}
    if case is slipping:
        tight["force"] = lambda t, q, v: [3.2 * size / time**2 * np.sin(2.0 * t / time), 0.0, 0.0]
    found = da.simulate(plate(size, gravity), end * time, q, v, contacts=contacts, every=end * time / 20, **tight)
    assert found.ok, found
    events = [(event.contact, event.old, event.new) for event in found.events]
    return found.q / [size, size, 1.0], events, np.array([event.time for event in found.events]) / time


@pytest.mark.parametrize("falls", [False, True])
@pytest.mark.parametrize("size", [1e-6, 1e-3, 1e3])
@pytest.mark.parametrize("case", [bouncing, tipping, slipping])
def test_the_same_motion_has_the_same_events_in_every_unit(case, size, falls):
    """Parts below 0.1 mm were refused; impacts of 1 mm that pile up ended early, as limits were metres and seconds."""
    q, events, times = run(case, 1.0, falls=False)
    found, others, instants = run(case, size, falls)
    assert others == events
    assert len(events) > 3
    np.testing.assert_allclose(instants, times, rtol=0, atol=1e-9)
    np.testing.assert_allclose(found, q, rtol=0, atol=1e-9)


def test_a_start_inside_of_the_ground_is_told_by_the_size_of_parts():
    """A micrometre below the ground was accepted, of parts of two."""
    size = 2e-6
    _, v, contacts, _ = bouncing(size, EARTH, 1.0)
    with pytest.raises(da.ModelError, match="interpenetrates"):
        da.simulate(plate(size, EARTH), 1e-3, [0, -0.4 * size, 0], v, contacts=contacts)
