"""Build benchmark datasets, blind baselines, simulated corpora and the papers' tables."""
