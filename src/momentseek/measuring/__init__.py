"""File formats, measures, evaluation, significance tests and diagnoses."""
