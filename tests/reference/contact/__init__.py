"""The plain engine of contacts: the twin of the compiled one, from event to event in NumPy."""
