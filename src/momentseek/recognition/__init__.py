"""Recognition models: encoders, speech, OCR, captions, sounds, faces, exported models, and their weights."""
