-- The log. `id` is the key; ids are given out under the lock of the one row in `log`, which makes them gap-free and makes
-- them visible in order: whoever reads id N has been able to read every id below N.
CREATE TABLE events (
    id     BIGINT PRIMARY KEY,
    stream TEXT NOT NULL,
    body   TEXT NOT NULL
);

CREATE TABLE log (
    head   BIGINT NOT NULL,
    single BOOLEAN PRIMARY KEY DEFAULT TRUE CHECK (single)
);
INSERT INTO log (head) VALUES (0);

-- Folded worlds, as a cache of the log: one may be lost or damaged without loss of data.
CREATE TABLE snapshots (
    at       BIGINT PRIMARY KEY,
    format   BIGINT NOT NULL,
    checksum BIGINT NOT NULL,
    body     BYTEA NOT NULL
);
