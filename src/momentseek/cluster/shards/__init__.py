"""A library in shards: a folder with a manifest, and in it ordinary libraries with some of the videos each."""
