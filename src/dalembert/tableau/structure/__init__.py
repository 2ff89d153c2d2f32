"""Structure of named equations: patterns, matchings, parts, ranks, index, pictures."""
