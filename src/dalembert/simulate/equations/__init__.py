"""A system as steppers read it: charts, codes, signals, differential-algebraic equations, consistent starts."""
