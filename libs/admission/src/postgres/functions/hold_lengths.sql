-- How long a tenant's holds last, and how long a request waits for one of them to end.

-- rule 21: mean length of holds
-- The holds that end in one call together weigh an eighth, with the mean of their lengths.
CREATE OR REPLACE FUNCTION next_mean_ms(p_mean_ms bigint, p_length_ms bigint) RETURNS bigint
LANGUAGE sql IMMUTABLE AS $$
  SELECT CASE WHEN p_mean_ms = 0 THEN p_length_ms ELSE (p_mean_ms * 7 + p_length_ms) / 8 END
$$;

-- The model of a hold, from its draft and without reading all of it: no member before its model has members of its own,
-- and quotation marks inside a string are escaped. The operator ->> takes three times as long.
CREATE OR REPLACE FUNCTION model_of(p_draft json) RETURNS text LANGUAGE sql IMMUTABLE AS $$
  SELECT split_part(split_part(p_draft::text, '"model":"', 2), '"', 1)
$$;

-- At most an hour. Without this limit, a jump of the clock would distort the mean of the next hundred holds.
CREATE OR REPLACE FUNCTION hold_length_ms(p_admitted_ms bigint, p_now_us bigint) RETURNS bigint
LANGUAGE sql IMMUTABLE AS $$
  SELECT least(3600000, greatest(0, p_now_us / 1000 - coalesce(p_admitted_ms, p_now_us / 1000)))
$$;

-- next_mean_ms for each model of the tenant's holds among `p_ids`, which end now and are still pending. The means are
-- { model, mean, model, mean, … } of the models that ended last, the newest first; those of one call in the order of
-- their names.
CREATE OR REPLACE FUNCTION next_model_means(p_means text[], p_tenant_id text, p_ids text[], p_now_us bigint)
RETURNS text[] LANGUAGE plpgsql STABLE AS $$
DECLARE
  MAX_MODELS constant int := 16;
  v_models text[];
  i int;
  r record;
BEGIN
  FOR r IN
    SELECT model_of(o.record) AS model, div(sum(hold_length_ms(o.admitted_ms, p_now_us)), count(*))::bigint AS length_ms
    FROM hold o WHERE o.id = ANY (p_ids) AND o.tenant_id = p_tenant_id
    GROUP BY model_of(o.record) ORDER BY model_of(o.record) COLLATE "C"
  LOOP
    v_models := array(SELECT p_means[n] FROM generate_series(1, cardinality(p_means), 2) n);
    i := 2 * coalesce(array_position(v_models, r.model), cardinality(v_models) + 1) - 1;
    p_means := ARRAY[r.model, next_mean_ms(coalesce(p_means[i + 1]::bigint, 0), r.length_ms)::text]
      || p_means[1:i - 1] || p_means[i + 2:];
  END LOOP;
  RETURN p_means[1:2 * MAX_MODELS];
END
$$;

-- rule 14: waiting for running requests
-- When the next hold is expected to end: the mean length divided by the number of running holds, between a second and a
-- minute.
CREATE OR REPLACE FUNCTION passing_ms(p_mean_ms bigint, p_in_flight bigint) RETURNS bigint LANGUAGE sql IMMUTABLE AS $$
  SELECT least(60000, greatest(1000, p_mean_ms / greatest(1, p_in_flight)))
$$;

-- rule 34: expected ends
-- When the first running request of each key of these tenants is expected to end: after the mean length of its model.
-- An overdue request is expected to run for the time by which it is overdue. `n` is the position of the tenant, from 1.
-- For a tenant with more than 512 running requests there is no estimate: their mean length divided by their number is
-- as good. The 2,048 newest holds of a tenant are read, because settled ones may wait for the ledger, and those are
-- usually older.
CREATE OR REPLACE FUNCTION expected_ends(p_now_ms bigint, p_tenant_ids text[])
RETURNS TABLE (n bigint, key_id text, ends_in_ms bigint) LANGUAGE sql STABLE AS $$
  SELECT u.n, h.key_id, min(abs(m.mean_ms - greatest(0, now_us(p_now_ms) / 1000 - h.admitted_ms)))
  FROM unnest(p_tenant_ids) WITH ORDINALITY AS u (tenant_id, n)
  JOIN tenant t ON t.tenant_id = u.tenant_id AND t.in_flight BETWEEN 1 AND 512
  CROSS JOIN LATERAL (SELECT * FROM hold o WHERE o.tenant_id = t.tenant_id ORDER BY o.id DESC LIMIT 2048) h
  JOIN LATERAL (
    SELECT t.model_means[i] AS model, t.model_means[i + 1]::bigint AS mean_ms
    FROM generate_series(1, cardinality(t.model_means), 2) i) m ON m.model = model_of(h.record)
  WHERE h.state = 'pending' AND h.admitted_ms IS NOT NULL
  GROUP BY u.n, h.key_id
$$;
