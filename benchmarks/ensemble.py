"""Throughput of studies: stick-slip, a four-bar, two cores against one, beside a plain loop and MuJoCo's rollout.

    python benchmarks/ensemble.py              # some thousand runs of each, a minute
    python benchmarks/ensemble.py --scale 1    # 1e5 stick-slip runs, 1e6 runs of a four-bar: minutes

Wall time and processor time are told: on a busy machine the second says what a run costs, and two threads against one
what the interpreter lock takes.
"""

from __future__ import annotations

import argparse
import multiprocessing
import resource
import time
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path

import casadi as ca
import numpy as np

import dalembert as da
from dalembert.friction import Bounded, StaticKinetic

STICK_SLIP, FOUR_BAR = 100_000, 1_000_000


def stick_slip():
    x, u, k = (ca.SX.sym(name) for name in "xuk")
    law = [Bounded("belt", u - 0.3, StaticKinetic(1.0, 0.5))]
    return da.Lagrangian(
        x, u, kinetic=u**2 / 2, potential=k * x**2 / 2, parameters={"k": (k, 1.0)}, friction=law, coordinates=["x"]
    )


def four_bar():
    b = da.Builder("four-bar")
    parent, at = "world", 0.0
    for name, length in {"crank": 0.4, "coupler": 1.0, "rocker": 0.8}.items():
        b.body(name, mass=1.0, center=(length / 2, 0, 0), inertia=(0.01, 0.1, 0.1))
        b.joint(f"{name} hinge", "revolute", parent, name, axis=(0, -1, 0), position=(at, 0, 0))
        parent, at = name, length
    # the pin of a plane linkage: two rows; those of da.Revolute are five, of which three are redundant
    pin = da.PointOnLine("rocker", at=(1.1, 0, 0), placement=(0.8, 0, 0), axis=(0, 1, 0), name="pin")
    return b.build().constrain(pin)


STUDIES = {
    "stick-slip, 20 s": (stick_slip, 20.0, [0.0], [0.3], {"k": da.uniform(0.8, 1.2)}, STICK_SLIP),
    "four-bar, 1 s": (four_bar, 1.0, None, None, {"mass:coupler": da.uniform(0.5, 2.0)}, FOUR_BAR),
}
"""System, duration, start, what varies, runs at scale 1."""


def study(name, runs, executor, **options):
    """Return a study, its seconds, and those of processors."""
    make, duration, q, v, parameters, _ = STUDIES[name]
    q = made(name).assemble([1.0, -0.7, -1.5]).q if make is four_bar else q
    system = made(name)
    begun, spent = time.perf_counter(), processor_seconds()
    found = da.ensemble(system, duration, q, v, runs=runs, seed=1, parameters=parameters, executor=executor, **options)
    return found, time.perf_counter() - begun, processor_seconds() - spent


def processor_seconds():
    """Return the seconds of processors that this process and its children have taken."""
    return sum(sum(resource.getrusage(who)[:2]) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))


