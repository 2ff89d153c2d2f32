"""The LLVM backend: a program as vector code, compiled in this process or taken from the cache."""
