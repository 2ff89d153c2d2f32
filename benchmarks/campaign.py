"""The campaign: random problems where parts meet, each against an oracle of its own.

    python benchmarks/campaign.py                    # every topic, ten minutes in all
    python benchmarks/campaign.py friction files     # these topics
    python benchmarks/campaign.py --minutes 2 --seed 7

A topic is a file of `benchmarks/campaigns`: `TITLE`, and `trial(rng)`, one random case. Its verdict is "right",
"refused" (in the library's own words), "wrong" (a wrong answer with a good status) or "foreign" (an exception that is
not the library's). The last two are faults; the seed of the trial repeats them.
"""

from __future__ import annotations

import argparse
import importlib
import sys
import time
from collections import Counter
from pathlib import Path
from types import ModuleType

import numpy as np

ROOT = Path(__file__).resolve().parent
FAULTS = ("wrong", "foreign")


def topics() -> list[str]:
    """Return the names of all topics."""
    return sorted(file.stem for file in (ROOT / "campaigns").glob("*.py") if file.stem != "__init__")


def topic(name: str) -> ModuleType:
    """Return a topic as a module."""
    if str(ROOT) not in sys.path:
        sys.path.insert(0, str(ROOT))
    return importlib.import_module(f"campaigns.{name}")


def run(
    name: str, seed: int, trials: int | None = None, seconds: float = float("inf")
) -> tuple[Counter, Counter, list]:
    """Return verdicts, words of refusals, and faults as (seed of the trial, verdict, words)."""
    module, verdicts, words, faults = topic(name), Counter(), Counter(), []
    start, k = time.monotonic(), 0
    while (trials is None or k < trials) and time.monotonic() - start < seconds:
        verdict, said = module.trial(np.random.default_rng((seed, k)))
        verdicts[verdict] += 1
        if verdict == "refused":
            words[said] += 1
        if verdict in FAULTS:
            faults.append(((seed, k), verdict, said))
        k += 1
    return verdicts, words, faults


def main() -> int:
    """Run the topics, one after the other, and print the counts."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("topics", nargs="*", help=f"of {', '.join(topics())}")
    parser.add_argument("--minutes", type=float, default=10.0, help="for all topics together")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    chosen, found = options.topics or topics(), 0
    for name in chosen:
        verdicts, words, faults = run(name, options.seed, seconds=60 * options.minutes / len(chosen))
        counts = ", ".join(f"{verdicts[key]} {key}" for key in ("right", "refused", "wrong", "foreign"))
        print(f"{name}: {topic(name).TITLE}\n    {sum(verdicts.values())} tried: {counts}", flush=True)
        for said, count in words.most_common(8):
            print(f"    refused {count} times: {said}")
        for where, verdict, said in faults[:8]:
            print(f"    {verdict}, np.random.default_rng({where}): {said}")
        found += len(faults)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
