"""From video files to the library: read ahead in one thread, encode in batches, commit whole videos."""
