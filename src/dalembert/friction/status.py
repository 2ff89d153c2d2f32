"""The verdicts of a friction problem: one enum whose members are the messages."""

from __future__ import annotations

from enum import IntEnum


class FrictionStatus(IntEnum):
    """What became of one state; `message` says it in a sentence, `solved` whether the friction laws hold."""

    SOLVED = 0
    NOT_OPTIMAL = 1
    CYCLE = 2
    NOT_CONVERGED = 3
    DECLINED = 4
    NO_SOLUTION = 5
    MASSLESS = 6
    NONFINITE = 7
    INCONSISTENT = 8

    @property
    def message(self) -> str:
        """One sentence for a person."""
        return _MESSAGES[self]

    @property
    def solved(self) -> bool:
        """True when the forces obey the friction laws."""
        return self is FrictionStatus.SOLVED


_MESSAGES = {
    FrictionStatus.SOLVED: "the forces obey the friction laws and the equations of motion",
    FrictionStatus.NOT_OPTIMAL: "the method ended, but its forces do not obey the friction laws",
    FrictionStatus.CYCLE: "the method came back to a set of sticking contacts that it had left",
    FrictionStatus.NOT_CONVERGED: "no answer within the tolerance; one may exist",
    FrictionStatus.DECLINED: "the method does not apply to this problem",
    FrictionStatus.NO_SOLUTION: "no forces obey the friction laws here: a contradiction, or Painleve's paradox",
    FrictionStatus.MASSLESS: "a motion without mass is held by no contact, so its acceleration does not exist",
    FrictionStatus.NONFINITE: "the data hold NaN or infinity",
    FrictionStatus.INCONSISTENT: "constraint rows contradict each other: no acceleration obeys them all",
}
