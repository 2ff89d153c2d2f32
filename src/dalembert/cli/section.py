"""One section of a demonstration: printed, and put on the report page."""

from __future__ import annotations

from dalembert.view import Report


def say(page: Report, heading: str, text: str, output: str) -> None:
    """Print a section and put it on the page."""
    print(f"\n== {heading}\n{text}\n\n{output}")
    page.heading(heading)
    page.text(text)
    page.output(output)
