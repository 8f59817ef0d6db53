"""The catalog's tables.

Only whole videos are in ``videos``: a video's row, its cues and the segments that hold its vectors become visible in
one transaction. ``gone`` lists ids whose vectors still lie in segments although the video was removed or replaced;
compaction rewrites those segments and empties it. Paths are bytes, because a file's name need not be text.
"""

from momentseek.library.words import SPELLING_TOKENIZER, TOKENIZER

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
CREATE TABLE IF NOT EXISTS rehearings (
    video INTEGER PRIMARY KEY,
    model TEXT NOT NULL,
    fingerprint TEXT NOT NULL,
    language TEXT,
    heard REAL NOT NULL,
    words TEXT NOT NULL,
    at REAL NOT NULL
);
CREATE TRIGGER IF NOT EXISTS rehearings_out AFTER DELETE ON videos BEGIN
    DELETE FROM rehearings WHERE video = old.id;
END;
CREATE TABLE IF NOT EXISTS cue_edits (
    hash TEXT NOT NULL,
    start REAL NOT NULL,
    end REAL NOT NULL,
    text TEXT NOT NULL,
    at REAL NOT NULL,
    PRIMARY KEY (hash, start, end)
) WITHOUT ROWID;
"""
"""What was heard; what is being heard anew by another recogniser; and what people corrected, by the hash of a video's
bytes, so that it outlives the video's row. Libraries made before these tables get them when they are next written;
older releases pass them over, as they do those of readings."""

SOUNDS = """
CREATE TABLE IF NOT EXISTS listened (
    video INTEGER PRIMARY KEY, detector TEXT NOT NULL, fingerprint TEXT NOT NULL
);
CREATE TABLE IF NOT EXISTS sounds (
    id INTEGER PRIMARY KEY,
    video INTEGER NOT NULL,
    start REAL NOT NULL,
    end REAL NOT NULL,
    label TEXT NOT NULL,
    score REAL NOT NULL
);
CREATE INDEX IF NOT EXISTS sounds_label ON sounds (label, video);
CREATE TRIGGER IF NOT EXISTS sounds_out AFTER DELETE ON videos BEGIN
    DELETE FROM listened WHERE video = old.id;
    DELETE FROM sounds WHERE video = old.id;
END;
"""
SAMPLINGS = """
CREATE TABLE IF NOT EXISTS samplings (video INTEGER PRIMARY KEY, sampling TEXT NOT NULL);
CREATE TRIGGER IF NOT EXISTS samplings_out AFTER DELETE ON videos BEGIN
    DELETE FROM samplings WHERE video = old.id;
END;
"""
"""How the pictures of videos were sampled, where that is not exactly; the table is made with the first such video."""
READINGS = f"""
CREATE TABLE IF NOT EXISTS readings (
    video INTEGER PRIMARY KEY,
    model TEXT NOT NULL,
    fingerprint TEXT NOT NULL,
    done REAL NOT NULL,
    whole INTEGER NOT NULL,
    problem TEXT NOT NULL,
    at REAL NOT NULL
);
CREATE TABLE IF NOT EXISTS read_frames (
    video INTEGER NOT NULL, start REAL NOT NULL, frame TEXT NOT NULL, PRIMARY KEY (video, start)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS lines (
    id INTEGER PRIMARY KEY,
    video INTEGER NOT NULL,
    start REAL NOT NULL,
    end REAL NOT NULL,
    text TEXT NOT NULL,
    at REAL NOT NULL,
    x REAL NOT NULL,
    y REAL NOT NULL,
    width REAL NOT NULL,
    height REAL NOT NULL,
    score REAL NOT NULL
);
CREATE INDEX IF NOT EXISTS lines_video ON lines (video, id);
CREATE VIRTUAL TABLE IF NOT EXISTS line_words USING fts5 (
    text, content='lines', content_rowid='id', tokenize='{TOKENIZER}'
);
CREATE VIRTUAL TABLE IF NOT EXISTS line_spellings USING fts5 (
    text, content='lines', content_rowid='id', tokenize='{SPELLING_TOKENIZER}'
);
CREATE VIRTUAL TABLE IF NOT EXISTS line_vocabulary USING fts5vocab ('line_spellings', 'row');
CREATE TABLE IF NOT EXISTS line_terms (term TEXT PRIMARY KEY, reversed TEXT NOT NULL) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS line_terms_reversed ON line_terms (reversed);
CREATE TRIGGER IF NOT EXISTS lines_in AFTER INSERT ON lines BEGIN
    INSERT INTO line_words (rowid, text) VALUES (new.id, new.text);
    INSERT INTO line_spellings (rowid, text) VALUES (new.id, new.text);
END;
CREATE TRIGGER IF NOT EXISTS lines_out AFTER DELETE ON lines BEGIN
    INSERT INTO line_words (line_words, rowid, text) VALUES ('delete', old.id, old.text);
    INSERT INTO line_spellings (line_spellings, rowid, text) VALUES ('delete', old.id, old.text);
END;
CREATE TRIGGER IF NOT EXISTS readings_out AFTER DELETE ON videos BEGIN
    DELETE FROM readings WHERE video = old.id;
    DELETE FROM read_frames WHERE video = old.id;
    DELETE FROM lines WHERE video = old.id;
END;
"""
"""Tables of what is written in pictures: ``lines`` of videos that were wholly read, and the frames read of others.

``line_spellings`` knows words as they were read, without stemming, and ``line_terms`` lists them, forwards and
backwards: what differs from a word in one letter begins or ends like it.
"""

DESCRIPTIONS = f"""
CREATE TABLE IF NOT EXISTS descriptions (
    video INTEGER PRIMARY KEY,
    model TEXT NOT NULL,
    fingerprint TEXT NOT NULL,
    done REAL NOT NULL,
    whole INTEGER NOT NULL,
    problem TEXT NOT NULL,
    at REAL NOT NULL
);
CREATE TABLE IF NOT EXISTS captions (
    id INTEGER PRIMARY KEY,
    video INTEGER NOT NULL,
    start REAL NOT NULL,
    end REAL NOT NULL,
    text TEXT NOT NULL
);
CREATE INDEX IF NOT EXISTS captions_video ON captions (video, id);
CREATE VIRTUAL TABLE IF NOT EXISTS caption_words USING fts5 (
    text, content='captions', content_rowid='id', tokenize='{TOKENIZER}'
);
CREATE TRIGGER IF NOT EXISTS captions_in AFTER INSERT ON captions BEGIN
    INSERT INTO caption_words (rowid, text) VALUES (new.id, new.text);
END;
CREATE TRIGGER IF NOT EXISTS captions_out AFTER DELETE ON captions BEGIN
    INSERT INTO caption_words (caption_words, rowid, text) VALUES ('delete', old.id, old.text);
END;
CREATE TRIGGER IF NOT EXISTS descriptions_out AFTER DELETE ON videos BEGIN
    DELETE FROM descriptions WHERE video = old.id;
    DELETE FROM captions WHERE video = old.id;
END;
"""
"""Tables of what a model says of scenes; a library gets them when it is first described."""
