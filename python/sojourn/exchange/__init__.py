"""Results in the formats of other programs, and their measurements as tables."""
