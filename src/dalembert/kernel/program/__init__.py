"""From CasADi's instruction list to a straight-line program: traced, simplified, ordered, cut into chunks."""
