"""Exported models, run without torch: encoders of clips and moments, re-rankers, captioners."""
