"""Write `docs/pairs.md`: which stepper takes which system; `--run` also runs all cells and prints their errors."""

from __future__ import annotations

import sys
from pathlib import Path

HOUSE = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(HOUSE))


def main() -> None:
    """Write the page."""
    from tests.pairs.rule import page

    (HOUSE / "docs" / "pairs.md").write_text(page())
    if "--run" in sys.argv[1:]:
        from tests.pairs.table import run_table

        for key, cell in run_table().items():
            print(*key, cell.verdict, f"{cell.error:.1e}", cell.reason, sep=" | ")


if __name__ == "__main__":
    main()
