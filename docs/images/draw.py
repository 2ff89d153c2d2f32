"""Draw the README's picture with the library: `python docs/images/draw.py`."""

from pathlib import Path

import numpy as np

from dalembert.examples import ANGLE, limit_of_a_light_rod
from dalembert.view import new_figure
from dalembert.view.figures import draw_crank_slider, draw_massless_limit

figure = new_figure(10.0, 3.6)
left, right = figure.subplots(1, 2, width_ratios=[1.0, 1.2])
draw_crank_slider(left, ANGLE)
masses, block, traditional, _ = limit_of_a_light_rod()
draw_massless_limit(right, masses, block, traditional)
figure.savefig(Path(__file__).with_name("massless_rod.png"), dpi=150)
print("largest error of the block form:", f"{np.max(block):.1e}")
