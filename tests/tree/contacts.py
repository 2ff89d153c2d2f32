"""Robots with frames that touch something."""

from __future__ import annotations

from dataclasses import dataclass

import pinocchio as pin

import dalembert as da
from tests.tree.robots import ROBOTS

FEET = ("FL_foot", "FR_foot", "RL_foot", "RR_foot")


@dataclass(frozen=True)
class Robot:
    """A file, what holds its base, frames in contact, and the rows of a contact: 3 or 6."""

    file: str
    base: str
    frames: tuple[str, ...]
    rows: int

    @property
    def path(self) -> str:
        return str(ROBOTS / self.file)

    def tree(self) -> da.Mechanism:
        """Return the tree alone, as Pinocchio takes it: without mimic joints, dampers and springs."""
        return da.load(self.path, base=self.base, allow_unphysical=True).open_tree().with_passive(False)

    def in_contact(self) -> da.Mechanism:
        kind = da.Point if self.rows == 3 else da.Weld
        return self.tree().constrain(*[kind(frame) for frame in self.frames])

    def pinocchio(self) -> pin.Model:
        free = (pin.JointModelFreeFlyer(),) if self.base == "floating" else ()
        return pin.buildModelFromUrdf(self.path, *free)


def floating(file: str, *frames: str, rows: int = 3) -> Robot:
    return Robot(file, "floating", frames, rows)


def fixed(file: str, *frames: str, rows: int = 3) -> Robot:
    return Robot(file, "fixed", frames, rows)


GO2 = floating("go2_description/urdf/go2.urdf", *FEET)
TALOS = floating("talos_data/robots/talos_reduced.urdf", "left_sole_link", "right_sole_link", rows=6)
G1 = floating("g1_description/urdf/g1_29dof_rev_1_0.urdf", "left_ankle_roll_link", "right_ankle_roll_link", rows=6)
PANDA = fixed("panda_description/urdf/panda.urdf", "panda_hand_tcp", rows=6)
ICUB = floating("icub_description/robots/icub.urdf", "l_sole", "r_sole", rows=6)

OTHERS = (
    floating("a1_description/urdf/a1.urdf", *FEET),
    fixed("alex_description/urdf/alex_nub_hands.urdf", "leftNub", "rightNub", rows=6),
    fixed("allegro_hand_description/urdf/allegro_left_hand.urdf", "link_3.0_tip", "link_15.0_tip", "link_7.0_tip"),
    floating("anymal_b_simple_description/robots/anymal-kinova.urdf", "LF_FOOT", "LH_FOOT", "j2s6s200_end_effector"),
    floating("b1_description/urdf/b1-z1.urdf", "FL_foot", "RR_foot", "gripperMover"),
    floating("bolt_description/robots/bolt.urdf", "FL_FOOT", "FR_FOOT"),
    floating("borinot_description/urdf/borinot_flying_arm_2.urdf", "flying_arm_2__ee"),
    fixed("bravo7_description/urdf/bravo7_no_ee.urdf", "contact_point"),
    floating("centauro_description/urdf/centauro.urdf", "contact_1", "contact_2", "contact_3", "contact_4"),
    fixed("finger_edu_description/robots/finger_edu.urdf", "finger_tip_link"),
    floating("hextilt_description/urdf/hextilt_flying_arm_5.urdf", "flying_arm_5__gripper", rows=6),
    floating("hyq_description/robots/hyq_no_sensors.urdf", "lf_foot", "rh_foot"),
    fixed("kinova_description/robots/kinova.urdf", "j2s6s200_end_effector"),
    fixed("pr2_description/urdf/pr2.urdf", "l_gripper_tool_frame", "r_gripper_tool_frame", rows=6),
    fixed("so_arm_description/urdf/so100.urdf", "jaw"),
    floating("solo_description/robots/solo12.urdf", "FL_FOOT", "FR_FOOT", "HL_FOOT", "HR_FOOT"),
    fixed("tiago_description/robots/tiago_no_hand.urdf", "wrist_ft_tool_link", rows=6),
    fixed("ur_description/urdf/ur5_robot.urdf", "ee_link"),
    fixed("xarm_description/urdf/xarm7.urdf", "link_eef", rows=6),
    fixed("z1_description/urdf/z1.urdf", "gripperMover"),
)
