"""Narrow phase of pairs of shapes: time, certificates and digits beside coal and MuJoCo, 200 random pairs of each kind.

    python benchmarks/collisions.py [scale] [deep | shallow]

Who is right where two differ? The signed distance of convex shapes is the largest of -s(n) over unit normals n, s the
support function of A - B: every normal gives a lower bound. "own" counts pairs in which the normal found gives a larger
one than the peer's by 1e-9 of the scale, "peer" the other way round; "1e-8": the share of pairs whose distances agree.
Times are processor time of one thread, least of ten; coal's contain one call from Python and a pose. MuJoCo keeps the
vertices of hulls in single precision.
"""

from __future__ import annotations

import itertools
import sys
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.contact.collisions import CLOUD, SIZES, Pairs

CONVEX = ("sphere", "capsule", "box", "cylinder", "ellipsoid", "hull")
KINDS = [*itertools.combinations_with_replacement(CONVEX, 2), *(("plane", kind) for kind in CONVEX)]
NUMBER = 200


def main() -> None:
    """Print the table."""
    words = [word for word in sys.argv[1:] if word in ("deep", "shallow")]
    numbers = [float(word) for word in sys.argv[1:] if word not in words]
    scale, depth = (numbers or [1.0])[0], (words or ["both"])[0]
    print(f"{NUMBER} pairs of each kind, scale {scale:g} m, {depth}")
    print(
        f"{'pair':22}{'us':>7}{'warm':>7}{'GJK':>6}{'EPA':>6}{'certificate':>13}"
        f" | coal{'us':>7}{'1e-8':>7}{'own':>5}{'peer':>5} | MuJoCo{'1e-8':>7}{'own':>5}{'peer':>5}"
    )
    for one, two in KINDS:
        pairs = Pairs(one, two, n=NUMBER, scale=scale, seed=3, near=0.05 if depth == "deep" else 0.35)
        if depth == "shallow":
            pairs.bring_near(0.02, np.random.default_rng(1))
        print(_row(pairs), flush=True)


def _row(pairs: Pairs) -> str:
    warm = np.zeros((pairs.n, 3))
    found = pairs.collide(warm=warm)[0][:, 0].copy()
    pairs.work["rounds"] = 0
    pairs.collide(several=True)
    gjk, epa, _ = pairs.work["rounds"][0] / pairs.n
    cold, hot = (
        _least(lambda w=w: pairs.collide(several=True, warm=w())) / pairs.n for w in (lambda: None, lambda: warm)
    )
    own = np.array([pairs.bound(i, found[i, 3:6]) for i in range(pairs.n)])
    certificate = np.abs(own - found[:, 6]).max() / pairs.scale
    text = f"{pairs.kinds[0]:10} {pairs.kinds[1]:11}{1e6 * cold:7.2f}{1e6 * hot:7.2f}{gjk:6.1f}{epa:6.1f}"
    text += f"{certificate:13.1e}"
    for peer in (_coal, _mujoco):
        distances, normals, spent = peer(pairs)
        if distances is None:
            text += " |" + " " * 28
            continue
        sizes = np.linalg.norm(normals, axis=1)  # zero where a peer has no answer
        theirs = np.array([pairs.bound(i, normals[i] / s) if s else -np.inf for i, s in enumerate(sizes)])
        better, worse = (np.sum(d > 1e-9 * pairs.scale) for d in (own - theirs, theirs - own))
        agree = np.mean(np.abs(distances - found[:, 6]) < 1e-8 * pairs.scale)
        text += f" |     {f'{1e6 * spent:7.2f}' if peer is _coal else '':7}{agree:7.1%}{better:5d}{worse:5d}"
    return text


def _least(call) -> float:
    """Return the least processor time of ten calls."""
    best = np.inf
    for _ in range(10):
        start = time.process_time()
        call()
        best = min(best, time.process_time() - start)
    return best


def _coal(pairs: Pairs):
    """Return coal's distances, normals and time a pair."""
    import coal

    s = {kind: pairs.scale * np.array(size, float) for kind, size in SIZES.items()}

    def shape(kind):
        if kind == "hull":
            points = coal.StdVec_Vec3s()
            for x in pairs.scale * CLOUD:
                points.append(x)
            return coal.Convex.convexHull(points, True, None)
        r = s[kind]
        return {
            "sphere": lambda: coal.Sphere(r[0]),
            "capsule": lambda: coal.Capsule(r[0], 2 * r[1]),
            "box": lambda: coal.Box(*(2 * r)),
            "cylinder": lambda: coal.Cylinder(r[0], 2 * r[1]),
            "ellipsoid": lambda: coal.Ellipsoid(*r),
            "plane": lambda: coal.Halfspace(np.array([0, 0, 1.0]), 0.0),
        }[kind]()

    first, second = (shape(kind) for kind in pairs.kinds)  # the call keeps no reference to them
    distance, request, result = coal.ComputeDistance(first, second), coal.DistanceRequest(), coal.DistanceResult()
    request.gjk_tolerance = request.epa_tolerance = 1e-9
    request.gjk_max_iterations = request.epa_max_iterations = 500
    distances, normals, spent = np.zeros(pairs.n), np.zeros((pairs.n, 3)), 0.0
    for i in range(pairs.n):
        a, b = pairs.records[i], pairs.records[pairs.n + i]
        X, Y = coal.Transform3s(a["R"], a["p"]), coal.Transform3s(b["R"], b["p"])
        result.clear()
        start = time.process_time()
        distance(X, Y, request, result)
        spent += time.process_time() - start
        distances[i], normals[i] = result.min_distance, result.normal
    return distances, normals, spent / pairs.n


def _mujoco(pairs: Pairs):
    """Return the distances of MuJoCo's `mj_geomDistance` and the normals between its points; none for planes."""
    import mujoco

    if "plane" in pairs.kinds:
        return None, None, 0.0
    used = {"sphere": 1, "capsule": 2, "cylinder": 2}

    def geom(kind, name):
        size = " ".join(f"{pairs.scale * x:.17g}" for x in SIZES[kind][: used.get(kind, 3)])
        what = 'type="mesh" mesh="hull"' if kind == "hull" else f'type="{kind}" size="{size}"'
        return f'<body name="{name}" mocap="true"><geom name="{name}" {what}/></body>'

    points = " ".join(f"{x:.17g}" for x in (pairs.scale * CLOUD).ravel())
    model = mujoco.MjModel.from_xml_string(
        f'''<mujoco><option ccd_tolerance="1e-12" ccd_iterations="500"/>
        <asset><mesh name="hull" vertex="{points}"/></asset>
        <worldbody>{geom(pairs.kinds[0], "one")}{geom(pairs.kinds[1], "two")}</worldbody></mujoco>'''
    )
    data, distances, normals, between = mujoco.MjData(model), np.zeros(pairs.n), np.zeros((pairs.n, 3)), np.zeros(6)
    for i in range(pairs.n):
        for k in range(2):
            record = pairs.records[k * pairs.n + i]
            data.mocap_pos[k] = record["p"]
            mujoco.mju_mat2Quat(data.mocap_quat[k], np.ascontiguousarray(record["R"]).ravel())
        mujoco.mj_kinematics(model, data)
        distances[i] = mujoco.mj_geomDistance(model, data, 0, 1, 10.0 * pairs.scale, between)
        normals[i] = np.sign(distances[i]) * (between[3:] - between[:3])
    return distances, normals, 0.0


if __name__ == "__main__":
    main()
