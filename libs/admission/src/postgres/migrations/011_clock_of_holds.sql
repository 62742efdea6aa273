-- A clock that was ahead and is right again: what it stamped on holds and sums must not last until it gets there once more.

-- As in 007, but for two things. A sum of a month that is to come by this clock goes on as this month's, and not until the clock gets there (then it would stay for good, after a jump of years).
-- And no hold counts as longer than an hour: a jump would be in the mean for the next hundred holds.
CREATE OR REPLACE FUNCTION end_holds(p_now_us bigint, p_id text[], p_tenant_id text[], p_cost_nanos bigint[], p_tokens bigint[], p_month int[], p_record text[])
RETURNS TABLE (n bigint, code text, record text)
LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
  LONGEST_HOLD_MS constant bigint := 3600000;
  v_month int := month_of(p_now_us);
  r record;
  v_ends boolean;
  v_void text[] := '{}';
  v_settled text[] := '{}';
  v_costs bigint[] := '{}';
  v_records text[] := '{}';
  v_count bigint;
  -- Sums of the tenant and of the key in hand.
  t_held bigint := 0;
  t_settled bigint := 0;
  t_spent bigint := 0;
  t_count bigint := 0;
  t_us bigint := 0;
  t_length_ms bigint := 0;
  k_held bigint := 0;
  k_spent bigint := 0;
  k_count bigint := 0;
  k_us bigint := 0;
BEGIN
  FOR r IN
    SELECT a.*, h.key_id, h.state, h.hold_nanos, h.hold_tokens, h.key_tokens_per_minute, h.tenant_tokens_per_minute, h.admitted_ms, h.record AS standing,
      lead(a.tenant_id) OVER w AS next_tenant_id, lead(h.key_id) OVER w AS next_key_id
    FROM unnest(p_id, p_tenant_id, p_cost_nanos, p_tokens, p_month, p_record) WITH ORDINALITY AS a (id, tenant_id, cost_nanos, tokens, month, record, n)
    -- LIMIT keeps this a look-up by primary key, whatever size the planner thinks the table has.
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
      k_us := k_us + bucket_us(r.tokens, r.key_tokens_per_minute) - bucket_us(r.hold_tokens, r.key_tokens_per_minute);
      t_us := t_us + bucket_us(r.tokens, r.tenant_tokens_per_minute) - bucket_us(r.hold_tokens, r.tenant_tokens_per_minute);
      t_length_ms := t_length_ms + least(LONGEST_HOLD_MS, greatest(0, p_now_us / 1000 - coalesce(r.admitted_ms, p_now_us / 1000)));
      IF r.cost_nanos IS NOT NULL THEN
        t_settled := t_settled + r.cost_nanos;
        IF r.month >= v_month THEN
          k_spent := k_spent + r.cost_nanos;
        END IF;
      END IF;
    END IF;

    IF k_count > 0 AND (r.next_key_id, r.next_tenant_id) IS DISTINCT FROM (r.key_id, r.tenant_id) THEN
      UPDATE key_state s SET pending_nanos = s.pending_nanos - k_held, in_flight = s.in_flight - k_count,
          spent_nanos = k_spent + CASE WHEN s.month >= v_month THEN s.spent_nanos ELSE 0 END, month = v_month
        WHERE s.tenant_id = r.tenant_id AND s.key_id = r.key_id;
      PERFORM correct_tokens(r.tenant_id, r.key_id, p_now_us, k_us);
      t_held := t_held + k_held;
      t_count := t_count + k_count;
      t_spent := t_spent + k_spent;
      k_held := 0;
      k_count := 0;
      k_spent := 0;
      k_us := 0;
    END IF;
    IF t_count > 0 AND r.next_tenant_id IS DISTINCT FROM r.tenant_id THEN
      UPDATE tenant s SET pending_nanos = s.pending_nanos - t_held, settled_nanos = s.settled_nanos + t_settled, in_flight = s.in_flight - t_count,
          hold_mean_ms = next_mean_ms(s.hold_mean_ms, t_length_ms / t_count),
          spent_nanos = t_spent + CASE WHEN s.month >= v_month THEN s.spent_nanos ELSE 0 END, month = v_month
        WHERE s.tenant_id = r.tenant_id;
      PERFORM correct_tokens(r.tenant_id, '', p_now_us, t_us);
      t_held := 0;
      t_settled := 0;
      t_spent := 0;
      t_count := 0;
      t_us := 0;
      t_length_ms := 0;
    END IF;
  END LOOP;

  -- The rows themselves, in one statement each. Looked up by key and not joined: a plan made while the table was small must not scan it when it is large.
  IF v_settled <> '{}' THEN
    UPDATE hold o SET state = 'settled', cost_nanos = v_costs[array_position(v_settled, o.id)], record = v_records[array_position(v_settled, o.id)]::json,
        delivered = NULL, unconfirmed_since_ms = p_now_us / 1000
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

