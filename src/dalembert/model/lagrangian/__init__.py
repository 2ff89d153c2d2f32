"""Systems given by a Lagrangian, in CasADi expressions."""
