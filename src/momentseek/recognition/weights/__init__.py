"""Weights of models: where they lie, their hashes, and which can be downloaded."""
