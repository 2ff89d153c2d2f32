"""Which equation determines which unknown: patterns, matchings, parts, ranks, index, pictures."""
