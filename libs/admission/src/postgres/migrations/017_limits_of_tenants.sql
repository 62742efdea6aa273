-- Both also return the state of the tenant's limits. CREATE OR REPLACE cannot change the columns of a result.
DROP FUNCTION IF EXISTS admit;
DROP FUNCTION IF EXISTS look;
