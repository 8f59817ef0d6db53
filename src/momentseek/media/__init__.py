"""Video files and what lies beside them: probing, decoding, shots, subtitles, thumbnails, cutting, edit lists."""
