"""Loops that call loops: optimised once, called by Python and by each other, compiled by one process at a time."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest

from dalembert.kernel import loop_linking
from dalembert.kernel.loop_linking import EntryLibrary, LoopDispatcher, PartLibrary
from dalembert.kernel.loops import compiled, fused, loop, steady


@pytest.fixture(autouse=True)
def cold(monkeypatch):
    """Compile: no code of an earlier run is taken."""
    monkeypatch.setenv("DALEMBERT_LOOPS", "off")


def family():
    """Return three new loops: outer calls middle and inner, middle calls inner."""

    @compiled
    def inner(x, y):
        for i in range(x.size):
            y[i] += 2.0 * x[i]
        return x.sum()

    @compiled
    def middle(x, y):
        return inner(x, y) + inner(y, y.copy())

    @compiled
    def outer(x, y):
        z = np.zeros(x.size)
        return middle(x, y) + inner(x, z) + z.sum()

    return inner, middle, outer


def libraries(dispatcher: LoopDispatcher) -> tuple[list[type], list[type]]:
    """Return the kinds of libraries of a loop: as an entry, as a part."""
    parts = [code for table in vars(dispatcher).get("parts", {}).values() for code in table.values()]
    entries = list(dispatcher.overloads.values())
    return [type(code.library) for code in entries], [type(code.library) for code in parts]


def plain(function):
    """Return what the plain twin answers: the same functions in Python."""
    x, y = np.arange(4.0), np.ones(4)
    return function.py_func(x, y), x, y


def run(function):
    x, y = np.arange(4.0), np.ones(4)
    return function(x, y), x, y


def same(found, expected) -> bool:
    return found[0] == expected[0] and all((a == b).all() for a, b in zip(found[1:], expected[1:], strict=True))


def test_what_an_entry_calls_has_no_machine_code():
    inner, middle, outer = family()
    answer = run(outer)
    assert libraries(outer) == ([EntryLibrary], [])
    assert libraries(middle) == ([], [PartLibrary])
    assert libraries(inner) == ([], [PartLibrary])
    assert same(answer, plain(outer))


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 2, 0)])
def test_python_may_call_every_loop_before_and_after_it_was_a_part(order):
    loops = family()
    answers = {k: run(loops[k]) for k in order}
    again = {k: run(loops[k]) for k in order}
    for k in order:
        assert same(answers[k], plain(loops[k]))
        assert same(again[k], answers[k])
        assert EntryLibrary in libraries(loops[k])[0]


def test_the_code_of_an_entry_does_not_depend_on_what_was_called_before():
    def code(order):
        loops = family()
        for k in order:
            run(loops[k])
        (found,) = loops[2].overloads.values()
        names = [f.name for f in found.library._final_module.functions if not f.is_declaration]
        return len(names), len(found.library._get_compiled_object())

    assert code((2,)) == code((0, 1, 2)) == code((1, 0, 2))


def test_a_part_has_the_options_of_its_caller_where_it_has_none():
    """The same helper under two callers: one may contract products and sums, one may not."""

    @loop()
    def helper(a, b, c):
        return a * b + c

    @fused
    def once_rounded(a, b, c):
        return helper(a, b, c)

    @compiled
    def twice_rounded(a, b, c):
        return helper(a, b, c)

    a, b = 1.0 + 2.0**-30, 1.0 - 2.0**-30
    exact, rounded = -(2.0**-60), 0.0
    for first, second in ((once_rounded, twice_rounded), (twice_rounded, once_rounded)):
        first(a, b, -1.0)
        second(a, b, -1.0)
    assert twice_rounded(a, b, -1.0) == rounded
    assert once_rounded(a, b, -1.0) in (exact, rounded)  # a processor without fma rounds twice
    assert len(vars(helper)["parts"]) == 2


def test_errors_leave_a_part_and_the_next_compilation_works():
    @steady
    def broken(x):
        return x.no_such_thing  # type: ignore[attr-defined]

    @compiled
    def caller(x):
        return broken(x)

    @compiled
    def raising(x):
        if x[0] > 0:
            raise ValueError("positive")
        return x[0]

    @compiled
    def above(x):
        return raising(x)

    with pytest.raises(Exception, match="no_such_thing"):
        caller(np.ones(2))
    assert loop_linking.Compiling.entry is None
    assert above(np.zeros(2)) == 0.0
    with pytest.raises(ValueError, match="positive"):
        above(np.ones(2))


RACE = """
import sys, time
sys.path.insert(0, {folder!r})
from dalembert.kernel import loop_cache
loop_cache.PACKAGE = "made_up"
import made_up_slow
while not __import__("os").path.exists({go!r}):
    time.sleep(0.01)
print(made_up_slow.slow(2.0), dict(loop_cache.counts))
"""

SLOW = """
import time
from numba.extending import overload
from dalembert.kernel.loops import loop

def pause(x):
    return x

@overload(pause)
def compiled_pause(x):
    time.sleep(2.0)  # while it is compiled
    return lambda x: x

@loop()
def slow(x):
    return pause(x) + 1.0
"""


@pytest.mark.skipif(sys.platform == "win32", reason="there are no locks on parts of files")
def test_of_two_processes_one_compiles_and_the_other_waits(tmp_path):
    (tmp_path / "made_up_slow.py").write_text(SLOW)
    go = tmp_path / "go"
    code = RACE.format(folder=str(tmp_path), go=str(go))
    environment = {**os.environ, "DALEMBERT_LOOPS": str(tmp_path / "loops")}
    runs = [
        subprocess.Popen([sys.executable, "-c", code], env=environment, stdout=subprocess.PIPE, text=True)
        for _ in range(3)
    ]
    go.touch()
    said = sorted(each.communicate(timeout=300)[0].strip() for each in runs)
    assert said == ["3.0 {'compiled': 1}", "3.0 {'stored': 1}", "3.0 {'stored': 1}"]


def test_shapes_that_differ_raise_a_plain_sentence():
    """And Numba's own message, which every loop with such a line would compile, stays that of other code."""
    usual = loop_linking.arrayobj.raise_with_shape_context

    @compiled
    def assign(a, b):
        a[:] = b

    a = np.zeros((2, 3))
    assign(a, np.ones((2, 3)))
    assert a.sum() == 6.0
    with pytest.raises(ValueError, match="assigned from an array of another shape"):
        assign(a, np.ones((3, 2)))
    (code,) = assign.overloads.values()
    assert "unicode" not in code.library.get_llvm_str()
    assert loop_linking.arrayobj.raise_with_shape_context is usual
