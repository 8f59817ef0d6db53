"""Massive videos: pools with reliable negatives for every query (MVMR §4, 5)."""
