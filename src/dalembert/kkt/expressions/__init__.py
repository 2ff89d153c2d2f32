"""The block matrix in straight-line code: expressions in, accelerations, multipliers and a verdict per sample out."""
