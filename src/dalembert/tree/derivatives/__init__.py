"""Derivatives of dynamics: the block system differentiated implicitly, and the regressor of inertial numbers."""
