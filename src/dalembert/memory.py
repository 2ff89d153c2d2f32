"""Memory of compiled things: kernels, ranks, probes, plans, each made once and kept for the next call.

A memory belongs to a system and is freed with it, or to the process and keeps the last values used. What is kept on
disk is another matter: `kernel/cache.py`. `held()` says what all memories hold.

| memory | of | values |
|---|---|---|
| kernels | a mechanism, a Lagrangian | compiled requests |
| ranks | a mechanism | ranks around configurations |
| functions with `remembered` | a mechanism | its prepared trees, and its matrices at admissible configurations |
| variants | a problem in time | the problem under other independent rows |
| codes of runs | the process | kernels that steppers call, by content of mechanism and controller |
| stiff problems | the process | planned problems of implicit steppers, by content and start |
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable
from functools import wraps
from threading import Lock
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar
from weakref import WeakSet

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")
System = TypeVar("System")
Rest = ParamSpec("Rest")

PLACE = "_memories"
"""Attribute of a system under which its memories are.

Not a table of weak references to systems: values refer to their system, and would keep it alive for ever.
"""

_all: WeakSet[Memory[Any, Any]] = WeakSet()


class Memory(Generic[Key, Value]):
    """Values by key, each made when first asked for; beyond `most` the ones that were not used for longest go.

    May be asked from several threads: all get the same value, though more than one may have been made meanwhile.
    """

    def __init__(self, what: str, most: int | None = None) -> None:
        self.what, self.most = what, most
        self._values: dict[Key, Value] = {}
        self._lock = Lock()
        _all.add(self)

    def get(self, key: Key, make: Callable[[], Value]) -> Value:
        """Return the value of a key, made now if there is none; making it may ask this memory for others."""
        if self.most is None and key in self._values:
            return self._values[key]
        with self._lock:
            if key in self._values:
                value = self._values[key] = self._values.pop(key)  # now the last one used
                return value
        candidate = make()
        with self._lock:
            value = self._values.setdefault(key, candidate)
            while self.most is not None and len(self._values) > self.most:
                del self._values[next(iter(self._values))]
        return value

    def items(self) -> list[tuple[Key, Value]]:
        """Return what is held, the values used last at the end."""
        with self._lock:
            return list(self._values.items())

    def __len__(self) -> int:
        return len(self._values)

    def __repr__(self) -> str:
        return f"Memory({self.what!r}: {len(self)} of {'any number' if self.most is None else f'at most {self.most}'})"


def memory_of(system: Any, what: str, most: int | None = None) -> Memory[Any, Any]:
    """Return one of a system's memories, which are freed with it; a shallow copy of the system shares them."""
    memories: dict[str, Memory[Any, Any]] = vars(system).setdefault(PLACE, {})
    return memories[what] if what in memories else memories.setdefault(what, Memory(what, most))


def remembered(
    most: int,
) -> Callable[[Callable[Concatenate[System, Rest], Value]], Callable[Concatenate[System, Rest], Value]]:
    """Return a decorator for functions of a system: its last `most` values are kept in the memory of the system."""

    def decorate(function: Callable[Concatenate[System, Rest], Value]) -> Callable[Concatenate[System, Rest], Value]:
        what = f"{function.__module__}.{function.__qualname__}"

        @wraps(function)
        def recall(system: System, *rest: Rest.args, **options: Rest.kwargs) -> Value:
            key = (rest, *sorted(options.items()))
            return memory_of(system, what, most).get(key, lambda: function(system, *rest, **options))

        return recall

    return decorate


def held() -> dict[str, int]:
    """Return how many values all memories hold together, by what they are."""
    counts: Counter[str] = Counter()
    for memory in list(_all):
        counts[memory.what] += len(memory)
    return dict(counts)
