"""Runs in files: nothing lost by a kill, a full disk or the keyboard; continued bit for bit; repeated from the file
alone."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import casadi as ca
import h5py
import numpy as np
import pytest
import xarray

import dalembert as da
from dalembert.simulate.contact import Contact, Sphere
from dalembert.simulate.events.record import Mode
from dalembert.simulate.storage.read import lookup3
from dalembert.simulate.storage.text import as_text, from_text
from tests.model.closed_loops import parallelogram, slider_crank, stewart
from tests.simulate.contact_cases import vertical_ball
from tests.simulate.linkages import bricard, crank_rocker

ROOT = Path(__file__).parents[2]

FIRST_BLOCK = 1_000_000
"""Bytes of a file that holds one block of samples and room for the next."""

CHILD = """
import sys
import dalembert as da
from tests.simulate.linkages import crank_rocker
m, q, v = crank_rocker()
print("go", flush=True)
da.simulate(m, 100.0, q, v, method=sys.argv[2], step=1e-3, file=sys.argv[1])
"""


def started(path, method, code=CHILD):
    """Start a run in another process; return when it has begun."""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)])}
    child = subprocess.Popen(
        [sys.executable, "-c", code, str(path), method], stdout=subprocess.PIPE, text=True, env=environment, cwd=ROOT
    )
    assert child.stdout is not None
    assert child.stdout.readline() == "go\n"
    return child


def has_block(path):
    """Return whether a file, which may still grow, holds a complete block of samples."""
    try:
        return da.Trajectory.load(path).t.size > 0
    except (da.ModelError, OSError):
        return False


@pytest.mark.parametrize("method", ["dop853", "variational"])
def test_a_killed_run_is_readable_and_goes_on_bit_for_bit(tmp_path, method):
    m, q, v = crank_rocker()
    whole = da.simulate(m, 100.0, q, v, method=method, step=1e-3)
    rng = np.random.default_rng(1)
    for k in range(3):
        path = tmp_path / f"{k}.h5"
        child = started(path, method)
        while not path.exists() or path.stat().st_size < FIRST_BLOCK:
            time.sleep(0.01)
        time.sleep(float(rng.uniform(0.05, 0.6)))
        child.send_signal(signal.SIGKILL)
        child.communicate()
        part = da.Trajectory.load(path)
        assert part.status in ("interrupted", "completed")
        np.testing.assert_array_equal(part.q, whole.q[: part.t.size])
        run = da.resume(path)
        assert run.ok
        for name in ("t", "q", "v", "acceleration", "multipliers"):
            np.testing.assert_array_equal(run.samples[name], whole.samples[name])
        assert run.steps == whole.steps
        again = da.Trajectory.load(path)
        np.testing.assert_array_equal(again.q, whole.q)


IMPLICIT = """
import sys
import dalembert as da
b = da.Builder("double pendulum", gravity=(0, -9.81, 0))
for k, parent in enumerate(("world", "link 0")):
    b.body(f"link {k}", mass=1.0, center=(0.5, 0, 0), inertia=(1e-3, 0.1, 0.1))
    b.joint(f"joint {k}", "revolute", parent=parent, child=f"link {k}", axis=(0, 0, 1), position=(k, 0, 0))