-- As in 004, and puts right what is dated in the future: from now on, whatever the clock said then, a lease to the deadline, and the waiting time until a record is handed out again.
CREATE OR REPLACE FUNCTION sweep(p_now_ms bigint, p_limit int, p_confirm_after_ms bigint) RETURNS SETOF text
LANGUAGE plpgsql AS $$
DECLARE
  v_now_us bigint := now_us(p_now_ms);
  v_ids text[] := array(
    SELECT id FROM hold WHERE state = 'pending' AND (deadline_ms <= v_now_us / 1000 OR progressed_ms > v_now_us / 1000) LIMIT p_limit);
  e record;
BEGIN
  IF cardinality(v_ids) > 0 THEN
    -- 1. Under the lock only those that are still pending and past their deadline: another sweeper or a sign of life may have come first. A last sign of life that is to come by this clock is now.
    PERFORM lock_tenants(array(SELECT tenant_id FROM hold WHERE id = ANY (v_ids)));
    v_now_us := now_us(p_now_ms);
    UPDATE hold SET deadline_ms = v_now_us / 1000 + deadline_ms - progressed_ms, progressed_ms = v_now_us / 1000
      WHERE id = ANY (v_ids) AND state = 'pending' AND progressed_ms > v_now_us / 1000;
    SELECT array_agg(id) AS ids, array_agg(tenant_id) AS tenant_ids, array_agg(cost_nanos_now) AS costs, array_agg(tokens) AS tokens,
        array_agg(month_of(progressed_ms * 1000)) AS months,
        array_agg((record::jsonb || delivered || jsonb_build_object(
          'costNanos', cost_nanos_now::text,
          'overrunNanos', ((delivered ->> 'costNanos')::bigint - cost_nanos_now)::text,
          'estimated', true,
          'outcome', 'expired',
          'endedAt', to_char(to_timestamp(progressed_ms / 1000.0) AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')))::text) AS records
      INTO e
      FROM (
        SELECT h.*, least((delivered ->> 'costNanos')::bigint, CASE WHEN delivered IS NOT NULL THEN hold_nanos END) AS cost_nanos_now,
          coalesce((delivered ->> 'promptTokens')::bigint + (delivered ->> 'completionTokens')::bigint, 0) AS tokens
        FROM hold h WHERE id = ANY (v_ids) AND state = 'pending' AND deadline_ms <= v_now_us / 1000) expired;
    -- 2. Settled at the recorded progress, or away at none.
    IF e.ids IS NOT NULL THEN
      RETURN QUERY SELECT e.records[d.n] FROM end_holds(v_now_us, e.ids, e.tenant_ids, e.costs, e.tokens, e.months, e.records) d WHERE d.code = 'settled';
    END IF;
  END IF;

  -- 3. Owed since an instant to come: since now. As 4, it waits for nothing.
  UPDATE hold SET unconfirmed_since_ms = v_now_us / 1000
    WHERE id = ANY (array(
      SELECT id FROM hold WHERE state = 'settled' AND unconfirmed_since_ms > v_now_us / 1000
      ORDER BY unconfirmed_since_ms LIMIT p_limit FOR UPDATE SKIP LOCKED));
  -- 4. Handed out again: to one sweeper at a time, as the others pass by locked rows and moved-on ones. It waits for nothing, so its row locks
  -- cannot close a circle with the tenants' locks.
  RETURN QUERY UPDATE hold SET unconfirmed_since_ms = v_now_us / 1000
    WHERE id = ANY (array(
      SELECT id FROM hold
      WHERE state = 'settled' AND unconfirmed_since_ms <= v_now_us / 1000 - p_confirm_after_ms AND id <> ALL (v_ids)
      ORDER BY unconfirmed_since_ms LIMIT p_limit FOR UPDATE SKIP LOCKED))
    RETURNING hold.record::text;
END
$$;
