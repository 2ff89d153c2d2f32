"""Guests stay out: importing dalembert loads none, and a guest that is missing is named with its extra."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
GUESTS = {
    "jax": "jax",
    "torch": "torch",
    "gymnasium": "gym",
    "crocoddyl": "crocoddyl",
    "rerun": "rerun",
    "rsl-rl-lib": "rsl",
}
GUESTS |= {"usd-core": "usd"}


def test_every_guest_has_an_extra_and_none_is_required():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    names = " ".join(project["dependencies"])
    for guest, extra in GUESTS.items():
        assert extra in project["optional-dependencies"]
        assert f"{guest}>" not in names


CALLS = {
    "jax": "k.to_jax()",
    "torch": "k.to_torch()",
    "gymnasium": "import dalembert.bridges.gym",
    "crocoddyl": "import dalembert.bridges.crocoddyl",
}


@pytest.mark.parametrize("guest", CALLS)
def test_a_missing_guest_is_named(guest):
    code = (
        f"import sys; sys.modules[{guest!r}] = None\n"
        "import casadi as ca, dalembert as da\n"
        "x = ca.SX.sym('x'); k = da.Kernel(ca.Function('f', [x], [x]), backend='numpy')\n"
        f"assert not {{'jax', 'torch', 'gymnasium'}} & {{n for n, m in sys.modules.items() if m}}\n"
        f"try:\n    {CALLS[guest]}\nexcept da.MissingExtraError as error:\n    print(error)\n"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert f"dalembert[{GUESTS[guest]}]" in run.stdout
