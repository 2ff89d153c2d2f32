"""Dry friction of Lagrangians and matrices in time: modes integrated, transitions located and resolved."""
