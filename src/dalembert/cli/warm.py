"""`dalembert warm`: compile every loop of the library once, for this machine or for a folder that travels."""

from __future__ import annotations

import json
import os
import platform
import sys
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path
from subprocess import PIPE, Popen
from tempfile import TemporaryFile
from typing import Annotated, NamedTuple

import tyro

from dalembert.cli.target import print_json
from dalembert.errors import ModelError
from dalembert.kernel.loop_cache import LEVELS, folder_below

PENDULUM = """
import dalembert as da
b = da.Builder("pendulum")
b.body("bob", mass=1.0, inertia=[1e-3] * 3, center=(0, 0, -1))
b.joint("hinge", "revolute", parent="world", child="bob", axis=(0, 1, 0), damping=0.01)
pendulum = b.build()
"""

FOUR_BAR = """
import dalembert as da
b = da.Builder("four-bar")
for name, parent, x in (("crank", "world", 0), ("coupler", "crank", 1), ("rocker", "coupler", 1)):
    b.body(name, mass=1.0, inertia=[0.1] * 3, center=(0.5, 0, 0))
    b.joint(f"{name} hinge", "revolute", parent=parent, child=name, axis=(0, 0, 1), position=(x, 0, 0))
b.frame("end", "rocker", position=(1, 0, 0))
four_bar = b.build().constrain(da.Revolute("end", at=(1, 0, 0), axis=(0, 0, 1)))
q = four_bar.assemble([1.0, -1.0, -1.0]).q
"""

BALL = """
import dalembert as da, numpy as np
from dalembert.simulate.contact import Box, Contact, Heightfield, Plane, Sphere
b = da.Builder("ball")
b.body("ball", mass=1.0, inertia=[1e-3] * 3)
b.joint("root", "free", parent="world", child="ball")
ball = b.build()
q = ball.neutral()
q[2] = 0.15
touch = dict(friction=0.3, restitution=0.5)
"""

BLOCKS = """
import numpy as np
from dalembert.friction import Coulomb, Limited, Reacting, resolve, resolve_batch
rng = np.random.default_rng(0)
M = np.eye(3)
"""

LAGRANGIAN = """
import casadi as ca, dalembert as da
q, v = ca.SX.sym("q", 2), ca.SX.sym("v", 2)
system = da.Lagrangian(q, v, kinetic=ca.sumsqr(v) / 2, potential=9.81 * q[1], constraints=[ca.sumsqr(q) - 1])
problem = da.Problem(system)
"""

CHAIN = """
import dalembert as da, numpy as np
def chain(n):
    b, last = da.Builder("chain"), "world"
    for k in range(n):
        b.body(f"b{k}", mass=1.0, inertia=[0.1] * 3, center=(0, 0, -0.5))
        b.joint(f"j{k}", "revolute", parent=last, child=f"b{k}", axis=(0, 1, 0), position=(0, 0, -float(k > 0)))
        last = f"b{k}"
    return b.build()
"""

