"""Check measures and datasets for bias, ties and label noise."""
