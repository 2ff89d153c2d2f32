"""Memories of compiled things: made once, bounded or freed with their system."""

from __future__ import annotations

import gc
import pickle
import weakref
from concurrent.futures import ThreadPoolExecutor
from copy import copy
from threading import Barrier

import casadi as ca
import numpy as np
import pytest

import dalembert as da
from dalembert.memory import Memory, held, memory_of, remembered


class Thing:
    """A system that can have memories."""


def pendulum() -> da.Mechanism:
    b = da.Builder("pendulum of the memory tests")
    b.body("rod", mass=1.0, center=(0, 0, -0.5), inertia=(0.1, 0.1, 0.01))
    b.joint("hinge", "revolute", "world", "rod", axis=(0, 1, 0))
    return b.build().constrain(da.Point("rod"))


def test_a_value_is_made_once() -> None:
    memory, made = Memory("squares"), []
    assert [memory.get(3, lambda: made.append(3) or 9) for _ in range(3)] == [9, 9, 9]
    assert made == [3]
    assert len(memory) == 1
    assert "squares" in repr(memory)


def test_what_was_not_used_for_longest_goes_first() -> None:
    memory = Memory("letters", most=2)
    for key in ("a", "b", "a", "c"):
        memory.get(key, lambda key=key: key.upper())
    assert memory.items() == [("a", "A"), ("c", "C")]


def test_what_cannot_be_made_is_not_kept() -> None:
    memory = Memory("nothing")
    with pytest.raises(ZeroDivisionError):
        memory.get("x", lambda: 1 / 0)
    assert memory.get("x", lambda: 2) == 2


def test_making_may_ask_for_others() -> None:
    memory = Memory("sums", most=3)
    assert memory.get("outer", lambda: 1 + memory.get("inner", lambda: 2)) == 3
    assert memory.items() == [("inner", 2), ("outer", 3)]


def test_all_threads_get_the_same_value() -> None:
    memory, together = Memory("objects"), Barrier(4)

    def ask(_: int) -> object:
        together.wait()
        return memory.get("x", object)

    with ThreadPoolExecutor(4) as pool:
        assert len({id(value) for value in pool.map(ask, range(4))}) == 1


def test_a_memory_is_freed_with_its_system_though_values_refer_to_it() -> None:
    system = Thing()
    memory_of(system, "friends of a thing").get("self", lambda thing=system: thing)
    assert held()["friends of a thing"] == 1
    watch = weakref.ref(system)
    del system
    gc.collect()
    assert watch() is None
    assert held().get("friends of a thing", 0) == 0


def test_memories_of_equal_systems_are_their_own_and_those_of_a_copy_shared() -> None:
    one, two = pendulum(), pendulum()
    assert one == two
    assert memory_of(one, "kernels") is not memory_of(two, "kernels")
    system = Thing()
    assert memory_of(system, "kernels") is memory_of(copy(system), "kernels")


def test_functions_of_a_system_are_remembered_by_their_arguments() -> None:
    calls = []

    @remembered(2)
    def power(system: Thing, exponent: int, base: int = 2) -> int:
        """Return a power."""
        calls.append(exponent)
        return base**exponent

    system = Thing()
    assert [power(system, 3), power(system, 3), power(system, 3, base=3), power(Thing(), 3)] == [8, 8, 27, 8]
    assert calls == [3, 3, 3]
    assert power.__doc__ == "Return a power."


def test_kernels_and_ranks_of_a_mechanism_are_freed_with_it() -> None:
    mechanism = pendulum()
    kernel = weakref.ref(mechanism.compile("mass_matrix"))
    assert mechanism.compile("mass_matrix") is kernel()
    rank = weakref.ref(mechanism.generic_rank())
    assert mechanism.generic_rank() is rank()
    assert "_memories" not in mechanism.__getstate__()
    assert pickle.loads(pickle.dumps(mechanism)) == mechanism
    del mechanism
    gc.collect()
    assert (kernel(), rank()) == (None, None)


def test_a_lagrangian_with_other_parameters_has_the_same_kernels() -> None:
    q, v, m = ca.SX.sym("q"), ca.SX.sym("v"), ca.SX.sym("m")
    light = da.Lagrangian(q, v, kinetic=m * v**2 / 2, parameters={"m": (m, 1.0)})
    heavy = light.with_parameters(m=5.0)
    assert heavy.compile("mass_matrix") is light.compile("mass_matrix")
    np.testing.assert_array_equal([heavy.mass_matrix([0.0]), light.mass_matrix([0.0])], [[[5.0]], [[1.0]]])
