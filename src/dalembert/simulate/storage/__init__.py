"""Runs in files: written while they go on, read back, continued bit for bit."""
