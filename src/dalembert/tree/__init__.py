"""Recursions over kinematic trees: kinematics, Newton-Euler, composite bodies, articulated bodies."""

from dalembert.tree import requests

__all__ = ["requests"]
