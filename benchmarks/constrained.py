"""Constrained forward dynamics of real robots beside Pinocchio and MuJoCo: contacts, and Cassie's closed loops.

    python benchmarks/constrained.py [--json FILE] [--quick] [--robots Go2 Talos ...]
    python benchmarks/constrained.py --markdown [FILE]     the table of docs/performance.md, of a run now or from FILE

Times are microseconds per state, the best of several repeats in one run, one thread; ratios from one run are what
counts. "single" is one call from Python with one state, ours and theirs alike. "batch" is a call with 1024 states, per
state; Pinocchio and MuJoCo have no batch of this, their single calls are taken.

Every kernel also returns a status per sample, made from the residuals of both block rows; the others return none.
Pinocchio's `constraintDynamics` gets the settings that are quickest for it: one iteration without a shift where rows
are independent; for Cassie, where they are not, five proximal steps with the shift 1e-6, which come close to the answer
of `KKT`; its constraints are in its own vectors ("lists": in Python lists, as its examples have them, which are
converted at every call). MuJoCo runs `mj_forward` with `connect` and `weld` equalities on the same bodies: soft
constraints, its usual way to the same question. "differs" is the largest difference of accelerations from Pinocchio's,
at rest, relative to the largest acceleration.

The limit is the operations of the traced program over what one core can issue; "share" is its inverse in per cent.
"cold" is `compile` with an empty cache, tracing included; "cached" is the same for a fresh mechanism when the cache is
filled, in a process that runs already; CPU seconds of the process, which a busy machine does not change. Where pydrake
is installed (a version in which constraints with the ground work, such as 1.40), one step of Drake's implicit discrete
dynamics is timed beside: see `drake_peer.py`.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
import pinocchio as pin

import dalembert as da
from dalembert.kernel.report import peak_operations
from drake_peer import drake_step
from robots import BATCH, REPEATS, Columns, best, find, mujoco_spec, print_table

CALLS = 200  # single calls that are timed together
STATES = 8  # states at which accelerations are compared
GOAL_SINGLE, GOAL_COLD = 4.0, 5.0
GOAL_BATCH = {"Go2": 40.0, "Talos": 28.0}
FEET = ("FL_foot", "FR_foot", "RL_foot", "RR_foot")


@dataclass(frozen=True)
class Case:
    """A robot file, what holds its base, frames that are held, and the rows of each: 3 or 6. No frames: its loops."""

    file: str
    base: str
    frames: tuple[str, ...] = ()
    rows: int = 3


CASES = {
    "Go2": Case("go2.urdf", "floating", FEET),
    "Talos": Case("talos_reduced.urdf", "floating", ("left_sole_link", "right_sole_link"), 6),
    "G1": Case("g1_29dof_rev_1_0.urdf", "floating", ("left_ankle_roll_link", "right_ankle_roll_link"), 6),
    "Panda": Case("panda.urdf", "fixed", ("panda_hand_tcp",), 6),
    "Cassie": Case("cassie_v2.sdf", "floating"),
}


def mechanism_of(case: Case) -> da.Mechanism:
    """Return the robot with its constraints, without springs, dampers and mimic joints, as Pinocchio takes it."""
    robot = da.load(find(case.file), base=case.base, allow_unphysical=True).with_passive(False)
    if not case.frames:
        return robot
    kind = da.Point if case.rows == 3 else da.Weld
    return robot.open_tree().constrain(*[kind(frame) for frame in case.frames])


@dataclass(frozen=True, eq=False)
class Peer:
    """A robot in Pinocchio; `order_q`, `order_v` take a state to Pinocchio's order of joints.

    Ends are pairs (joint, placement), one or two for each constraint.
    """

    model: pin.Model
    ends: list[list[tuple[int, pin.SE3]]]
    order_q: np.ndarray
    order_v: np.ndarray

    @classmethod
    def of_contacts(cls, case: Case) -> Peer:
        """Read the same file, and hold the same frames."""
        free = (pin.JointModelFreeFlyer(),) if case.base == "floating" else ()
        model = pin.buildModelFromUrdf(str(find(case.file)), *free)
        found = [model.frames[model.getFrameId(frame)] for frame in case.frames]
        ends = [[(each.parentJoint, each.placement)] for each in found]
        return cls(model, ends, np.arange(model.nq), np.arange(model.nv))

    @classmethod
    def of_loops(cls, mechanism: da.Mechanism) -> Peer:
        """Hand the tree over as URDF; its links may stand elsewhere, so places of loops are found from poses."""
        model = pin.buildModelFromXML(mechanism.open_tree().to_urdf(), pin.JointModelFreeFlyer())
        model.gravity.linear = np.array(mechanism.gravity)
        order_v = np.concatenate([np.arange(6), [mechanism.index_v(name).start for name in list(model.names)[2:]]])
        order_q = np.concatenate([np.arange(7), order_v[6:] + 1])
        q, data = mechanism.neutral(), model.createData()
        pin.forwardKinematics(model, data, q[order_q])

        def end(body: str, place: Any) -> tuple[int, pin.SE3]:
            R, p = mechanism.kinematics(q, body)
            joint = model.frames[model.getFrameId(body)].parentJoint
            return joint, data.oMi[joint].actInv(pin.SE3(R @ place.rotation, p + R @ place.position))

        ends = [[end(x.body, x.placement), end(x.other, x.other_placement)] for x in mechanism.loops]
        return cls(model, ends, order_q, order_v)

    def solver(self, rows: int, redundant: bool, lists: bool = False) -> Callable[..., np.ndarray]:
        """Return q, v, tau -> acceleration, all in Pinocchio's order; with constraints in its vectors, or in lists."""
        kind = pin.ContactType.CONTACT_3D if rows == 3 else pin.ContactType.CONTACT_6D
        model, data, frame = self.model, self.model.createData(), pin.LOCAL_WORLD_ALIGNED
        contacts, found = (
            pin.StdVec_RigidConstraintModel(),
            pin.StdVec_RigidConstraintData(),
        )  # lists are copied at calls
        for ends in self.ends:
            contacts.append(pin.RigidConstraintModel(kind, model, *[x for end in ends for x in end], frame))
            found.append(contacts[-1].createData())
        pin.initConstraintDynamics(model, data, contacts, found)
        if lists:
            contacts, found = list(contacts), list(found)
        settings = pin.ProximalSettings(1e-12, 1e-6, 5) if redundant else pin.ProximalSettings(1e-12, 0.0, 1)

        def solve(q: np.ndarray, v: np.ndarray, tau: np.ndarray) -> np.ndarray:
            return pin.constraintDynamics(model, data, q, v, tau, contacts, found, settings)

        return solve


