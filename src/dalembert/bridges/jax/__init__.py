"""JAX: kernels as primitives that XLA calls by address."""
