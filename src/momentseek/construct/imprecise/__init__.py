"""Imprecise queries: who is named, by what words to replace it, and how that is checked (TVR-Ranking §3.1)."""
