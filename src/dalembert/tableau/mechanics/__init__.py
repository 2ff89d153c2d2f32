"""Equations of mechanisms and Lagrangian systems as tableaux."""
