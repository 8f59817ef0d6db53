"""Search a library in shards: each answers for its own videos, and the answers become one."""
