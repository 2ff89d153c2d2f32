"""Runs that go through compiled loops together: the bits of `da.simulate`, run by run, whatever varies."""

from __future__ import annotations

import importlib.util
import pickle
from dataclasses import replace

import casadi as ca
import numpy as np
import pytest

import dalembert as da
from dalembert.ensemble.blocks import compute, with_shapes
from dalembert.ensemble.entry import device_of
from dalembert.friction import Bounded, StaticKinetic, Unilateral
from tests.ensemble.small import job_of, oscillator

RUNS = 12
TIMES = np.array([0.0, 0.31, 0.8])


def belt():
    x, u, k = (ca.SX.sym(name) for name in "xuk")
    law = [Bounded("belt", u - 0.3, StaticKinetic(1.0, 0.5))]
    return da.Lagrangian(
        x, u, kinetic=u**2 / 2, potential=k * x**2 / 2, parameters={"k": (k, 1.0)}, friction=law, coordinates=["x"]
    )


def four_bar(redundant=False):
    """A four-bar whose pin moves along a line, two rows, or turns on an axis: five rows of which two count."""
    b = da.Builder("four-bar")
    parent, at = "world", 0.0
    for name, length in {"crank": 0.4, "coupler": 1.0, "rocker": 0.8}.items():
        b.body(name, mass=1.0, center=(length / 2, 0, 0), inertia=(0.01, 0.1, 0.1))
        b.joint(f"{name} hinge", "revolute", parent, name, axis=(0, -1, 0), position=(at, 0, 0))
        parent, at = name, length
    kind = da.Revolute if redundant else da.PointOnLine
    return b.build().constrain(kind("rocker", at=(1.1, 0, 0), placement=(0.8, 0, 0), axis=(0, 1, 0), name="pin"))


def ball():
    b = da.Builder("ball")
    b.body("ball", mass=1.0, inertia=(0.01, 0.01, 0.01))
    b.joint("free", "free", "world", "ball")
    return b.build()


def bounce():
    return [da.Contact(da.Sphere("ball", radius=0.1), da.Plane(), friction=0.3, restitution=0.5, name="floor")]


CLOSED = (0.98, -0.7, -1.5)
"""A guess at a closed four-bar."""

STUDIES = {
    "oscillator": lambda: (
        (oscillator(), 1.0, [1.0], da.normal([0.0], 0.5)),
        {"parameters": {"k": da.uniform(2.0, 6.0)}, "keep": {
            "end": "q", "peak": ("q", "max"), "range": ("energy", "range"), "mean": ("v", "mean"), "path": ("q", TIMES),
        }},
    ),
    "sampled": lambda: (
        (oscillator(), 1.0, [1.0], da.normal([0.0], 0.5)), {"every": 0.25, "keep": {"x": ("v", "min")}}
    ),
    "fixed steps": lambda: (
        (oscillator(), 1.0, da.normal([0.0], 0.5), [1.0]), {"method": "rk4", "step": 0.01, "keep": {"x": ("v", "rms")}}
    ),
    "stick-slip": lambda: (
        (belt(), 10.0, da.normal([0.0], 0.3), [0.3]),
        {"parameters": {"k": da.uniform(0.8, 1.2)}, "record_events": True, "keep": {
            "end": "q", "path": ("x", TIMES), "most": ("kinetic", "max"), "force": ("belt", "min"),
        }},
    ),
    "masses of a four-bar": lambda: (
        (four_bar(), 0.2, four_bar().assemble(CLOSED).q, None),
        {"parameters": {"mass:coupler": da.uniform(0.5, 2.0)}, "keep": {"end": "q", "path": ("v", TIMES / 4)}},
    ),
    "projected starts": lambda: (
        (four_bar(), 0.2, da.normal(four_bar().assemble(CLOSED).q, 0.1), da.normal(np.zeros(3), 1.0)),
        {"project": True, "parameters": {"mass:rocker": da.uniform(0.5, 2.0)}},
    ),
    "redundant rows, other velocities": lambda: (
        (four_bar(True), 0.2, four_bar(True).assemble(CLOSED).q, da.normal(np.zeros(3), 1.0)), {"project": True}
    ),
    "bounces": lambda: (
        (ball(), 0.5, None, None),
        {"contacts": bounce(), "method": "hybrid", "record_events": True, "keep": {"end": "q", "z": ("v", "max")}},
    ),
}  # fmt: skip
"""System, duration and start, and the other options of a study."""


