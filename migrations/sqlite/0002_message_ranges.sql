-- Where each agent's messages are in the log, as ranges of consecutive ids, so that a history is read without an index on the
-- append path. Derived from the log: written now and then, up to `indexed.upto`; what came later is known to the engine.
-- Serves the one statement that reads the parts of a history: by agent, then by the range of ids.
CREATE TABLE message_ranges (
    agent TEXT NOT NULL,
    first INTEGER NOT NULL,
    last  INTEGER NOT NULL,
    ids   TEXT NOT NULL,
    PRIMARY KEY (agent, first)
) STRICT, WITHOUT ROWID;

CREATE TABLE indexed (
    single INTEGER PRIMARY KEY CHECK (single = 1),
    upto INTEGER NOT NULL
) STRICT;
INSERT INTO indexed VALUES (1, 0);
