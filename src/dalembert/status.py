"""What became of one sample: the verdicts of all rooms, one enum whose members are the messages."""

from __future__ import annotations

from enum import IntEnum


class Status(IntEnum):
    """The outcome of one sample: `message` is its sentence, `ok` says whether the answer exists and is certified.

    Ranges: 0 to 10 block systems (and what all rooms share), 20 friction, 40 kernels, 60 tableaux.
    """

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

    SOLVED = 20
    NOT_OPTIMAL = 21
    CYCLE = 22
    NOT_CONVERGED = 23
    NO_SOLUTION = 24

    FINITE = 40

    PLANNED = 60
    REFINED = 61
    REPLANNED = 62
    SUPERLU = 63
    CONVERGED = 64
    SINGULAR = 65
    LIMIT = 66

    @property
    def message(self) -> str:
        """One sentence for a person."""
        return _MESSAGES[self]

    @property
    def ok(self) -> bool:
        """True when there is an answer that passed its checks."""
        return self in CERTIFIED

    @property
    def answered(self) -> bool:
        """True when accelerations and multipliers were returned, certified or not."""
        return self <= Status.ILL_CONDITIONED


CERTIFIED = frozenset(
    {
        Status.UNIQUE, Status.REDUNDANT, Status.HELD, Status.LEAST_SQUARES, Status.SOLVED, Status.FINITE,
        Status.PLANNED, Status.REFINED, Status.REPLANNED, Status.SUPERLU, Status.CONVERGED,
    }
)  # fmt: skip
"""Verdicts of success."""

_MESSAGES = {
    Status.UNIQUE: "unique accelerations, unique multipliers",
    Status.REDUNDANT: "unique accelerations; the multipliers are the least-norm member of a family",
    Status.HELD: "solved with the free massless motion held still, as requested",
    Status.LEAST_SQUARES: "the constraints conflict; least-squares answer, as requested",
    Status.ILL_CONDITIONED: "solved, but not to rounding, or with fewer than three certain digits; see the error bars",
    Status.INCONSISTENT: "no solution: the constraints contradict each other",
    Status.MASSLESS: "no unique solution: a motion that the constraints allow moves no mass",
    Status.INDEFINITE: "no physical solution: the mass matrix is negative along an admissible motion",
    Status.DECLINED: "the requested route or method does not apply to this system",
    Status.NOT_SYMMETRIC: "the mass matrix is not symmetric",
    Status.NONFINITE: "the data hold NaN or infinity, or the answer overflowed",
    Status.SOLVED: "the forces obey the friction laws and the equations of motion",
    Status.NOT_OPTIMAL: "the method ended, but its forces do not obey the friction laws",
    Status.CYCLE: "the method came back to a set of sticking contacts that it had left",
    Status.NOT_CONVERGED: "no answer within the tolerance; one may exist",
    Status.NO_SOLUTION: "no forces obey the friction laws here: a contradiction, or Painleve's paradox",
    Status.FINITE: "all outputs are finite",
    Status.PLANNED: "solved by the planned order of elimination",
    Status.REFINED: "solved, after steps of refinement",
    Status.REPLANNED: "solved by an order of elimination that was planned anew",
    Status.SUPERLU: "solved by SuperLU, which pivots for every sample",
    Status.CONVERGED: "Newton's method converged",
    Status.SINGULAR: "the equations are singular there: no answer passes the checks",
    Status.LIMIT: "Newton's method took as many steps as allowed without an answer",
}