def study(name, **more):
    given, options = STUDIES[name]()
    if name == "bounces":
        q = ball().neutral()
        q[2] = 0.4
        given = (given[0], given[1], q, {n: da.normal(0.0, 1.0) for n in ball().coordinates[:3]})
    return da.ensemble(*given, runs=RUNS, seed=3, progress=False, **options, **more)


def same(one, other):
    return all(rows.tobytes() == other.arrays()[name].tobytes() for name, rows in one.arrays().items())


@pytest.mark.parametrize("name", STUDIES)
def test_bits_are_those_of_single_runs(name):
    alone, together = study(name, batches=False), study(name, block=5)
    assert together.route.startswith("compiled")
    assert alone.route == "run by run: batches=False"
    assert same(alone, together)
    assert together.status_counts == {"completed": RUNS}
    if together.job.record_events:
        assert together["event_count"].sum() > 0
        assert together.events() == alone.events()


def test_all_runs_went_through_the_loops(monkeypatch):
    """No run is made by itself: `experiment.run` is not called."""
    made = study("projected starts", block=RUNS)
    monkeypatch.setattr(type(made.job.experiment), "run", lambda *_: pytest.fail("a run was made by itself"))
    columns = compute(with_shapes(made.job), 0, RUNS)
    assert columns.arrays["kept/q"].tobytes() == made["q"].tobytes()


@pytest.mark.parametrize(("workers", "block"), [(1, 1), (2, 10), (7, 1000)])
def test_workers_and_blocks_change_nothing(workers, block, tmp_path):
    """As arrays, and as files."""
    from concurrent.futures import ThreadPoolExecutor

    def stored(place, executor, size):
        made = da.ensemble(
            oscillator(), 0.5, [1.0], da.normal([0.0], 0.5), runs=40, seed=3, parameters={"k": da.uniform(2.0, 6.0)},
            block=size, executor=executor, progress=False, to=tmp_path / place,
        )  # fmt: skip
        assert made.route.startswith("compiled")
        return made

    with ThreadPoolExecutor(workers) as pool:
        other = stored("other", pool, block)
    plain = stored("plain", None, block)
    assert same(plain, other)
    parts = [{p.relative_to(s.path): p.read_bytes() for p in s.path.rglob("*") if p.is_file()} for s in (plain, other)]
    assert parts[0] == parts[1]


def test_runs_that_have_no_answer_are_made_by_themselves():
    """A start that is refused: status and reason of a single run, beside runs that end."""
    closed = four_bar().assemble(CLOSED).q
    starts = da.values(np.array([closed, closed + 0.1, closed]))
    both = [da.ensemble(four_bar(), 0.1, starts, progress=False, batches=each, block=3) for each in (True, False)]
    assert both[0].route.startswith("compiled")
    assert list(both[0].status) == ["completed", "refused", "completed"]
    assert both[0].reason(1) == both[1].reason(1)
    assert same(*both)


