"""Settings that every test shares: checked shape annotations, profiles of hypothesis, plots without a screen."""

from __future__ import annotations

import builtins
import os
import signal
import threading
from importlib.util import find_spec
from pathlib import Path

from hypothesis import HealthCheck, settings
from jaxtyping import Float, install_import_hook

import tests.shape_checks  # noqa: F401 - the hook finds the checker as an attribute of the package

os.environ.setdefault("MPLBACKEND", "Agg")

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN and threading.current_thread() is threading.main_thread():
    signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored in the background; some tests press Ctrl-C

# Shape annotations are for checkers: files between a robot file and a cached kernel do not import jaxtyping, which
# takes as long as NumPy. The checker of the tests finds the name among the builtins.
builtins.Float = Float  # type: ignore[attr-defined]

UNCHECKED = {
    "dalembert.friction.box_kernel",  # Numba compiles these: a wrapped function would not compile
    "dalembert.friction.cone_kernel",
    "dalembert.friction.contact_kernel",
    "dalembert.friction.envelope_kernel",
    "dalembert.friction.interior_kernel",
    "dalembert.friction.least_kernel",
    "dalembert.friction.batch_kernel",
    "dalembert.kkt.batch_kernel",
    "dalembert.kkt.lanes",
    "dalembert.tableau.factor_loops",
    "dalembert.tableau.graph_loops",
    "dalembert.tableau.inner_loops",
    "dalembert.tableau.list_loops",
    "dalembert.tableau.markowitz_loops",
    "dalembert.tableau.pivot_loops",
}


def checked_modules() -> list[str]:
    """Return every module of dalembert that has shapes to check, found without importing the package."""
    spec = find_spec("dalembert")
    assert spec is not None
    assert spec.origin is not None
    root = Path(spec.origin).parent
    files = [path for path in root.rglob("*.py") if path.stem != "__init__" and "jaxtyping" in path.read_text()]
    names = {".".join(path.relative_to(root.parent).with_suffix("").parts) for path in files} - UNCHECKED
    return sorted(name for name in names if not (".time." in name and name.endswith("_loops")))


# Before the first import of dalembert, so that every shape annotation is a test of its own.  Packages are left out: the
# hook would take all their files with them.
install_import_hook(checked_modules(), "tests.shape_checks.checked")

# No deadline: the first example of a process may compile the batch kernel.
# "dev" and "ci" try the same examples every time; "explore" looks for new ones, many, for whoever wants to find bugs.
quiet = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}
settings.register_profile("dev", max_examples=25, derandomize=True, **quiet)
settings.register_profile("ci", max_examples=40, derandomize=True, **quiet)
settings.register_profile("explore", max_examples=2000, **quiet)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "dev"))
