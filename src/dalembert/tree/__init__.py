"""Recursions over kinematic trees: kinematics, Newton-Euler, composite bodies, articulated bodies."""

from dalembert.tree import constraint_requests, large, requests

__all__ = ["constraint_requests", "large", "requests"]
