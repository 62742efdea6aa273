-- formerly sha256 584a1bf4e289965c29e96d72afbf44c5b4e66e651a8dba77b3e89b39cca97763
-- formerly sha256 7dfb524201a77197e806affd68c1ac9e1e619f3b7b30087ab37ef44f5d1e470c
-- `snapshot` returns more columns than before. CREATE OR REPLACE FUNCTION cannot change that, so ../functions creates
-- it again.
DROP FUNCTION IF EXISTS snapshot(text, text, int);
