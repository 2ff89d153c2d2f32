"""Friction with given limits: a box-constrained convex problem, solved exactly."""
