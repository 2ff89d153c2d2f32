"""MJCF files of a folder, read by dalembert and by MuJoCo: are kinematics and inverse dynamics the same.

Meant for a copy of MuJoCo Menagerie, whose models bring most of what people write in MJCF. For every file with bodies:
the largest relative difference of body positions, and of tau = M a + bias - passive forces, at random states. Models of
which dalembert's notes say that a force was left out are marked.

    python benchmarks/mjcf.py FOLDER [--states 3] [--largest 60] [--json FILE]
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import mujoco
import numpy as np

import dalembert as da
from dalembert.readers import state_map

FORCES = ("nonlinear", "spring and damper", "dead band", "fluid", "armature of tendon", "of tendon")
"""Words of notes on forces that are left out."""


def compare(path: Path, states: int) -> dict[str, object]:
    """Return sizes and the largest differences of one file."""
    robot = da.load(path)
    model = mujoco.MjModel.from_xml_path(str(path))
    data, maps = mujoco.MjData(model), state_map(robot, "mujoco", model)
    rng = np.random.default_rng(0)
    place = force = 0.0
    for k in range(states):
        q, v, a = robot.random(k), rng.normal(size=robot.nv), rng.normal(size=robot.nv)
        data.qpos, data.qvel = maps.to_q(q), maps.to_v(q, v)
        mujoco.mj_forward(model, data)
        M = np.zeros((model.nv, model.nv))
        mujoco.mj_fullM(model, data, M)
        tau = M @ maps.to_a(q, v, a) + data.qfrc_bias - data.qfrc_passive
        difference = maps.to_tau(q, robot.inverse(q, v, a).tau) - tau
        force = max(force, np.abs(difference).max(initial=0.0) / max(np.abs(tau).max(initial=0.0), 1e-300))
        _, p = robot.kinematics(q)
        own = np.array([p[robot.body_index(model.body(i).name or f"body_{i}")] for i in range(1, model.nbody)])
        place = max(place, np.abs(own - data.xpos[1:]).max(initial=0.0) / max(1.0, np.abs(data.xpos).max()))
    left = [note for note in robot.notes if note.startswith("left out") or "left out:" in note]
    marked = any(word in note for note in left for word in FORCES)
    loops = len(robot.loops) + len(robot.couplings)
    return {"nv": robot.nv, "relations": loops, "position": place, "force": force, "left out": marked}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--states", type=int, default=3)
    parser.add_argument("--largest", type=int, default=60, help="velocities of the largest model to compare")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    table: dict[str, dict[str, object]] = {}
    refused: dict[str, str] = {}
    print(f"{'file':52}{'nv':>4}{'loops':>6}{'position':>10}{'force':>10}")
    for path in sorted(options.folder.rglob("*.xml")):
        name = str(path.relative_to(options.folder))
        try:
            if da.load(path).nv > options.largest:
                continue
            row = table[name] = compare(path, options.states)
        except (
            da.DalembertError,
            ValueError,
        ) as error:  # MuJoCo's complaints, of meshes that are not there, are ValueError
            refused[name] = str(error)
            continue
        mark = "  a force is left out" if row["left out"] else ""
        print(
            f"{name:52}{row['nv']:4}{row['relations']:6}{row['position']:10.1e}{row['force']:10.1e}{mark}", flush=True
        )
    whole = [float(row["force"]) for row in table.values() if not row["left out"]]  # type: ignore[arg-type]
    print(
        f"{len(table)} files compared, {len(refused)} refused; worst of those read whole: {max(whole, default=0.0):.1e}"
    )
    for name, error in refused.items():
        print(f"refused: {name}: {error[-160:]}")
    if options.json:
        options.json.write_text(json.dumps({"compared": table, "refused": refused}, indent=1))


if __name__ == "__main__":
    main()
