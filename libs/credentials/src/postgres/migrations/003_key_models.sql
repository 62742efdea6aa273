-- The only models that a key may use, of those of its profile. Null: all of them.
ALTER TABLE credential ADD COLUMN models text[];
