"""URDF: links and joints of a tree, and what tools have added to it."""
