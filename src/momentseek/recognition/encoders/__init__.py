"""Encoders of texts and images; each module is an encoder that can be chosen by name, or a helper."""
