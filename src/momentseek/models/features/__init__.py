"""Features of clips and words: data folders, and readers of the file formats in common use."""
