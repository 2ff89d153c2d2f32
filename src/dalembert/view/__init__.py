"""Pictures and pages; needs the extra `view` (matplotlib)."""

from dalembert.view.figure import as_svg, new_figure
from dalembert.view.maps import draw_maps
from dalembert.view.report import Report

__all__ = ["Report", "as_svg", "draw_maps", "new_figure"]
