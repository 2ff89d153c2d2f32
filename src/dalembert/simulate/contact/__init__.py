"""Unilateral contacts in time."""

CONTACT_CLASSES: tuple[type, ...] = ()
"""What a file may hold; being in the list is being tested."""
