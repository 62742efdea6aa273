-- Of a key: who uses it, and groups. Both are the tenant's own words.
ALTER TABLE credential
  ADD COLUMN owner text CHECK (owner = btrim(owner) AND char_length(owner) BETWEEN 1 AND 100),
  ADD COLUMN tags text[] NOT NULL DEFAULT '{}' CHECK (cardinality(tags) <= 16);
