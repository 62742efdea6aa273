-- The store's clock and calendar.

-- Call it after locking: a call that waited for a lock must not use an old time.
CREATE OR REPLACE FUNCTION now_us(p_now_ms bigint) RETURNS bigint LANGUAGE sql VOLATILE AS $$
  SELECT CASE
    WHEN p_now_ms IS NULL THEN (extract(epoch FROM clock_timestamp()) * 1000000)::bigint
    ELSE p_now_ms * 1000
  END
$$;

-- The month of a time in UTC: year × 12 + month − 1.
CREATE OR REPLACE FUNCTION month_of(p_now_us bigint) RETURNS int LANGUAGE sql STABLE AS $$
  -- Without a subquery, so that its callers contain it.
  SELECT (extract(year FROM to_timestamp(p_now_us / 1000000) AT TIME ZONE 'UTC') * 12
    + extract(month FROM to_timestamp(p_now_us / 1000000) AT TIME ZONE 'UTC') - 1)::int
$$;
