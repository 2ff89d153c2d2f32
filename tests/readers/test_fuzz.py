"""Mutated real files of the three formats: they load or are refused, and nothing else happens.

MJCF goes through MuJoCo's C code, which a bug could bring down with the whole process; `benchmarks/fuzz_readers.py`
runs 10^4 files in processes of their own. Here a few hundred run in this one.
"""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dalembert as da
from tests.readers.mutations import MUTATIONS, mutated, originals

ORIGINALS = originals()
MOST = min(settings().max_examples, 60)
"""Files of each kind: the campaign has the many."""


@pytest.mark.parametrize("name", sorted(ORIGINALS))
@settings(max_examples=MOST)
@given(seed=st.integers(0, 10**9))
def test_mutated_files_load_or_are_refused(tmp_path_factory, name, seed):
    extension, content = ORIGINALS[name]
    path = tmp_path_factory.mktemp("fuzz") / f"m.{extension}"
    path.write_bytes(mutated(content, seed))
    try:
        words = str(da.load(path, allow_unphysical=True))
    except da.DalembertError as error:
        words = str(error)
        assert str(path.parent) in words
    assert 0 < len(words) < 10**6


def test_every_mutation_changes_something():
    """Each of them alters a real file for some seed; none is dead."""
    content = ORIGINALS["cassie"][1]
    for mutation in MUTATIONS:
        assert any(mutation(content, random.Random(seed)) != content for seed in range(20))
