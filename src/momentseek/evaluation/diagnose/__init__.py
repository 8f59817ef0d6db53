"""Question measures and data: axioms, ties, label noise, annotators, location bias."""
