"""Libraries in object storage: each shard has a replica on this machine, which is an ordinary library.

Searches and changes happen in the replica. What a shard holds is kept elsewhere as immutable objects named by the hash
of their bytes, and one small object, replaced last, that names them: so a reader always finds a whole state.
"""

ORIGIN_FILE = "origin.json"
"""In the replica of a shard: which shard it is a replica of, and a name for the replica itself."""
