"""Searching a library that lies in shards: each answers for its own videos, and the answers become one.

The answer is that of the same videos in one library, moment for moment. What is global in a score is gathered first:
how often words occur (:mod:`words`), which clips stand for the whole (:mod:`state`). Then each shard finds candidates
(:mod:`shard`), the coordinator takes those that one library would have found (:mod:`merge`) and ranks them with the
code that ranks those of one library (:mod:`session`), and the shards that own the hits shown say what is shown of them.
"""
