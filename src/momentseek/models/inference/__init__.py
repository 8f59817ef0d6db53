"""Searching with a trained model: the corpus encoded once, two stages in bounded memory, a Run at the end."""
