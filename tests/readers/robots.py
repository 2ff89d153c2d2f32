"""Robot files that others made: those of example-robot-data, and what is wrong with two of them."""

from __future__ import annotations

from importlib.metadata import files
from pathlib import Path

_MODELS = [path for path in files("example-robot-data") or () if path.suffix in (".urdf", ".sdf")]
ROBOTS = next(Path(str(path.locate())) for path in _MODELS if path.name == "panda.urdf").parents[2]
URDFS = sorted(str(path.relative_to(ROBOTS)) for path in ROBOTS.rglob("*.urdf"))
SDFS = sorted(str(path.relative_to(ROBOTS)) for path in ROBOTS.rglob("*.sdf"))

BROKEN = {
    "falcon_description/urdf/falcon.urdf": r"falcon.urdf:180 <joint name=\"top_propeller_joint\">.*'Z_propeller'",
    "ur_description/urdf/ur3.urdf": r"ur3.urdf:6 <robot>: no <link>",
}
"""Files that no tool can read: a joint's child does not exist; there is nothing in it but comments."""

UNPHYSICAL = {
    "alex_description/urdf/alex_psyonic_hands.urdf": "LeftPsyonicAbilityBaseLink",
    "allegro_hand_description/urdf/allegro_left_hand.urdf": "link_11.0",
    "allegro_hand_description/urdf/allegro_right_hand.urdf": "link_3.0",
    "anymal_b_simple_description/robots/anymal-kinova.urdf": "base",
    "anymal_b_simple_description/robots/anymal.urdf": "base",
    "anymal_c_simple_description/urdf/anymal.urdf": "depth_camera_front_camera",
    "b1_description/urdf/b1-z1.urdf": "base",
    "b1_description/urdf/b1.urdf": "base",
    "go1_description/urdf/go1.urdf": "base",
    "hyq_description/robots/hyq_no_sensors.urdf": "base_link",
    "pr2_description/urdf/pr2.urdf": "sensor_mount_link",
    "romeo_description/urdf/romeo_laas_small.urdf": "LShoulderYaw_link",
    "romeo_description/urdf/romeo_small.urdf": "RShoulderYawLink",
    "tiago_description/robots/tiago.urdf": "base_antenna_left_link",
    "tiago_description/robots/tiago_dual.urdf": "base_antenna_left_link",
    "tiago_description/robots/tiago_no_hand.urdf": "base_antenna_left_link",
}
"""Files with an inertia that no body can have, and the first link with one; they load with a warning."""
