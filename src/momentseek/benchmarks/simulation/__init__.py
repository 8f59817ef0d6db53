"""Simulated corpora with known ground truth, for testing where real features cannot be had."""
