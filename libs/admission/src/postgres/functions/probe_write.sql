-- Whether the store can write: readiness asks it. A full disk refuses what needs another page of a file, but accepts
-- for a while what fits into existing pages. So the probe begins a file anew each time.
CREATE OR REPLACE FUNCTION probe_write() RETURNS timestamptz LANGUAGE plpgsql AS $$
DECLARE
  v_at timestamptz := clock_timestamp();
BEGIN
  BEGIN
    LOCK TABLE write_probe IN ACCESS EXCLUSIVE MODE NOWAIT;
    TRUNCATE write_probe;
  EXCEPTION WHEN lock_not_available THEN
    -- Another process probes, or a backup reads the table: the rows gather until it has ended.
    NULL;
  END;
  INSERT INTO write_probe (at) VALUES (v_at);
  RETURN v_at;
END
$$;
