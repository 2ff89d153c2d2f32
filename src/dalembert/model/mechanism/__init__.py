"""Mechanisms: parts, builder, the mechanism itself, its rows, its configurations."""
