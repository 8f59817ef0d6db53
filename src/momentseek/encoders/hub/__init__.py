"""Models to download: which there are, getting one, and making sure that it stays what it was."""
