"""First calls: processor seconds of every entry into compiled loops, cold and from the cache.

    python benchmarks/cold.py                               all entries of `dalembert warm`
    python benchmarks/cold.py "smooth motion" --json FILE   some of them, figures kept
    python benchmarks/cold.py --against OTHER/src           beside another checkout, in turn

Each entry is run in processes of its own: the first finds empty caches, the next ones what it left. Seconds are those
of the processor, user and system, of the whole process with all imports: they hardly depend on what else runs. Counts
are loops by where their code came from; a warm process must compile none.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

from dalembert.cli.warm import COUNTED, ENTRIES

SOURCE = Path(__file__).resolve().parent.parent / "src"


def run(entry: str, source: Path, folder: str) -> tuple[float, dict[str, int]]:
    """Return the processor seconds of one process, and its loops by where their code came from."""
    environment = {
        **os.environ,
        "PYTHONPATH": str(source),
        "DALEMBERT_LOOPS": f"{folder}/loops",
        "DALEMBERT_CACHE": f"{folder}/kernels",
    }
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    code = COUNTED.format(before="", entry=ENTRIES[entry])
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return seconds, json.loads(done.stdout.splitlines()[-1])[0]


def measure(entry: str, source: Path, repeats: int) -> dict[str, object]:
    """Return cold and warm seconds of one entry."""
    with tempfile.TemporaryDirectory() as folder:
        cold, counts = run(entry, source, folder)
        warm = [run(entry, source, folder) for _ in range(repeats)]
    again = max(each.get("compiled", 0) for _, each in warm)
    return {"cold": cold, "warm": min(seconds for seconds, _ in warm), "compiled": counts, "compiled again": again}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("entries", nargs="*", default=list(ENTRIES))
    parser.add_argument("--against", type=Path, help="src folder of another checkout")
    parser.add_argument("--repeats", type=int, default=3, help="warm processes; the best counts")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    found = {}
    head = f"{'entry':32s}{'cold, other':>12s}{'cold':>8s}{'warm':>8s}{'loops':>7s}{'again':>7s}"
    print(f"processor seconds of one process\n{head}", flush=True)
    for entry in options.entries:
        row = measure(entry, SOURCE, options.repeats)
        if options.against is not None:
            row["other"] = measure(entry, options.against.resolve(), 1)["cold"]
        found[entry] = row
        other = f"{row['other']:12.1f}" if "other" in row else f"{'':12s}"
        loops, again = sum(row["compiled"].values()), row["compiled again"]  # type: ignore[attr-defined]
        print(f"{entry:32s}{other}{row['cold']:8.1f}{row['warm']:8.2f}{loops:7d}{again:7d}", flush=True)
    if options.json is not None:
        options.json.write_text(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
