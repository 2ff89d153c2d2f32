"""The CUDA backend: one thread per sample, compiled by NVRTC through CuPy."""
