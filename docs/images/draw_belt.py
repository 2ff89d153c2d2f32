"""Draw the picture of the friction pages with the library: `python docs/images/draw_belt.py`."""

from pathlib import Path

from dalembert.examples import run_two_blocks
from dalembert.friction import StaticKinetic
from dalembert.view import new_figure
from dalembert.view.figures import draw_blocks, draw_forces, draw_law, draw_velocities

figure = new_figure(10.0, 9.0)
top, middle, bottom = figure.subfigures(3, 1, height_ratios=[0.8, 1.0, 1.0])
left, right = top.subplots(1, 2, width_ratios=[1.6, 1.0])
draw_blocks(left)
draw_law(right, StaticKinetic(5.0, 3.5))
run = run_two_blocks(every=0.02)
draw_velocities(middle.add_subplot(), run)
draw_forces(bottom.add_subplot(), run)
figure.savefig(Path(__file__).with_name("two_blocks.png"), dpi=110)
