"""The block system of a mechanism: its rows, its factors through the tree, and what is asked of it."""
