"""Sounds that are not speech: detectors, the kinds of sounds they know, and YAMNet."""
