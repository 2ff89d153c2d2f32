"""Steppers: one state after the other; being in a list of methods is being tested."""
