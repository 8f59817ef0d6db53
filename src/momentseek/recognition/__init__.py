"""Models that look, listen and read: encoders, speech, OCR, captions, sounds, exported models; their weights."""
