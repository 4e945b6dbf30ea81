-- The checksum of each row, over id, stream and body: whoever reads a row compares it. Rows from before this migration have none.
ALTER TABLE events ADD COLUMN sum INTEGER;
