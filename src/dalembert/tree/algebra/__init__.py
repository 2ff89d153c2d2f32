"""The algebra of the recursions: scalars, vectors, screws, inertias, sparse factors, counts."""
