-- The running service adds the months of usage_event, with a login that owns nothing. Only `add_month` runs with the
-- owner's rights. The caller chooses the month and nothing else.

-- The least id that a request of this moment or a later one can have. Equal to `idBound` of libs/contracts (a test
-- compares them).
CREATE OR REPLACE FUNCTION id_bound(at timestamptz) RETURNS text
LANGUAGE sql STABLE SET search_path = metering, pg_temp AS $$
  SELECT 'req_'
    || string_agg(
      substr('0123456789abcdefghjkmnpqrstvwxyz', (ms >> (5 * (9 - place)) & 31)::int + 1, 1), '' ORDER BY place)
    || repeat('0', 16)
  FROM (SELECT (extract(epoch FROM at) * 1000)::bigint AS ms) AS moment, generate_series(0, 9) AS place
$$;

-- Makes the partition of this month (UTC), unless it exists, and moves the month's rows there from the default
-- partition. It gives up after a while (lock_not_available) instead of delaying consumers behind its locks, and is
-- retried.
CREATE OR REPLACE FUNCTION add_month(of_year int, of_month int) RETURNS boolean LANGUAGE plpgsql SECURITY DEFINER
  SET search_path = metering, pg_temp SET lock_timeout = '2s' AS $$
DECLARE
  first timestamp := make_date(of_year, of_month, 1);
  name text := 'usage_event_' || to_char(first, 'YYYY_MM');
  from_id text := id_bound(first AT TIME ZONE 'UTC');
  to_id text := id_bound((first + interval '1 month') AT TIME ZONE 'UTC');
BEGIN
  IF of_year NOT BETWEEN 2020 AND 2199 THEN
    RAISE invalid_parameter_value USING MESSAGE = format('no events are of %s', to_char(first, 'YYYY-MM'));
  END IF;
  PERFORM pg_advisory_xact_lock(hashtextextended('tollgate-metering-partitions', 0));
  IF EXISTS (SELECT FROM retired_month r WHERE r.until_id >= to_id) THEN
    RAISE invalid_parameter_value USING MESSAGE = format('%s is closed for events', to_char(first, 'YYYY-MM'));
  END IF;
  IF EXISTS (SELECT FROM pg_inherits WHERE inhparent = 'usage_event'::regclass AND inhrelid = to_regclass(name)) THEN
    RETURN false;
  END IF;
  -- Consumers that write into the default partition wait here. Afterwards a row of this month is refused there, and
  -- their batch is redelivered.
  LOCK TABLE usage_event_default IN ACCESS EXCLUSIVE MODE;
  -- CREATE TABLE … PARTITION OF would lock all of usage_event. ATTACH lets consumers write into the other months.
  EXECUTE format('CREATE TABLE %I (LIKE usage_event INCLUDING DEFAULTS INCLUDING INDEXES)', name);
  EXECUTE format(
    'WITH moved AS (DELETE FROM usage_event_default WHERE id >= %L AND id < %L RETURNING *)
     INSERT INTO %I SELECT * FROM moved', from_id, to_id, name);
  EXECUTE format('ALTER TABLE usage_event ATTACH PARTITION %I FOR VALUES FROM (%L) TO (%L)', name, from_id, to_id);
  RETURN true;
END $$;

-- Builds the index of unfinished requests in the newest partition that lacks it, and returns the partition's name. Null
-- if none lacks it, or if another session is building one. Writers of this partition wait for the build; after a start,
-- that is the running month's once. A month made by add_month has the index from its beginning.
CREATE OR REPLACE FUNCTION index_partition() RETURNS text LANGUAGE plpgsql SECURITY DEFINER
  SET search_path = metering, pg_temp SET lock_timeout = '2s' AS $$
DECLARE
  name text;
BEGIN
  -- The lock of add_month, which changes the list of partitions.
  IF NOT pg_try_advisory_xact_lock(hashtextextended('tollgate-metering-partitions', 0)) THEN
    RETURN NULL;
  END IF;
  SELECT relname INTO name
  FROM pg_inherits JOIN pg_class ON pg_class.oid = inhrelid
  WHERE inhparent = 'usage_event'::regclass AND NOT EXISTS (
    SELECT FROM pg_index JOIN pg_inherits AS attached ON attached.inhrelid = indexrelid
    WHERE indrelid = pg_class.oid AND attached.inhparent = 'usage_event_unfinished'::regclass)
  ORDER BY relname DESC LIMIT 1;
  IF name IS NOT NULL THEN
    EXECUTE format(
      'CREATE INDEX %I ON %I (tenant_id, ended_at) INCLUDE (outcome, model, key_id) WHERE outcome <> ''complete''',
      name || '_unfinished', name);
    EXECUTE format('ALTER INDEX usage_event_unfinished ATTACH PARTITION %I', name || '_unfinished');
  END IF;
  RETURN name;
END $$;
