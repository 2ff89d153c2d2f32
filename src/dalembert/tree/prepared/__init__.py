"""From a mechanism to a tree that is cheap to compute with."""
