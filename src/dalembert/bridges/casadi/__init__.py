"""CasADi: kernels as functions of its expression graphs, in machine code, and as C that its importer loads."""
