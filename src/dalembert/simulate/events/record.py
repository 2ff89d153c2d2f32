"""Records of events and modes of contacts."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum


class Mode(IntEnum):
    """What a contact does: it sticks, slides with positive or negative velocity, slides in a plane, or is open."""

    SLIP_MINUS = -1
    STICK = 0
    SLIP_PLUS = 1
    SLIP = 2
    OPEN = 3


MODES: dict[int, str] = {-1: "slip-", 0: "stick", 1: "slip+", 2: "slip", 3: "open"}
"""Modes as words of events."""


@dataclass(frozen=True)
class EventRecord:
    """A contact that changed its mode, or an event function of the user that became zero.

    Attributes
    ----------
    time
        In seconds.
    contact, index
        Name and number of the contact, or of the event.
    old, new
        Before and after: "stick", "slip+" or "slip-", in a plane "stick" or "slip"; where contacts open and close also
        "open", "closed", "impact" and, after infinitely many, "impacts" and "rest". Of an event "" and
        "rising" or "falling".
    """

    time: float
    contact: str
    index: int
    old: str
    new: str

    def as_dict(self) -> dict[str, str | float | int]:
        """Return what `--json` prints."""
        return {"time": self.time, "contact": self.contact, "index": self.index, "from": self.old, "to": self.new}

    def __str__(self) -> str:
        return f"{self.time:14.9f}  {self.contact}: {self.old} -> {self.new}"
