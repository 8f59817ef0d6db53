"""Transcribe what is said in a video: from its sound to cues with the times of their words."""
