-- The sum of a hash of the id, key, end and overrun of each event, as reconcile computes it. Null for months that an
-- earlier version summed.
ALTER TABLE retired_month ADD COLUMN details_digest numeric;
