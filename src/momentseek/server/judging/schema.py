"""The tables of judgements.

Videos are known by the hash of their bytes, so that judgements outlive a file that is removed and added again.
``history`` is only ever added to: a person's latest row of a candidate that was not taken back is what they say.
"""

VERSION = 1

SCHEMA = """
CREATE TABLE videos (
    hash TEXT PRIMARY KEY, label TEXT NOT NULL UNIQUE, name TEXT NOT NULL, duration REAL NOT NULL
) WITHOUT ROWID;
CREATE TABLE queries (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    text TEXT NOT NULL UNIQUE,
    depth INTEGER NOT NULL,
    batches INTEGER NOT NULL DEFAULT 1,
    created REAL NOT NULL
);
CREATE TABLE candidates (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    query INTEGER NOT NULL REFERENCES queries ON DELETE CASCADE,
    rank INTEGER NOT NULL,
    batch INTEGER NOT NULL,
    video TEXT NOT NULL REFERENCES videos,
    start REAL NOT NULL,
    end REAL NOT NULL,
    score REAL NOT NULL,
    UNIQUE (query, rank)
);
CREATE TABLE history (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    candidate INTEGER NOT NULL REFERENCES candidates ON DELETE CASCADE,
    annotator TEXT NOT NULL,
    relevance INTEGER NOT NULL CHECK (relevance BETWEEN 0 AND 4),
    at REAL NOT NULL,
    undone REAL
);
CREATE INDEX history_candidate ON history (candidate, annotator, id);
CREATE INDEX history_annotator ON history (annotator, id) WHERE undone IS NULL;
"""
