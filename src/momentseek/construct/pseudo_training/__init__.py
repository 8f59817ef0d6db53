"""Pseudo training sets: the moments whose captions are most similar to a query (TVR-Ranking §3.3)."""
