-- The log. `id` is the key and comes from the core, so rows are only ever added at the end. No secondary index stands on
-- this path. `stream` says whose event it is and is read together with a range of ids.
CREATE TABLE events (
    id     INTEGER PRIMARY KEY,
    stream TEXT NOT NULL,
    body   TEXT NOT NULL
) STRICT;

-- Folded worlds, as a cache of the log: one may be lost or damaged without loss of data.
CREATE TABLE snapshots (
    at       INTEGER PRIMARY KEY,
    format   INTEGER NOT NULL,
    checksum INTEGER NOT NULL,
    body     BLOB NOT NULL
) STRICT;
