"""Real robots: RNEA, CRBA and ABA as kernels beside Pinocchio and MuJoCo, one state per call and batches.

    python benchmarks/robots.py [--json FILE] [--quick]

Times are microseconds per sample, the best of several repeats in one run, one thread; ratios from one run are what
counts. "single" is one call from Python with one state, ours and theirs alike. "batch" is a call with 1024 states, per
state; Pinocchio has batches of RNEA and ABA (`rneaInParallel`, `abaInParallel`, one thread), for the mass matrix its
single calls are taken. MuJoCo runs what it needs for the same answer: kinematics and `mj_rne`; kinematics and the mass
matrix (which it keeps sparse); `mj_forward` with contacts and constraints switched off. The limit is the operations of
the traced program over what one core can issue; a mass matrix must also be written, nv^2 numbers a sample.
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
import time
from collections.abc import Callable
from importlib.metadata import files
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import mujoco
import numpy as np
import pinocchio as pin

import dalembert as da
from dalembert.kernel.report import peak_operations
from dalembert.readers import load

BATCH = 1024
REPEATS = 15
CALLS = 300  # single calls that are timed together

ROBOTS = {
    "Panda": ("panda.urdf", "fixed"),
    "Go2": ("go2.urdf", "floating"),
    "G1": ("g1_29dof_rev_1_0.urdf", "floating"),
    "Talos": ("talos_reduced.urdf", "floating"),
    "iCub": ("icub.urdf", "floating"),
}
GOAL_SINGLE, GOAL_BATCH = 3.0, 20.0


def best(action: Callable[[], Any], repeats: int = REPEATS) -> float:
    """Return the shortest of several runs, in microseconds."""
    shortest = float("inf")
    for _ in range(repeats):
        start = time.perf_counter()
        action()
        shortest = min(shortest, time.perf_counter() - start)
    return 1e6 * shortest


def find(name: str) -> Path:
    """Return where example-robot-data has a file."""
    return next(Path(str(path.locate())) for path in files("example-robot-data") or () if path.name == name)


def mujoco_spec(text: str, base: str) -> Any:
    """Return the URDF in `text` as MuJoCo's editable model, without shapes."""
    robot = ElementTree.fromstring(text)
    for parent in list(robot.iter()):
        for child in list(parent):
            if child.tag in ("visual", "collision", "transmission", "gazebo", "mujoco", "sensor"):
                parent.remove(child)
    spec = mujoco.MjSpec.from_string(ElementTree.tostring(robot, encoding="unicode"))
    spec.compiler.boundmass, spec.compiler.boundinertia, spec.compiler.balanceinertia = 1e-6, 1e-9, True
    if base == "floating":
        spec.worldbody.first_body().add_freejoint()
    return spec


def in_mujoco(path: Path, base: str) -> tuple[Any, Any]:
    """Return the robot in MuJoCo, without shapes, contacts and constraints."""
    model = mujoco_spec(path.read_text(encoding="utf-8"), base).compile()
    model.opt.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_CONTACT | mujoco.mjtDisableBit.mjDSBL_CONSTRAINT)
    data = mujoco.MjData(model)
    data.qvel[:] = 0.1
    return model, data


def mujoco_calls(model: Any, data: Any) -> dict[str, Callable[[], Any]]:
    """Return MuJoCo's way to each answer."""
    out = np.zeros(model.nv)
    crb = mujoco.mj_makeM if hasattr(mujoco, "mj_makeM") else mujoco.mj_crb

    def rnea() -> None:
        mujoco.mj_kinematics(model, data)
        mujoco.mj_comPos(model, data)
        mujoco.mj_comVel(model, data)
        mujoco.mj_rne(model, data, 1, out)

    def crba() -> None:
        mujoco.mj_kinematics(model, data)
        mujoco.mj_comPos(model, data)
        crb(model, data)

    return {"RNEA": rnea, "CRBA": crba, "ABA": lambda: mujoco.mj_forward(model, data)}


def measure(name: str, file: str, base: str, quick: bool) -> list[dict[str, Any]]:
    """Return one row per algorithm."""
    path = find(file)
    free = pin.JointModelFreeFlyer() if base == "floating" else None
    model = pin.buildModelFromUrdf(str(path), free) if free else pin.buildModelFromUrdf(str(path))
    mechanism = load(path, base=base, allow_unphysical=True)
    box = 2.0 * np.ones(model.nq)
    q = np.array([pin.randomConfiguration(model, -box, box) for _ in range(BATCH)])
    v, a = np.random.default_rng(0).standard_normal((2, BATCH, model.nv))
    peers = mujoco_calls(*in_mujoco(path, base))
    rows = []
    for algorithm, request, states in (
        ("RNEA", "inverse", (q, v, a)),
        ("CRBA", "mass_matrix", (q,)),
        ("ABA", "aba", (q, v, a)),
    ):
        rows.append(
            {"robot": name, "nv": model.nv, "algorithm": algorithm}
            | timed(mechanism, request, states, quick)
            | pinocchio(model, algorithm, states)
            | {"mujoco": best(lambda call=peers[algorithm]: [call() for _ in range(CALLS)]) / CALLS}
        )
    return rows


