"""Kinematics, Newton-Euler, composite and articulated bodies, momentum, springs and dampers."""
