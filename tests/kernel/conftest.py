"""A cache of their own for the tests, so that they neither read nor fill the user's."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True, scope="session")
def private_cache(tmp_path_factory):
    folder = tmp_path_factory.mktemp("cache", numbered=True) / "kernels"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DALEMBERT_CACHE", str(folder))
        yield folder
