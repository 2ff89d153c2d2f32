"""The command `dalembert`."""

from dalembert.cli.main import main

__all__ = ["main"]
