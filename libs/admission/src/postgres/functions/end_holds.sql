-- rule 18: the end of a hold
-- The only place where holds end. Gives back the held amount, the concurrency slot and the difference of tokens. With a
-- cost, the hold becomes settled with this record. Without a cost (null), it is removed. A hold ends once: its first
-- end stands. `p_month` is the month in which the request ended. The caller has locked the tenants, and no id may occur
-- twice. Returns one row for each element; `n` is its position from 1. code: 'settled', 'repeated' (with the record in
-- force), 'void', 'over_hold' (nothing changed), 'forbidden'.
CREATE OR REPLACE FUNCTION end_holds(
  p_now_us bigint,
  p_id text[], p_tenant_id text[], p_cost_nanos bigint[], p_tokens bigint[], p_month int[], p_record text[])
RETURNS TABLE (n bigint, code text, record text)
LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
  v_month int := month_of(p_now_us);
  r record;
  v_ends boolean;
  v_void text[] := '{}';
  v_settled text[] := '{}';
  v_costs bigint[] := '{}';
  v_records text[] := '{}';
  v_count bigint;
  -- Sums of the current tenant and key.
  t_held bigint := 0;
  t_settled bigint := 0;
  t_spent bigint := 0;
  t_count bigint := 0;
  t_us bigint := 0;
  t_length_ms bigint := 0;
  -- The model of all that end. '': they are of several.
  t_model text;
  k_held bigint := 0;
  k_spent bigint := 0;
  k_count bigint := 0;
  k_us bigint := 0;
