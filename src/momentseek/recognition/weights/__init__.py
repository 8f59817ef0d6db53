"""Weights of models: their locations, hashes and downloads."""
