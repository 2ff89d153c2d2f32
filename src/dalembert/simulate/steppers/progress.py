"""Whether a run gets anywhere: steps and rejections by the clock on the wall, against what is left of its duration."""

from __future__ import annotations

import time

from dalembert.simulate.limits import LONGEST_REST, PATIENCE, TINY_STEPS


class Progress:
    """How far a run has come since it was asked last."""

    def __init__(self, start: float, end: float) -> None:
        self.duration, self.end = end - start, end
        self.begin(start, 0, 0)

    def begin(self, t: float, steps: int, rejected: int) -> None:
        """Look on from a time, with so many steps taken and rejected until then."""
        self.since, self.t, self.steps, self.rejected = time.monotonic(), t, steps, rejected

    def lost(self, t: float, steps: int, rejected: int) -> str:
        """Return in words that steps fail or collapse and the end is hours away at this pace; else nothing.

        A run is asked every `PATIENCE` seconds, so that the answer is of the last ones, not of its easy beginning.
        """
        seconds = time.monotonic() - self.since
        if seconds < PATIENCE:
            return ""
        way, taken, lost = t - self.t, steps - self.steps, rejected - self.rejected
        self.begin(t, steps, rejected)
        rest = (self.end - t) / way * seconds if way > 0.0 else float("inf")
        if rest < LONGEST_REST or (lost < taken and way >= TINY_STEPS * self.duration * taken):
            return ""
        hours = f"{rest / 3600.0:.2g} hours" if rest < float("inf") else "for ever"
        return (
            f"no progress: {taken} steps and {lost} rejected ones led {way:.2g} s further in {seconds:.0f} s; the rest "
            f"of {self.end - t:.3g} s would take {hours}"
        )


CAUSES = (
    "Forces that jump or chatter, noise in a function, or a tolerance below its rounding: declare jumps by breaks=, "
    'give friction as friction, or take wider tolerances or method="bdf"'
)
"""What makes steps fail or collapse where no singular configuration is near."""
