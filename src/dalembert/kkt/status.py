"""The verdicts of a solve: one enum whose members are the messages."""

from __future__ import annotations

from enum import IntEnum


class Status(IntEnum):
    """What became of one sample; `status.message` says it in a sentence, `status.solved` whether numbers came out."""

    UNIQUE = 0
    REDUNDANT = 1
    HELD = 2
    LEAST_SQUARES = 3
    ILL_CONDITIONED = 4
    INCONSISTENT = 5
    MASSLESS = 6
    INDEFINITE = 7
    DECLINED = 8
    NOT_SYMMETRIC = 9
    NONFINITE = 10

    @property
    def message(self) -> str:
        """One sentence for a person."""
        return _MESSAGES[self]

    @property
    def solved(self) -> bool:
        """True when accelerations and multipliers were returned."""
        return self <= Status.ILL_CONDITIONED


_MESSAGES = {
    Status.UNIQUE: "unique accelerations, unique multipliers",
    Status.REDUNDANT: "unique accelerations; the multipliers are the least-norm member of a family",
    Status.HELD: "solved with the free massless motion held still, as requested",
    Status.LEAST_SQUARES: "the constraints conflict; least-squares answer, as requested",
    Status.ILL_CONDITIONED: "solved, but not to rounding, or with fewer than three certain digits; see the error bars",
    Status.INCONSISTENT: "no solution: the constraints contradict each other",
    Status.MASSLESS: "no unique solution: a motion that the constraints allow moves no mass",
    Status.INDEFINITE: "no physical solution: the mass matrix is negative along an admissible motion",
    Status.DECLINED: "the requested route does not apply to this system",
    Status.NOT_SYMMETRIC: "the mass matrix is not symmetric",
    Status.NONFINITE: "the data hold NaN or infinity, or the answer overflowed",
}
