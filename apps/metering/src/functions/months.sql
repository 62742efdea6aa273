-- The months of usage_event are made while the service runs, by a login that owns nothing: `add_month` alone is run
-- with the owner's rights. It takes a month, and nothing else of it is the caller's choice.

-- The least id that a request of this moment or a later one can have: `idBound` of libs/contracts (a test compares
-- them).
CREATE OR REPLACE FUNCTION id_bound(at timestamptz) RETURNS text
LANGUAGE sql STABLE SET search_path = metering, pg_temp AS $$
  SELECT 'req_'
    || string_agg(
      substr('0123456789abcdefghjkmnpqrstvwxyz', (ms >> (5 * (9 - place)) & 31)::int + 1, 1), '' ORDER BY place)
    || repeat('0', 16)
  FROM (SELECT (extract(epoch FROM at) * 1000)::bigint AS ms) AS moment, generate_series(0, 9) AS place
$$;

-- Makes the partition of this month (UTC), unless it is there, with what the default partition has of it. Rather than
-- hold up consumers behind its locks it gives up after a while (lock_not_available), to be tried again.
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
  IF EXISTS (SELECT FROM pg_inherits WHERE inhparent = 'usage_event'::regclass AND inhrelid = to_regclass(name)) THEN
    RETURN false;
  END IF;
  -- Consumers wait here while they write into the default partition; a row of this month that they then try to put
  -- there is refused, and their batch comes again.
  LOCK TABLE usage_event_default IN ACCESS EXCLUSIVE MODE;
  -- CREATE TABLE … PARTITION OF would lock the whole of usage_event; ATTACH lets consumers write into the other months.
  EXECUTE format('CREATE TABLE %I (LIKE usage_event INCLUDING DEFAULTS INCLUDING INDEXES)', name);
  EXECUTE format(
    'WITH moved AS (DELETE FROM usage_event_default WHERE id >= %L AND id < %L RETURNING *)
     INSERT INTO %I SELECT * FROM moved', from_id, to_id, name);
  EXECUTE format('ALTER TABLE usage_event ATTACH PARTITION %I FOR VALUES FROM (%L) TO (%L)', name, from_id, to_id);
  RETURN true;
END $$;
