"""Executors: threads, processes, or any `concurrent.futures.Executor`, Dask among them, to which blocks are handed.

At most `WINDOW` blocks per worker are under way, so that a million blocks burden no scheduler. A worker that dies takes
its blocks with it, and they are repeated, each alone; if the worker of one dies again, halves of it are tried alone
until the run is found that kills it, which is marked "lost".
"""

from __future__ import annotations

import multiprocessing
import os
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import (
    FIRST_COMPLETED,
    BrokenExecutor,
    Executor,
    Future,
    ProcessPoolExecutor,
    ThreadPoolExecutor,
    wait,
)
from typing import Any
from weakref import WeakKeyDictionary

from dalembert.ensemble.blocks import StudyJob, WorkerMismatchError, packed, run_block
from dalembert.errors import DalembertError, ModelError

WINDOW = 3
"""Blocks under way per worker: one is computed, the others wait at the worker's door."""

STILLBORN = 2
"""Deaths of a new pool before its first block after which no further one is tried."""

PRELOADED = ("dalembert.ensemble.blocks", "dalembert.ensemble.store", "dalembert.simulate.entry")
"""Modules that processes share: the server from which they are forked imports them once."""

DASK_RETRIES = 3
"""How often Dask itself repeats a block whose worker died."""

LOOK, PATIENCE = 5.0, 120.0
"""Seconds between looks at whether Dask has workers, and after which a cluster that has none is given up."""

NO_WORKERS = 64
"""BlockWorkers that are assumed of an executor that does not tell."""


class WorkersLostError(DalembertError):
    """An executor that cannot be rebuilt has lost its workers, or never had any."""


class BlockWorkers:
    """An executor with its number of workers, and what to do when one of them dies."""

    size = 1
    remote = True
    """Whether jobs travel as bytes."""
    certain = False
    """Whether a task whose worker died was tried more than once already."""

    def submit(self, function: Callable[..., Any], *arguments: Any) -> Future[Any]:
        """Hand over a task."""
        raise NotImplementedError

    def died(self, error: BaseException) -> bool:
        """Return whether an error means that a worker died."""
        return isinstance(error, BrokenExecutor)

    def rebuild(self, future: Future[Any]) -> None:
        """Replace the workers of which one died with a task."""

    def ended(self, futures: Iterable[Future[Any]]) -> set[Future[Any]]:
        """Wait for tasks, and return those that ended: one at least."""
        return wait(futures, return_when=FIRST_COMPLETED).done

    def alone(self, function: Callable[..., Any], *arguments: Any) -> tuple[bool, Any]:
        """Return whether the worker of a task survives, and what the task returned; nothing else is under way."""
        future = self.submit(function, *arguments)
        self.ended([future])
        error = future.exception()
        if error is None:
            return True, future.result()
        if not self.died(error):
            raise error
        self.rebuild(future)
        return False, None

    def close(self, at_once: bool = False) -> None:
        """Let go of what was made here."""


class ThreadWorkers(BlockWorkers):
    """Threads of this process: compiled loops run without the interpreter lock."""

    remote = False

    def __init__(self, size: int) -> None:
        self.size, self.pool = size, ThreadPoolExecutor(size)

    def submit(self, function: Callable[..., Any], *arguments: Any) -> Future[Any]:
        """Hand over a task."""
        return self.pool.submit(function, *arguments)

    def close(self, at_once: bool = False) -> None:
        """End the threads."""
        self.pool.shutdown(wait=True, cancel_futures=at_once)


class ProcessWorkers(BlockWorkers):
    """Processes of this machine; a pool that a death has broken is made anew."""

    def __init__(self, size: int) -> None:
        self.size = size
        server = sys.platform not in ("win32", "darwin")
        self.context = multiprocessing.get_context("forkserver" if server else "spawn")
        if server:
            self.context.set_forkserver_preload(list(PRELOADED))
        self.pool, self.deaths, self.finished = self._made(), 0, 0
        self.pools: WeakKeyDictionary[Future[Any], ProcessPoolExecutor] = WeakKeyDictionary()

    def _made(self) -> ProcessPoolExecutor:
        return ProcessPoolExecutor(self.size, mp_context=self.context, initializer=end_with_parent)

    def submit(self, function: Callable[..., Any], *arguments: Any) -> Future[Any]:
        """Hand over a task; a pool that broke meanwhile is made anew."""
        try:
            future = self.pool.submit(function, *arguments)
        except BrokenExecutor as error:
            self._replace(error)
            future = self.pool.submit(function, *arguments)
        self.pools[future] = self.pool
        future.add_done_callback(self._note)
        return future

    def _note(self, future: Future[Any]) -> None:
        self.finished += not future.cancelled() and future.exception() is None

    def rebuild(self, future: Future[Any]) -> None:
        """Make a new pool, where that of the task was not replaced already."""
        if self.pools[future] is self.pool:
            self._replace(future.exception())

    def _replace(self, error: BaseException | None) -> None:
        """Make a new pool; where none of them ever finished a block, say what that usually is."""
        self.pool.shutdown(wait=False, cancel_futures=True)
        self.deaths += 1
        if self.deaths > STILLBORN and not self.finished:
            raise WorkersLostError(
                "processes die before they finish anything; a script that starts processes needs its calls under "
                'if __name__ == "__main__":, and memory for each of them'
            ) from error
        self.pool = self._made()

    def close(self, at_once: bool = False) -> None:
        """End the processes."""
        self.pool.shutdown(wait=not at_once, cancel_futures=True)


