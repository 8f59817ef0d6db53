"""Video files: probing, decoding, shots, subtitles, thumbnails, cutting, edit lists, and the decoding sandbox."""
