"""What the recursions over trees are written over: vectors, screws, inertias, counts."""
