"""Imprecise queries: find names, replace them by general words, and check the result (TVR-Ranking §3.1)."""
