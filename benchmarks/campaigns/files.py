"""Files spoilt at random: a reader refuses them in its own words, or reads what another tool reads.

A small URDF, SDF, MJCF, TOML, JSON or NPZ file gets one to six mutations: numbers and names replaced, elements deleted,
doubled, exchanged or moved, attributes removed, bytes broken, the end cut off. Where the file still loads, Pinocchio
(URDF), MuJoCo (MJCF) or Python's own parsers (TOML, JSON, NPZ) read it too, and mass and kinetic energy, or the matrix,
are compared. A file that takes longer than `LONGEST` counts as foreign: nobody waits for a refusal.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import tempfile
import time
import tomllib
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import dalembert as da

TITLE = "spoilt files: refused in the reader's own words, or read as another tool reads them"

LONGEST = 20.0
"""Seconds for a file of a few kilobytes, compilation included."""

TOLERANCE = 1e-8
"""Of masses, energies and matrices, relative to the largest entry: two ways through the same numbers."""

FAR_AWAY = 1e4
"""Metres beyond which MuJoCo, which measures inertias about the centre of all, loses the digits of energies."""

Words = tuple[str, str]

URDF = """<robot name="arm">
<link name="base"/>
<link name="upper"><inertial><origin xyz="0 0 0.2" rpy="0.1 0.2 0.3"/><mass value="2.5"/>
<inertia ixx="0.03" ixy="0.001" ixz="0" iyy="0.04" iyz="0.002" izz="0.02"/></inertial>
<collision><geometry><box size="0.1 0.1 0.4"/></geometry></collision></link>
<link name="lower"><inertial><origin xyz="0 0.01 0.15"/><mass value="1.25"/>
<inertia ixx="0.01" ixy="0" ixz="0" iyy="0.012" iyz="0" izz="0.004"/></inertial></link>
<link name="slide"><inertial><mass value="0.5"/><inertia ixx="0.001" ixy="0" ixz="0" iyy="0.001" iyz="0" izz="0.001"/>
</inertial></link>
<joint name="shoulder" type="revolute"><parent link="base"/><child link="upper"/><origin xyz="0 0 0.1" rpy="0 0.3 0"/>
<axis xyz="0 1 0"/><limit lower="-2" upper="2" effort="50" velocity="3"/><dynamics damping="0.4"/></joint>
<joint name="elbow" type="continuous"><parent link="upper"/><child link="lower"/><origin xyz="0 0 0.4"/>
<axis xyz="1 2 0"/></joint>
<joint name="rail" type="prismatic"><parent link="lower"/><child link="slide"/><origin xyz="0.1 0 0.2"/>
<axis xyz="0 0 1"/><limit lower="0" upper="0.3" effort="9" velocity="1"/></joint>
</robot>"""

SDF = """<sdf version="1.9"><model name="arm" canonical_link="base">
<link name="base"><inertial><mass>4</mass>
<inertia><ixx>0.1</ixx><iyy>0.1</iyy><izz>0.1</izz></inertia></inertial></link>
<link name="upper"><pose relative_to="base">0 0 0.3 0.1 0 0.2</pose><inertial><pose>0 0 0.2 0 0 0</pose><mass>2</mass>
<inertia><ixx>0.02</ixx><iyy>0.02</iyy><izz>0.01</izz><ixy>0.001</ixy></inertia></inertial></link>
<frame name="tip" attached_to="upper"><pose rotation_format="quat_xyzw">0 0 0.4 0 0 0 1</pose></frame>
<model name="tool"><pose relative_to="tip"/><link name="body"/></model>
<joint name="shoulder" type="revolute"><parent>base</parent><child>upper</child><axis><xyz>0 1 0</xyz>
<limit><lower>-1</lower><upper>1</upper></limit><dynamics><damping>0.1</damping></dynamics></axis></joint>
<joint name="wrist" type="fixed"><parent>upper</parent><child>tool::body</child></joint>
</model></sdf>"""

MJCF = """<mujoco model="crane"><compiler angle="radian"/><option gravity="0 0 -9.81"/>
<default><joint damping="0.1"/><geom density="700"/></default>
<worldbody><geom type="plane" size="1 1 1"/>
<body name="cart" pos="0 0 1"><joint name="rail" type="slide" axis="1 0 0" armature="0.2"/>
<geom type="box" size="0.2 0.1 0.05"/>
<body name="pole" pos="0 0.1 0"><joint name="pivot" axis="0 1 0" stiffness="3" springref="0.2" ref="0.1"/>
<geom type="capsule" fromto="0 0 0 0 0 0.6" size="0.03"/><site name="tip" pos="0 0 0.6"/>
<body name="ball" pos="0 0 0.7" gravcomp="0.5"><joint name="wrist" type="ball"/>
<inertial pos="0 0 0.1" mass="0.3" diaginertia="0.002 0.003 0.004"/></body></body></body>
<body name="free" pos="1 0 1"><freejoint name="float"/><geom size="0.1"/></body></worldbody>
<tendon><fixed name="belt" stiffness="5" damping="0.2"><joint joint="rail" coef="1"/><joint joint="pivot" coef="-0.5"/>
</fixed></tendon>
<equality><joint name="gear" joint1="rail" joint2="pivot" polycoef="0 0.4 0 0 0"/></equality>
<actuator><motor name="drive" joint="rail" gear="20" forcerange="-9 9"/></actuator></mujoco>"""

MATRICES = """coordinates = ["x", "y"]
mass = [[2.0, 0.5], [0.5, 1.0]]
force = [1.0, -3.0]
[[constraint]]
name = "rod"
row = [2.0, -1.0]
drift = 0.25
"""

EQUATIONS = """unknowns = ["x", "y"]
time = "t"
parameters = { g = 9.81, length = 1.5 }
[[equation]]
name = "rod"
text = "x^2 + y^2 = length^2"
[[equation]]
name = "drive"
text = "x - sin(2*t)/g = 0"
"""

NUMBERS = [
    *("nan", "-nan", "inf", "-inf", "1e999", "1e-999", "1e308", "-1", "0", "-0.0", "abc", "1,5", "0x10", "1e60"),
    *("1e-30", "99999999999999999999", "1_0", "${x}", "", " ", "1 2", "9" * 5000, "1e" + "9" * 400, "\u0661"),
    *("0." + "0" * 400 + "1", "true", "[]", "{}"),
]
NAMES = [
    *("world", "a", "::", "a::b", "__model__", "nan", "true", "../../etc/passwd", "package://x/y", "fixed", "free"),
    *("floating", "", " ", "x" * 1500, "\u00e9\u4e2d", "a\tb", "&#10;"),
]
BLANKS = re.compile(r"\"\s*([^\"\s]+)\s*\"")
NUMBER = re.compile(rb"[-+]?\d+\.?\d*(?:[eE][-+]?\d+)?")
TEXT = re.compile(rb"\"[^\"\n]*\"|(?<=>)[^<>\n]+(?=<)")
ELEMENT = re.compile(rb"<(\w+)[^<>]*/>|<(\w+)[^<>]*>[^<>]*</\2>|^[^\n]*\n", re.MULTILINE)
ATTRIBUTE = re.compile(rb"\s\w+=\"[^\"]*\"|^\w+ = [^\n]*\n", re.MULTILINE)


def trial(rng: np.random.Generator) -> Words:
    """Spoil one file and load it."""
    name = str(rng.choice(list(KINDS)))
    base, read, compare = KINDS[name]
    content = base() if callable(base) else base.encode()
    for _ in range(int(rng.choice([1, 1, 1, 2, 2, 3, 6]))):
        content = MUTATIONS[int(rng.integers(len(MUTATIONS)))](content, rng)
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        path = Path(folder) / f"file.{name.split()[-1]}"
        path.write_bytes(content)
        start = time.perf_counter()
        try:
            found = read(path)
        except da.DalembertError as error:
            if folder not in str(error):
                return "foreign", f"{name}: a refusal that does not name the file: {str(error)[:100]}"
            verdict = "refused", f"{name}: {type(error).__name__}"
        except Exception as error:  # what this campaign looks for
            return "foreign", f"{name}: {type(error).__name__}: {str(error)[:100]}"
        else:
            verdict = compare(found, path)
        took = time.perf_counter() - start
        return ("foreign", f"{name}: {took:.0f} s") if took > LONGEST else verdict


ROUNDINGS = 64
"""Of the largest moment of inertia, which a turn about other axes leaves in every sum of moments."""


def _pick(pattern: re.Pattern[bytes], content: bytes, rng: np.random.Generator) -> re.Match[bytes] | None:
    return pattern.search(content, int(rng.integers(len(content) + 1))) or pattern.search(content)


def _number(content: bytes, rng: np.random.Generator) -> bytes:
    """Put something else in the place of a number."""
    found = _pick(NUMBER, content, rng)
    new = NUMBERS[int(rng.integers(len(NUMBERS)))] if rng.random() < 0.4 else repr(float(rng.normal() * 10))
    return content if found is None else content[: found.start()] + new.encode() + content[found.end() :]


def _name(content: bytes, rng: np.random.Generator) -> bytes:
    """Put another name, or one of the file's, in the place of a text."""
    found, other = _pick(TEXT, content, rng), _pick(TEXT, content, rng)
    if found is None or other is None:
        return content
    word = NAMES[int(rng.integers(len(NAMES)))].encode() if rng.random() < 0.5 else other[0].strip(b'"')
    quote = b'"' if found[0].startswith(b'"') else b""
    return content[: found.start()] + quote + word + quote + content[found.end() :]


