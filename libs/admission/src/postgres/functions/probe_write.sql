-- The readiness probe: whether the store can write. A full disk refuses a write that needs another page of a file, but
-- accepts for a while what fits into existing pages. Each probe therefore starts a new file.
CREATE OR REPLACE FUNCTION probe_write() RETURNS timestamptz LANGUAGE plpgsql AS $$
DECLARE
  v_at timestamptz := clock_timestamp();
BEGIN
  BEGIN
    LOCK TABLE write_probe IN ACCESS EXCLUSIVE MODE NOWAIT;
    TRUNCATE write_probe;
  EXCEPTION WHEN lock_not_available THEN
    -- Another process probes, or a backup reads the table. The rows gather until that has ended.
    NULL;
  END;
  INSERT INTO write_probe (at) VALUES (v_at);
  RETURN v_at;
END
$$;
