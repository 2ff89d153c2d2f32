"""State vectors of other tools, there and back."""
