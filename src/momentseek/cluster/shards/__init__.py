"""A library in shards: a folder with a manifest and several ordinary libraries, each with some of the videos."""
