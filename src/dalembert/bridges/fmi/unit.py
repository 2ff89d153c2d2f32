"""A mechanism as a functional mock-up unit: equations printed to C, a runtime, a description, one zip file.

    x = [q; v]      dq/dt = N(q) v,  M a + bias + A^T lam = tau,  A a + drift = 0       inputs tau, tunable parameters p

Model exchange: an importer integrates x. When a step has left the loops (or the unit sphere of a quaternion) by more
than a tolerance, the unit asks for an event, in which x is projected back. Co-simulation: the unit integrates by
Runge-Kutta of order four with a fixed step, projected after each. Source: FMI 3.0.2 and 2.0.4, <https://fmi-standard.org>.
"""

from __future__ import annotations

import hashlib
import importlib.util
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dalembert.bridges.chosen import guest
from dalembert.bridges.fmi.description import UnitVariable, build_description, description2, description3, variables
from dalembert.errors import ModelError, UnsupportedError, warn_user
from dalembert.kernel import Kernel
from dalembert.kernel.c.engine import find_compiler
from dalembert.kernel.c.export import export_c
from dalembert.model.mechanism.parametric import SymbolicMechanism
from dalembert.model.named_state import configuration_of_names, velocity_of_names

if TYPE_CHECKING:
    from dalembert.model.mechanism.mechanism import Mechanism

HERE = Path(__file__).parent
KINDS = ("model_exchange", "co_simulation")
VERSIONS = ("3.0", "2.0")
PLATFORMS = {
    "linux64": ("x86_64-linux", "linux64", "so", "x86_64-linux-gnu"),
    "linux-aarch64": ("aarch64-linux", "aarch64-linux", "so", "aarch64-linux-gnu"),
    "win64": ("x86_64-windows", "win64", "dll", "x86_64-windows-gnu"),
    "darwin64": ("x86_64-darwin", "darwin64", "dylib", "x86_64-macos"),
    "darwin-aarch64": ("aarch64-darwin", "aarch64-darwin", "dylib", "aarch64-macos"),
}
"""Name: folder in FMI 3.0, folder in FMI 2.0, ending, target as Zig names it."""

HOLD = 1e-7
"""How far from its loops a state may be before an event, relative to the mechanism's reach: far above the errors of an
importer's integrator in one step, far below what anybody sees."""

STEP = 1e-3
"""Seconds of a step in co-simulation."""


@dataclass(frozen=True)
class MockupUnit:
    """What `to_fmu` wrote: the file, its variables by name, the platforms that have a binary."""

    path: Path
    version: str
    variables: dict[str, UnitVariable]
    platforms: tuple[str, ...]

    def __str__(self) -> str:
        states = sum(variable.derivative_of is not None for variable in self.variables.values())
        counts = f"{len(self.variables)} variables, {states} states"
        return f"{self.path} (FMI {self.version}): {counts}; binaries for {', '.join(self.platforms) or 'no platform'}"


def to_fmu(
    mechanism: Mechanism,
    path: str | Path,
    q: Any = None,
    v: Any = None,
    parameters: Sequence[str] = (),
    version: str = "3.0",
    kinds: Sequence[str] = KINDS,
    platforms: Sequence[str] | None = None,
    step: float = STEP,
    hold: float | None = None,
) -> MockupUnit:
    """Write a mechanism as a unit; see `Mechanism.to_fmu`."""
    kinds = (kinds,) if isinstance(kinds, str) else tuple(kinds)
    _check(version, VERSIONS, "version")
    for kind in kinds:
        _check(kind, KINDS, "kinds")
    if not kinds or not step > 0:
        raise ModelError(f"a unit has at least one of the kinds {KINDS} and a positive step; got {kinds}, step={step}")
    target = Path(path)
    name = re.sub(r"\W", "_", target.stem, flags=re.ASCII) or "unit"  # an identifier of C
    if name[0].isdigit():
        name = f"x{name}"
    start_q, start_v = _start(mechanism, q, v)
    symbolic = SymbolicMechanism.of(mechanism, tuple(parameters)) if parameters else None
    values = _parameter_values(symbolic)
    entries = variables(mechanism, start_q.tolist(), start_v.tolist(), values)
    twice = [x for x, count in Counter(variable.name for variable in entries).items() if count > 1]
    if twice:
        raise ModelError(f"a unit has a variable {twice[0]!r} of its own, as has {mechanism.name!r}: rename the joint")
    _warn_of_friction(mechanism)
    token = (
        "{"
        + hashlib.sha256("|".join([mechanism.content(), version, repr(entries), repr(step)]).encode()).hexdigest()[:32]
        + "}"
    )
    with tempfile.TemporaryDirectory() as folder:
        sources = Path(folder) / "sources"
        files = _write_sources(symbolic or mechanism, sources, len(values), entries, token, step, hold, version)
        binaries = _binaries(sources, files, Path(folder) / "binaries", name, platforms, version)
        if version == "3.0":
            text = description3(name, mechanism.name, token, entries, kinds, step)
            (sources / "buildDescription.xml").write_text(build_description(name, files))
        else:
            text = description2(name, mechanism.name, token, entries, kinds, files)
        (Path(folder) / "modelDescription.xml").write_text(text)
        with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
            for file in sorted(Path(folder).rglob("*")):
                if file.is_file():
                    archive.write(file, file.relative_to(folder).as_posix())
    return MockupUnit(target, version, {x.name: x for x in entries}, binaries)


