"""Published differential-algebraic problems of mechanics, with reference values; used by tests and benchmarks."""

from . import (
    andrews,
    bricard,
    car_axis,
    double_four_bar,
    fekete,
    flexible_slider_crank,
    sundials_slider_crank,
    water_tube,
)
from .pendulums import PENDULUM, PERIOD2
from .published import Published

PROBLEMS: dict[str, Published] = {
    problem.name: problem
    for problem in (
        PENDULUM,
        PERIOD2,
        andrews.PROBLEM,
        car_axis.PROBLEM,
        flexible_slider_crank.PROBLEM,
        sundials_slider_crank.PROBLEM,
        double_four_bar.PROBLEM,
        water_tube.PROBLEM,
        fekete.PROBLEM,
    )
}
"""Every problem with a reference vector."""

BRICARD = bricard.PROBLEM

__all__ = ["BRICARD", "PROBLEMS", "Published"]
