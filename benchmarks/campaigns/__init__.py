"""Topics of the campaign, one per file."""
