"""FMI: mechanisms as functional mock-up units, in C."""
