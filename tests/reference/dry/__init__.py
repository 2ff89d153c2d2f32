"""Dry friction from event to event in plain NumPy: the twin of the contact engine for Lagrangians and matrices."""