def end_with_parent() -> None:
    """Have this process end when the one that hands out blocks was killed: nobody else would tell it."""
    parent = multiprocessing.parent_process()
    if parent is None:
        return

    def watch() -> None:
        parent.join()
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


class GivenWorkers(BlockWorkers):
    """An executor of the user: MPI, Slurm, or a pool; it is left as it is."""

    def __init__(self, executor: Any) -> None:
        self.executor = executor
        count = getattr(executor, "_max_workers", None) or getattr(executor, "num_workers", None)
        self.size = count if isinstance(count, int) else NO_WORKERS
        self.remote = not isinstance(executor, ThreadPoolExecutor)

    def submit(self, function: Callable[..., Any], *arguments: Any) -> Future[Any]:
        """Hand over a task."""
        try:
            return self.executor.submit(function, *arguments)
        except BrokenExecutor as error:
            raise self._lost() from error

    def rebuild(self, future: Future[Any]) -> None:
        """Say that somebody else's pool is broken."""
        raise self._lost() from future.exception()

    def _lost(self) -> WorkersLostError:
        return WorkersLostError(
            f"a worker of the {type(self.executor).__name__} died, and only who made it can make it anew; blocks that "
            "are done are in the store: da.ensemble.resume(path, executor=...) goes on. executor=8 makes processes "
            "that are replaced"
        )


class DaskWorkers(BlockWorkers):
    """A cluster of Dask, through its `Client`."""

    certain = True

    def __init__(self, client: Any) -> None:
        self.client = client
        try:
            client.wait_for_workers(1, timeout=10)
            self.size = len(client.scheduler_info(n_workers=-1)["workers"])
        except (TimeoutError, OSError) as error:
            raise WorkersLostError(
                f"the scheduler {client!r} has no workers, or cannot be reached: {error}; start some, or give the "
                "address of one that runs"
            ) from error

    def submit(self, function: Callable[..., Any], *arguments: Any) -> Future[Any]:
        """Hand over a task, under a name of its own."""
        try:
            future = self.client.submit(function, *arguments, pure=False, retries=DASK_RETRIES)
        except Exception as error:
            raise _unreachable(error) from error
        return _as_future(future)

    def ended(self, futures: Iterable[Future[Any]]) -> set[Future[Any]]:
        """Wait for tasks, as long as there are workers, or for `PATIENCE` without any."""
        several, alone = list(futures), 0.0
        while True:
            done = wait(several, LOOK, return_when=FIRST_COMPLETED).done
            if done:
                return done
            alone = alone + LOOK if self._deserted() else 0.0
            if alone >= PATIENCE:
                raise _unreachable(RuntimeError(f"it has no workers any more, for {PATIENCE:g} s"))

    def _deserted(self) -> bool:
        try:
            return not self.client.scheduler_info(n_workers=-1)["workers"]
        except (TimeoutError, OSError):
            return True

    def died(self, error: BaseException) -> bool:
        """Return whether Dask gave a task up because its workers died."""
        return type(error).__name__ == "KilledWorker"


def _as_future(remote: Any) -> Future[Any]:
    """Return a `concurrent.futures.Future` that ends with a future of Dask."""
    local: Future[Any] = Future()

    def end(done: Any) -> None:
        try:
            if done.status == "finished":
                local.set_result(done.result())
            elif done.status == "error":
                local.set_exception(done.exception())
            else:
                local.set_exception(_unreachable(RuntimeError(f"a block is {done.status}")))
        except Exception as error:
            local.set_exception(_unreachable(error))

    remote.add_done_callback(end)
    local.remote = remote  # type: ignore[attr-defined]  # Dask forgets tasks whose future is gone
    return local


def _unreachable(error: BaseException) -> WorkersLostError:
    return WorkersLostError(
        f"the scheduler of Dask was lost: {error}; blocks that are done are in the store: "
        "da.ensemble.resume(path, executor=...) goes on"
    )


