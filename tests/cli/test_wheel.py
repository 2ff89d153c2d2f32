"""A wheel with compiled loops, in a fresh environment: first calls find all their code in it.

Left out of the usual run, since building takes minutes: `make wheel-test`. `DALEMBERT_WHEEL=FILE` tests a wheel that is
there already. The environment has no compiler in its path and a home folder that cannot be written.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import venv
from importlib.metadata import files
from pathlib import Path

import numpy as np
import pytest

from dalembert.cli.warm import BALL, CHAIN, PENDULUM

ROOT = Path(__file__).parents[2]
DIGITS = 1e-9
"""Answers of shipped loops and of loops for this processor agree to this part of their size."""

GO2 = """
import dalembert as da, numpy as np
from dalembert.simulate.contact import Contact, Sphere
m = da.load({path!r}, base="floating")
q = m.neutral()
q[7:], q[2] = np.tile([0.0, 0.8, -1.6], 4), 0.45
feet = [Contact(Sphere(f"{{leg}}_foot", 0.022), friction=0.8) for leg in ("FL", "FR", "RL", "RR")]
answer = da.simulate(m, 0.3, q, contacts=feet, method="moreau", step=1e-3).q[-1]
"""

ANDREWS = """
import sys
sys.path.insert(0, {benchmarks!r})
import dalembert as da
from dae_problems import PROBLEMS
p = PROBLEMS["andrews"]
answer = da.Problem(p.build()).integrate((0.0, 0.01), p.q, p.v).y[:7, -1]
"""

CASES = {
    "pendulum": PENDULUM + "answer = da.simulate(pendulum, 1.0, [0.3]).q[-1]",
    "bouncing ball": BALL
    + "answer = da.simulate(ball, 0.3, q, contacts=[Contact(Sphere('ball', 0.1), Plane(), **touch)]).q[-1]",
    "two blocks on a belt": "import dalembert as da\n"
    "answer = da.simulate(da.examples.two_blocks(), 1.0, [0, 0], [0, 0]).q[-1]",
    "friction.resolve": "import numpy as np\nfrom dalembert.friction import resolve\n"
    "answer = resolve(np.eye(3), [0.5, 0, 2.0], np.eye(3), np.zeros(3), np.ones(3)).acceleration",
    "forward dynamics of 1,000 bodies": CHAIN
    + "m = chain(1000); answer = m.compile('forward')(m.neutral() + 0.1, np.zeros(m.nv), np.zeros(m.nv))[0]",
    "Andrews' squeezer": ANDREWS.format(benchmarks=str(ROOT / "benchmarks")),
}

REPORT = """
import json, sys, time
began = time.perf_counter()
{code}
wall = time.perf_counter() - began
import numpy as np
from dalembert.kernel import loop_cache
print(json.dumps([dict(loop_cache.counts), np.ravel(answer).tolist(), wall]))
"""


def robots() -> list[str]:
    """Return where Go2 is, if the robots are installed."""
    return [str(p.locate()) for p in files("example-robot-data") or () if p.name == "go2.urdf"]


@pytest.fixture(scope="module")
def python(tmp_path_factory) -> Path:
    """Return the Python of an environment in which nothing but the wheel is installed."""
    folder = tmp_path_factory.mktemp("wheel")
    wheel = os.environ.get("DALEMBERT_WHEEL")
    if wheel is None:
        build = [sys.executable, "-m", "build", "--wheel", "--outdir", str(folder), str(ROOT)]
        subprocess.run(build, check=True, env={**os.environ, "DALEMBERT_SHIP_LOOPS": "1"})
        (wheel,) = map(str, folder.glob("dalembert-*.whl"))
    assert "none-any" not in Path(wheel).name
    venv.create(folder / "fresh", with_pip=True)
    found = folder / "fresh" / ("Scripts" if sys.platform == "win32" else "bin") / "python"
    subprocess.run([found, "-m", "pip", "install", "--quiet", wheel], check=True)
    return found


def report(python: str | Path, code: str, environment: dict[str, str], folder: Path) -> tuple[dict, np.ndarray, float]:
    """Return loops by where their code came from, the answer and the seconds of one process."""
    command = [str(python), "-W", "ignore", "-c", REPORT.format(code=code)]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    counts, answer, wall = json.loads(done.stdout.splitlines()[-1])
    return counts, np.array(answer), wall


@pytest.mark.wheel
@pytest.mark.parametrize("case", [*CASES, "Go2 dropped"])
def test_first_calls_compile_no_loop(python, case, tmp_path):
    code = CASES.get(case)
    if code is None:
        paths = robots()
        if not paths:
            pytest.skip("example-robot-data has no go2.urdf")
        code = GO2.format(path=paths[0])
    home = tmp_path / "home"
    home.mkdir(mode=0o500)
    counts, answer, wall = report(python, code, {"HOME": str(home), "PATH": "/nowhere"}, tmp_path)
    print(f"{case}: {wall:.2f} s, {counts}")
    assert counts.get("shipped", 0) > 0
    assert counts.get("compiled", 0) == 0
    assert counts.get("stored", 0) == 0
    native = {**os.environ, "DALEMBERT_LOOPS": "native", "PYTHONPATH": str(ROOT / "src")}
    _, expected, _ = report(sys.executable, code, native, tmp_path)
    assert np.abs(answer - expected).max() <= DIGITS * max(1.0, np.abs(expected).max())
