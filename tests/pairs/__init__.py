"""Pairs: what moves x how many answers x how it is written x who integrates it."""
