"""Simulated corpora with known ground truth, for tests without real features."""
