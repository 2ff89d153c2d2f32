"""Rooms that are asked by name, so that `model` need not import what imports `model`."""

REQUEST_ROOMS = ("dalembert.tree",)
"""Packages that register requests (`dalembert.model.requests`) when they are imported."""
