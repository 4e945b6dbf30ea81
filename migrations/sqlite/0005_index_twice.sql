-- How far the index goes, a second time: an index whose two numbers differ is damaged, and is made again from the log.
ALTER TABLE indexed ADD COLUMN again INTEGER NOT NULL DEFAULT 0;
UPDATE indexed SET again = upto;
