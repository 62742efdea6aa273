-- The only models that a key may use, of those of its profile. Null: all of them.
ALTER TABLE credential
  ADD COLUMN models text[] CHECK (cardinality(models) BETWEEN 1 AND 100 AND (kind = 'key' OR models IS NULL));
