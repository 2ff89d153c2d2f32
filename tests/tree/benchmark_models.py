"""Mechanisms of the benchmarks, by file, so that tests and benchmarks mean the same."""

from __future__ import annotations

from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType


def _module(name: str) -> ModuleType:
    spec = spec_from_file_location(f"benchmark_{name}", Path(__file__).parents[2] / "benchmarks" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


models = _module("large_models")
legs = _module("route_models").legs
