"""Mechanisms as FMUs: valid for fmpy, its runs equal ours, derivatives against differences, both versions."""

from __future__ import annotations

import shutil
import zipfile
from dataclasses import replace

import numpy as np
import pytest

import dalembert as da
from tests.bridges.models import four_bar

fmpy = pytest.importorskip("fmpy")
pytestmark = pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")

START = (1.0, -0.7, -1.5)
SECONDS = 1.0


@pytest.fixture(scope="module")
def start():
    return four_bar().assemble(START).q


@pytest.fixture(scope="module", params=["3.0", "2.0"])
def unit(request, start, tmp_path_factory):
    path = tmp_path_factory.mktemp("fmu") / "four_bar.fmu"
    return four_bar().to_fmu(path, start, version=request.param, parameters=["mass:coupler"], platforms=["linux64"])


@pytest.fixture(scope="module")
def runs(start):
    """Our runs, with the coupler's mass of the model and another."""
    m = four_bar()
    heavy = m.with_parameters("mass:coupler").at({"mass:coupler": 3.0})
    return {mass: da.simulate(each, SECONDS, start, rtol=1e-10, atol=1e-12) for mass, each in ((1.0, m), (3.0, heavy))}


def test_the_file_is_valid_and_complete(unit):
    from dalembert.bridges.fmi.unit import check_fmu

    assert check_fmu(unit.path) == []
    names = zipfile.ZipFile(unit.path).namelist()
    folder = "x86_64-linux" if unit.version == "3.0" else "linux64"
    assert f"binaries/{folder}/four_bar.so" in names
    assert {"modelDescription.xml", "sources/da_equations.c", "sources/runtime.c"} < set(names)
    assert ("sources/buildDescription.xml" in names) == (unit.version == "3.0")


@pytest.mark.parametrize("kind", ["ModelExchange", "CoSimulation"])
@pytest.mark.parametrize("mass", [1.0, 3.0])
def test_runs_are_ours(unit, runs, kind, mass):
    """States and a reaction after a second; parameters act; the loop stays closed."""
    m, run = four_bar(), runs[mass]
    row = f"multiplier.{m.names[0]}"
    options = {"solver": "CVode", "relative_tolerance": 1e-9} if kind == "ModelExchange" else {}
    outputs = [*m.configuration_names, "rocker hinge.v", row, "status"]
    result = fmpy.simulate_fmu(
        str(unit.path),
        fmi_type=kind,
        stop_time=SECONDS,
        output_interval=0.05,
        start_values={"mass:coupler": mass},
        output=outputs,
        **options,
    )
    q = np.array([result[name] for name in m.configuration_names]).T
    np.testing.assert_allclose(q[-1], run.q[-1], rtol=0, atol=1e-6)
    assert result["rocker hinge.v"][-1] == pytest.approx(run.v[-1][2], abs=1e-5)
    assert result[row][-1] == pytest.approx(run.multipliers[-1][0], rel=1e-5)
    assert np.abs(m.constraint(q)).max() < 2e-7 * m.reach
    assert (result["status"] == da.Status.REDUNDANT).all()


def opened(unit, kind="me"):
    """Return fmpy's instance of a unit, initialised, with the references of its variables."""
    from fmpy import extract, read_model_description
    from fmpy.fmi2 import FMU2Model
    from fmpy.fmi3 import FMU3Model

    description = read_model_description(str(unit.path))
    options = {
        "guid": description.guid,
        "unzipDirectory": extract(str(unit.path)),
        "modelIdentifier": description.modelExchange.modelIdentifier,
        "instanceName": "it",
    }
    instance = (FMU3Model if unit.version == "3.0" else FMU2Model)(**options)
    instance.instantiate()
    if unit.version == "2.0":
        instance.setupExperiment()
    instance.enterInitializationMode()
    return instance, {x.name: x.valueReference for x in description.modelVariables}


def test_derivatives_against_differences(unit):
    """d(der(v), multiplier)/d(q, v, tau, mass), forward and, in FMI 3.0, reverse."""
    instance, place = opened(unit)
    m = four_bar()
    unknowns = [place["der(crank hinge.v)"], place[f"multiplier.{m.names[0]}"], place["rocker hinge"]]
    knowns = [place[x] for x in ("coupler hinge", "rocker hinge.v", "tau.crank hinge", "mass:coupler")]
    read = instance.getFloat64 if unit.version == "3.0" else instance.getReal
    write = instance.setFloat64 if unit.version == "3.0" else instance.setReal
    start = np.array(read(knowns))
    h = 1e-6
    wanted = np.empty((3, 4))
    for k in range(4):
        ends = []
        for sign in (1, -1):
            write(knowns, list(start + sign * h * np.eye(4)[k]))
            ends.append(np.array(read(unknowns)))
        write(knowns, list(start))
        wanted[:, k] = (ends[0] - ends[1]) / (2 * h)
    found = np.array([instance.getDirectionalDerivative(unknowns, knowns, list(row)) for row in np.eye(4)]).T
    np.testing.assert_allclose(found, wanted, rtol=1e-6, atol=1e-6)
    if unit.version == "3.0":
        some = knowns[1:]  # fmpy makes room for as many sensitivities as there are seeds
        rows = np.array([instance.getAdjointDerivative(unknowns, some, list(row)) for row in np.eye(3)])
        np.testing.assert_allclose(rows, found[:, 1:], rtol=1e-9, atol=1e-12)
    instance.freeInstance()