def in_mujoco(case: Case, peer: Peer, mechanism: da.Mechanism) -> tuple[Any, Any]:
    """Return the robot in MuJoCo with the same bodies held or joined, at its first configuration."""
    text = find(case.file).read_text(encoding="utf-8") if case.frames else mechanism.open_tree().to_urdf()
    spec = mujoco_spec(text, case.base)
    names = {f.parentJoint: f.name for f in reversed(peer.model.frames) if f.type == pin.FrameType.BODY}
    for ends in peer.ends:
        equality = spec.add_equality()
        equality.type = mujoco.mjtEq.mjEQ_CONNECT if case.rows == 3 else mujoco.mjtEq.mjEQ_WELD
        equality.objtype = mujoco.mjtObj.mjOBJ_BODY
        equality.name1, equality.name2 = names[ends[0][0]], names[ends[1][0]] if len(ends) == 2 else "world"
        if case.rows == 3:
            equality.data[:3] = ends[0][1].translation
    model = spec.compile()
    data = mujoco.MjData(model)
    data.qvel[:] = 0.1
    return model, data


def places(case: Case, mechanism: da.Mechanism) -> list[list[tuple[str, Any]]]:
    """Return bodies and placements on them of every constraint: one of a contact, two of a loop."""
    held = [mechanism.frame(frame) for frame in case.frames]
    loops = [[(x.body, x.placement), (x.other, x.other_placement)] for x in mechanism.loops]
    return [[(frame.body, frame.placement)] for frame in held] if held else loops


