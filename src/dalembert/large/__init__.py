"""Mechanisms of hundreds to hundreds of thousands of bodies: loops instead of straight-line code."""

from dalembert.large import requests

__all__ = ["requests"]