@pytest.mark.parametrize(("count", "project"), [(1, True), (1, False), (20, True)])
def test_lagrangians_that_miss_their_rows_are_put_onto_them(count, project):
    """Beads on circles, by straight-line code and by compiled loops: a start that is off, or off by a rounding."""
    x, v = ca.SX.sym("x", 2 * count), ca.SX.sym("v", 2 * count)
    circles = {f"circle {i}": ca.dot(x[2 * i : 2 * i + 2], x[2 * i : 2 * i + 2]) - 1 for i in range(count)}
    beads = da.Lagrangian(x, v, kinetic=ca.dot(v, v) / 2, potential=9.81 * ca.sum1(x[1::2]), constraints=circles)
    start = np.tile([1.0 + (0.1 if project else 1e-8), 0.0], count)
    velocities = da.normal(np.zeros(2 * count), 0.1) if project else [1e-8, 0.3]
    both = [
        da.ensemble(beads, 0.1, start, velocities, runs=3, project=project, batches=each, progress=False)
        for each in (True, False)
    ]
    assert both[0].route.startswith("compiled")
    assert both[0].status_counts == {"completed": 3}
    assert same(*both)


def test_first_runs_that_are_refused_do_not_decide_the_route():
    """Most starts are no numbers, the first six among them: the others go together."""

    def start(rng):
        return np.array([1.0 if rng.random() > 0.85 else np.nan])

    made = da.ensemble(oscillator(), 0.1, start, [0.0], runs=20, seed=5, progress=False)
    assert (made.status[:6] == "refused").all()
    assert made.succeeded.any()
    assert made.route.startswith("compiled")


def test_a_worker_tells_a_missing_device_from_a_study_that_does_not_suit():
    """Backend "c" is always there; that of a device is missing where CuPy is."""
    job = job_of(oscillator(), 0.1, [1.0], runs=2)
    assert device_of(job) == ("", "", {})
    missing, reason, _ = device_of(replace(job, experiment=replace(job.experiment, options={"method": "radau"})))
    assert not missing
    assert "no loop over runs" in reason
    if importlib.util.find_spec("cupy") is None:
        assert "needs CuPy" in device_of(replace(job, backend="cuda"))[0]


def test_systems_with_contacts_travel_and_have_the_same_bits():
    """By pickle, as to other processes."""
    here = belt()
    there = pickle.loads(pickle.dumps(here))
    runs = [da.simulate(system.with_parameters(k=1.1), 10.0, [0.2], [0.3], progress=False) for system in (here, there)]
    assert len(runs[0].events) > 0
    assert all(runs[0].samples[name].tobytes() == rows.tobytes() for name, rows in runs[1].samples.items())
    x, u = ca.SX.sym("x"), ca.SX.sym("u")
    floor = Unilateral("floor", gap=x, restitution=0.5)
    unilateral = da.Lagrangian(x, u, kinetic=u**2 / 2, potential=9.81 * x, unilateral=[floor])
    falls = [da.simulate(s, 0.7, [1.0], progress=False) for s in (unilateral, pickle.loads(pickle.dumps(unilateral)))]
    assert falls[0].events == falls[1].events != ()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"keep": {"own": len}}, "keep 'own' is a function of a run"),
        ({"events": {"zero": lambda t, q, v: q[0]}}, "events are watched"),
        ({"force": lambda t, q, v: -q}, "a Python function gives forces"),
        ({"method": "bdf"}, "method 'bdf' has no loop over runs"),
        ({"force": ([0.0, 0.1, 0.5], [[0.0], [1.0], [0.0]])}, "forces have corners or jumps"),
    ],
)
def test_why_runs_are_made_one_by_one(options, words):
    job = da.ensemble.job(oscillator(), 0.5, [1.0], da.normal([0.0], 0.5), runs=3, **options)
    from dalembert.ensemble.batches import route_of

    assert route_of(job) == f"run by run: {words}"


def test_redundant_rows_at_other_places_are_made_one_by_one():
    m = four_bar(True)
    job = da.ensemble.job(m, 0.1, da.normal(m.assemble(CLOSED).q, 0.1), runs=2, project=True)
    from dalembert.ensemble.batches import route_of

    assert route_of(job) == "run by run: redundant rows are scaled where each run starts"
