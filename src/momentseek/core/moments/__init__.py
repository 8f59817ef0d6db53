"""The vocabulary: moments, judgements of them, ranked runs of them, and how far two overlap."""
