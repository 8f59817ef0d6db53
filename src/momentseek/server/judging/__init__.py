"""Judge moments and measure searches by the judgements, as TVR-Ranking does."""
