"""Predictors that learn nothing, or only where moments lie; each returns a Run."""
