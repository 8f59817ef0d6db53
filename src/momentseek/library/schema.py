"""The catalog's tables.

Only whole videos are in ``videos``: a video's row, its cues and the segments that hold its vectors become visible in
one transaction. ``gone`` lists ids whose vectors still lie in segments although the video was removed or replaced;
compaction rewrites those segments and empties it. Paths are bytes, because a file's name need not be text.
"""

from momentseek.library.words import TOKENIZER

SCHEMA_VERSION = 2

SCHEMA = f"""
CREATE TABLE settings (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE encoders (
    stream TEXT PRIMARY KEY, spec TEXT NOT NULL, name TEXT NOT NULL, fingerprint TEXT NOT NULL, dim INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE videos (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    path BLOB NOT NULL UNIQUE,
    name TEXT NOT NULL,
    size INTEGER NOT NULL,
    mtime_ns INTEGER NOT NULL,
    hash TEXT NOT NULL,
    duration REAL NOT NULL,
    width INTEGER NOT NULL,
    height INTEGER NOT NULL,
    rate TEXT NOT NULL,
    codec TEXT NOT NULL,
    clips INTEGER NOT NULL,
    cues INTEGER NOT NULL,
    shots BLOB NOT NULL,
    subtitles TEXT NOT NULL,
    added REAL NOT NULL,
    notes TEXT NOT NULL,
    audio INTEGER NOT NULL
);
CREATE INDEX videos_mtime ON videos (mtime_ns);
CREATE INDEX videos_hash ON videos (hash);
CREATE TABLE cues (
    id INTEGER PRIMARY KEY,
    video INTEGER NOT NULL,
    start REAL NOT NULL,
    end REAL NOT NULL,
    text TEXT NOT NULL,
    language TEXT
);
CREATE INDEX cues_video ON cues (video, id);
CREATE VIRTUAL TABLE cue_words USING fts5 (
    text, content='cues', content_rowid='id', tokenize='{TOKENIZER}'
);
CREATE TRIGGER cues_in AFTER INSERT ON cues BEGIN
    INSERT INTO cue_words (rowid, text) VALUES (new.id, new.text);
END;
CREATE TRIGGER cues_out AFTER DELETE ON cues BEGIN
    INSERT INTO cue_words (cue_words, rowid, text) VALUES ('delete', old.id, old.text);
END;
CREATE VIRTUAL TABLE name_words USING fts5 (text, tokenize='{TOKENIZER}');
CREATE TABLE segments (
    name TEXT PRIMARY KEY, stream TEXT NOT NULL, videos INTEGER NOT NULL, rows INTEGER NOT NULL, first INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE gone (video INTEGER PRIMARY KEY);
CREATE TABLE failures (
    path BLOB PRIMARY KEY,
    name TEXT NOT NULL,
    reason TEXT NOT NULL,
    at REAL NOT NULL,
    tries INTEGER NOT NULL,
    size INTEGER,
    mtime_ns INTEGER
) WITHOUT ROWID;
"""

TRANSCRIPTS = """
CREATE TABLE IF NOT EXISTS transcripts (
    video INTEGER PRIMARY KEY,
    model TEXT NOT NULL,
    fingerprint TEXT NOT NULL,
    language TEXT,
    heard REAL NOT NULL,
    words TEXT NOT NULL,
    whole INTEGER NOT NULL,
    problem TEXT NOT NULL,
    at REAL NOT NULL
);
CREATE TRIGGER IF NOT EXISTS transcripts_out AFTER DELETE ON videos BEGIN
    DELETE FROM transcripts WHERE video = old.id;
END;
"""
"""Tables that libraries made before them get when they are next written; older releases pass them over."""
