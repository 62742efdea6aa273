-- The sweep: expired holds, and settlements that the ledger has not confirmed.

-- rule 24: the expired event
-- The usage event of an expired pending hold: its draft, what was recorded as delivered, and the cost, which is at most
-- the held amount.
CREATE OR REPLACE FUNCTION expired_event(h hold, p_cost_nanos bigint) RETURNS text LANGUAGE sql STABLE AS $$
  SELECT (h.record::jsonb || h.delivered || jsonb_build_object(
    'costNanos', p_cost_nanos::text,
    'overrunNanos', ((h.delivered ->> 'costNanos')::bigint - p_cost_nanos)::text,
    'estimated', true,
    'outcome', 'expired',
    'endedAt', to_char(
      to_timestamp(h.progressed_ms / 1000.0) AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')))::text
$$;

-- Whether that event can be made, if anything was delivered, and its month is known. A hold for which they cannot stays
-- pending, and keeps no other from its end: it is logged, and reconcile names it. Nothing of ours writes such a hold.
CREATE OR REPLACE FUNCTION can_expire(h hold) RETURNS boolean LANGUAGE plpgsql STABLE AS $$
DECLARE
  v_cost_nanos bigint;
BEGIN
  PERFORM month_of(h.progressed_ms * 1000);
  v_cost_nanos := h.delivered ->> 'costNanos';
  RETURN h.delivered IS NULL OR coalesce(
    v_cost_nanos >= 0
      AND (h.delivered ->> 'promptTokens')::bigint + (h.delivered ->> 'completionTokens')::bigint >= 0
      AND expired_event(h, v_cost_nanos) IS NOT NULL,
    false);
EXCEPTION WHEN data_exception THEN
  RETURN false;
END
$$;

-- The records of at most `p_limit` holds that expire now, and of at most `p_limit` settled holds that the ledger has
-- not confirmed for p_confirm_after_ms.
CREATE OR REPLACE FUNCTION sweep(p_now_ms bigint, p_limit int, p_confirm_after_ms bigint) RETURNS SETOF text
LANGUAGE plpgsql AS $$
DECLARE
  -- From this age on, a settled hold is in the index of unconfirmed ones. Most are confirmed sooner.
  RECENT_MS constant bigint := 5000;
  v_now_us bigint := now_us(p_now_ms);
  v_ids text[] := array(
    SELECT id FROM hold
    WHERE unconfirmed_since_ms IS NULL AND state = 'pending'
      AND (deadline_ms <= v_now_us / 1000 OR progressed_ms > v_now_us / 1000) AND can_expire(hold)
    LIMIT p_limit);
  e record;
  -- The places of those that were charged.
  v_charged bigint[];
BEGIN
  IF cardinality(v_ids) > 0 THEN
    PERFORM lock_tenants(array(SELECT tenant_id FROM hold WHERE id = ANY (v_ids)));
    v_now_us := now_us(p_now_ms);
    -- rule 22: dates in the future
    -- A last heartbeat in the future by this clock counts as now.
    UPDATE hold SET deadline_ms = v_now_us / 1000 + deadline_ms - progressed_ms, progressed_ms = v_now_us / 1000
      WHERE id = ANY (v_ids) AND state = 'pending' AND progressed_ms > v_now_us / 1000;
    -- rule 23: expiry
    -- Under the lock, only holds that are still pending and past their deadline: another sweeper or a heartbeat may
    -- have come first. Each is settled at the recorded progress, or removed if nothing was recorded.
    SELECT array_agg(id) AS ids, array_agg(tenant_id) AS tenant_ids, array_agg(cost_nanos_now) AS costs,
        array_agg(tokens) AS tokens, array_agg(month_of(progressed_ms * 1000)) AS months,
        array_agg(record_now) AS records
      INTO e
      FROM (
        SELECT h.id, h.tenant_id, h.progressed_ms, c.cost_nanos_now,
          coalesce((delivered ->> 'promptTokens')::bigint + (delivered ->> 'completionTokens')::bigint, 0) AS tokens,
          -- Without it a draft that jsonb refuses does no harm.
          CASE WHEN delivered IS NOT NULL THEN expired_event(h, c.cost_nanos_now) END AS record_now
        FROM hold h, LATERAL (
          SELECT least((delivered ->> 'costNanos')::bigint, CASE WHEN delivered IS NOT NULL THEN hold_nanos END)
            AS cost_nanos_now) c
        WHERE id = ANY (v_ids) AND state = 'pending' AND deadline_ms <= v_now_us / 1000) expired;
    IF e.ids IS NOT NULL THEN
      v_charged := array(
        SELECT d.n FROM end_holds(v_now_us, e.ids, e.tenant_ids, e.costs, e.tokens, e.months, e.records) d
        WHERE d.code = 'settled');
      RETURN QUERY SELECT e.records[n] FROM unnest(v_charged) AS n;
      PERFORM settle_expired(e.tenant_ids, array(SELECT e.ids[n] FROM unnest(v_charged) AS n));
    END IF;
  END IF;

  -- rule 25: unconfirmed settlements
  -- Settled holds that are not recent any more get into the index. Like the next statements, it waits for no lock.
  UPDATE hold SET unconfirmed_since_ms = least(settled_ms, v_now_us / 1000)
    WHERE id = ANY (array(
      SELECT id FROM hold
      WHERE unconfirmed_since_ms IS NULL AND state = 'settled'
        AND (coalesce(settled_ms, 0) <= v_now_us / 1000 - least(RECENT_MS, p_confirm_after_ms)
          OR settled_ms > v_now_us / 1000)
      FOR UPDATE SKIP LOCKED));
  -- rule 22: dates in the future
  -- Unconfirmed since a time in the future counts as since now.
  UPDATE hold SET unconfirmed_since_ms = v_now_us / 1000
    WHERE id = ANY (array(
      SELECT id FROM hold WHERE unconfirmed_since_ms > v_now_us / 1000
      ORDER BY unconfirmed_since_ms LIMIT p_limit FOR UPDATE SKIP LOCKED));
  -- rule 25: unconfirmed settlements
  -- Each is handed out again, to one sweeper at a time: the others skip locked rows and rows whose time was moved. The
  -- statement waits for no lock, so its row locks cannot deadlock with the tenants' locks.
  RETURN QUERY UPDATE hold SET unconfirmed_since_ms = v_now_us / 1000
    WHERE id = ANY (array(
      SELECT id FROM hold
      WHERE unconfirmed_since_ms <= v_now_us / 1000 - p_confirm_after_ms AND id <> ALL (v_ids)
      ORDER BY unconfirmed_since_ms LIMIT p_limit FOR UPDATE SKIP LOCKED))
    RETURNING hold.record::text;
END
$$;