ENTRIES = {
    "smooth motion": PENDULUM + "da.simulate(pendulum, 1.0, [0.3], every=0.1, events=[lambda t, q, v: q[0]])",
    "smooth motion, dopri5": PENDULUM + "da.simulate(pendulum, 1.0, [0.3], method='dopri5')",
    "closed loops": FOUR_BAR + "da.simulate(four_bar, 0.2, q)",
    "stiff motion, bdf": PENDULUM + "da.simulate(pendulum, 0.5, [0.3], method='bdf', every=0.1)",
    "stiff motion, radau": PENDULUM + "da.simulate(pendulum, 0.5, [0.3], method='radau')",
    "variational steps": PENDULUM + "da.simulate(pendulum, 0.2, [0.3], method='variational', step=0.01)",
    "contacts from event to event": BALL
    + "da.simulate(ball, 0.3, q, contacts=[Contact(Sphere('ball', 0.1), Plane(), **touch)])",
    "contacts by time stepping": BALL
    + "da.simulate(ball, 0.05, q, contacts=[Contact(Sphere('ball', 0.1), Plane(), **touch)], step=1e-3)",
    "dry friction in time": "import dalembert as da; da.simulate(da.examples.two_blocks(), 0.5, [0, 0], [0, 0])",
    "bounded friction": BLOCKS + "resolve(M, [0.5, 0, 0], np.eye(3), np.zeros(3), np.ones(3))",
    "friction by reactions": BLOCKS
    + "resolve(np.eye(2), [0, -9.81], [[1.0], [0.0]], [0.0], [Reacting(0.3, 0)], A=[[0.0, 1.0]])",
    "friction of many samples": BLOCKS + "resolve_batch(np.eye(2), np.tile([0, -9.81], (2, 1)), [[1.0], [0.0]], "
    "np.zeros((2, 1)), [Reacting(0.3, 0)], A=[[0.0, 1.0]])",
    "batches of block systems": "import dalembert as da, numpy as np; "
    "da.KKT(np.tile(np.eye(4), (64, 1, 1)), np.tile(np.eye(4)[:2], (64, 1, 1))).solve(np.ones((64, 4)))",
    "large mechanisms": CHAIN + "m = chain(1000); m.compile('forward')(m.neutral(), np.zeros(m.nv), np.zeros(m.nv))",
    "large mechanisms, held": CHAIN
    + "m = chain(300).constrain(da.Point('b299')); m.compile('forward')(m.neutral(), np.zeros(m.nv), np.zeros(m.nv))",
    "sparse elimination": "import dalembert as da; from dalembert.tableau import newton_euler; "
    "newton_euler(da.examples.stanford_arm()).structure()",
    "named equations in time": LAGRANGIAN + "problem.integrate((0.0, 0.5), q=[1.0, 0.0], v=[0.0, 0.0])",
    "named equations in time, radau": LAGRANGIAN
    + "problem.integrate((0.0, 0.5), q=[1.0, 0.0], v=[0.0, 0.0], method='radau')",
}
"""Every way into compiled loops, by the words of its bar."""

GROUPS = (
    ("contacts from event to event", "dry friction in time"),
    ("smooth motion", "smooth motion, dopri5", "closed loops", "variational steps"),
    ("stiff motion, bdf", "stiff motion, radau", "named equations in time", "named equations in time, radau",
     "sparse elimination"),
    ("contacts by time stepping", "bounded friction", "friction by reactions", "friction of many samples"),
    ("large mechanisms, held", "large mechanisms", "batches of block systems"),
)  # fmt: skip
"""Entries that share a process: what they have in common is typed and lowered once. The longest come first."""

COUNTED = """
from dalembert.kernel import loop_cache
{before}
{entry}
import json, time
print(json.dumps([dict(loop_cache.counts), sorted(loop_cache.loaded), time.process_time()]))
"""


IN_TURN = """
import json, sys, time
from dalembert.kernel import loop_cache
{before}
for name, code in json.loads(sys.stdin.read()):
    began, counts = time.process_time(), loop_cache.counts.copy()
    error = ""
    try:
        exec(code, {{"__name__": name}})
    except Exception as found:
        error = f"{{type(found).__name__}}: {{found}}"
    seconds = time.process_time() - began
    print(json.dumps([name, error, dict(loop_cache.counts - counts), sorted(loop_cache.loaded), seconds]), flush=True)
"""
"""A process that runs entries one after the other and prints a line about each."""


