"""Exported models, run without torch: clip and moment encoders, re-rankers, captioners."""
