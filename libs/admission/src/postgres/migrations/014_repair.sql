-- formerly sha256 7dfb524201a77197e806affd68c1ac9e1e619f3b7b30087ab37ef44f5d1e470c
-- `snapshot` answers more columns than before, which CREATE OR REPLACE FUNCTION cannot change: ../functions makes it
-- anew.
DROP FUNCTION IF EXISTS snapshot(text, text, int);
