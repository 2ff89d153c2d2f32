"""A run on its way: what was asked for, where it is, what has been written down."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from dalembert.model.mechanism.solve import LARGEST_SURVEYED
from dalembert.simulate.equations.controller import Controller
from dalembert.simulate.events.asked import Event
from dalembert.simulate.events.record import EventRecord
from dalembert.simulate.ignored import Ignored, with_ignored
from dalembert.simulate.interruptible import undisturbed
from dalembert.types import Array

if TYPE_CHECKING:
    from dalembert.model.mechanism.ranks import GenericRank

FIELDS = ("t", "q", "v", "acceleration", "multipliers", "work", "step")
"""What every sample has; reactions are the negative of the multipliers, `step` is that which led here."""


@dataclass(frozen=True)
class RunSettings:
    """Checked options of a run.

    `inside`: samples inside of every step, at Chebyshev's points; what reduces a run to numbers asks for them
    (`reductions.py`), without `every`.
    """

    method: str
    reason: str
    start: float
    duration: float
    rtol: float
    atol: float
    step: float | None
    every: float | None
    largest_step: float
    event_tolerance: float
    breaks: tuple[float, ...] = ()
    friction: bool = True
    inside: int = 0

    @property
    def end(self) -> float:
        """Time at which the run ends."""
        return self.start + self.duration


UNRESOLVED = (
    "in {count} steps an event function changes too often to be followed, zeros may be missing: a function of rounding "
    "alone, or set max_step below half its period"
)
"""What a run says of events that it could not isolate."""


@dataclass(eq=False)
class Session:
    """One run of a system.

    Attributes
    ----------
    system
        What moves, as steppers read it: a `Mechanism`, or a `LagrangianSystem` or `MatricesSystem`, which have the same
        members.
    q, v
        State at `settings.start`; what happens later is in the blocks.
    blocks
        Samples in the order in which they came, as dicts of arrays by `FIELDS`.
    checkpoint
        Arrays from which the run goes on bit for bit; the stepper knows what they mean.
    rank
        That of the system's rows around the start, once a stepper has asked for it.
    sink
        Called with (block, checkpoint) when samples are complete; writes files.
    ignored
        Data of the model that do not act in this run, kind by kind.
    """

    system: Any
    settings: RunSettings
    controller: Controller
    q: Array
    v: Array
    watches: list[Event] = field(default_factory=list)
    event_function: Any = None
    event_callables: list[Callable[..., Any]] = field(default_factory=list)
    on_step: Callable[..., Any] | None = None
    blocks: list[dict[str, Array]] = field(default_factory=list)
    events: list[EventRecord] = field(default_factory=list)
    checkpoint: dict[str, Array] | None = None
    sink: Callable[[dict[str, Array], dict[str, Array]], None] | None = None
    progress: Callable[[float], None] | None = None
    status: str = "completed"
    message: str = ""
    steps: int = 0
    rejected: int = 0
    evaluations: int = 0
    extra: dict[str, Any] = field(default_factory=dict)
    rank: GenericRank | None = None
    ignored: list[Ignored] = field(default_factory=list)

    def from_its_start(self, settings: RunSettings) -> Session:
        """Return a session of the same run with other settings, not yet begun; nothing of it is written or called."""
        return Session(
            self.system, settings, self.controller, self.q, self.v, self.watches, self.event_function,
            self.event_callables, rank=self.rank, extra=dict(self.extra), ignored=self.ignored,
        )  # fmt: skip

    @property
    def mechanism(self) -> Any:
        """The system of a run with contacts."""
        return self.system

    @property
    def words(self) -> str:
        """The message of the run, with the kinds of data that did not act."""
        return with_ignored(self.message, self.ignored)

    @undisturbed()
    def add(self, block: dict[str, Array], checkpoint: dict[str, Array]) -> None:
        """Keep a block of samples and the point from which the run goes on."""
        if len(block["t"]):
            self.blocks.append(block)
        self.checkpoint = checkpoint
        if self.sink is not None:
            self.sink(block, checkpoint)
        if self.progress is not None and len(block["t"]):
            self.progress(float(block["t"][-1]))

    @property
    def breaks(self) -> tuple[float, ...]:
        """Break points inside the run that `breaks=` or a function of the joint forces declares."""
        s = self.settings
        return tuple(sorted({t for t in (*s.breaks, *self.controller.breaks) if s.start < t < s.end}))

    @property
    def stops(self) -> list[float]:
        """Times inside the run at which steps end: break points, corners and jumps of tables."""
        return sorted({*self.controller.stops(self.settings.start, self.settings.end), *self.breaks})

    def ends_with(self, k: int) -> bool:
        """Return whether the event that was noted last, of watch k, ends the run: by its count of zeros."""
        count = int(self.watches[k].terminal)
        return count > 0 and sum(event.index == k and event.old == "" for event in self.events) >= count

    def say_unresolved(self, count: int) -> None:
        """Say that events may be missing."""
        if count:
            self.message = f"{self.message}; {UNRESOLVED.format(count=count)}".removeprefix("; ")

    def stop(self, status: str, message: str) -> None:
        """End the run before its time, with the reason."""
        self.status, self.message = status, message


def rank_of(session: Session) -> GenericRank | None:
    """Return the rank of the system's rows where a run starts and goes, or None where it is too large to look."""
    from dalembert.model.mechanism.ranks import rank_on_the_way

    m, s = session.system, session.settings
    if session.rank is None and m.names and m.nv <= LARGEST_SURVEYED:
        session.rank = rank_on_the_way(m, session.q, session.v, s.start)
    return session.rank
