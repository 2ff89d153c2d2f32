"""Large mechanisms for tests: those of `benchmarks/large_models.py`, by file, so that both mean the same."""

from __future__ import annotations

from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

_spec = spec_from_file_location("benchmark_large_models", Path(__file__).parents[2] / "benchmarks" / "large_models.py")
assert _spec is not None
assert _spec.loader is not None
models = module_from_spec(_spec)
_spec.loader.exec_module(models)
