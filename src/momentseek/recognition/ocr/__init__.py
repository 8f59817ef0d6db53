"""Read the text in the pictures of a video: from frames to lines with boxes and times."""
