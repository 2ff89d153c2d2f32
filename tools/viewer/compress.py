"""Compress the bundled viewer into the package: `python tools/viewer/compress.py`, called by `make viewer`."""

import gzip
from pathlib import Path

HERE = Path(__file__).parent
TARGET = HERE.parents[1] / "src" / "dalembert" / "view" / "viewer.min.js.gz"

if __name__ == "__main__":
    script = (HERE / "viewer.min.js").read_bytes()
    TARGET.write_bytes(gzip.compress(script, 9, mtime=0))
    print(f"{TARGET.name}: {len(script) / 1e3:.0f} kB, compressed {TARGET.stat().st_size / 1e3:.0f} kB")
