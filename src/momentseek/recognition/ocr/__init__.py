"""OCR: text in the frames of a video, as lines with boxes and times."""