def workers_of(executor: Any, backend: str = "cpu") -> BlockWorkers:
    """Return workers for what a user gave: None (threads), a number (processes), an executor, a client of Dask.

    On a device one thread hands it work: blocks of several would take turns there.
    """
    if executor is None:
        return ThreadWorkers(available_cores() if backend == "cpu" else 1)
    if isinstance(executor, bool):
        raise ModelError(f"executor={executor!r}: give None (threads), a number of processes, or an executor")
    if isinstance(executor, int):
        if executor < 1:
            raise ModelError(f"executor={executor}: at least one process is needed")
        return ProcessWorkers(executor)
    if hasattr(executor, "scheduler_info") and hasattr(executor, "submit"):
        return DaskWorkers(executor)
    if isinstance(executor, Executor) or callable(getattr(executor, "submit", None)):
        return GivenWorkers(executor)
    raise ModelError(
        f"executor={executor!r} is no executor: give None (threads), a number of processes, a "
        "concurrent.futures.Executor, or a dask.distributed.Client"
    )


def available_cores() -> int:
    """Return the cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


# ----------------------------------------------------------------------------------------------------------------------
# Blocks handed out in a window, deaths and what follows from them.


class Driver:
    """Hands blocks to workers until all are done.

    Attributes
    ----------
    finished
        Called with (block, what it returned) for every block.
    waiting, live, suspects
        Blocks that wait; those under way by their future; those that were under way when a worker died.
    """

    def __init__(self, job: StudyJob, workers: BlockWorkers, finished: Callable[[int, Any], None]) -> None:
        self.job, self.workers, self.finished = job, workers, finished
        self.payload: bytes | StudyJob = packed(job) if workers.remote else job
        self.waiting: deque[int] = deque()
        self.suspects: deque[int] = deque()
        self.live: dict[Future[Any], int] = {}

    def run(self, blocks: Iterable[int]) -> None:
        """Compute blocks, each until it is done."""
        self.waiting.extend(blocks)
        while self.waiting or self.live:
            while self.waiting and len(self.live) < WINDOW * self.workers.size:
                self._submit(self.waiting.popleft())
            for future in self.workers.ended(self.live):
                self._take(future)
            if self.suspects:
                self._wait_for_all()
                while self.suspects:
                    self._alone(self.suspects.popleft())

    def _submit(self, block: int) -> None:
        future = self.workers.submit(run_block, self.payload, *self.job.ends(block))
        self.live[future] = block

    def _take(self, future: Future[Any]) -> None:
        """Take what a block returned; if its worker died, all that were under way are suspects."""
        block = self.live.pop(future)
        error = future.exception()
        if error is None:
            self.finished(block, future.result())
        elif self.workers.died(error):
            self.suspects.append(block)
            self.workers.rebuild(future)
        elif isinstance(error, DalembertError | WorkerMismatchError | KeyboardInterrupt):
            raise error
        else:
            raise WorkersLostError(
                f"block {block} could not be computed: {type(error).__name__}: {error}; blocks that are done are in "
                "the store: da.ensemble.resume(path) goes on"
            ) from error

    def _wait_for_all(self) -> None:
        while self.live:
            for future in self.workers.ended(self.live):
                self._take(future)

    # --- blocks that kill their workers ---------------------------------------------------------------------------

    def _alone(self, block: int) -> None:
        """Compute a suspect alone; where its worker dies again, find the runs that kill it and leave them out."""
        survived, columns = self._survives(*self.job.ends(block))
        if not survived:
            lost = self._killers(*self.job.ends(block), known=True)
            survived, columns = self._survives(*self.job.ends(block), lost)
            if not survived:
                raise WorkersLostError(
                    f"block {block} kills its worker though each of its runs does not: memory may grow from run to "
                    "run; take smaller blocks, block=..."
                )
        self.finished(block, columns)

    def _survives(self, first: int, stop: int, lost: Sequence[int] = (), write: bool = True) -> tuple[bool, Any]:
        """Return whether runs can be computed by a worker that does nothing else, and what they returned."""
        return self.workers.alone(run_block, self.payload, first, stop, tuple(lost), write)

    def _killers(self, first: int, stop: int, known: bool = False) -> list[int]:
        """Return the runs that kill their worker, by halves; `known` says that this piece has killed one."""
        if not known and self._survives(first, stop, write=False)[0]:
            return []
        if stop - first == 1:
            again = known or self.workers.certain or not self._survives(first, stop, write=False)[0]
            return [first] if again else []
        middle = (first + stop) // 2
        return self._killers(first, middle) + self._killers(middle, stop)
