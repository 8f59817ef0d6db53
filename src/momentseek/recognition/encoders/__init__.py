"""Encoders of texts and images behind small protocols, one file for each that can be chosen by name."""