def _without(pattern: re.Pattern[bytes]) -> Callable[[bytes, np.random.Generator], bytes]:
    def mutate(content: bytes, rng: np.random.Generator) -> bytes:
        found = _pick(pattern, content, rng)
        return content if found is None else content[: found.start()] + content[found.end() :]

    return mutate


def _moved(content: bytes, rng: np.random.Generator) -> bytes:
    """Write an element a second time, somewhere or many times in one place."""
    found, there = _pick(ELEMENT, content, rng), _pick(ELEMENT, content, rng)
    if found is None or there is None:
        return content
    times = 1 if rng.random() < 0.8 else int(rng.integers(2, 300))
    return content[: there.end()] + found[0] * times + content[there.end() :]


def _byte(content: bytes, rng: np.random.Generator) -> bytes:
    """Change one byte."""
    at = int(rng.integers(max(1, len(content))))
    return content[:at] + bytes([int(rng.integers(256))]) + content[at + 1 :]


def _cut(content: bytes, rng: np.random.Generator) -> bytes:
    """Cut a piece out, or all that follows."""
    at = int(rng.integers(max(1, len(content))))
    return content[:at] if rng.random() < 0.2 else content[:at] + content[at + int(rng.integers(60)) :]


MUTATIONS = [_number, _number, _number, _name, _name, _without(ELEMENT), _without(ATTRIBUTE), _moved, _byte, _cut]