def _check(word: Any, known: Sequence[str], what: str) -> None:
    if word not in known:
        raise ModelError(f"{what}: {word!r} is none of {', '.join(map(repr, known))}")


def _warn_of_friction(mechanism: Mechanism) -> None:
    """Say which dry friction the model carries and a unit leaves out."""
    rubbing = [joint.name for joint in mechanism.joints if any(joint.friction)]
    if rubbing:
        names = ", ".join(map(repr, rubbing))
        warn_user(f"{mechanism.name!r} as FMU: dry friction of {names} is left out, a unit has smooth forces alone")


def _start(mechanism: Mechanism, q: Any, v: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return where the unit starts: on the loops, with a velocity that they allow."""
    q, v = configuration_of_names(mechanism, q), velocity_of_names(mechanism, v)
    v = np.zeros(mechanism.nv) if v is None else np.asarray(v, dtype=float)
    if q is None:
        q = mechanism.assemble(mechanism.pose()).q if mechanism.names else mechanism.pose()
    return mechanism.project(q, v)


def _parameter_values(symbolic: SymbolicMechanism | None) -> dict[str, float]:
    """Return the numbers of the parameters, each with a name: those of several numbers are indexed."""
    if symbolic is None:
        return {}
    from dalembert.model.mechanism.parametric import PARAMETER_KINDS, split_name

    values = {}
    for name in symbolic.symbolic:
        kind, part = split_name(name)
        numbers = np.atleast_1d(np.asarray(PARAMETER_KINDS[kind].value(symbolic, part), dtype=float))
        for k, x in enumerate(numbers):
            values[name if len(numbers) == 1 else f"{name}[{k + 1}]"] = float(x)
    return values


def equations(mechanism: Mechanism, count: int) -> Any:
    """Return q, v, tau, t, p -> dq, acceleration, multipliers, status as one CasADi function."""
    import casadi as ca

    sizes = {"q": mechanism.nq, "v": mechanism.nv, "tau": mechanism.nv, "t": 1, "p": count}
    symbols = {name: ca.SX.sym(name, size) for name, size in sizes.items()}
    forward = _source(mechanism, "forward")
    inputs = [symbols[name] for name in ("q", "v", "tau", "t")] + ([symbols["p"]] if count else [])
    a, lam, status = forward.call(inputs)
    rate = _source(mechanism, "rate").call([symbols["q"], symbols["v"]])[0]
    outputs = {"dq": rate, "a": a, "lam": lam, "status": status}
    return ca.Function("da_equations", list(symbols.values()), list(outputs.values()), list(symbols), list(outputs))


def _source(mechanism: Mechanism, what: str) -> Any:
    """Return the expressions of a request, without machine code."""
    from dalembert.kernel.program.trace import scalar_function

    return scalar_function(mechanism.compile(what, backend="numpy").function)


def _projection(mechanism: Mechanism, count: int) -> Any:
    """Return q, v, t, p -> step, velocity, residual, impulses, status as one CasADi function."""
    import casadi as ca

    function = _source(mechanism, "project")
    inputs = function.sx_in()
    if not count:
        inputs = [*inputs, ca.SX.sym("p", 0)]
    outputs = function.call(inputs[:3] + (inputs[3:] if count else []))
    names = ["step", "velocity", "residual", "impulses", "status"]
    return ca.Function("da_project", inputs, outputs, ["q", "v", "t", "p"], names)


def _write_sources(
    mechanism: Mechanism,
    folder: Path,
    count: int,
    found: Sequence[UnitVariable],
    token: str,
    step: float,
    hold: float | None,
    version: str,
) -> list[str]:
    """Write all C files; return the names of those that are compiled."""
    kernel = Kernel(equations(mechanism, count), backend="numpy")
    smooth = ["dq", "a", "lam"]
    functions = {
        "da_equations": kernel.function,
        "da_forward": kernel.jvp(outputs=smooth).function,
        "da_reverse": kernel.vjp(outputs=smooth).function,
        "da_integrate": _source(mechanism, "integrate"),
    }
    if mechanism.names:
        functions["da_project"] = _projection(mechanism, count)
    files = []
    for name, function in functions.items():
        export = export_c(function, folder, name=name)
        export.cmake.unlink()
        export.example.unlink()
        files.append(export.source.name)
    reach = mechanism.reach or 1.0
    starts = ", ".join("0.0" if x.start is None else repr(float(x.start)) for x in found)
    sizes = {
        "DA_NQ": mechanism.nq,
        "DA_NV": mechanism.nv,
        "DA_M": len(mechanism.names),
        "DA_H": sum(mechanism.holonomic),
        "DA_NP": count,
        "DA_TOKEN": f'"{token}"',
        "DA_STEP": repr(float(step)),
        "DA_TOLERANCE": repr(float(HOLD * reach if hold is None else hold)),
        "DA_START": "{" + starts + "}",
    }
    lines = [
        "/* Sizes and start values of a mechanism; written by dalembert. */",
        "#ifndef DA_MODEL_H",
        "#define DA_MODEL_H",
        "",
    ]
    lines += ["#include <stddef.h>", *(f'#include "{name}.h"' for name in functions), ""]
    lines += [f"#define {macro} {value}" for macro, value in sizes.items()]
    (folder / "model.h").write_text("\n".join([*lines, "", "#endif", ""]))
    runtime = ["runtime.c", f"fmi{version[0]}.c"]
    for file in ("runtime.h", "common.h", *runtime):
        shutil.copyfile(HERE / file, folder / file)
    return [*files, *runtime]


# ----------------------------------------------------------------------------------------------------------------------
# Compilers: the system's for this machine, Zig for all others.


def native_platform() -> str | None:
    """Return the name of the platform that this is."""
    import platform

    machine = {"x86_64": "64", "amd64": "64", "aarch64": "-aarch64", "arm64": "-aarch64"}.get(
        platform.machine().lower()
    )
    system = {"linux": "linux", "win32": "win", "darwin": "darwin"}.get(sys.platform)
    name = f"{system}{machine}"
    return name if name in PLATFORMS else None


def _command(platform: str) -> list[str]:
    """Return the compiler of a platform with its options, or say what is missing."""
    _, _, _, target = PLATFORMS[platform]
    options = ["-O2", "-std=c99", "-shared", "-fPIC", "-fvisibility=hidden"]
    if platform == native_platform():
        try:
            return [find_compiler(), *options]
        except UnsupportedError:
            pass
    if importlib.util.find_spec("ziglang") is None:
        guest("ziglang", "a C compiler for it (Zig)", "fmi", f"a binary for {platform!r}")
    return [
        sys.executable,
        "-m",
        "ziglang",
        "cc",
        "-target",
        target,
        *(x for x in options if x != "-fPIC" or "win" not in platform),
    ]


def _binaries(
    sources: Path, files: Sequence[str], folder: Path, name: str, platforms: Sequence[str] | None, version: str
) -> tuple[str, ...]:
    """Compile for every platform; without a list, for this one, and for Windows and Linux where Zig is installed."""
    if platforms is None:
        zig = importlib.util.find_spec("ziglang") is not None
        host = native_platform()
        platforms = tuple(dict.fromkeys(x for x in (host, *(("linux64", "win64") if zig else ())) if x))
    for platform in platforms:
        _check(platform, tuple(PLATFORMS), "platforms")
        three, two, ending, _ = PLATFORMS[platform]
        target = folder / (three if version == "3.0" else two) / f"{name}.{ending}"
        target.parent.mkdir(parents=True)
        libraries = [] if platform == "win64" else ["-lm"]
        command = [*_command(platform), *(str(sources / file) for file in files), *libraries, "-o", str(target)]
        run = subprocess.run(command, capture_output=True, text=True, check=False)
        if run.returncode:
            raise UnsupportedError(f"the compiler refused the unit for {platform!r}: {run.stderr[-600:]}")
        for beside in target.parent.iterdir():
            if beside != target:
                beside.unlink()
    return tuple(platforms)


# ----------------------------------------------------------------------------------------------------------------------
# A check by an importer.


def check_fmu(path: str | Path) -> list[str]:
    """Return what fmpy finds wrong with a unit: schema, variables, structure; an empty list where it finds nothing."""
    validation = guest("fmpy.validation", "fmpy", "fmi", "check_fmu")
    return list(validation.validate_fmu(str(path)))


__all__ = ["MockupUnit", "check_fmu", "equations", "to_fmu"]
