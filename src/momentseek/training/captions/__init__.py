"""Training and using captioners: moments with captions as batches, how captions are measured, captions of a split."""