def on_threads(name, runs, count):
    """Return a study on threads, with the seconds in which one of them did not wait for a processor.

    The kernel counts how long a thread was ready and had none: what is left is what it would take where nothing else
    runs, waiting for the interpreter lock included. Without these counts it is all seconds.
    """
    with ThreadPoolExecutor(count) as pool:
        found, seconds, spent = study(name, runs, pool, block=max(1, runs // 16))
        files = [Path(f"/proc/self/task/{thread.native_id}/schedstat") for thread in pool._threads]
        waits = [float(file.read_text().split()[1]) / 1e9 if file.exists() else 0.0 for file in files]
    return found, seconds, spent, seconds - sum(waits) / len(waits)


@cache
def made(name):
    return STUDIES[name][0]()


@cache
def bound(name):
    return made(name).with_parameters(*STUDIES[name][4])


def one_run(task):
    """Simulate as a plain loop over a pool does."""
    name, k = task
    make, duration, q, v, parameters, _ = STUDIES[name]
    system = made(name)
    (word,) = parameters
    if make is four_bar:
        q = system.assemble([1.0, -0.7, -1.5]).q
        system = bound(name).bind({word: k})
    else:
        system = system.with_parameters(**{word: k})
    return da.simulate(system, duration, q, v, progress=False).q[-1]


def rollout(runs, cores):
    """Return the seconds of MuJoCo's rollout of the same linkage: 1 s at 1 ms, RK4, a connect constraint (soft)."""
    import mujoco
    from mujoco.rollout import Rollout

    inertia = "<inertial pos='{2} 0 0' mass='1' diaginertia='.01 .1 .1'/>"
    link = f"<body name='{{0}}' pos='{{1}} 0 0'><joint axis='0 -1 0'/>{inertia}"
    chain = "".join(link.format(*x) for x in (("crank", 0, 0.2), ("coupler", 0.4, 0.5), ("rocker", 1.0, 0.4)))
    text = (
        "<mujoco><option timestep='1e-3' integrator='RK4'/><worldbody><site name='ground' pos='1.1 0 0'/>"
        f"{chain}<site name='end' pos='.8 0 0'/></body></body></body></worldbody>"
        "<equality><connect site1='end' site2='ground'/></equality></mujoco>"
    )
    model = mujoco.MjModel.from_xml_string(text)
    data = [mujoco.MjData(model) for _ in range(cores)]
    data[0].qpos[:] = four_bar().assemble([1.0, -0.7, -1.5]).q
    state = np.zeros(mujoco.mj_stateSize(model, mujoco.mjtState.mjSTATE_FULLPHYSICS))
    mujoco.mj_getState(model, data[0], state, mujoco.mjtState.mjSTATE_FULLPHYSICS)
    with Rollout(nthread=cores) as roll:
        begun = time.perf_counter()
        roll.rollout([model] * runs, data, np.tile(state, (runs, 1)), nstep=1000)
        return time.perf_counter() - begun


def report(name, scale):
    runs = max(400, int(scale * STUDIES[name][-1]))
    print(f"\n{name}: {runs} runs")
    on_threads(name, 16, 1)  # code is compiled
    one, seconds, spent, alone_there = on_threads(name, runs, 1)
    line("1 thread", runs, seconds, spent, f"{one.status_counts}, {one.route.partition(',')[0]}")
    many, faster, spent, both_there = on_threads(name, runs, 2)
    same = all(rows.tobytes() == many.arrays()[word].tobytes() for word, rows in one.arrays().items())
    line("2 threads", runs, faster, spent, f"{seconds / faster:.2f} times; same bytes: {same}")
    print(f"  without what both waited for processors: {alone_there / both_there:.2f} times")
    few = min(runs, 400)
    alone, slow, spent = study(name, few, ThreadPoolExecutor(1), batches=False, block=few)
    same = all(rows.tobytes() == one.arrays()[word][:few].tobytes() for word, rows in alone.arrays().items())
    line("run by run", few, slow, spent, f"same bytes: {same}")
    few = min(runs, 40)
    word = next(iter(one.inputs))
    with multiprocessing.get_context("forkserver").Pool(2) as pool:
        pool.map(one_run, [(name, 1.0)] * 2, chunksize=1)
        begun = time.perf_counter()
        ends = pool.map(one_run, [(name, float(k)) for k in one[word][:few]], chunksize=5)
        plain = time.perf_counter() - begun
    off = np.abs(np.array(ends) - one["q"][:few]).max()
    line("plain pool, 2", few, plain, None, f"a loop of da.simulate; largest difference {off:.1e}")
    if STUDIES[name][0] is four_bar:
        runs = min(runs, 2000)
        for cores in (1, 2):
            spent = processor_seconds()
            line(f"MuJoCo, {cores}", runs, rollout(runs, cores), processor_seconds() - spent, "1000 steps, soft loop")


def line(what, runs, seconds, spent, words):
    """Print runs per second, and microseconds of processors per run."""
    cost = "" if spent is None else f"{1e6 * spent / runs:10.1f} us of processors a run"
    print(f"  {what:14}{runs / seconds:10.1f} runs/s {cost:36} {words}", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scale", type=float, default=1e-2, help="part of 1e5 and 1e6 runs")
    for name in STUDIES:
        report(name, parser.parse_args().scale)
