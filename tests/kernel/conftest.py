"""A cache of their own for the tests of this room, which neither read nor fill the user's; code at full level."""

from __future__ import annotations

import pytest


@pytest.fixture(scope="session")
def private_folder(tmp_path_factory):
    return tmp_path_factory.mktemp("cache", numbered=True) / "kernels"


@pytest.fixture(autouse=True, scope="module")
def private_cache(private_folder):
    """Point at the folder while a file of this room is tested: other rooms share one cache among all workers."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DALEMBERT_CACHE", str(private_folder))
        patch.delenv("DALEMBERT_OPTIMIZE", raising=False)
        yield private_folder
