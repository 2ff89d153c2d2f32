"""Mechanisms in time beside Exudyn, at equal accuracy: the cheapest run of each that reaches a given error.

    python benchmarks/simulate.py [--json FILE]

Problems of IFToMM's library of computational benchmark problems with converged references: A01 pendulum, A02 double
four-bar through its singular configurations, A04 Bricard's overconstrained mechanism. Exudyn (pip install exudyn) runs
its generalized-alpha method; times are those of its solver and of a whole call
of `da.simulate`, models being assembled and compiled before. With --long: 10^6 steps of a crank-rocker.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path

import numpy as np

import dalembert as da

sys.path.insert(0, str(Path(__file__).parents[1]))
from tests.simulate.linkages import bricard, crank_rocker, n_four_bar, pendulum

TOLERANCES = (1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8, 1e-9, 1e-10, 1e-11)
STEPS = (200, 1000, 4000, 20_000)
TARGETS = (1e-2, 1e-3, 1e-4, 1e-5, 1e-7)
REPEATS = 3

REFERENCES = {
    "A01 pendulum": (10.0, [-0.27508746257611686005, -0.96141920509912506427]),
    "A02 double four-bar": (10.0, [0.32845811154081537865, 0.94451853817860096216]),
    "A04 Bricard": (2.0, [-0.9693403447776, -1.2212468949563, 0.7542780107798]),
}


def best_time(function):
    """Return the least time of several calls, and the last result."""
    times, result = [], None
    for _ in range(REPEATS):
        start = time.perf_counter()
        result = function()
        times.append(time.perf_counter() - start)
    return min(times), result


def ours(name):
    """Return (time, error) per tolerance."""
    duration, reference = REFERENCES[name]
    if name.startswith("A01"):
        m, q, v = pendulum(), np.array([np.pi]), np.zeros(1)

        def place(run):
            return np.array([np.cos(run.q[-1, 0]), np.sin(run.q[-1, 0])])
    elif name.startswith("A02"):
        m, q, v = n_four_bar(2)

        def place(run):
            return m.kinematics(run.q[-1], "tip 0")[1][:2]
    else:
        m = bricard()
        q, v = m.neutral(), np.zeros(m.nv)

        def place(run):
            return m.kinematics(run.q[-1], "P3")[1]

    da.simulate(m, 0.1 * duration, q, v)
    found = []
    for tolerance in TOLERANCES:
        seconds, run = best_time(lambda rtol=tolerance: da.simulate(m, duration, q, v, rtol=rtol, atol=rtol))
        if run.ok:
            found.append(
                (seconds, float(np.abs(place(run) - reference).max()), f"rtol {tolerance:g}, {run.steps} steps")
            )
    return found


def exudyn_plane(bars, joints, watched, duration, steps):
    """Run rods in the plane: bars (x, y, angle, vx, vy, w, mass, inertia), joints ((bar, end), (bar or None, at))."""
    import exudyn as exu
    from exudyn.itemInterface import (
        Force,
        MarkerBodyPosition,
        NodeRigidBody2D,
        ObjectGround,
        ObjectRigidBody2D,
        RevoluteJoint2D,
    )

    container = exu.SystemContainer()
    mbs = container.AddSystem()
    ground = mbs.AddObject(ObjectGround())
    bodies = []
    for x, y, angle, vx, vy, w, mass, inertia in bars:
        node = mbs.AddNode(NodeRigidBody2D(referenceCoordinates=[x, y, angle], initialVelocities=[vx, vy, w]))
        bodies.append(mbs.AddObject(ObjectRigidBody2D(mass=mass, inertia=inertia, nodeNumber=node)))
        centre = mbs.AddMarker(MarkerBodyPosition(bodyNumber=bodies[-1]))
        mbs.AddLoad(Force(markerNumber=centre, loadVector=[0, -9.81 * mass, 0]))
    for sides in joints:
        markers = [
            mbs.AddMarker(MarkerBodyPosition(bodyNumber=ground if bar is None else bodies[bar], localPosition=place))
            for bar, place in sides
        ]
        mbs.AddObject(RevoluteJoint2D(markerNumbers=markers))
    mbs.Assemble()
    seconds = solve(exu, mbs, duration, steps)
    bar, place = watched
    end = mbs.GetObjectOutputBody(bodies[bar], exu.OutputVariableType.Position, localPosition=place)
    return seconds, np.array(end[:2])


def solve(exu, mbs, duration, steps):
    """Run Exudyn's solver and return its time."""
    settings = exu.SimulationSettings()
    settings.timeIntegration.numberOfSteps = steps
    settings.timeIntegration.endTime = duration
    settings.timeIntegration.verboseMode = 0
    settings.solution.file.write = False
    settings.solution.sensors.writePeriod = duration
    settings.timeIntegration.newton.useModifiedNewton = True
    settings.timeIntegration.generalizedAlpha.useIndex2Constraints = True
    settings.timeIntegration.generalizedAlpha.useNewmark = True
    settings.timeIntegration.newton.relativeTolerance = 1e-10
    settings.linearSolver.ignoreSingularJacobian = True
    settings.linearSolver.solverType = exu.LinearSolverType.EigenDense
    start = time.perf_counter()
    mbs.SolveDynamic(settings)
    return time.perf_counter() - start


def exudyn_pendulum(steps):
    """A01: a point mass at the end of a rod, hinged at the origin."""
    bars = [(-1, 0, 0, 0, 0, 0, 1.0, 1e-12)]
    return exudyn_plane(bars, [((0, [1, 0, 0]), (None, [0, 0, 0]))], (0, [0, 0, 0]), 10.0, steps)


