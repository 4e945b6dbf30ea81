-- Where each agent's messages are in the log, as ranges of consecutive ids, so that a history is read without an index on the
-- append path. Derived from the log: written now and then, up to `indexed.upto`; what came later is known to the engine.
-- Serves the one statement that reads the parts of a history: by agent, then by the range of ids.
CREATE TABLE message_ranges (
    agent TEXT NOT NULL,
    first BIGINT NOT NULL,
    last  BIGINT NOT NULL,
    los   BIGINT[] NOT NULL,
    his   BIGINT[] NOT NULL,
    PRIMARY KEY (agent, first)
);

CREATE TABLE indexed (
    single BOOLEAN PRIMARY KEY DEFAULT TRUE CHECK (single),
    upto BIGINT NOT NULL
);
INSERT INTO indexed (upto) VALUES (0);
