"""Friction whose limits are reactions: cones, solved by sweeps, Newton and interior points."""