def timed(mechanism: da.Mechanism, request: str, states: tuple[np.ndarray, ...], quick: bool) -> dict[str, Any]:
    """Return figures of one kernel."""
    start = time.perf_counter()
    kernel = mechanism.compile(request)
    ready = time.perf_counter() - start
    one = [x[0].copy() for x in states]
    out = kernel(*states)
    single = best(lambda: [kernel(*one) for _ in range(CALLS)]) / CALLS
    batch = best(lambda: kernel(*states, out=out), 5 if quick else REPEATS) / BATCH
    report = kernel.report()
    peak = peak_operations()
    return {
        "traced": report.traced_operations,
        "compiled": sum(report.operations.values()),
        "single": single,
        "batch": batch,
        "limit": 1e6 * (report.traced_operations or 0) / peak,
        "ready": ready,
        "from_cache": report.from_cache,
    }


def pinocchio(model: pin.Model, algorithm: str, states: tuple[np.ndarray, ...]) -> dict[str, Any]:
    """Return Pinocchio's times: one call from Python; its own batch where it has one."""
    data = model.createData()
    function = {"RNEA": pin.rnea, "CRBA": pin.crba, "ABA": pin.aba}[algorithm]
    one = [x[0].copy() for x in states]
    single = best(lambda: [function(model, data, *one) for _ in range(CALLS)]) / CALLS
    batched = {"RNEA": "rneaInParallel", "ABA": "abaInParallel"}.get(algorithm)
    if batched is None or not hasattr(pin, batched):
        return {"pinocchio": single, "pinocchio_batch": single}
    pool, columns = pin.ModelPool(model, 1), [np.asfortranarray(x.T) for x in states]
    out = np.asfortranarray(np.zeros((model.nv, BATCH)))
    call = getattr(pin, batched)
    return {"pinocchio": single, "pinocchio_batch": best(lambda: call(1, pool, *columns, out)) / BATCH}


Columns = tuple[tuple[str, str, Callable[[dict[str, Any]], Any]], ...]

COLUMNS: Columns = (
    ("robot", "<6", lambda row: row["robot"]),
    ("nv", ">3", lambda row: row["nv"]),
    ("", "<5", lambda row: row["algorithm"]),
    ("traced", ">7", lambda row: row["traced"]),
    ("single us", ">9.2f", lambda row: row["single"]),
    ("Pin us", ">7.2f", lambda row: row["pinocchio"]),
    ("MJ us", ">7.2f", lambda row: row["mujoco"]),
    ("x Pin", ">6.1f", lambda row: row["pinocchio"] / row["single"]),
    ("x MJ", ">6.1f", lambda row: row["mujoco"] / row["single"]),
    ("batch us", ">9.3f", lambda row: row["batch"]),
    ("Pin batch", ">9.2f", lambda row: row["pinocchio_batch"]),
    ("x it", ">6.1f", lambda row: row["pinocchio_batch"] / row["batch"]),
    ("x Pin", ">6.1f", lambda row: row["pinocchio"] / row["batch"]),
    ("x MJ", ">6.1f", lambda row: row["mujoco"] / row["batch"]),
    ("/ limit", ">7.1f", lambda row: row["batch"] / row["limit"]),
    ("ready s", ">7.2f", lambda row: row["ready"]),
)
"""Heading, format and value of every column; "x" is how many times faster the kernel is."""


def print_table(columns: Columns, rows: list[dict[str, Any]]) -> None:
    """Print the columns of all rows under their headings."""
    widths = [style.split(".")[0] for _, style, _ in columns]
    print(" ".join(format(title, width) for (title, _, _), width in zip(columns, widths, strict=True)))
    for row in rows:
        print(" ".join(format(value(row), style) for _, style, value in columns))


def show(rows: list[dict[str, Any]]) -> None:
    """Print the table, and the goals."""
    print_table(COLUMNS, rows)
    print(f"goals against Pinocchio called from Python: single >= {GOAL_SINGLE:g} x, batch >= {GOAL_BATCH:g} x")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path, help="write all figures to this file")
    parser.add_argument("--quick", action="store_true", help="fewer repeats")
    arguments = parser.parse_args()
    rows = [row for name, (file, base) in ROBOTS.items() for row in measure(name, file, base, arguments.quick)]
    versions = {"pinocchio": pin.__version__, "mujoco": mujoco.__version__, "python": sys.version.split()[0]}
    print(f"{platform.processor() or platform.machine()}, {versions}, batch of {BATCH}, one thread")
    show(rows)
    if arguments.json:
        arguments.json.write_text(json.dumps({"versions": versions, "batch": BATCH, "rows": rows}, indent=1))


if __name__ == "__main__":
    main()
