"""The tableau in time: backward differentiation formulas, consistent starts, forward and inverse dynamics of DAEs."""
