"""Events that a user asks for, and their zeros."""
