"""The C backend: one C99 file and its header, compiled by the system's compiler or exported."""
