"""Readers of feature files, one module per kind of file."""
