"""The block system of a large mechanism, eliminated along its tree by fronts."""
