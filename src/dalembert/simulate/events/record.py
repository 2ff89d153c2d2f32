"""Records of events and modes of contacts."""

from __future__ import annotations

from dataclasses import dataclass

MODES = {0: "stick", 1: "slip+", -1: "slip-", 2: "slip"}
"""Mode of a contact: at rest, or sliding with positive or negative relative velocity, or sliding in a plane."""


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
