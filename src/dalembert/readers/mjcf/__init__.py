"""MJCF, compiled by MuJoCo and read from the compiled model."""
