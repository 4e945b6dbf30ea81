-- The last batch of each writer, written with the batch. A writer that lost the answer to an append reads here whether the append
-- was made. Rows of writers that ended are deleted after some days.
CREATE TABLE writers (
    sender TEXT PRIMARY KEY,
    batch  BIGINT NOT NULL,
    at     TIMESTAMPTZ NOT NULL DEFAULT now()
);
-- An append in one statement names the epoch. A writer that lost an answer raises the epoch first, so that a statement of its
-- own that is still on its way adds nothing when it arrives.
ALTER TABLE log ADD COLUMN epoch BIGINT NOT NULL DEFAULT 0;
