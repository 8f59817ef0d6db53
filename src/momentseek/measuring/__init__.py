"""Formats, measures, evaluation, comparison with significance, and diagnoses."""