def exudyn_four_bar(steps):
    """A02: three upright rods, two couplers."""
    up, rod = np.pi / 2, (1.0, 1 / 12)
    bars = [(i, 0.5, up, 0.5, 0, -1, *rod) for i in range(3)] + [(i + 0.5, 1, 0, 1, 0, 0, *rod) for i in range(2)]
    joints = [((i, [-0.5, 0, 0]), (None, [i, 0, 0])) for i in range(3)]
    for i in range(2):
        joints += [((i, [0.5, 0, 0]), (3 + i, [-0.5, 0, 0])), ((i + 1, [0.5, 0, 0]), (3 + i, [0.5, 0, 0]))]
    return exudyn_plane(bars, joints, (0, [0.5, 0, 0]), 10.0, steps)


def exudyn_bricard(steps):
    """A04: five rods in space."""
    import exudyn as exu
    import exudyn.utilities
    from exudyn.rigidBodyUtilities import RigidBodyInertia

    points = np.array([[0, 0, 0], [1, 0, 0], [1, -1, 0], [1, -1, 1], [0, -1, 1], [0, 0, 1]], float)
    unit = {"x": [1, 0, 0], "y": [0, 1, 0], "z": [0, 0, 1]}
    container = exu.SystemContainer()
    mbs = container.AddSystem()
    ground = mbs.CreateGround()
    bodies = []
    for i in range(5):
        along = points[i + 1] - points[i]
        moments = np.where(np.abs(along) > 0.5, 0.02, 1.01) / 12
        inertia = RigidBodyInertia(mass=1.0, inertiaTensor=np.diag(moments), com=[0, 0, 0])
        bodies.append(
            mbs.CreateRigidBody(inertia=inertia, referencePosition=list(points[i] + along / 2), gravity=[0, -9.81, 0])
        )
    for i, axis in enumerate("yzxyzx"):
        pair = [ground if i == 0 else bodies[i - 1], bodies[i] if i < 5 else ground]
        mbs.CreateRevoluteJoint(itemNumbers=pair, position=list(points[i]), axis=unit[axis], useGlobalFrame=True)
    mbs.Assemble()
    seconds = solve(exu, mbs, 2.0, steps)
    place = list(points[3] - (points[2] + points[3]) / 2)
    return seconds, np.array(mbs.GetObjectOutputBody(bodies[2], exu.OutputVariableType.Position, localPosition=place))


EXUDYN = {"A01 pendulum": exudyn_pendulum, "A02 double four-bar": exudyn_four_bar, "A04 Bricard": exudyn_bricard}


def theirs(name):
    """Return (time, error) per number of steps."""
    found = []
    for steps in STEPS:
        try:
            times = [EXUDYN[name](steps) for _ in range(1 if steps > 2000 else REPEATS)]
        except Exception as error:
            print(f"  exudyn, {steps} steps: {type(error).__name__}")
            continue
        error = float(np.abs(times[-1][1] - REFERENCES[name][1]).max())
        found.append((min(seconds for seconds, _ in times), error, f"{steps} steps"))
    return found


def cheapest(runs, target):
    """Return the cheapest run that reaches an error, or None."""
    good = [run for run in runs if run[1] <= target]
    return min(good) if good else None


def compare(only):
    """Print the table; return it as data."""
    rows = []
    for name in [each for each in REFERENCES if only in each]:
        own = ours(name)
        try:
            other = theirs(name)
        except ImportError:
            other = []
        for kind, runs in (("dalembert", own), ("exudyn", other)):
            print(f"  {kind}: " + "; ".join(f"{x[1]:.1e} in {x[0] * 1e3:.2f} ms" for x in runs), flush=True)
        for target in TARGETS:
            a, b = cheapest(own, target), cheapest(other, target)
            ratio = b[0] / a[0] if a and b else None
            rows.append({"problem": name, "error": target, "dalembert": a, "exudyn": b, "ratio": ratio})
            said = [f"{x[0] * 1e3:9.2f} ms ({x[2]})" if x else "      -" for x in (a, b)]
            print(
                f"{name:20} {target:7.0e}  {said[0]:38} {said[1]:28} {'' if ratio is None else f'{ratio:7.1f} x'}",
                flush=True,
            )
    return rows


def long_run(steps=1_000_000):
    """Take 10^6 steps of a crank-rocker; print residuals and drift."""
    m, q, v = crank_rocker()
    rows = []
    for method, h in (("dop853", 1e-3), ("variational", 1e-3)):
        start = time.perf_counter()
        run = da.simulate(m, steps * h, q, v, method=method, step=h, every=100 * h)
        seconds = time.perf_counter() - start
        half = run.t.size // 2
        drift = float(run.energy[half:].mean() - run.energy[:half].mean())
        rows.append(
            {"method": method, "steps": run.steps, "seconds": seconds, "position": float(run.position_residual.max()),
             "velocity": float(run.velocity_residual.max()), "swing": float(np.ptp(run.energy)), "drift": drift,
             "kinetic": float(run.kinetic.max())}
        )  # fmt: skip
        print({key: value if isinstance(value, str) else f"{value:.3g}" for key, value in rows[-1].items()}, flush=True)
    return rows


def main() -> None:
    """Run everything."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--only", default="", help="problems whose name holds this")
    parser.add_argument("--long", action="store_true", help="also 10^6 steps of a crank-rocker")
    options = parser.parse_args()
    table = {"equal accuracy": compare(options.only)}
    if options.long:
        table["long"] = long_run()
    if options.json:
        options.json.write_text(json.dumps(table, indent=1))


if __name__ == "__main__":
    main()