def test_states_are_kept_and_restored(unit):
    instance, place = opened(unit)
    read = instance.getFloat64 if unit.version == "3.0" else instance.getReal
    write = instance.setFloat64 if unit.version == "3.0" else instance.setReal
    get, put, free = (
        (instance.getFMUState, instance.setFMUState, instance.freeFMUState)
        if unit.version == "3.0"
        else (instance.getFMUstate, instance.setFMUstate, instance.freeFMUstate)
    )
    before = read([place["crank hinge"], place["der(crank hinge.v)"]])
    state = get()
    write([place["crank hinge"]], [0.5])
    assert read([place["der(crank hinge.v)"]])[0] != before[1]
    put(state)
    assert list(read([place["crank hinge"], place["der(crank hinge.v)"]])) == list(before)
    free(state)
    instance.freeInstance()


def test_a_flying_body_keeps_its_quaternion(tmp_path):
    """Free rotation: energy and the length of the quaternion after five seconds of co-simulation."""
    b = da.Builder("body", gravity=(0, 0, 0))
    b.body("it", mass=1.0, inertia=(0.1, 0.2, 0.3))
    b.joint("free", "free", parent="world", child="it")
    m = b.build()
    v = np.array([0.1, 0, 0, 0.2, 3.0, 0.1])
    unit = m.to_fmu(tmp_path / "body.fmu", m.neutral(), v, kinds="co_simulation", step=1e-2, platforms=["linux64"])
    names = [*m.configuration_names, *(f"{name}.v" for name in m.coordinates)]
    result = fmpy.simulate_fmu(str(unit.path), stop_time=5.0, output_interval=1.0, output=names)
    end = np.array([result[name][-1] for name in names])
    assert np.linalg.norm(end[3:7]) == pytest.approx(1.0, abs=1e-15)
    assert m.energy(end[:7], end[7:]).kinetic == pytest.approx(m.energy(m.neutral(), v).kinetic, rel=1e-7)


def test_misuse_is_named(tmp_path):
    m = four_bar()
    with pytest.raises(da.ModelError, match=r"version: '1\.0'"):
        m.to_fmu(tmp_path / "x.fmu", version="1.0")
    with pytest.raises(da.ModelError, match="kinds"):
        m.to_fmu(tmp_path / "x.fmu", kinds=("scheduled",))
    with pytest.raises(da.ModelError, match="names no parameter"):
        m.to_fmu(tmp_path / "x.fmu", parameters=["weight:crank"])


def rod(hinge):
    b = da.Builder("rod")
    b.body("bob", mass=1.0, center=(0, 0, -1), inertia=(0.1, 0.1, 0.1))
    b.joint(hinge, "revolute", "world", "bob", axis=(0, 1, 0))
    return b.build()


def test_names_that_a_unit_has_itself_are_refused(tmp_path):
    """`status` and `time` are variables of every unit: two of a name are no valid description."""
    for name in ("time", "status"):
        with pytest.raises(da.ModelError, match=f"'{name}' of its own"):
            rod(name).to_fmu(tmp_path / "x.fmu", [0.1], platforms=[])


def test_the_identifier_is_one_of_c(tmp_path):
    unit = rod("hinge").to_fmu(tmp_path / "Träger 2.fmu", [0.1], platforms=[])
    text = zipfile.ZipFile(unit.path).read("modelDescription.xml").decode()
    assert 'modelIdentifier="Tr_ger_2"' in text


def test_dry_friction_that_is_left_out_is_named(tmp_path):
    m = rod("hinge")
    m = replace(m, joints=tuple(replace(joint, friction=(0.5,)) for joint in m.joints))
    with pytest.warns(da.ModelWarning, match="dry friction of 'hinge'"):
        m.to_fmu(tmp_path / "x.fmu", [0.1], platforms=[])


@pytest.mark.slow
def test_windows_binary(tmp_path):
    """Zig compiles the same sources for Windows: a PE file that exports the interface."""
    pytest.importorskip("ziglang")
    unit = four_bar().to_fmu(tmp_path / "w.fmu", four_bar().assemble(START).q, platforms=["linux64", "win64"])
    data = zipfile.ZipFile(unit.path).read("binaries/x86_64-windows/w.dll")
    assert data.startswith(b"MZ")
    assert b"fmi3DoStep" in data
