"""The looped kernel: the face of a `Kernel` on compiled loops."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from threading import Lock
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np

from dalembert.errors import UnsupportedError
from dalembert.kernel import Kernel
from dalembert.kernel.arrays import check_inputs, make_outputs
from dalembert.kernel.engine import Workers, make_options
from dalembert.kernel.program.program import Port
from dalembert.kernel.report import KernelReport
from dalembert.progress import with_bar
from dalembert.types import Array

if TYPE_CHECKING:
    from dalembert.model.mechanism.mechanism import Mechanism

# ----------------------------------------------------------------------------------------------------------------------
# Loops behind the face of a `Kernel`: the same call, the same shapes; `report()` says that nothing was unrolled.


DOUBLE = np.dtype(float)

LIKE_NEW = ("C", "A", "W")
"""What loops are compiled for: arrays that may not be written to (broadcast, mapped from a file) are copied first."""


@dataclass(frozen=True, eq=False)
class ThreadSplit:
    """One sample shared among threads: by what, how many times as fast at best (1 where it is not split), in words."""

    evaluate: Callable[..., Any]
    gain: float
    words: str


@dataclass(frozen=True, eq=False)
class LoopedFunction:
    """One thing that loops compute.

    Attributes
    ----------
    inputs, outputs
        Names and shapes of one sample.
    evaluate
        evaluate(*inputs, *outputs) fills the outputs of one sample.
    figures
        What `report` says of it.
    explain
        explain(a) names the rows that accelerations a do not meet.
    split
        split(threads) shares one sample among threads; None where it has no parts that could be.
    """

    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]
    evaluate: Callable[..., Any]
    figures: dict[str, Any] = field(default_factory=dict)
    explain: Callable[[Array], str] = lambda a: ""
    split: Callable[[int], ThreadSplit] | None = None


@dataclass(frozen=True)
class LoopReport(KernelReport):
    """Figures of a kernel of loops.

    Attributes
    ----------
    reason
        Why nothing was unrolled.
    bodies, rows, widest_front
        Sizes; the most constraint rows that are eliminated together.
    memory_bytes
        Of the model's arrays and the loops' memory.
    shared
        What several threads share: the samples of a batch, and one state or why not.
    """

    reason: str = ""
    bodies: int = 0
    rows: int = 0
    widest_front: int = 0
    memory_bytes: int = 0
    shared: str = ""

    def __str__(self) -> str:
        lines = [
            f"kernel {self.name!r}, backend {self.backend}, {self.dtype}",
            f"  not unrolled {self.reason}",
            f"  loops over   {self.bodies} bodies, {self.rows} constraint rows, at most {self.widest_front} at once",
            f"  memory       {self.memory_bytes / 2**20:.3g} MiB, ready in {self.start_seconds or 0.0:.2f} s",
        ]
        if self.shared:
            lines.append(f"  threads      {self.shared}")
        if self.samples_per_second is not None:
            lines.append(f"  last call    {self.samples} samples, {self.samples_per_second:.3g} per second")
        return "\n".join(lines)


class LargeEngine:
    """Runs a quantity over the samples of a batch."""

    short = None

    def __init__(self, name: str, quantity: LoopedFunction, threads: int) -> None:
        self.name, self.quantity, self.threads = name, quantity, threads
        self.inputs, self.outputs = quantity.inputs, quantity.outputs
        self.figures, self.workers = quantity.figures, Workers(threads)
        self.alone = ThreadSplit(
            quantity.evaluate, 1.0, "one state is not split: that is for forward dynamics of open trees"
        )
        if threads > 1:
            self.alone = quantity.split(threads) if quantity.split else self.alone
            self.figures["shared"] = f"a batch sample by sample on {threads}; {self.alone.words}"

    def call(self, inputs: Sequence[Any], out: Any, with_status: bool) -> tuple[list[Any], Any]:
        """Evaluate one sample or a batch."""
        arguments = check_inputs(self.name, inputs, self.inputs, DOUBLE)
        outputs = make_outputs(self.name, arguments, self.outputs, DOUBLE, out)
        batch = [arguments.is_batch(k, port) for k, port in enumerate(self.inputs)]
        split = arguments.samples < min(self.threads, self.alone.gain)  # else each thread has samples of its own
        evaluate = self.alone.evaluate if split else self.quantity.evaluate

        def sample(i: int) -> None:
            mine = [x[i] if many else x for x, many in zip(arguments.inputs, batch, strict=True)]
            inputs = [np.require(x, DOUBLE, LIKE_NEW) for x in mine]
            targets = outputs if arguments.single else [x[i] for x in outputs]
            results = [np.empty(port.shape) for port in self.outputs]
            evaluate(*inputs, *results)
            for target, value in zip(targets, results, strict=True):
                target[...] = value

        items = with_bar(range(arguments.samples), self.name)
        if self.threads > 1 and arguments.samples > 1 and not split:
            self._share(sample, arguments.samples, iter(items))
        else:
            for i in items:
                sample(i)
        if not with_status:
            return outputs, None
        flat = [x.reshape(arguments.samples, port.size) for x, port in zip(outputs, self.outputs, strict=True)]
        finite = np.all([np.isfinite(x).all(axis=1) for x in flat], axis=0)
        return outputs, (~finite).astype(np.uint8)

    def _share(self, sample: Callable[[int], None], samples: int, ticks: Iterator[int]) -> None:
        """Share the samples of a batch among threads; `ticks` is asked for another when one is done."""
        lock = Lock()

        def work(lane: int, i: int) -> None:
            sample(i)
            with lock:
                next(ticks, None)

        self.workers.take_turns(work, range(samples))
        next(ticks, None)  # the bar goes

    def elapsed(self) -> float | None:
        """Return None: a call returns when it is done."""
        return None

    def peak(self) -> float | None:
        """Return None: operations are not counted."""
        return None


class LoopedKernel(Kernel):
    """A kernel whose code is loops over the bodies of a large mechanism."""

    final = True
    """Statuses are the last word: there is no dense solver behind it."""

    def __init__(
        self,
        mechanism: Mechanism,
        what: str,
        options: dict[str, Any],
        make: Callable[..., LoopedFunction],
        kernel: dict[str, Any],
        reason: str,
    ) -> None:
        start = perf_counter()
        self._made = (mechanism, what, options, make, kernel, reason)
        self.options = make_options(kernel.get("dtype", "float64"), kernel.get("threads", 1), kernel.get("width"))
        dtype = self.options.dtype
        if dtype != "float64":
            raise UnsupportedError(
                f"{mechanism.name!r} is looped over in double precision only, not in {dtype}; backend='cpu' unrolls it"
            )
        self.backend = "looped"
        quantity = make(mechanism, **options)
        quantity.figures["reason"] = reason
        self.engine = LargeEngine(what, quantity, self.options.threads)
        self._face()
        self._given = tuple(port.shape for port in quantity.inputs)
        self._made_of = tuple(port.shape for port in quantity.outputs)
        quantity.figures["start_seconds"] = perf_counter() - start

    def __call__(self, *inputs: Any, out: Any = None) -> Any:
        """Return one array per output; one state in contiguous arrays of doubles goes straight to the loops."""
        if out is not None or not self._is_plain(inputs):
            return super().__call__(*inputs, out=out)
        start = perf_counter()
        results = tuple([np.empty(shape) for shape in self._made_of])
        self.engine.alone.evaluate(*inputs, *results)
        self._last = (1, perf_counter() - start)
        return results[0] if self._bare else results

    def _is_plain(self, inputs: tuple[Any, ...]) -> bool:
        """Say whether nothing has to be converted, copied or refused."""
        if len(inputs) != self._arity:
            return False
        for x, shape in zip(inputs, self._given, strict=True):
            if type(x) is not np.ndarray or x.dtype is not DOUBLE or x.shape != shape or not x.flags.carray:
                return False
        return True

    @property
    def function(self) -> Any:
        """There is none: refuse."""
        raise UnsupportedError(
            f"{self.name!r} of {self._made[0].name!r} is loops, not expressions: it has no derivatives and no C code; "
            "compile(..., backend='cpu') unrolls it, for as many bodies as you have patience to compile"
        )

    @property
    def parts(self) -> None:
        """There is no entry in the cache of functions."""
        return

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle what it was made from."""
        return _restored, (self._made, self.spare)

    def explain(self, a: Any) -> str:
        """Return which rows are furthest from being met by the accelerations a of the last state of this thread."""
        return self.engine.quantity.explain(a)

    def report(self) -> LoopReport:
        """Return why nothing was unrolled, sizes, and how fast the last call was."""
        figures = dict(self.engine.figures)
        if self._last is not None:
            samples, seconds = self._last
            figures |= {"samples": samples, "seconds": seconds, "samples_per_second": samples / seconds}
        return LoopReport(self.name, self.backend, self.options.dtype, **figures)


def _restored(made: tuple[Any, ...], spare: tuple[Any, ...]) -> LoopedKernel:
    """Return a kernel that was pickled."""
    kernel = LoopedKernel(*made)
    kernel.spare = spare
    return kernel
