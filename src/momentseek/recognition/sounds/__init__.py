"""Sounds other than speech: detectors, the kinds of sounds they know, and YAMNet."""
