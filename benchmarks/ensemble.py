"""Throughput of studies: stick-slip, a four-bar, two cores against one, beside a plain loop and MuJoCo's rollout.

    python benchmarks/ensemble.py              # some hundred runs of each, a minute
    python benchmarks/ensemble.py --scale 1    # 1e5 stick-slip runs, 1e6 runs of a four-bar: hours, on a quiet machine

Ratios are from one run of this file; give it a machine of its own.
"""

from __future__ import annotations

import argparse
import multiprocessing
import time
from functools import cache

import casadi as ca
import numpy as np

import dalembert as da
from dalembert.ensemble.executors import available_cores
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
    pin = da.Revolute("rocker", at=(1.1, 0, 0), placement=(0.8, 0, 0), axis=(0, 1, 0), name="pin")
    return b.build().constrain(pin)


STUDIES = {
    "stick-slip, 20 s": (stick_slip, 20.0, [0.0], [0.3], {"k": da.uniform(0.8, 1.2)}, STICK_SLIP),
    "four-bar, 1 s": (four_bar, 1.0, None, None, {"mass:coupler": da.uniform(0.5, 2.0)}, FOUR_BAR),
}
"""System, duration, start, what varies, runs at scale 1."""


def study(name, runs, executor):
    """Return a study and its seconds; those in which processes start are part of them."""
    make, duration, q, v, parameters, _ = STUDIES[name]
    system = made(name) if make is four_bar else belt
    q = made(name).assemble([1.0, -0.7, -1.5]).q if make is four_bar else q
    begun = time.perf_counter()
    found = da.ensemble(system, duration, q, v, runs=runs, seed=1, parameters=parameters, executor=executor)
    return found, time.perf_counter() - begun


@cache
def made(name):
    return STUDIES[name][0]()


def belt(k):
    """Return the stick-slip system: a Lagrangian with contacts is made in every process, and does not travel."""
    return made("stick-slip, 20 s").with_parameters(k=k)


def one_run(task):
    """Simulate as a plain loop over a pool does."""
    name, k = task
    make, duration, q, v, parameters, _ = STUDIES[name]
    system = made(name)
    (word,) = parameters
    if make is four_bar:
        q = system.assemble([1.0, -0.7, -1.5]).q
        system = system.with_parameters(word).at({word: k})
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
    runs = max(40, int(scale * STUDIES[name][-1]))
    cores = min(2, available_cores())
    print(f"\n{name}: {runs} runs")
    study(name, 8, cores)  # code is compiled, processes have been started once
    one, seconds = study(name, runs, 1)
    many, faster = study(name, runs, cores)
    same = all(rows.tobytes() == many.arrays()[word].tobytes() for word, rows in one.arrays().items())
    print(f"  1 process      {runs / seconds:10.1f} runs/s   {one.status_counts}")
    print(f"  {cores} processes    {runs / faster:10.1f} runs/s   {seconds / faster:.2f} times; same bytes: {same}")
    few = min(runs, 400)
    threads = study(name, few, None)[1]
    print(f"  threads        {few / threads:10.1f} runs/s")
    few = min(runs, 40)
    (values,) = (da.ensemble(stick_slip(), 0.1, [0.0], [0.3], runs=few, seed=1, parameters={"k": x})["k"]
                 for x in STUDIES[name][4].values())  # fmt: skip
    with multiprocessing.get_context("forkserver").Pool(cores) as pool:
        pool.map(one_run, [(name, 1.0)] * cores, chunksize=1)
        begun = time.perf_counter()
        pool.map(one_run, [(name, float(k)) for k in values], chunksize=5)
        plain = time.perf_counter() - begun
    print(f"  plain pool     {few / plain:10.1f} runs/s   ({few} runs: new masses are new code there)")
    if STUDIES[name][0] is four_bar:
        seconds = rollout(runs := min(runs, 2000), cores)
        print(f"  MuJoCo rollout {runs / seconds:10.1f} runs/s   (fixed steps of 1 ms, soft loop)")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scale", type=float, default=1e-3, help="part of 1e5 and 1e6 runs")
    for name in STUDIES:
        report(name, parser.parse_args().scale)
