"""A sparse linear solver made for one pattern: planned once, carried out, watched, repaired."""
