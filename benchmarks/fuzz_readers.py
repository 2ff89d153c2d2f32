"""Mutated robot files by the ten thousand: no reader crashes, hangs, or raises what is not its own.

Real URDF and SDF files of example-robot-data, and MJCF models, are spoilt by `tests/readers/mutations.py`. They are
loaded in processes of their own, since MJCF goes through MuJoCo's C code; a process that dies or falls silent for a
minute is counted, and the seed that did it is named.

    python benchmarks/fuzz_readers.py [--files 10000] [--first 0] [--only xml] [--json FILE]
"""

from __future__ import annotations

import argparse
import json
import queue
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter, defaultdict
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

CHUNK = 250
"""Files of one process."""

SILENCE = 60.0
"""Seconds without a word after which a process is taken to hang."""


def work(first: int, count: int, only: str) -> None:
    """Load a chunk of files; print a line before and after each."""
    from tests.readers.mutations import mutated

    import dalembert as da

    files = chosen(only)
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(first, first + count):
            _, extension, content = files[seed % len(files)]
            path = Path(folder) / f"m.{extension}"
            path.write_bytes(mutated(content, seed))
            print(json.dumps({"seed": seed}), flush=True)
            start = time.process_time()
            try:
                da.load(path, allow_unphysical=True)
                outcome = "loaded"
            except da.DalembertError as error:
                outcome = "refused" if folder in str(error) else f"nameless refusal: {error}"
            except Exception as error:  # what this campaign looks for
                outcome = f"uncaught {type(error).__name__}: {error}"
            print(json.dumps({"outcome": outcome[:300], "seconds": time.process_time() - start}), flush=True)


def chosen(only: str) -> list[tuple[str, str, bytes]]:
    from tests.readers.mutations import originals

    return [(name, *file) for name, file in sorted(originals().items()) if only in ("", file[0])]


def run_chunk(first: int, count: int, only: str) -> list[tuple[int, str, float]]:
    """Return (seed, outcome, seconds) of a chunk; goes on behind a file that stops its process."""
    results: list[tuple[int, str, float]] = []
    while count > 0:
        command = [sys.executable, __file__, "--worker", str(first), str(count), "--only", only]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        lines: queue.Queue[str | None] = queue.Queue()
        threading.Thread(target=_listen, args=(process, lines), daemon=True).start()
        seed, end = None, "ended"
        while True:
            try:
                line = lines.get(timeout=SILENCE)
            except queue.Empty:
                end = "hang"
                break
            if line is None:
                break
            told = json.loads(line)
            if "seed" in told:
                seed = told["seed"]
            else:
                results.append((seed, told["outcome"], told["seconds"]))
                seed = None
        process.kill()
        code = process.wait()
        if seed is None and end == "ended" and code == 0:
            return results
        if seed is None:
            raise RuntimeError(f"the worker of seed {first} ended with code {code}")
        results.append((seed, "hang" if end == "hang" else f"crash, code {code}", SILENCE))
        count -= seed + 1 - first
        first = seed + 1
    return results


def _listen(process: subprocess.Popen[str], lines: queue.Queue[str | None]) -> None:
    assert process.stdout is not None
    for line in process.stdout:
        lines.put(line)
    lines.put(None)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--files", type=int, default=10_000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--only", default="", choices=["", "urdf", "sdf", "xml"])
    parser.add_argument("--json", type=Path)
    parser.add_argument("--worker", type=int, nargs=2)
    options = parser.parse_args()
    if options.worker:
        return work(*options.worker, options.only)
    files = chosen(options.only)
    table: dict[str, Counter[str]] = defaultdict(Counter)
    slowest: dict[str, tuple[float, int]] = defaultdict(lambda: (0.0, 0))
    found: list[tuple[int, str, str]] = []
    start = time.perf_counter()
    for first in range(options.first, options.first + options.files, CHUNK):
        count = min(CHUNK, options.first + options.files - first)
        for seed, outcome, seconds in run_chunk(first, count, options.only):
            name, extension, _ = files[seed % len(files)]
            kind = outcome if outcome in ("loaded", "refused") else outcome.split()[0].rstrip(",")
            table[extension][kind] += 1
            slowest[extension] = max(slowest[extension], (seconds, seed))
            if kind not in ("loaded", "refused"):
                found.append((seed, name, outcome))
    kinds = ["loaded", "refused", "nameless", "uncaught", "crash", "hang"]
    print(f"{'format':8}" + "".join(f"{kind:>10}" for kind in kinds) + f"{'slowest':>10}")
    for extension, counts in sorted(table.items()):
        seconds, seed = slowest[extension]
        print(f"{extension:8}" + "".join(f"{counts[kind]:10}" for kind in kinds) + f"{seconds:9.2f}s (seed {seed})")
    print(f"{sum(map(Counter.total, table.values()))} files in {time.perf_counter() - start:.0f} s")
    for seed, name, outcome in found:
        print(f"seed {seed} ({name}): {outcome}")
    if options.json:
        options.json.write_text(json.dumps({"table": table, "slowest": slowest, "found": found}, indent=1))
    return None


if __name__ == "__main__":
    main()
