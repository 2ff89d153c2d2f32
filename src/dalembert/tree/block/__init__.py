"""The block system of a mechanism in straight-line code, with a verdict for each sample."""