def states(case: Case, mechanism: da.Mechanism) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return random q, v, tau; where loops must close, those near the neutral configuration that do."""
    rng = np.random.default_rng(0)
    v, tau = rng.standard_normal((2, BATCH, mechanism.nv))
    if case.frames:
        return mechanism.random(rng, BATCH), v, tau
    start = mechanism.integrate(mechanism.neutral(), 0.05 * rng.standard_normal((BATCH, mechanism.nv)))
    q, v = mechanism.project(start, v)
    good = np.flatnonzero(np.isfinite(q).all(axis=1))
    chosen = np.resize(good, BATCH)
    return q[chosen], v[chosen], tau


def in_turn(actions: dict[str, Callable[[], Any]], repeats: int) -> dict[str, float]:
    """Return the shortest run of each action, in microseconds; they take turns, so that a disturbance meets all."""
    runs = [{name: best(action, 1) for name, action in actions.items()} for _ in range(repeats)]
    return {name: min(run[name] for run in runs) for name in actions}


def compiled(case: Case) -> tuple[da.Mechanism, Any, dict[str, Any]]:
    """Return the mechanism, its kernel, and seconds until it was ready: with an empty cache, and from the cache."""
    seconds = []
    with tempfile.TemporaryDirectory() as folder:
        os.environ["DALEMBERT_CACHE"] = folder
        for _ in range(2):
            mechanism = mechanism_of(case)
            start = time.process_time()
            kernel = mechanism.compile("forward")
            seconds.append(time.process_time() - start)
        assert kernel.report().from_cache
        del os.environ["DALEMBERT_CACHE"]
    return mechanism, kernel, dict(zip(("cold", "cached"), seconds, strict=True))


def measure(name: str, case: Case, quick: bool) -> dict[str, Any]:
    """Return one row of the table."""
    mechanism, kernel, ready = compiled(case)
    peer = Peer.of_contacts(case) if case.frames else Peer.of_loops(mechanism)
    q, v, tau = states(case, mechanism)
    t, repeats = np.zeros(1), 5 if quick else REPEATS
    one = q[0].copy(), v[0].copy(), tau[0].copy(), t
    out = kernel(q, v, tau, t)
    status = out[2]
    theirs, listed = (peer.solver(case.rows, not case.frames, lists) for lists in (False, True))
    q_pin, v_pin, tau_pin = q[:, peer.order_q], v[:, peer.order_v], tau[:, peer.order_v]
    one_pin = q_pin[0].copy(), v_pin[0].copy(), tau_pin[0].copy()
    model, data = in_mujoco(case, peer, mechanism)
    calls = {
        "single": lambda: [kernel(*one) for _ in range(CALLS)],
        "pinocchio": lambda: [theirs(*one_pin) for _ in range(CALLS)],
        "pinocchio_lists": lambda: [listed(*one_pin) for _ in range(CALLS)],
        "mujoco": lambda: [mujoco.mj_forward(model, data) for _ in range(CALLS)],
        "batch": lambda: kernel(q, v, tau, t, out=out),
    }
    drake = drake_step(mechanism, places(case, mechanism), case.rows)
    if drake is not None:
        calls["drake"] = lambda: [drake() for _ in range(CALLS // 10)]
    counts = {"batch": BATCH, "drake": CALLS // 10}
    times = {what: each / counts.get(what, CALLS) for what, each in in_turn(calls, repeats).items()}
    at_rest = kernel(q[:STATES], 0 * v[:STATES], tau[:STATES], t)[0][:, peer.order_v]
    expected = np.array([theirs(q_pin[i], 0 * v_pin[i], tau_pin[i]).copy() for i in range(STATES)])
    report = kernel.report()
    return {
        "robot": name,
        "nv": mechanism.nv,
        "rows": len(mechanism.names),
        "solved": float(np.mean(status <= da.Status.ILL_CONDITIONED)),
        "differs": float(np.abs(at_rest - expected).max() / np.abs(expected).max()),
        "traced": report.traced_operations,
        "compiled": sum(report.operations.values()),
        "alive": report.live_after,
        "limit": 1e6 * (report.traced_operations or 0) / peak_operations(),
        **times,
        **ready,
    }


COLUMNS: Columns = (
    ("robot", "<6", lambda row: row["robot"]),
    ("nv", ">3", lambda row: row["nv"]),
    ("rows", ">4", lambda row: row["rows"]),
    ("traced", ">7", lambda row: row["traced"]),
    ("alive", ">5", lambda row: row["alive"]),
    ("single us", ">9.2f", lambda row: row["single"]),
    ("Pin us", ">7.2f", lambda row: row["pinocchio"]),
    ("lists", ">6.2f", lambda row: row["pinocchio_lists"]),
    ("MJ us", ">7.2f", lambda row: row["mujoco"]),
    ("Drake us", ">8.0f", lambda row: row.get("drake", float("nan"))),
    ("x Pin", ">6.1f", lambda row: row["pinocchio"] / row["single"]),
    ("x MJ", ">6.1f", lambda row: row["mujoco"] / row["single"]),
    ("batch us", ">9.3f", lambda row: row["batch"]),
    ("x Pin", ">6.1f", lambda row: row["pinocchio"] / row["batch"]),
    ("x MJ", ">6.1f", lambda row: row["mujoco"] / row["batch"]),
    ("/ limit", ">7.2f", lambda row: row["batch"] / row["limit"]),
    ("share %", ">7.0f", lambda row: 100 * row["limit"] / row["batch"]),
    ("cold s", ">6.2f", lambda row: row["cold"]),
    ("cached s", ">8.3f", lambda row: row["cached"]),
    ("solved %", ">8.0f", lambda row: 100 * row["solved"]),
    ("differs", ">8.0e", lambda row: row["differs"]),
)
"""Heading, format and value of every column; "x" is how many times faster the kernel is."""


def show(rows: list[dict[str, Any]]) -> None:
    """Print the table, and which goals are met."""
    print_table(COLUMNS, rows)
    for row in rows:
        goals = [("single", row["pinocchio"] / row["single"], GOAL_SINGLE, "x Pinocchio")]
        if row["robot"] in GOAL_BATCH:
            goals.append(("batch", row["pinocchio"] / row["batch"], GOAL_BATCH[row["robot"]], "x Pinocchio"))
        said = [
            f"{what} {found:.1f} of {goal:g} {unit}{'' if found >= goal else ' MISSED'}"
            for what, found, goal, unit in goals
        ]
        said.append(f"cold {row['cold']:.1f} of at most {GOAL_COLD:g} s{'' if row['cold'] <= GOAL_COLD else ' MISSED'}")
        print(f"goals, {row['robot']}: {'; '.join(said)}")


DOCS: tuple[tuple[str, Callable[[dict[str, Any]], str]], ...] = (
    ("", lambda row: f"{row['robot']}, {HELD[row['robot']]}"),
    ("rows", lambda row: RANKS.get(row["robot"], f"{row['rows']}")),
    ("operations", lambda row: f"{row['traced']:,}"),
    ("one state", lambda row: f"{row['single']:.2f}"),
    ("Pinocchio", lambda row: f"{row['pinocchio']:.2f} ({row['pinocchio_lists']:.1f})"),
    ("MuJoCo", lambda row: f"{row['mujoco']:.2f}"),
    ("Drake", lambda row: f"{row['drake']:.0f}" if "drake" in row else "-"),
    ("×", lambda row: f"{row['pinocchio'] / row['single']:.1f}"),
    ("batch", lambda row: f"{row['batch']:.3f}"),
    ("×", lambda row: f"{row['pinocchio'] / row['batch']:.1f}"),
    ("× MuJoCo", lambda row: f"{row['mujoco'] / row['batch']:.0f}"),
    ("over the limit", lambda row: f"{row['batch'] / row['limit']:.1f}"),
    ("share of peak", lambda row: f"{100 * row['limit'] / row['batch']:.0f} %"),
    ("cold", lambda row: f"{row['cold']:.1f} s"),
    ("from cache", lambda row: f"{1e3 * row['cached']:.0f} ms"),
)
"""Heading and value of every column of the table in docs/performance.md."""

HELD = {"Go2": "four points", "Talos": "two welds", "G1": "two welds", "Panda": "one weld", "Cassie": "four loops"}
RANKS = {"Cassie": "12, rank 10"}


def markdown(rows: list[dict[str, Any]]) -> str:
    """Return the table of docs/performance.md."""
    lines = [[title for title, _ in DOCS], ["---"] * len(DOCS)]
    lines += [[value(row) for _, value in DOCS] for row in rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path, help="write all figures to this file")
    parser.add_argument("--quick", action="store_true", help="fewer repeats")
    parser.add_argument("--robots", nargs="+", choices=CASES, default=list(CASES), help="only these")
    parser.add_argument(
        "--markdown", nargs="?", const="", metavar="FILE", help="print the table of the docs, of this run or from FILE"
    )
    arguments = parser.parse_args()
    if arguments.markdown:
        print(markdown(json.loads(Path(arguments.markdown).read_text())["rows"]))
        return
    load = os.getloadavg()[0]
    rows = [measure(name, CASES[name], arguments.quick) for name in arguments.robots]
    versions = {"pinocchio": pin.__version__, "mujoco": mujoco.__version__, "python": sys.version.split()[0]}
    print(f"{platform.processor() or platform.machine()}, {versions}, batch of {BATCH}, one thread, load {load:.1f}")
    show(rows)
    if arguments.markdown is not None:
        print(markdown(rows))
    if arguments.json:
        arguments.json.write_text(
            json.dumps({"versions": versions, "batch": BATCH, "load": load, "rows": rows}, indent=1)
        )


if __name__ == "__main__":
    main()
