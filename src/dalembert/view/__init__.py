"""Pictures and pages; needs the extra `view` (matplotlib)."""

from dalembert.simulate.plots import new_figure
from dalembert.view.figures import draw_maps
from dalembert.view.report_page import Report, as_svg
from dalembert.view.run_report import run_report

__all__ = ["Report", "as_svg", "draw_maps", "new_figure", "run_report"]