print("go", flush=True)
run = da.simulate(b.build(), 1000.0, [0.3, 0.1], [0, 0], method="bdf", rtol=1e-8, atol=1e-8, file=sys.argv[1])
"""


def test_a_killed_implicit_run_goes_on_bit_for_bit(tmp_path):
    """In another process pivots are chosen where the run began, not where it goes on: they round alike."""
    path = tmp_path / "run.h5"
    child = started(path, "", IMPLICIT)
    while not has_block(path):
        time.sleep(0.01)
    child.send_signal(signal.SIGKILL)
    child.communicate()
    run = da.resume(path)
    assert run.ok
    started(tmp_path / "whole.h5", "", IMPLICIT).communicate()
    whole = da.Trajectory.load(tmp_path / "whole.h5")
    for name in ("t", "q", "v", "acceleration"):
        np.testing.assert_array_equal(run.samples[name], whole.samples[name])


def test_adaptive_steps_and_events_go_on_bit_for_bit(tmp_path):
    m, q, v = crank_rocker()
    t, x, y = ca.SX.sym("t"), ca.SX.sym("q", 3), ca.SX.sym("v", 3)
    options = {
        "force": ca.Function("f", [t, x, y], [ca.vertcat(ca.sin(3 * t), 0, -0.1 * y[2])]),
        "events": {"turned": ca.Function("g", [t, x, y], [ca.sin(x[0])])},
    }
    whole = da.simulate(m, 60.0, q, v, **options)
    path = tmp_path / "run.h5"
    stop = whole.steps // 2

    class Enough(KeyboardInterrupt):
        pass

    taken = []

    def keyboard(t, q, v):
        taken.append(t)
        if len(taken) == stop:
            raise Enough

    part = da.simulate(m, 60.0, q, v, on_step=keyboard, file=path, **options)
    assert part.status == "interrupted"
    assert 0 < part.t.size < whole.t.size
    run = da.resume(path)
    np.testing.assert_array_equal(run.q, whole.q)
    np.testing.assert_array_equal(run.t, whole.t)
    assert run.events == whole.events
    assert len(run.events) > 10


def test_a_file_alone_repeats_its_run(tmp_path):
    m, q, v = crank_rocker()
    torque = {"drive": (np.array([0.0, 1.0, 3.0]), np.array([0.0, 1.0, -1.0]))}
    run = da.simulate(m, 2.0, q, v, force=torque)
    run.save(tmp_path / "run.h5")
    read = da.Trajectory.load(tmp_path / "run.h5")
    s = read.session
    again = da.simulate(s.mechanism, s.settings.duration, s.q, s.v, force=s.controller.given)
    np.testing.assert_array_equal(again.q, run.q)
    assert read.reason == run.reason
    np.testing.assert_array_equal(read.at(0.77)[0], run.at(0.77)[0])
    longer = da.resume(tmp_path / "run.h5", duration=3.0)
    assert longer.t[-1] == 3.0
    np.testing.assert_array_equal(longer.q[: run.t.size], run.q)


def test_other_readers_take_the_file(tmp_path):
    m, q, v = crank_rocker()
    run = da.simulate(m, 1.0, q, v)
    run.save(tmp_path / "run.h5")
    with xarray.open_dataset(tmp_path / "run.h5", engine="h5netcdf") as data:
        np.testing.assert_array_equal(data["q"].sel(configuration="drive"), run["drive"])
        assert data["q"].dims == ("t", "configuration")
    dataset = run.to_xarray()
    np.testing.assert_array_equal(dataset["energy" if "energy" in dataset else "kinetic"], run.kinetic)
    np.testing.assert_array_equal(dataset["reactions"], np.asarray(run.reactions))


@pytest.mark.parametrize("make", [slider_crank, lambda: stewart()[0], parallelogram, bricard])
def test_mechanisms_are_text(make):
    m = make()
    assert from_text(as_text(m)).content() == m.content()


FULL = (
    CHILD.replace(
        "da.simulate(",
        "import resource, signal\nsignal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (3_000_000, 3_000_000))\nrun = da.simulate(",
    )
    + "print(run.status, run.t.size, run.message, sep='|', flush=True)\n"
)


def test_a_full_disk_ends_the_file_and_not_the_run(tmp_path):
    child = started(tmp_path / "run.h5", "dop853", FULL)
    said, _ = child.communicate(timeout=120)
    status, count, message = said.strip().split("|")
    assert status == "disk full"
    assert int(count) == 100_001
    assert "run.h5" in message


def test_what_cannot_be_stored_is_asked_for_again(tmp_path):
    m, q, v = crank_rocker()

    def torque(t, q, v):
        return np.array([np.sin(t), 0.0, 0.0])

    run = da.simulate(m, 2.0, q, v, force=torque, file=tmp_path / "run.h5")
    read = da.Trajectory.load(tmp_path / "run.h5")
    np.testing.assert_array_equal(read.q, run.q)
    assert np.abs(read.at(0.77)[0] - run.at(0.77)[0]).max() < 1e-3
    with pytest.raises(da.ModelError, match="force="):
        da.resume(tmp_path / "run.h5", duration=3.0)
    longer = da.resume(tmp_path / "run.h5", duration=3.0, force=torque)
    assert longer.t[-1] == 3.0


def test_misuse_of_files_is_refused_in_words(tmp_path):
    m, q, v = crank_rocker()
    (tmp_path / "there.h5").write_text("something")
    with pytest.raises(da.ModelError, match="there already"):
        da.simulate(m, 1.0, q, v, file=tmp_path / "there.h5")
    with pytest.raises(da.ModelError, match="cannot be read"):
        da.Trajectory.load(tmp_path / "there.h5")
    with pytest.raises(da.ModelError, match="no file"):
        da.resume(tmp_path / "nothing.h5")
    with pytest.raises(da.ModelError, match="no folder"):
        da.simulate(m, 1.0, q, v, file=tmp_path / "none" / "run.h5")
    with pytest.raises(da.ModelError, match="does not know"):
        from_text('{"class": "Popen", "fields": {}}')


INTERRUPTED = CHILD.replace("da.simulate(m, 100.0", "run = da.simulate(m, 1e5").replace("step=1e-3", "step=1e-2") + (
    "print(run.status, run.t.size, sep='|', flush=True)\n"
)


@pytest.mark.parametrize("method", ["dop853", "variational"])
def test_ctrl_c_returns_what_there_is(tmp_path, method):
    child = started(tmp_path / "run.h5", method, INTERRUPTED)
    while not (tmp_path / "run.h5").exists() or (tmp_path / "run.h5").stat().st_size < FIRST_BLOCK:
        time.sleep(0.01)
    child.send_signal(signal.SIGINT)
    said, _ = child.communicate(timeout=120)
    status, count = said.strip().split("|")
    assert status == "interrupted"
    part = da.Trajectory.load(tmp_path / "run.h5")
    assert part.status == "interrupted"
    assert part.t.size == int(count) > 1000


def test_slow_runs_are_written_every_second(tmp_path):
    """A controller that takes its time: a block ends by the clock, long before it is full."""
    m, q, v = crank_rocker()
    seen = []

    def slow(t, q, v):
        time.sleep(2e-3)
        if (tmp_path / "run.h5").exists() and len(seen) % 50 == 0:
            seen.append(da.Trajectory.load(tmp_path / "run.h5").t.size)
        seen.append(0)
        return np.zeros(3)

    run = da.simulate(m, 3.0, q, v, force=slow, step=0.02, file=tmp_path / "run.h5")
    assert 0 < max(seen) < run.t.size


@pytest.mark.parametrize("notebook", [False, True])
def test_a_bar_shows_how_far_a_run_has_come(notebook, monkeypatch, capsys):
    from dalembert import progress

    shown = []
    if notebook:
        display = pytest.importorskip("IPython.display")
        monkeypatch.setattr(progress, "in_notebook", lambda: True)
        handle = type("Handle", (), {"update": lambda self, bar: shown.append(bar._repr_html_())})()
        monkeypatch.setattr(display, "display", lambda bar, display_id: handle)
    m, q, v = crank_rocker()
    da.simulate(m, 2.0, q, v, progress=True)
    words = shown[-1] if notebook else capsys.readouterr().err
    assert "crank-rocker" in words
    assert "100" in words
    assert "2 of 2 s" in words


def test_a_loaded_run_repeats_itself_and_cannot_be_made_shorter(tmp_path):
    m, q, v = crank_rocker()
    run = da.simulate(m, 0.5, q, v, force={"drive": 1.0})
    run.save(tmp_path / "run.nc")
    read = da.Trajectory.load(tmp_path / "run.nc")
    np.testing.assert_array_equal(read.repeat().q, run.q)
    np.testing.assert_array_equal(read["loop"], run.reactions["loop"])
    for duration in (0.1, -1.0, "a"):
        with pytest.raises(da.ModelError, match="duration="):
            da.resume(tmp_path / "run.nc", duration=duration)


LONG = "The ball and the ground:" + " ground" * 5 + ", " + "größer" * 20
"""A name of more than 64 bytes; the 64th is within a letter."""


def test_names_of_any_length_come_back(tmp_path):
    assert len(LONG.encode()[:64].decode(errors="ignore").encode()) == 63
    ball = vertical_ball()
    run = da.simulate(ball, 1.0, [1.0], contacts=[Contact(Sphere("ball"), restitution=0.5, name=LONG)], method="hybrid")
    assert {each.contact for each in run.events} == {LONG}
    run.save(tmp_path / "contact.h5")
    read = da.Trajectory.load(tmp_path / "contact.h5")
    assert read.events == run.events
    assert read.contacts == run.contacts == (LONG,)
    t, q, v = ca.SX.sym("t"), ca.SX.sym("q"), ca.SX.sym("v")
    falls = ca.Function("g", [t, q, v], [q - 0.5])
    for method in ("dop853", "variational", "bdf"):
        path = tmp_path / f"{method}.h5"
        step = {"step": 1e-2} if method == "variational" else {}
        run = da.simulate(ball, 1.0, [1.0], events={LONG: falls}, method=method, file=path, **step)
        assert [each.contact for each in run.events] == [LONG]
        assert da.Trajectory.load(path).events == run.events
        assert da.resume(path, duration=1.5).events == run.events


SPOILT = """
import sys
import numpy as np
import dalembert as da
whole, kind = open(sys.argv[1], "rb").read(), sys.argv[2]
rng = np.random.default_rng(7)
for k in range(60):
    data = bytearray(whole)
    if kind == "cut":
        data = data[: len(data) * k // 60]
    else:
        for at in rng.integers(0, len(data), 1 + k // 3):
            data[at] ^= 1 << rng.integers(0, 8)
    with open(sys.argv[1] + ".spoilt", "wb") as file:
        file.write(data)
    try:
        run = da.Trajectory.load(sys.argv[1] + ".spoilt")
        print("loaded")
    except da.ModelError as error:
        assert ".spoilt" in str(error), error
        print("refused")
"""


@pytest.mark.parametrize("state", ["finished", "killed"])
@pytest.mark.parametrize("kind", ["cut", "flipped"])
def test_spoilt_files_are_refused_at_once(tmp_path, state, kind):
    """A file that was cut, or whose bits were flipped, finished or not: the library's own error, without a wait."""
    path = tmp_path / "run.h5"
    m, q, v = crank_rocker()
    if state == "finished":
        da.simulate(m, 1.0, q, v, step=1e-2).save(path)
    else:
        child = started(path, "variational")
        while not path.exists() or path.stat().st_size < FIRST_BLOCK:
            time.sleep(0.01)
        child.send_signal(signal.SIGKILL)
        child.communicate()
        assert da.Trajectory.load(path).status == "interrupted"
    command = [sys.executable, "-c", SPOILT, str(path), kind]
    found = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False, cwd=ROOT)
    assert found.returncode == 0, found.stderr
    said = found.stdout.split()
    assert len(said) == 60
    assert "refused" in said
    if kind == "cut" and state == "finished":
        assert set(said) == {"refused"}


CHECKED = ["t", "q", "v", "acceleration", "multipliers", "work", "step", "resume/checkpoint", "resume/checkpoint_steps"]


@pytest.mark.parametrize("name", CHECKED)
def test_a_flipped_bit_in_a_variable_is_named(tmp_path, name):
    path = tmp_path / "run.h5"
    m, q, v = crank_rocker()
    run = da.simulate(m, 1.0, q, v, method="dop853", step=1e-2)
    run.save(path)
    assert np.array_equal(da.Trajectory.load(path).q, run.q)
    with h5py.File(path) as file:
        chunk = file[name].id.get_chunk_info(0)
    data = bytearray(path.read_bytes())
    data[chunk.byte_offset + 3] ^= 1 << 5
    path.write_bytes(data)
    with pytest.raises(da.ModelError, match=rf"run\.h5 is damaged: .* of '{name}'"):
        da.Trajectory.load(path)


def test_damaged_events_and_descriptions_are_named(tmp_path):
    path = tmp_path / "run.h5"
    run = da.simulate(vertical_ball(), 2.0, [1.0], contacts=[Contact(Sphere("ball"), restitution=0.5)], method="hybrid")
    run.save(path)
    assert run.events
    whole = path.read_bytes()
    with h5py.File(path, "r+") as file:
        row = file["resume/event"][0]
        row["time"] += 1e-3
        file["resume/event"][0] = row
    with pytest.raises(da.ModelError, match=r"damaged: event 0 in 'resume/event'"):
        da.Trajectory.load(path)
    path.write_bytes(whole)
    with h5py.File(path, "r+") as file:
        file.attrs["settings"] = file.attrs["settings"].replace("0.5", "0.6", 1).replace("2.0", "3.0", 1)
    with pytest.raises(da.ModelError, match=r"damaged: 'settings'"):
        da.Trajectory.load(path)


def test_files_without_checksums_are_read_as_they_are(tmp_path):
    """So are those of versions that wrote none."""
    path = tmp_path / "run.h5"
    m, q, v = crank_rocker()
    run = da.simulate(m, 0.5, q, v, step=1e-2)
    run.save(path)
    with h5py.File(path, "r+") as file:
        del file.attrs["checksums"], file["resume/checksum"]
        events = file["resume/event"][:]
        del file["resume/event"]
        names = [each for each in events.dtype.names if each != "checksum"]
        file.create_dataset("resume/event", data=events[names].astype([(n, events.dtype[n]) for n in names]))
        file["q"][3] += 1.0
    assert np.array_equal(da.Trajectory.load(path).v, run.v)


def test_the_checksum_of_hdf5():
    """Values of Jenkins' own driver5 in lookup3.c."""
    assert lookup3(b"") == 0xDEADBEEF
    assert lookup3(b"Four score and seven years ago") == 0x17770551


def scalar_function() -> ca.Function:
    """Return a function with every way to spell an operation, a matrix in and a sparse one out."""
    A, x = ca.SX.sym("A", 2, 3), ca.SX.sym("x", 2)
    out = ca.SX(2, 2)
    out[1, 0] = ca.if_else(x[0] > 0.1, x[0] ** 2 + 1 / x[1], ca.atan2(2 * A[0, 2], A[1, 0] ** 2.5)) + np.pi
    return ca.Function("f", [A, x], [out, ca.sin(x) ** 3], ["A", "x"], ["out", "y"])


def instructions(f: ca.Function) -> list[tuple]:
    ids = range(f.n_instructions())
    return [(f.instruction_id(k), f.instruction_input(k), f.instruction_output(k)) for k in ids]


def test_functions_come_back_with_the_same_instructions():
    f = scalar_function()
    back = from_text(as_text(f))
    assert instructions(back) == instructions(f)
    assert str(back) == str(f)
    state = (np.arange(6.0).reshape(2, 3), [0.3, 0.7])
    for one, two in zip(f(*state), back(*state), strict=True):
        assert one.sparsity() == two.sparsity()
        assert np.array_equal(np.array(one), np.array(two))


@pytest.mark.parametrize(
    ("part", "value"),
    [
        ("operations", [["sin", 0]]),
        ("operations", [["input", 0, 9]]),
        ("operations", [["input", -1, 0]]),
        ("operations", [["call", 0]]),
        ("operations", [["fma", 0, 0]]),
        ("results", [[0, 0, 10**6]]),
        ("results", [[7, 0, 0]]),
        ("inputs", [["A", 10**9, 10**9]]),
    ],
)
def test_functions_that_no_run_has_written_are_refused(part, value):
    data = json.loads(as_text(scalar_function()))
    with pytest.raises(da.ModelError, match="description"):
        from_text(json.dumps({**data, part: value}))


def test_arrays_of_other_things_than_numbers_are_refused():
    for kind in ("O", "S1000000000", "M8[s]"):
        with pytest.raises(da.ModelError, match="no type of numbers"):
            from_text(json.dumps({"array": [0], "type": kind, "shape": [1]}))


def test_expressions_in_casadi_s_own_text_are_not_read(tmp_path, monkeypatch):
    """CasADi's text may name a library: it would be loaded, and its code run. Such a run is read without it."""
    m, q, v = crank_rocker()
    states = [ca.SX.sym("t"), ca.SX.sym("q", m.nq), ca.SX.sym("v", m.nv)]
    torque = ca.Function("torque", states, [ca.SX.zeros(m.nv)])
    da.simulate(m, 0.1, q, v, force=torque, file=tmp_path / "run.h5", step=1e-2)
    with h5py.File(tmp_path / "run.h5", "r+") as file:
        file.attrs["force"] = json.dumps({"casadi": torque.serialize()})
        del file.attrs["checksums"]  # which files of older versions do not have
    monkeypatch.setattr(ca.Function, "deserialize", None)
    assert da.Trajectory.load(tmp_path / "run.h5").status == "completed"
    with pytest.raises(da.ModelError, match=r"force=\.\.\."):
        da.resume(tmp_path / "run.h5", duration=0.2)


def test_rows_that_are_not_in_the_file_are_not_waited_for(tmp_path):
    """A variable may be said to have 10^12 rows; none is read, no memory is taken."""
    m, q, v = crank_rocker()
    da.simulate(m, 0.1, q, v, file=tmp_path / "run.h5", step=1e-2)
    with h5py.File(tmp_path / "run.h5", "r+") as file:
        file["q"].resize(10**12, axis=0)
        file["resume/checkpoint_samples"][-1] = 10**12
    with pytest.raises(da.ModelError, match="fewer rows"):
        da.Trajectory.load(tmp_path / "run.h5")


@pytest.mark.parametrize("name", ["a\x00b", "a\nb", "a\ud800", " "])
def test_names_that_no_file_can_hold_are_refused_before_the_run(name):
    ball = vertical_ball()
    with pytest.raises(da.ModelError, match="the name of a contact"):
        da.simulate(ball, 1.0, [1.0], contacts=[Contact(Sphere("ball"), name=name)], method="hybrid")
    with pytest.raises(da.ModelError, match="the name of an event"):
        da.simulate(ball, 1.0, [1.0], events={name: lambda t, q, v: q[0] - 0.5})


def test_files_of_the_former_form_are_read(tmp_path):
    """Earlier versions wrote `mechanism` and `torque`: the same data under other names."""
    m, q, v = crank_rocker()
    run = da.simulate(m, 0.2, q, v, force={"drive": 1.0}, file=tmp_path / "run.h5")
    with h5py.File(tmp_path / "run.h5", "r+") as file:
        for new, old in (("system", "mechanism"), ("system_name", "mechanism_name"), ("force", "torque")):
            file.attrs[old] = file.attrs[new]
            del file.attrs[new]
        del file.attrs["checksums"]  # which files of earlier versions do not have
    read = da.Trajectory.load(tmp_path / "run.h5")
    np.testing.assert_array_equal(read.q, run.q)
    np.testing.assert_array_equal(read.repeat().q, run.q)


def test_modes_of_files_of_schema_1_are_read_by_their_names(tmp_path):
    """Contacts of shapes had numbers of their own: 0 stick, 1 slip, 2 open."""
    contact = Contact(Sphere("brick", 0.03), friction=0.2)
    b = da.Builder("sled")
    b.body("cart")
    b.joint("x", "prismatic", parent="world", child="cart", axis=(1, 0, 0))
    b.body("brick", mass=2.0, inertia=(0.1, 0.1, 0.1))
    b.joint("z", "prismatic", parent="cart", child="brick", axis=(0, 0, 1))
    path = tmp_path / "run.h5"
    run = da.simulate(
        b.build(), 1.0, [0.0, 0.04], [1.0, 0.0], contacts=[contact], method="moreau", step=1e-2, file=path
    )
    assert set(run.modes[:, 0]) == {Mode.OPEN, Mode.SLIP, Mode.STICK}
    with h5py.File(path, "r+") as file:
        former = np.array([0, -1, 1, 2])[file["modes"][:]]
        file["modes"][:] = former
        file.attrs["schema"] = 1
        del file["resume/checksum"]
        del file.attrs["checksums"]
    np.testing.assert_array_equal(da.Trajectory.load(path).modes, run.modes)


def test_files_of_runs_keep_visuals():
    b = da.Builder("b")
    b.body("a", mass=1.0)
    b.visual("a", "capsule", (0.1, 1.0), rpy=(0, 1, 0), color=(1, 0, 0, 0.5))
    m = b.build("floating")
    assert from_text(as_text(m)).visuals == m.visuals


def test_a_run_that_was_killed_before_its_first_samples_is_told_in_words(tmp_path):
    """HDF5 writes its first 48 bytes alone; what a dead process leaves then holds nothing."""
    h5py = pytest.importorskip("h5py")
    path, early = tmp_path / "run.h5", tmp_path / "early.h5"
    h5py.File(path, "w", libver="latest").close()
    early.write_bytes(path.read_bytes()[:48])
    for read in (da.resume, da.Trajectory.load):
        with pytest.raises(da.ModelError, match="killed before the first samples"):
            read(early)
