-- Rate limits by GCRA: a bucket holds one minute's worth and refills evenly. It is stored as the time at which it will
-- be full again, in the row of its tenant or key: requests_full_us, tokens_full_us, buckets_written_us.

-- rule 9: bucket arithmetic
-- How far `p_amount` moves that time in a bucket of `p_per_minute`. An amount above the whole bucket counts as the
-- whole bucket, because it could never pass otherwise. Rounded down, so that a burst up to the limit always fits.
CREATE OR REPLACE FUNCTION bucket_us(p_amount bigint, p_per_minute bigint) RETURNS bigint LANGUAGE sql IMMUTABLE AS $$
  SELECT least(p_amount, p_per_minute) * 60000000 / p_per_minute
$$;

-- rule 1: a clock that was ahead
-- How far the clock was ahead when a bucket was written. The requests bucket also tells it, to the minute, because it
-- never needs more than a minute to fill. The tokens bucket may need more, because settlements correct it.
CREATE OR REPLACE FUNCTION ahead_us(p_written_us bigint, p_requests_full_us bigint, p_now_us bigint) RETURNS bigint
LANGUAGE sql IMMUTABLE AS $$
  SELECT greatest(0, p_written_us - p_now_us, p_requests_full_us - 60000000 - p_now_us)
$$;

-- rule 1: a clock that was ahead
-- When a bucket is full, by this clock: now at the earliest, and also now if there is no bucket yet.
CREATE OR REPLACE FUNCTION full_us(p_full_us bigint, p_written_us bigint, p_requests_full_us bigint, p_now_us bigint)
RETURNS bigint LANGUAGE sql IMMUTABLE AS $$
  SELECT greatest(p_full_us - ahead_us(p_written_us, p_requests_full_us, p_now_us), p_now_us)
$$;

-- What is left in a bucket that is full again at p_full_us.
CREATE OR REPLACE FUNCTION left_in_bucket(p_full_us bigint, p_per_minute bigint, p_now_us bigint) RETURNS bigint
LANGUAGE sql IMMUTABLE AS $$
  SELECT floor(greatest(p_now_us + 60000000 - p_full_us, 0)::float8 * p_per_minute / 60000000)::bigint
$$;

CREATE OR REPLACE FUNCTION reset_ms(p_full_us bigint, p_now_us bigint) RETURNS bigint LANGUAGE sql IMMUTABLE AS $$
  SELECT (p_full_us - p_now_us + 999) / 1000
$$;