BEGIN
  FOR r IN
    SELECT a.*, h.key_id, h.state, h.hold_nanos, h.hold_tokens, h.key_tokens_per_minute, h.tenant_tokens_per_minute,
      hold_length_ms(h.admitted_ms, p_now_us) AS length_ms, model_of(h.record) AS model, h.record AS standing,
      lead(a.tenant_id) OVER w AS next_tenant_id, lead(h.key_id) OVER w AS next_key_id
    FROM unnest(p_id, p_tenant_id, p_cost_nanos, p_tokens, p_month, p_record)
      WITH ORDINALITY AS a (id, tenant_id, cost_nanos, tokens, month, record, n)
    -- LIMIT keeps this a look-up by primary key, whatever size the planner assumes for the table.
    LEFT JOIN LATERAL (SELECT o.* FROM hold o WHERE o.id = a.id AND o.tenant_id = a.tenant_id LIMIT 1) h ON true
    WINDOW w AS (ORDER BY a.tenant_id COLLATE "C", h.key_id, a.n)
    ORDER BY a.tenant_id COLLATE "C", h.key_id, a.n
  LOOP
    n := r.n;
    record := NULL;
    v_ends := false;
    IF r.state IS NULL THEN
      code := 'forbidden';
    ELSIF r.state = 'settled' THEN
      code := CASE WHEN r.cost_nanos IS NULL THEN 'forbidden' ELSE 'repeated' END;
      record := r.standing;
    ELSIF r.cost_nanos > r.hold_nanos THEN
      code := 'over_hold';
    ELSIF r.cost_nanos IS NULL THEN
      code := 'void';
      v_ends := true;
      v_void := v_void || r.id;
    ELSE
      code := 'settled';
      v_ends := true;
      v_settled := v_settled || r.id;
      v_costs := v_costs || r.cost_nanos;
      v_records := v_records || r.record;
    END IF;
    RETURN NEXT;

    IF v_ends THEN
      k_held := k_held + r.hold_nanos;
      k_count := k_count + 1;
      -- rule 20: token correction
      k_us := k_us + bucket_us(r.tokens, r.key_tokens_per_minute) - bucket_us(r.hold_tokens, r.key_tokens_per_minute);
      t_us := t_us
        + bucket_us(r.tokens, r.tenant_tokens_per_minute) - bucket_us(r.hold_tokens, r.tenant_tokens_per_minute);
      -- rule 21: mean length of holds
      t_length_ms := t_length_ms + r.length_ms;
      IF t_model IS DISTINCT FROM r.model THEN
        t_model := CASE WHEN t_model IS NULL THEN r.model ELSE '' END;
      END IF;
      IF r.cost_nanos IS NOT NULL THEN
        t_settled := t_settled + r.cost_nanos;
        -- rule 19: spent in the month
        -- The cost of an older month does not count against this month's budget. A sum of a month in the future by this
        -- clock continues as this month's. Otherwise it would stay until the clock gets there, which may be years after
        -- a jump.
        IF r.month >= v_month THEN
          k_spent := k_spent + r.cost_nanos;
        END IF;
      END IF;
    END IF;

    IF k_count > 0 AND (r.next_key_id, r.next_tenant_id) IS DISTINCT FROM (r.key_id, r.tenant_id) THEN
      UPDATE key_state s SET pending_nanos = s.pending_nanos - k_held, in_flight = s.in_flight - k_count,
          spent_nanos = k_spent + CASE WHEN s.month >= v_month THEN s.spent_nanos ELSE 0 END, month = v_month,
          -- rule 20: token correction
          -- Starts at the bucket's state by this clock. Without a difference the buckets stay as they were written.
          requests_full_us = s.requests_full_us
            - CASE WHEN k_us = 0 THEN 0 ELSE ahead_us(s.buckets_written_us, s.requests_full_us, p_now_us) END,
          tokens_full_us = CASE WHEN k_us = 0 THEN s.tokens_full_us
            ELSE k_us + full_us(s.tokens_full_us, s.buckets_written_us, s.requests_full_us, p_now_us) END,
          buckets_written_us = CASE WHEN k_us = 0 THEN s.buckets_written_us ELSE p_now_us END
        WHERE s.tenant_id = r.tenant_id AND s.key_id = r.key_id;
      t_held := t_held + k_held;
      t_count := t_count + k_count;
      t_spent := t_spent + k_spent;
      -- Only then: an expression is prepared anew in each transaction that evaluates it.
      IF r.next_tenant_id IS NOT NULL THEN
        k_held := 0;
        k_count := 0;
        k_spent := 0;
        k_us := 0;
      END IF;
    END IF;
    IF t_count > 0 AND r.next_tenant_id IS DISTINCT FROM r.tenant_id THEN
      UPDATE tenant s SET pending_nanos = s.pending_nanos - t_held, settled_nanos = s.settled_nanos + t_settled,
          in_flight = s.in_flight - t_count,
          hold_mean_ms = next_mean_ms(s.hold_mean_ms, t_length_ms / t_count),
          model_means = CASE
            -- One model, as most calls have, and the newest already.
            WHEN s.model_means[1] = t_model THEN
              ARRAY[t_model, next_mean_ms(s.model_means[2]::bigint, t_length_ms / t_count)::text] || s.model_means[3:]
            ELSE next_model_means(s.model_means, s.tenant_id, v_void || v_settled, p_now_us) END,
          spent_nanos = t_spent + CASE WHEN s.month >= v_month THEN s.spent_nanos ELSE 0 END, month = v_month,
          requests_full_us = s.requests_full_us
            - CASE WHEN t_us = 0 THEN 0 ELSE ahead_us(s.buckets_written_us, s.requests_full_us, p_now_us) END,
          tokens_full_us = CASE WHEN t_us = 0 THEN s.tokens_full_us
            ELSE t_us + full_us(s.tokens_full_us, s.buckets_written_us, s.requests_full_us, p_now_us) END,
          buckets_written_us = CASE WHEN t_us = 0 THEN s.buckets_written_us ELSE p_now_us END
        WHERE s.tenant_id = r.tenant_id;
      IF r.next_tenant_id IS NOT NULL THEN
        t_held := 0;
        t_settled := 0;
        t_spent := 0;
        t_count := 0;
        t_us := 0;
        t_length_ms := 0;
        t_model := NULL;
      END IF;
    END IF;
  END LOOP;

  -- The rows themselves, in one statement each. Looked up by key and not joined: a plan made for a small table must not
  -- scan a large one.
  IF v_settled <> '{}' THEN
    UPDATE hold o SET state = 'settled', cost_nanos = v_costs[array_position(v_settled, o.id)],
        record = v_records[array_position(v_settled, o.id)]::json,
        delivered = NULL, settled_ms = p_now_us / 1000
      WHERE o.id = ANY (v_settled) AND o.state = 'pending';
    GET DIAGNOSTICS v_count = ROW_COUNT;
    IF v_count <> cardinality(v_settled) THEN
      RAISE EXCEPTION 'an id twice in one call, or a tenant that is not locked';
    END IF;
  END IF;
  IF v_void <> '{}' THEN
    DELETE FROM hold o WHERE o.id = ANY (v_void) AND o.state = 'pending';
    GET DIAGNOSTICS v_count = ROW_COUNT;
    IF v_count <> cardinality(v_void) THEN
      RAISE EXCEPTION 'an id twice in one call, or a tenant that is not locked';
    END IF;
  END IF;
END
$$;

-- The store calls end_holds at once: through this function a settlement takes a sixth longer. It is for processes of a
-- former version.
CREATE OR REPLACE FUNCTION settle(
  p_now_ms bigint,
  p_id text[], p_tenant_id text[], p_cost_nanos bigint[], p_tokens bigint[], p_month int[], p_record text[])
RETURNS TABLE (n bigint, code text, record text)
LANGUAGE plpgsql AS $$
BEGIN
  RETURN QUERY
    SELECT * FROM end_holds(
      locked_us(p_now_ms, p_tenant_id), p_id, p_tenant_id, p_cost_nanos, p_tokens, p_month, p_record);
END
$$;

-- Returns the positions of the holds that were pending.
CREATE OR REPLACE FUNCTION void_holds(p_now_ms bigint, p_id text[], p_tenant_id text[]) RETURNS SETOF bigint
LANGUAGE plpgsql AS $$
DECLARE
  v_nothing bigint[] := array_fill(NULL::bigint, ARRAY[cardinality(p_id)]);
  v_zero bigint[] := array_fill(0::bigint, ARRAY[cardinality(p_id)]);
BEGIN
  RETURN QUERY
    SELECT e.n
    FROM end_holds(
      locked_us(p_now_ms, p_tenant_id), p_id, p_tenant_id, v_nothing, v_zero, v_nothing::int[], v_nothing::text[]) e
    WHERE e.code = 'void';
END
$$;