def _npz() -> bytes:
    stream = io.BytesIO()
    np.savez(stream, M=np.array([[2.0, 0.5], [0.5, 1.0]]), A=np.array([[1.0, 2.0]]), force=np.ones(2))
    return stream.getvalue()


def _same(name: str, one: Any, two: Any, rounding: float = 0.0) -> Words:
    a, b = np.asarray(one, dtype=float), np.asarray(two, dtype=float)
    limit = TOLERANCE * np.abs(b).max(initial=0.0) + rounding
    if a.shape == b.shape and np.abs(a - b).max(initial=0.0) <= limit:
        return "right", f"{name}: as the other tool"
    return "wrong", f"{name}: {a.tolist()} against {b.tolist()}"


@contextlib.contextmanager
def _silence() -> Iterator[None]:
    """Keep what C++ writes to the error stream from the terminal."""
    kept, nowhere = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nowhere, 2)
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(nowhere)


def _urdf(robot: da.Mechanism, path: Path) -> Words:
    """Compare the mass matrix at rest with Pinocchio's, which orders coordinates alike.

    Its parser leaves an inertia out, with a word on the error stream, where a number has blanks beside it.
    """
    try:
        import pinocchio as pin

        with _silence():
            model = pin.buildModelFromXML(BLANKS.sub(r'"\1"', path.read_text(encoding="utf-8")))
    except (ImportError, ValueError):  # a file that is not UTF-8 included
        return "right", "urdf: loaded, without another tool"
    M = pin.crba(model, model.createData(), pin.neutral(model))
    weighed = all(body.inertia.mass > 0 or body.inertia.is_zero() for body in robot.bodies)
    if not weighed or not np.all(np.diag(M)):
        return "right", "urdf: loaded; Pinocchio means nothing by masses below zero, moments without mass, no axis"
    own = robot.open_tree().mass_matrix(robot.neutral())
    largest = max(float(np.abs(body.inertia.rotational).max()) for body in robot.bodies)  # 1e60 kg m^2: spoilt, as said
    return _same("urdf", own, np.triu(M) + np.triu(M, 1).T, ROUNDINGS * np.finfo(float).eps * largest)


