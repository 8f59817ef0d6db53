"""Weights of the public implementations under their own names, loaded into our models; one file per model."""
