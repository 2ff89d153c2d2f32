"""Shapes that touch: pairs, broad and narrow phase in compiled loops."""
