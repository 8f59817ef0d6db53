"""Speech recognition: from the sound of a video to cues with word times."""
