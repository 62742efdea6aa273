-- How long a tenant's holds last, and how long a request waits for one of them to end.

-- rule 21: mean length of holds
-- The holds that end in one call together weigh an eighth, with the mean of their lengths.
CREATE OR REPLACE FUNCTION next_mean_ms(p_mean_ms bigint, p_length_ms bigint) RETURNS bigint
LANGUAGE sql IMMUTABLE AS $$
  SELECT CASE WHEN p_mean_ms = 0 THEN p_length_ms ELSE (p_mean_ms * 7 + p_length_ms) / 8 END
$$;

-- rule 14: waiting for running requests
-- When the next hold is expected to end: the mean length divided by the number of running holds, between a second and a
-- minute.
CREATE OR REPLACE FUNCTION passing_ms(p_mean_ms bigint, p_in_flight bigint) RETURNS bigint LANGUAGE sql IMMUTABLE AS $$
  SELECT least(60000, greatest(1000, p_mean_ms / greatest(1, p_in_flight)))
$$;
