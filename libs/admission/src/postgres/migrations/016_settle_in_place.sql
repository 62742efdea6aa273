-- A settlement rewrites its hold in place (a HOT update): no index has a column that it changes, and a page has room
-- for a second copy of its rows. A settled hold gets into an index of its own only when the ledger has not confirmed it
-- for some seconds (../functions/sweep.sql).
-- First of all, as every call does: then none holds a lock that this file waits for.
LOCK TABLE tenant IN ACCESS EXCLUSIVE MODE;

ALTER TABLE hold ADD COLUMN settled_ms bigint;
DROP INDEX hold_pending;
DROP INDEX hold_unconfirmed;
CREATE INDEX hold_recent ON hold (id) WHERE unconfirmed_since_ms IS NULL;
CREATE INDEX hold_unconfirmed ON hold (unconfirmed_since_ms) WHERE unconfirmed_since_ms IS NOT NULL;
ALTER TABLE hold SET (fillfactor = 45);

-- One check a table: PostgreSQL reads the text of each check anew in every statement that writes.
ALTER TABLE tenant
  DROP CONSTRAINT tenant_settled_nanos_check,
  DROP CONSTRAINT tenant_pending_nanos_check,
  DROP CONSTRAINT tenant_in_flight_check,
  ADD CONSTRAINT tenant_sums_check CHECK (least(settled_nanos, pending_nanos, in_flight) >= 0);
ALTER TABLE key_state
  DROP CONSTRAINT key_state_pending_nanos_check,
  DROP CONSTRAINT key_state_in_flight_check,
  ADD CONSTRAINT key_state_sums_check CHECK (least(pending_nanos, in_flight) >= 0);
