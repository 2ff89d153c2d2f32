"""The algebra of the recursions: vectors, screws, inertias, counts."""
