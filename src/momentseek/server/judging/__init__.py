"""Judging moments and measuring searches by the judgements: TVR-Ranking's way, for one's own collection."""
