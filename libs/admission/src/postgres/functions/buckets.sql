-- Rate limits by GCRA: a bucket is stored as the time at which it will be full again (table bucket).

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

CREATE OR REPLACE FUNCTION set_bucket(
  p_tenant_id text, p_key_id text, p_requests_us bigint, p_tokens_us bigint, p_now_us bigint)
RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  UPDATE bucket SET requests_full_us = p_requests_us, tokens_full_us = p_tokens_us, written_us = p_now_us
    WHERE tenant_id = p_tenant_id AND key_id = p_key_id;
  IF NOT FOUND THEN
    INSERT INTO bucket (tenant_id, key_id, requests_full_us, tokens_full_us, written_us)
      VALUES (p_tenant_id, p_key_id, p_requests_us, p_tokens_us, p_now_us);
  END IF;
END
$$;

-- rule 20: token correction
-- Moves a token bucket by the difference between the actual tokens and those counted at admission: back for unused
-- tokens, forward for additional ones. Starts at the bucket's state by this clock.
CREATE OR REPLACE FUNCTION correct_tokens(p_tenant_id text, p_key_id text, p_now_us bigint, p_by_us bigint) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
  IF p_by_us <> 0 THEN
    UPDATE bucket SET requests_full_us = requests_full_us - ahead_us(written_us, requests_full_us, p_now_us),
        tokens_full_us = full_us(tokens_full_us, written_us, requests_full_us, p_now_us) + p_by_us,
        written_us = p_now_us
      WHERE tenant_id = p_tenant_id AND key_id = p_key_id;
  END IF;
END
$$;
