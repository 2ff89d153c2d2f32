"""From expressions to machine code: trace a CasADi function once, compile it for where it runs."""
