"""Stores of studies, spoilt: bits that flip, files that are cut or missing, descriptions that someone made up.

What is read of a spoilt store is what was written, or it is refused in the library's own words, soon. `resume` computes
what is damaged again: after it the store is the one that was written, or what is wrong with it is said. A description
with a checksum of its own is another study; of such a one arrays must only be refused or be those of the files.
"""

from __future__ import annotations

import atexit
import json
import shutil
import tempfile
import time
import warnings
import zlib
from functools import cache
from pathlib import Path
from typing import Any

import casadi as ca
import numpy as np

import dalembert as da
from dalembert.friction import Bounded, Dry

TITLE: str = "stores of studies, spoilt: read as written, refused in words, or mended"

LONGEST = 10.0
"""Seconds that a store of 12 runs may take."""

NUMBERS = (-1, 0, 1, 3, 10**15, 2**63, -(2**63), 1e308, 0.5)
OTHERS: tuple[Any, ...] = (None, True, "", "x", [], {}, [1], {"x": 1}, float("nan"), *NUMBERS)
"""What takes the place of a value of JSON."""


@cache
def whole() -> tuple[Path, dict[str, np.ndarray], dict[str, list[Any]]]:
    """Return a store in blocks of three runs, its arrays, and its events."""
    folder = Path(tempfile.mkdtemp())
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    q, v, k = (ca.SX.sym(name) for name in "qvk")
    law = [Bounded("pad", v, Dry(0.2))]
    pad = da.Lagrangian(q, v, kinetic=v**2 / 2, potential=k * q**2 / 2, parameters={"k": (k, 4.0)}, friction=law)
    study = da.ensemble(
        pad, 0.8, da.normal([1.0], 0.1), [0.0], runs=12, seed=3, parameters={"k": da.uniform(2.0, 6.0)}, block=3,
        keep={"end": "q", "peak": ("q", "max"), "path": ("q", [0.1, 0.4])}, record_events=True,
        to=folder / "study.zarr", progress=False,
    )  # fmt: skip
    return folder / "study.zarr", study.arrays(), study.events()


def flipped(path: Path, rng: np.random.Generator) -> str:
    """Turn a bit of a file over."""
    files = sorted(each for each in path.rglob("*") if each.is_file() and each.stat().st_size)
    file = files[int(rng.integers(len(files)))]
    content = bytearray(file.read_bytes())
    content[int(rng.integers(len(content)))] ^= 1 << int(rng.integers(8))
    file.write_bytes(content)
    return f"flip of {file.relative_to(path)}"


def cut(path: Path, rng: np.random.Generator) -> str:
    """Cut a file off, remove it, or put another one in its place."""
    files = sorted(each for each in path.rglob("*") if each.is_file())
    file, other = (files[int(rng.integers(len(files)))] for _ in range(2))
    kind = int(rng.integers(3))
    if kind == 0:
        file.write_bytes(file.read_bytes()[: int(rng.integers(file.stat().st_size + 1))])
    elif kind == 1:
        file.unlink()
    else:
        shutil.copyfile(other, file) if other != file else None
    return f"cut {kind} of {file.relative_to(path)}"


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Return where the values of JSON are."""
    found = [path] if path else []
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, each in items:
        found += places(each, (*path, key))
    return found


def changed(value: Any, rng: np.random.Generator) -> Any:
    """Put something else in the place of a value of JSON, or take it out."""
    where = places(value)
    path = where[int(rng.integers(len(where)))]
    there = value
    for key in path[:-1]:
        there = there[key]
    if rng.random() < 0.2:
        del there[path[-1]]
    else:
        there[path[-1]] = OTHERS[int(rng.integers(len(OTHERS)))]
    return value


def invented(path: Path, rng: np.random.Generator) -> str:
    """Change what a store says of itself, with the checksum that belongs to it; or of one of its arrays."""
    if rng.random() < 0.4:
        files = sorted(path.rglob("zarr.json"))
        file = files[int(rng.integers(len(files)))]
        file.write_text(json.dumps(changed(json.loads(file.read_text()), rng)))
        return f"metadata of {file.relative_to(path)}"
    file = path / "zarr.json"
    content = json.loads(file.read_text())
    text = json.dumps(changed(json.loads(content["attributes"]["dalembert_study"]), rng))
    content["attributes"] |= {"dalembert_study": text, "dalembert_checksum": zlib.crc32(text.encode())}
    if rng.random() < 0.3:
        del content["attributes"]["dalembert_checksum"]
    file.write_text(json.dumps(content))
    return "description"


def read(study: Any) -> tuple[dict[str, np.ndarray], dict[str, list[Any]]]:
    """Read all of a study."""
    str(study), study.status, study.failed, study.table()
    return study.arrays(), study.events()


def compared(found: Any, missing: bool) -> str:
    """Return what differs from what was written, "" where nothing does; rows of missing runs may be."""
    _, arrays, events = whole()
    there = found[0]["status"] != 0 if missing else np.ones(12, bool)
    if found[0]["status"].shape != (12,):
        return "status has another shape"
    for name, rows in found[0].items():
        if name in arrays and (
            rows.shape != arrays[name].shape or rows[there].tobytes() != arrays[name][there].tobytes()
        ):
            return name
    own = [k for k in range(len(events["run"])) if there[events["run"][k]]]
    return "" if all(found[1][name] == [events[name][k] for k in own] for name in events) else "events"


def trial(rng: np.random.Generator) -> tuple[str, str]:
    """Spoil a store and read it."""
    kind = [flipped, flipped, cut, invented][int(rng.integers(4))]
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        path = Path(folder) / "study.zarr"
        shutil.copytree(whole()[0], path)
        what = kind(path, rng)
        said = []
        ways = {
            "open": lambda: da.ensemble.open(path), "missing": lambda: da.ensemble.open(path, damaged="missing"),
            "resume": lambda: da.ensemble.resume(path, progress=False, executor=None),
        }  # fmt: skip
        for way, make in ways.items():
            begin = time.monotonic()
            try:
                study = make()
                differs = compared(read(study), way != "resume" or kind is invented)
                if differs and kind is not invented:
                    return "wrong", f"{way}: {what}: {differs} is not what was written"
            except da.DalembertError as error:
                said.append(f"{way}: {type(error).__name__}")
            except Exception as error:
                return "foreign", f"{way}: {what}: {type(error).__name__}: {str(error)[:200]}"
            if time.monotonic() - begin > LONGEST:
                return "foreign", f"{way}: {what}: {time.monotonic() - begin:.0f} s"
    return ("refused", f"{kind.__name__}: {', '.join(said)}") if said else ("right", what)
