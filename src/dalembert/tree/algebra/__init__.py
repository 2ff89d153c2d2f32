"""What the recursions are written over: scalars, vectors, screws, inertias, sparse factors, counts."""