def _sdf(robot: da.Mechanism, path: Path) -> Words:
    """Check that bodies have names and a finite mass; no other reader of SDF is asked."""
    good = np.isfinite(robot.mass) and all(body.name for body in robot.bodies)
    return ("right" if good else "wrong"), "sdf: loaded, without another tool"


def _mjcf(robot: da.Mechanism, path: Path) -> Words:
    """Compare mass and kinetic energy with MuJoCo's; velocities of free joints differ, their energy does not."""
    import mujoco

    from dalembert.readers import state_map

    try:
        model = mujoco.MjModel.from_xml_path(str(path))
    except Exception as error:  # a file that the oracle refuses: dalembert took out what it complains of
        return "right", f"xml: loaded, MuJoCo alone does not ({type(error).__name__})"
    data, rng = mujoco.MjData(model), np.random.default_rng(1)
    try:
        states = state_map(robot, "mujoco", model)
    except da.DalembertError as error:  # blanks in names: XML makes a tab a blank, MuJoCo does not
        return "refused", f"xml: state_map: {type(error).__name__}"
    mujoco.mj_integratePos(model, data.qpos, rng.normal(size=model.nv), 0.3)
    data.qvel = rng.normal(size=model.nv)
    mujoco.mj_forward(model, data)
    mujoco.mj_energyVel(model, data)
    q = states.from_q(data.qpos)
    v = states.from_v(data.qpos, data.qvel)
    if np.abs(data.xpos).max() > FAR_AWAY:
        return _same("xml", [robot.mass], [model.body_mass[1:].sum()])
    energy = v @ robot.open_tree().mass_matrix(q) @ v / 2
    return _same("xml", [robot.mass, energy], [model.body_mass[1:].sum(), data.energy[1]])


def _matrices(problem: Any, path: Path) -> Words:
    """Compare the mass matrix with what Python's own parser finds."""
    text = path.suffix != ".npz"
    parse: Callable[[str], Any] = tomllib.loads if path.suffix == ".toml" else json.loads
    given = parse(path.read_text())["mass"] if text else np.load(path)["M"]
    return _same(f"matrices {path.suffix}", problem.system.M, given)


def _equations(system: Any, path: Path) -> Words:
    """Compare the parameters with what Python's own parser finds."""
    given = tomllib.loads(path.read_text()).get("parameters", {})
    found = {name: value for name, (_, value) in system.parameters.items()}
    return _same("equations", [found[name] for name in sorted(given)], [float(given[name]) for name in sorted(given)])


def _read_matrices(path: Path) -> Any:
    from dalembert.readers import read_matrices

    return read_matrices(path)


def _read_equations(path: Path) -> Any:
    from dalembert.readers.equation_file import read_equations

    return read_equations(path)


_JSON = json.dumps({"mass": [[2.0, 0.5], [0.5, 1.0]], "constraint": [{"row": [2.0, -1.0], "name": "rod"}]}, indent=1)
KINDS: dict[str, tuple[Any, Callable[[Path], Any], Callable[[Any, Path], Words]]] = {
    "urdf": (URDF, da.load, _urdf),
    "sdf": (SDF, da.load, _sdf),
    "xml": (MJCF, da.load, _mjcf),
    "matrices toml": (MATRICES, _read_matrices, _matrices),
    "matrices json": (_JSON, _read_matrices, _matrices),
    "matrices npz": (_npz, _read_matrices, _matrices),
    "equations toml": (EQUATIONS, _read_equations, _equations),
}
"""Kind, with the file's ending last -> the file unspoilt, its reader, and the comparison with another tool."""
