"""Mechanisms without contacts in time: explicit, implicit and variational steps."""
