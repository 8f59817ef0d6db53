"""Judging moments, and measuring searches by the judgements, as TVR-Ranking does, for a collection of one's own."""
