"""Throughput of studies: stick-slip, a four-bar, two cores against one, beside a plain loop and MuJoCo's rollout.

    python benchmarks/ensemble.py              # some thousand runs of each, a minute
    python benchmarks/ensemble.py --scale 1    # 1e5 stick-slip runs, 1e6 runs of a four-bar: minutes
    python benchmarks/ensemble.py --gpu        # smooth studies on all cores and on a GPU, and where its time goes

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


# ----------------------------------------------------------------------------------------------------------------------
# Smooth studies on all cores, and in step on a device.


def pendulum():
    """Return two links on hinges."""
    return chain((0, 1, 0), (0, 1, 0))


def arm():
    """Return six links on hinges whose axes turn."""
    return chain((0, 0, 1), (0, 1, 0), (0, 1, 0), (1, 0, 0), (0, 1, 0), (1, 0, 0))


def chain(*axes):
    b = da.Builder("chain")
    parent, at = "world", 0.0
    for k, axis in enumerate(axes):
        b.body(f"link{k}", mass=1.0, center=(0.2, 0, 0.05), inertia=(0.01, 0.02, 0.02))
        b.joint(f"hinge{k}", "revolute", parent, f"link{k}", axis=axis, position=(at, 0, 0))
        parent, at = f"link{k}", 0.4
    return b.build()


def closed_bar():
    """Return a four-bar at an angle, on which all rows hold."""
    return made("four-bar, 1 s").assemble([1.0, -0.7, -1.5]).q


def pinned():
    """Return the four-bar whose pin has five rows, three of them redundant."""
    m = four_bar()
    return m.constrain(da.Revolute("rocker", at=(1.1, 0, 0), placement=(0.8, 0, 0), axis=(0, 1, 0), name="hinge"))


IN_STEP = {
    "four-bar, 1 s": (four_bar, 1.0, lambda m: (closed_bar(), None), {"mass:coupler": da.uniform(0.5, 2.0)}, {}),
    "redundant rows, 1 s": (
        pinned, 1.0, lambda m: (closed_bar(), da.normal(np.zeros(3), 1.0)), {}, {"project": True},
    ),
    "double pendulum, 2 s": (pendulum, 2.0, lambda m: (da.normal(np.zeros(2), 1.0), None), {}, {}),
    "arm of six hinges, 1 s": (arm, 1.0, lambda m: (da.normal(np.zeros(6), 1.0), None), {}, {}),
}  # fmt: skip
"""System, duration, start, what varies, other options."""


@cache
def system_in_step(name):
    return IN_STEP[name][0]()


def in_step(name, runs, backend, **options):
    """Return a study and its seconds."""
    _, duration, start, parameters, more = IN_STEP[name]
    m = system_in_step(name)
    q, v = start(m)
    begun = time.perf_counter()
    study = da.ensemble(
        m, duration, q, v, runs=runs, seed=1, parameters=parameters, backend=backend, progress=False, **more, **options
    )
    return study, time.perf_counter() - begun


def gpu_report(name, sizes, most_on_cores):
    """Print runs per second on all cores and on a GPU, and the largest difference of their last states."""
    print(f"\n{name}", flush=True)
    in_step(name, 64, "cpu")
    cores, seconds = in_step(name, min(max(sizes), most_on_cores), "cpu")
    line("all cores", cores.runs, seconds, None, f"{cores.status_counts}")
    _, seconds = in_step(name, 64, "cuda", block=64)
    print(f"  64 runs on the GPU with all that is compiled: {seconds:.1f} s", flush=True)
    for runs in sizes:
        found, seconds = in_step(name, runs, "cuda", block=min(runs, 2**18))
        both = min(runs, cores.runs)
        off = np.hstack([np.abs(found[word][:both] - cores[word][:both]) for word in ("q", "v")]).max(axis=1)
        words = f"difference {np.nanmax(off):.1e}, median {np.nanmedian(off):.1e}"
        line("GPU", runs, seconds, None, f"{words}; alone {found.arrays()['alone'].sum()}; {found.status_counts}")


def gpu_profile(name, runs):
    """Print where the time of one block goes: functions of the device, waited for one by one, and all the rest."""
    from collections import Counter

    import cupy

    from dalembert.simulate.batch.lanes import LaneStudy

    seconds, calls = Counter(), Counter()
    plain, step = LaneStudy.call, LaneStudy._step

    def timed(self, function, *several, **more):
        cupy.cuda.Device().synchronize()
        begun = time.perf_counter()
        found = plain(self, function, *several, **more)
        queued = time.perf_counter()
        cupy.cuda.Device().synchronize()
        word = function.split()[0]
        seconds[word] += time.perf_counter() - begun
        seconds["(host, queueing)"] += queued - begun
        calls[word] += 1
        return found

    def counted(self):
        calls["steps"] += 1
        step(self)

    whole = in_step(name, runs, "cuda", block=runs)[1]
    LaneStudy.call, LaneStudy._step = timed, counted
    slow = in_step(name, runs, "cuda", block=runs)[1]
    LaneStudy.call, LaneStudy._step = plain, step
    launches = sum(calls.values()) - calls["steps"]
    print(f"\n{name}: {runs} runs in {whole:.2f} s, {calls['steps']} steps, {launches / calls['steps']:.1f} kernels a "
          f"step; {slow:.2f} s where each kernel is waited for:")  # fmt: skip
    for word, spent in seconds.most_common():
        print(f"  {word:18}{spent:8.3f} s {calls[word]:6d} calls {1e6 * spent / max(calls[word], 1):9.0f} us a call")


def host_profile(name, runs):
    """Print what the host does in one block."""
    import cProfile
    import pstats

    profile = cProfile.Profile()
    job = da.ensemble.job(
        system_in_step(name), *IN_STEP[name][1:2], *IN_STEP[name][2](system_in_step(name)), runs=runs, seed=1,
        parameters=IN_STEP[name][3], backend="cuda", **IN_STEP[name][4],
    )  # fmt: skip
    from dalembert.ensemble.blocks import compute, with_shapes

    job = with_shapes(job)
    profile.runcall(compute, job, 0, runs)
    pstats.Stats(profile).sort_stats("cumtime").print_stats(25)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scale", type=float, default=1e-2, help="part of 1e5 and 1e6 runs")
    parser.add_argument("--gpu", action="store_true", help="smooth studies on all cores and on a GPU")
    parser.add_argument("--runs", type=float, nargs="+", default=[1e4, 1e5, 1e6], help="of studies on a GPU")
    parser.add_argument("--cores", type=float, default=1e5, help="runs on cores at most")
    parser.add_argument("--only", nargs="+", default=list(IN_STEP), help="of the studies on a GPU")
    parser.add_argument("--profile", type=float, default=0, help="runs of one block whose time is told by function")
    given = parser.parse_args()
    if not given.gpu:
        for name in STUDIES:
            report(name, given.scale)
    for name in given.only if given.gpu else ():
        if given.profile:
            gpu_profile(name, int(given.profile))
            host_profile(name, int(given.profile))
        else:
            gpu_report(name, [int(x) for x in given.runs], int(given.cores))
