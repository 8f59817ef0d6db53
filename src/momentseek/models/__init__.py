"""Trainable models on shared layers and losses: features, training, inference, export. torch lives only here."""