@dataclass(frozen=True)
class Warm:
    """Compile all loops now, so that no later call waits for it.

    For example:

        dalembert warm

        dalembert warm --to /opt/loops
    """

    to: Path | None = None
    """Fill this folder instead of the usual place: for images and clusters, whose processors are like this one."""

    shipped: Path | None = None
    """Fill this folder with code for a level of processors, as wheels carry it."""

    jobs: int = os.cpu_count() or 1
    """Processes at a time."""

    only: Annotated[tuple[str, ...], tyro.conf.Positional] = ()
    """Entries to run; all of them by default."""

    json: bool = False
    """Print plain data instead of words."""

    def run(self) -> int:
        """Run every entry, and return the exit code."""
        if self.to is not None and self.shipped is not None:
            raise ModelError("--to and --shipped exclude each other")
        if self.jobs < 1:
            raise ModelError(f"--jobs {self.jobs} must be at least 1")
        for option, folder in (("--to", self.to), ("--shipped", self.shipped)):
            if folder is not None:
                refuse_unwritable(option, folder)
        unknown = [name for name in self.only if name not in ENTRIES]
        if unknown:
            raise ModelError(f"there is no entry {unknown[0]!r}; there are {', '.join(map(repr, ENTRIES))}")
        runs = self._run_entries("compiling loops, once")
        failed = any(run.error for run in runs)
        if self.json:
            print_json({"entries": {run.name: {"error": run.error, "loops": run.counts} for run in runs},
                        "environment": self._folders()})  # fmt: skip
        if failed:
            return 1
        if self.shipped is not None:
            needed = {name for run in self._run_entries("looking for code that is not needed") for name in run.loaded}
            keep_only(needed, folder_below(self.shipped.resolve()))
        if self.json:
            return 0
        for variable, folder in self._folders().items():
            print(f"export {variable}={folder}")
        if self.to is None and self.shipped is None:
            print("The library is warm: its loops start without compiling from here on.")
        return 0

    def _run_entries(self, words: str) -> list[EntryRun]:
        """Run the entries, some at a time, with a bar."""
        from rich.console import Console
        from rich.progress import Progress

        names, runs = self.only or tuple(ENTRIES), []
        groups = [group for group in (tuple(n for n in group if n in names) for group in GROUPS) if group]
        with Progress(console=Console(stderr=True)) as bar, ThreadPoolExecutor(self.jobs) as pool:
            task = bar.add_task(words, total=len(names))

            def note(run: EntryRun) -> None:
                runs.append(run)
                result = ", ".join(f"{count} {tier}" for tier, count in sorted(run.counts.items()))
                line = run.error or f"{result}; {run.seconds:.1f} s of the processor"
                bar.console.print(f"{run.name}: {line}", highlight=False)
                bar.advance(task)

            for future in as_completed([pool.submit(self._run_group, group, note) for group in groups]):
                future.result()
        return runs

    def _run_group(self, names: Sequence[str], note: Callable[[EntryRun], None]) -> None:
        """Run entries in one process; tell of each when it is done."""
        environment, before = {**os.environ, **self._folders()}, ""
        if self.shipped is not None:
            level, features = LEVELS[platform.machine().lower()]
            environment["NUMBA_CPU_NAME"] = level
            environment["NUMBA_CPU_FEATURES"] = ",".join(f"+{feature}" for feature in features)
            before = f"loop_cache.building.append({str(folder_below(self.shipped.resolve()))!r})"
        pending = list(names)
        with TemporaryFile("w+") as errors:
            command = [sys.executable, "-c", IN_TURN.format(before=before)]
            with Popen(command, stdin=PIPE, stdout=PIPE, stderr=errors, text=True, env=environment) as process:
                assert process.stdin is not None
                assert process.stdout is not None
                process.stdin.write(json.dumps([(name, ENTRIES[name]) for name in names]))
                process.stdin.close()
                for line in process.stdout:
                    run = EntryRun(*json.loads(line))
                    pending.remove(run.name)
                    note(run)
            errors.seek(0)
            last = (errors.read().strip().splitlines() or ["failed"])[-1]
        for name in pending:  # the process ended before them
            note(EntryRun(name, last, {}, (), 0.0))

    def _folders(self) -> dict[str, str]:
        """Return the environment that leads to a folder of one's own."""
        if self.to is None:
            return {}
        root = self.to.expanduser().resolve()
        return {"DALEMBERT_LOOPS": str(root / "loops"), "DALEMBERT_CACHE": str(root / "kernels")}


def refuse_unwritable(option: str, folder: Path) -> None:
    """Refuse a folder that cannot be made or written, before anything is compiled."""
    try:
        place = folder.expanduser()
        place.mkdir(parents=True, exist_ok=True)
        with TemporaryFile(dir=place):
            return
    except (OSError, RuntimeError) as error:
        raise ModelError(f"{option} {folder} cannot be written: {error}") from error


class EntryRun(NamedTuple):
    """One entry: last line of its error, if any; loops by where their code came from; shipped indices; its seconds."""

    name: str
    error: str
    counts: Mapping[str, int]
    loaded: Sequence[str]
    seconds: float


def keep_only(needed: set[str], folder: Path) -> None:
    """Remove code that no entry loads: functions that are part of the code of those that call them."""
    for index in sorted(folder.rglob("*.nbi")):
        if str(index.relative_to(folder)) not in needed:
            for code in index.parent.glob(f"{index.stem}.*.nbc"):
                code.unlink()
            index.unlink()
    for place in sorted((path for path in folder.rglob("*") if path.is_dir()), reverse=True):
        if not any(place.iterdir()):
            place.rmdir()
